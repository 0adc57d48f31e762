//! Bits of words and of elements, as in `bellpepper_core::boolean`.

use bellpepper_core::boolean::{self as published, AllocatedBit, Boolean};
use bellpepper_core::{ConstraintSystem, SynthesisError};
use ff013::{PrimeField, PrimeFieldBits};

use super::lanes::{allocated_bit, booleans};
use super::{WitnessWriter, WordPass, word_pass};
use crate::fr;

/// The bits of a word, the least significant first, each constrained to be one.
pub fn u64_into_boolean_vec_le<F, CS>(mut cs: CS, value: Option<u64>) -> Result<Vec<Boolean>, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    word_pass(&mut cs, |words| {
        let value = value.ok_or(SynthesisError::AssignmentMissing)?;
        let first = words.next_aux();
        words.push_bits(value, u64::BITS);
        Ok(booleans::<F>(value, u64::BITS as usize, Some(first)))
    })
    .unwrap_or_else(|| published::u64_into_boolean_vec_le(cs, value))
}

/// `count` bits, each constrained to be one: bit i is bit i mod 64 of limb i / 64. Each is `AllocatedBit::alloc` in a
/// namespace `bit i`.
pub fn bits_from_limbs<F, CS>(mut cs: CS, count: usize, limbs: Option<&[u64]>) -> Result<Vec<Boolean>, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    let bit = |limbs: &[u64], i: usize| limbs.get(i / 64).map(|limb| limb >> (i % 64) & 1 == 1);
    word_pass(&mut cs, |words| {
        let limbs = limbs.filter(|limbs| 64 * limbs.len() >= count).ok_or(SynthesisError::AssignmentMissing)?;
        let first = words.next_aux();
        push_limbs(words, count, limbs);
        let boolean = |i| allocated_bit::<F>(first + i, limbs[i / 64] >> (i % 64) & 1 == 1).into();
        Ok((0..count).map(boolean).collect())
    })
    .unwrap_or_else(|| {
        let alloc = |i| AllocatedBit::alloc(cs.namespace(|| format!("bit {i}")), limbs.and_then(|limbs| bit(limbs, i)));
        (0..count).map(alloc).map(|bit| bit.map(Boolean::from)).collect()
    })
}

/// The bits of an element, the least significant first, each constrained to be one. That they are those of the element is
/// left to the caller to constrain, as in bellpepper.
pub fn field_into_boolean_vec_le<F, CS>(cs: CS, value: Option<F>) -> Result<Vec<Boolean>, SynthesisError>
where
    F: PrimeFieldBits<Repr = [u8; 32]>,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    Ok(field_into_allocated_bits_le(cs, value)?.into_iter().map(Boolean::from).collect())
}

/// The bits of an element as [`field_into_boolean_vec_le`], as variables.
pub fn field_into_allocated_bits_le<F, CS>(mut cs: CS, value: Option<F>) -> Result<Vec<AllocatedBit>, SynthesisError>
where
    F: PrimeFieldBits<Repr = [u8; 32]>,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    word_pass(&mut cs, |words| {
        let value = value.ok_or(SynthesisError::AssignmentMissing)?;
        let limbs = fr::limbs_from_le_bytes(&value.to_repr());
        let (first, count) = (words.next_aux(), F::NUM_BITS as usize);
        push_limbs(words, count, &limbs);
        Ok((0..count).map(|i| allocated_bit::<F>(first + i, limbs[i / 64] >> (i % 64) & 1 == 1)).collect())
    })
    .unwrap_or_else(|| published::field_into_allocated_bits_le(cs, value))
}

/// Append the first `count` bits of some limbs.
fn push_limbs(words: &mut WitnessWriter<'_>, count: usize, limbs: &[u64]) {
    for (i, limb) in limbs.iter().enumerate().take(count.div_ceil(64)) {
        match count - 64 * i {
            left @ 1..64 => words.push_bits(limb & ((1 << left) - 1), left as u32),
            _ => words.push_bits(*limb, 64),
        }
    }
}
