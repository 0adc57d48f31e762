//! Arithmetic of 32-bit words, as in `bellpepper::gadgets::uint32`.
//!
//! Words are bellpepper's [`UInt32`]; its rotations and shifts cost no variable and are its own.

use bellpepper::gadgets::multieq::MultiEq;
pub use bellpepper::gadgets::uint32::UInt32;
use bellpepper_core::boolean::Boolean;
use bellpepper_core::{ConstraintSystem, SynthesisError};
use ff013::PrimeField;

use super::lanes::{Lanes, allocated_bit, booleans};
use super::{WitnessWriter, WordPass, word_pass};

/// A word whose bits are variables: `UInt32::alloc`.
pub fn alloc<F, CS>(mut cs: CS, value: Option<u32>) -> Result<UInt32, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    word_pass(&mut cs, |words| {
        let value = u64::from(value.ok_or(SynthesisError::AssignmentMissing)?);
        let first = words.next_aux();
        words.push_bits(value, u32::BITS);
        Ok(UInt32::from_bits(&booleans::<F>(value, 32, Some(first))))
    })
    .unwrap_or_else(|| UInt32::alloc(cs, value))
}

/// The exclusive or: `UInt32::xor`.
pub fn xor<F, CS>(mut cs: CS, a: &UInt32, b: &UInt32) -> Result<UInt32, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    let of_variables = |words: &mut WitnessWriter<'_>, [a, b]: [Lanes; 2]| (a.xor(b, words), 1);
    combine::<F, CS, 2>(&mut cs, [a, b], of_variables).unwrap_or_else(|| a.xor(cs, b))
}

/// `UInt32::sha256_ch`: bits of `b` where `a` is 1, of `c` where it is 0.
pub fn sha256_ch<F, CS>(mut cs: CS, a: &UInt32, b: &UInt32, c: &UInt32) -> Result<UInt32, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    let of_variables = |words: &mut WitnessWriter<'_>, [a, b, c]: [Lanes; 3]| (a.ch(b, c, words), 1);
    combine::<F, CS, 3>(&mut cs, [a, b, c], of_variables).unwrap_or_else(|| UInt32::sha256_ch(cs, a, b, c))
}

/// `UInt32::sha256_maj`: the majority of each three bits.
pub fn sha256_maj<F, CS>(mut cs: CS, a: &UInt32, b: &UInt32, c: &UInt32) -> Result<UInt32, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    let of_variables = |words: &mut WitnessWriter<'_>, [a, b, c]: [Lanes; 3]| (a.maj(b, c, words), 2);
    combine::<F, CS, 3>(&mut cs, [a, b, c], of_variables).unwrap_or_else(|| UInt32::sha256_maj(cs, a, b, c))
}

/// The word pass of an operation on words without constants, which allocates the same number of variables in each lane, the
/// result first. None otherwise: bellpepper's own gadget then goes bit by bit.
fn combine<F, CS, const N: usize>(
    cs: &mut CS,
    terms: [&UInt32; N],
    operation: impl FnOnce(&mut WitnessWriter<'_>, [Lanes; N]) -> (Lanes, usize),
) -> Option<Result<UInt32, SynthesisError>>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    let written = word_pass(cs, |words| {
        let mut lanes = [Lanes::constant(0); N];
        for (lanes, term) in lanes.iter_mut().zip(terms) {
            *lanes = Lanes::of(term.clone().into_bits().iter())?;
        }
        if lanes.iter().any(|lanes| lanes.constant != 0) {
            return Ok(None);
        }
        let first = words.next_aux();
        let (result, stride) = operation(words, lanes);
        let bit = |lane: usize| {
            let (value, negated) = (result.value >> lane & 1 == 1, result.negated >> lane & 1 == 1);
            let bit = Boolean::from(allocated_bit::<F>(first + stride * lane, value ^ negated));
            if negated { bit.not() } else { bit }
        };
        Ok(Some(UInt32::from_bits(&std::array::from_fn::<_, 32, _>(bit))))
    });
    written?.transpose()
}

/// Sums of 2 to 10 words each, modulo 2^32: `UInt32::addmany`, in a namespace `sum i`, of constraints that share rows as
/// far as they fit.
pub fn sums<F, CS>(mut cs: CS, sums: &[&[UInt32]]) -> Result<Vec<UInt32>, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    word_pass(&mut cs, |words| sums.iter().map(|terms| sum::<F>(terms, words)).collect()).unwrap_or_else(|| {
        let mut cs = MultiEq::new(cs);
        let sum = |(i, terms): (usize, &&[UInt32])| UInt32::addmany(cs.namespace(|| format!("sum {i}")), terms);
        sums.iter().enumerate().map(sum).collect()
    })
}

fn sum<F: PrimeField>(terms: &[UInt32], words: &mut WitnessWriter<'_>) -> Result<UInt32, SynthesisError> {
    assert!((2..=10).contains(&terms.len()), "a sum of {} words", terms.len());
    let lanes = terms.iter().map(|term| Lanes::of(term.clone().into_bits().iter()));
    let lanes = lanes.collect::<Result<Vec<_>, SynthesisError>>()?;
    let first = words.next_aux();
    let sum = Lanes::sum(&lanes, words);
    Ok(UInt32::from_bits(&booleans::<F>(sum.value.into(), 32, (!sum.is_constant()).then_some(first))))
}
