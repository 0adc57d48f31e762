//! Bits packed into elements, as in `bellpepper::gadgets::multipack`.

use bellpepper::gadgets::multipack as published;
use bellpepper_core::boolean::Boolean;
use bellpepper_core::num::AllocatedNum;
use bellpepper_core::{ConstraintSystem, SynthesisError};
use ff013::PrimeField;

use super::{WordPass, allocated_num, word_pass};

/// The public inputs of some bits, 254 to an input, the least significant first.
pub fn pack_into_inputs<F, CS>(mut cs: CS, bits: &[Boolean]) -> Result<(), SynthesisError>
where
    F: PrimeField<Repr = [u8; 32]>,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    word_pass(&mut cs, |words| {
        for bits in bits.chunks(F::CAPACITY as usize) {
            words.push_public(limbs(bits)?);
        }
        Ok(())
    })
    .unwrap_or_else(|| published::pack_into_inputs(cs, bits))
}

/// The element of up to 254 bits, the least significant first; bits beyond them are left out, as in bellpepper.
pub fn pack_bits<F, CS>(mut cs: CS, bits: &[Boolean]) -> Result<AllocatedNum<F>, SynthesisError>
where
    F: PrimeField<Repr = [u8; 32]>,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    word_pass(&mut cs, |words| {
        let limbs = limbs(&bits[..bits.len().min(F::CAPACITY as usize)])?;
        let variable = words.next_aux();
        words.push_value(limbs);
        allocated_num(variable, element(limbs))
    })
    .unwrap_or_else(|| published::pack_bits(cs, bits))
}

/// The limbs of at most 254 bits.
fn limbs(bits: &[Boolean]) -> Result<[u64; 4], SynthesisError> {
    let mut limbs = [0; 4];
    for (limb, bits) in limbs.iter_mut().zip(bits.chunks(64)) {
        for (i, bit) in bits.iter().enumerate() {
            *limb |= u64::from(bit.get_value().ok_or(SynthesisError::AssignmentMissing)?) << i;
        }
    }
    Ok(limbs)
}

/// The element of canonical limbs below the modulus.
fn element<F: PrimeField<Repr = [u8; 32]>>(limbs: [u64; 4]) -> F {
    let mut repr = [0; 32];
    repr.chunks_exact_mut(8).zip(limbs).for_each(|(bytes, limb)| bytes.copy_from_slice(&limb.to_le_bytes()));
    Option::from(F::from_repr(repr)).expect("254 bits are below the modulus")
}
