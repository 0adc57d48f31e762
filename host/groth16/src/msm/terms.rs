//! What is multiplied with what: the terms of one multi-scalar multiplication, and the plan that the queries of a key share.

use super::digits::SignedScalar;
use crate::Assignment;
use crate::scalar::{Limbs, Scalar, to_canonical};
use crate::secret::SecretBuffer;
use crate::{Encoding, scalar::from_montgomery};
use rayon::prelude::*;

/// Scalars one task converts.
const SCALARS_PER_TASK: usize = 4096;

/// Scalars as numbers of least absolute value, zeroed when dropped.
pub struct SecretSignedScalars(SecretBuffer<SignedScalar>);

impl SecretSignedScalars {
    /// Of field elements.
    pub fn new(scalars: &[Scalar]) -> Self {
        Self::map(scalars, SignedScalar::from)
    }

    /// Of limbs below the modulus.
    fn from_limbs(limbs: &[Limbs], encoding: Encoding) -> Self {
        match encoding {
            Encoding::Canonical => Self::map(limbs, SignedScalar::from_canonical),
            Encoding::Montgomery => Self::map(limbs, |limbs| {
                let element = from_montgomery(limbs).expect("a segment holds reduced elements");
                SignedScalar::from_canonical(&to_canonical(&element))
            }),
        }
    }

    fn map<T: Sync>(from: &[T], convert: impl Fn(&T) -> SignedScalar + Sync) -> Self {
        let mut out = SecretBuffer::zeros(from.len());
        let tasks = out.par_chunks_mut(SCALARS_PER_TASK).zip(from.par_chunks(SCALARS_PER_TASK));
        tasks.for_each(|(out, from)| out.iter_mut().zip(from).for_each(|(out, from)| *out = convert(from)));
        Self(out)
    }
}
