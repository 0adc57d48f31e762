//! The proof with r = s = 0, and how it becomes one that reveals nothing.

use crate::scalar::SecretScalars;
use crate::{Proof, Scalar, VerifyingKey};
use blstrs::{G1Projective, G2Projective};
use ff::Field;
use group::{Curve, Group};
use rand_core::RngCore;
use zeroize::optimization_barrier;

/// A0 = alpha + sum of z_v A_v, B0 = beta + sum of z_v B_v, C0: a proof that is as secret as the witness until it is
/// randomised. It is zeroed when dropped and has no Debug.
pub struct BaseProof {
    /// A0.
    pub a: G1Projective,
    /// B0.
    pub b: G2Projective,
    /// C0.
    pub c: G1Projective,
}

impl BaseProof {
    /// (rho^-1 A0, rho B0 + rho sigma delta, C0 + sigma A0), rho uniform and not zero, sigma uniform: distributed as
    /// Groth16's own proofs, but for a distance of 1/r, without B in G1. Formula (3) of `ALGEBRA.md`.
    ///
    /// None if A0 is the identity, which no rho can hide.
    pub fn randomise(&self, vk: &VerifyingKey, rng: &mut impl RngCore) -> Option<Proof> {
        if self.a.is_identity().into() {
            return None;
        }
        let mut blinding = SecretScalars::zeros(3);
        let [rho, inverse, sigma] = &mut blinding[..] else { unreachable!("three were asked for") };
        while rho.is_zero_vartime() {
            *rho = Scalar::random(&mut *rng);
        }
        *inverse = rho.invert().expect("rho is not zero");
        *sigma = Scalar::random(rng);
        Some(Proof {
            a: (self.a * *inverse).to_affine(),
            b: ((self.b + vk.delta_g2 * *sigma) * *rho).to_affine(),
            c: (self.c + self.a * *sigma).to_affine(),
        })
    }

    /// The case that [`Self::randomise`] leaves: Groth16's own blinding with uniform r and s; `b_g1` is B0 in G1.
    pub fn randomise_identity(&self, vk: &VerifyingKey, b_g1: &G1Projective, rng: &mut impl RngCore) -> Proof {
        let mut blinding = SecretScalars::zeros(2);
        blinding.iter_mut().for_each(|scalar| *scalar = Scalar::random(&mut *rng));
        self.blind(vk, b_g1, blinding[0], blinding[1])
    }

    /// (A0 + r delta, B0 + s delta, C0 + s A0 + r B0 + r s delta), `b_g1` being B0 in G1.
    pub fn blind(&self, vk: &VerifyingKey, b_g1: &G1Projective, r: Scalar, s: Scalar) -> Proof {
        Proof {
            a: (self.a + vk.delta_g1 * r).to_affine(),
            b: (self.b + vk.delta_g2 * s).to_affine(),
            c: (self.c + self.a * s + b_g1 * r + vk.delta_g1 * (r * s)).to_affine(),
        }
    }
}

impl Drop for BaseProof {
    fn drop(&mut self) {
        (self.a, self.b, self.c) = (G1Projective::identity(), G2Projective::identity(), G1Projective::identity());
        // Without it the compiler may drop stores to memory that is about to be freed.
        optimization_barrier(self);
    }
}
