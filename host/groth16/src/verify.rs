//! The verifier: one proof, or many at once.
//!
//! e(A, B) = e(alpha, beta) e(sum x_i IC_i, gamma) e(C, delta), Groth16, <https://eprint.iacr.org/2016/260>. Several
//! proofs are combined with random coefficients, which leaves one final exponentiation and, per proof, one Miller loop.

use crate::key::VerifierKey;
use crate::msm::{SecretSignedScalars, Terms, msm, naive};
use crate::points::G1Point;
use crate::{Proof, Scalar, VerifyingKey};
use blst::{blst_fp12, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G1Projective, G2Affine};
use ff::Field;
use group::{Group, prime::PrimeCurveAffine};
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use rayon::prelude::*;
use std::ptr;

/// Why a proof is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// Another number of public inputs than the key has.
    #[error("{found} public inputs were given, the verifying key is for {expected}")]
    PublicCount {
        /// What the key is for.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// The proof is false.
    #[error("the proof is not valid for this verifying key and these public inputs")]
    Invalid,
    /// One of several is not accepted.
    #[error("proof {index} of the batch: {cause}")]
    InBatch {
        /// Its index in the batch, from 0.
        index: usize,
        /// Why.
        cause: Box<VerifyError>,
    },
}

/// A proof and the public inputs it is for, the constant one excluded.
pub type Claim<'a> = (&'a Proof, &'a [Scalar]);

/// A verifying key, ready to verify.
#[derive(Clone)]
pub struct PreparedVerifyingKey {
    alpha_g1: G1Affine,
    neg_beta_g2: G2Affine,
    neg_gamma_g2: G2Affine,
    neg_delta_g2: G2Affine,
    /// The Miller loop of alpha and beta.
    alpha_beta: blst_fp12,
    ic: Vec<G1Affine>,
}

impl From<&VerifyingKey> for PreparedVerifyingKey {
    fn from(vk: &VerifyingKey) -> Self {
        Self::from(&VerifierKey::from(vk))
    }
}

impl From<&VerifierKey> for PreparedVerifyingKey {
    fn from(vk: &VerifierKey) -> Self {
        Self {
            alpha_g1: vk.alpha_g1,
            neg_beta_g2: -vk.beta_g2,
            neg_gamma_g2: -vk.gamma_g2,
            neg_delta_g2: -vk.delta_g2,
            alpha_beta: miller_loops(&[(vk.alpha_g1, vk.beta_g2)]),
            ic: vk.ic.clone(),
        }
    }
}

impl PreparedVerifyingKey {
    /// Public inputs, the constant one excluded.
    pub fn public_count(&self) -> usize {
        self.ic.len().saturating_sub(1)
    }

    /// Verify one proof.
    pub fn verify(&self, proof: &Proof, publics: &[Scalar]) -> Result<(), VerifyError> {
        self.check_count(publics)?;
        let inputs = self.combine_ic(Scalar::ONE, publics);
        let pairs = [(proof.a, proof.b), (inputs.into(), self.neg_gamma_g2), (proof.c, self.neg_delta_g2)];
        match blst_fp12::finalverify(&miller_loops(&pairs), &self.alpha_beta) {
            true => Ok(()),
            false => Err(VerifyError::Invalid),
        }
    }

    /// Verify several proofs by this key at once: a false one passes with probability below 2^-126. If the batch fails,
    /// its proofs are verified one by one and the first false one is named.
    pub fn verify_batch(&self, claims: &[Claim]) -> Result<(), VerifyError> {
        let in_batch = |index| move |cause| VerifyError::InBatch { index, cause: Box::new(cause) };
        for (index, (_, publics)) in claims.iter().enumerate() {
            self.check_count(publics).map_err(in_batch(index))?;
        }
        if claims.is_empty() || self.batch_holds(claims) {
            return Ok(());
        }
        let verified = claims
            .par_iter()
            .enumerate()
            .map(|(index, (proof, publics))| self.verify(proof, publics).map_err(in_batch(index)));
        verified.find_map_first(Result::err).map_or(Ok(()), Err)
    }

    fn check_count(&self, publics: &[Scalar]) -> Result<(), VerifyError> {
        let (expected, found) = (self.public_count(), publics.len());
        if expected == found { Ok(()) } else { Err(VerifyError::PublicCount { expected, found }) }
    }

    /// one * IC_0 + sum of x_i * IC_i. Publics are no secret, so bits, which whoever hashes has hundreds of, cost an addition.
    fn combine_ic(&self, one: Scalar, publics: &[Scalar]) -> G1Projective {
        // Fewer products are made one by one.
        const LEAST_MSM: usize = 8;
        let (mut sum, mut points, mut scalars) = (G1Projective::identity(), vec![], vec![]);
        for (point, x) in self.ic.iter().zip([&one].into_iter().chain(publics)) {
            if *x == Scalar::ONE {
                sum += point;
            } else if !x.is_zero_vartime() {
                points.push(G1Point::from(*point));
                scalars.push(*x);
            }
        }
        if points.len() < LEAST_MSM {
            return sum + naive(&points, &scalars);
        }
        sum + msm(&points, &Terms::in_order(&SecretSignedScalars::new(&scalars)))
    }

    /// prod e(c_j A_j, B_j) e(sum c_j IC(x_j), -gamma) e(sum c_j C_j, -delta) e(sum c_j alpha, -beta) = 1.
    fn batch_holds(&self, claims: &[Claim]) -> bool {
        // Proofs per task: Miller loops of one call share their squarings.
        const PROOFS_PER_TASK: usize = 8;
        let mut rng = ChaCha20Rng::from_rng(OsRng).expect("the operating system has randomness");
        let coefficients: Vec<[u8; 16]> = claims.iter().map(|_| nonzero_coefficient(&mut rng)).collect();

        let tasks = claims.par_chunks(PROOFS_PER_TASK).zip(coefficients.par_chunks(PROOFS_PER_TASK));
        let (product, c) = tasks
            .map(|(claims, coefficients)| {
                let mut pairs = Vec::with_capacity(PROOFS_PER_TASK);
                let mut c = G1Projective::identity();
                for ((proof, _), coefficient) in claims.iter().zip(coefficients) {
                    pairs.push((multiply(&proof.a, coefficient).into(), proof.b));
                    c += multiply(&proof.c, coefficient);
                }
                (miller_loops(&pairs), c)
            })
            .reduce(|| (blst_fp12::default(), G1Projective::identity()), |(f, c), (g, d)| (times(f, g), c + d));

        let mut sum = Scalar::ZERO;
        let mut inputs = vec![Scalar::ZERO; self.public_count()];
        for ((_, publics), bytes) in claims.iter().zip(&coefficients) {
            let (low, high) = bytes.split_at(8);
            let limb = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
            let coefficient = crate::scalar::from_canonical(&[limb(low), limb(high), 0, 0]).expect("below 2^128");
            sum += coefficient;
            inputs.iter_mut().zip(*publics).for_each(|(input, x)| *input += coefficient * x);
        }
        let fixed = miller_loops(&[
            (self.combine_ic(sum, &inputs).into(), self.neg_gamma_g2),
            (c.into(), self.neg_delta_g2),
            ((self.alpha_g1 * sum).into(), self.neg_beta_g2),
        ]);
        blst_fp12::finalverify(&times(product, fixed), &blst_fp12::default())
    }
}

/// 128 random bits, not all zero: a coefficient of zero would drop its proof.
fn nonzero_coefficient(rng: &mut ChaCha20Rng) -> [u8; 16] {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    bytes[0] |= 1;
    bytes
}

/// The product by a number of 128 bits, little-endian.
fn multiply(point: &G1Affine, number: &[u8; 16]) -> G1Projective {
    let point = point.to_curve();
    let mut out = G1Projective::identity();
    // SAFETY: the scalar is 16 bytes for the 128 bits announced; the points are plain values.
    unsafe { blst::blst_p1_mult(out.as_mut(), point.as_ref(), number.as_ptr(), 128) };
    out
}

fn times(mut a: blst_fp12, b: blst_fp12) -> blst_fp12 {
    a *= b;
    a
}

/// The product of the Miller loops of some pairs; a pair with the identity contributes one. No pairs give one.
fn miller_loops(pairs: &[(G1Affine, G2Affine)]) -> blst_fp12 {
    let finite = pairs.iter().filter(|(p, q)| !bool::from(p.is_identity() | q.is_identity()));
    let (ps, qs): (Vec<blst_p1_affine>, Vec<blst_p2_affine>) = finite.map(|(p, q)| (*p.as_ref(), *q.as_ref())).unzip();
    let mut out = blst_fp12::default();
    if !ps.is_empty() {
        // A null pointer after the first tells blst that the points follow each other in memory.
        let (p, q) = ([ps.as_ptr(), ptr::null()], [qs.as_ptr(), ptr::null()]);
        // SAFETY: p and q point to ps.len() points each, which live until the call returns.
        unsafe { blst::blst_miller_loop_n(&mut out, q.as_ptr(), p.as_ptr(), ps.len()) };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with products added one by one.
    fn check(one: Scalar, publics: &[Scalar]) {
        let g1 = |factor| G1Affine::from(G1Projective::generator() * Scalar::from(factor));
        let key = PreparedVerifyingKey {
            alpha_g1: g1(1),
            neg_beta_g2: G2Affine::generator(),
            neg_gamma_g2: G2Affine::generator(),
            neg_delta_g2: G2Affine::generator(),
            alpha_beta: blst_fp12::default(),
            // Repeated and opposite points among them, and infinity, as of a public input that no constraint has.
            ic: (0..=publics.len() as u64).map(|i| if i % 5 == 4 { -g1(i % 7) } else { g1(i % 7) }).collect(),
        };
        let scalars = [&[one], publics].concat();
        let expected: G1Projective = key.ic.iter().zip(&scalars).map(|(point, x)| point * x).sum();
        assert_eq!(key.combine_ic(one, publics), expected, "{} publics", publics.len());
    }

    #[test]
    fn combined_publics_are_the_products_added_one_by_one() {
        let mut last = Scalar::from(3);
        let mut random = || {
            last = last.square() + Scalar::ONE;
            last
        };
        for count in (0..40).chain([127, 128, 129, 300]) {
            check(Scalar::ONE, &vec![Scalar::ZERO; count]);
            check(Scalar::ONE, &vec![Scalar::ONE; count]);
            check(Scalar::ONE, &vec![-Scalar::ONE; count]);
            check(
                random(),
                &(0..count).map(|i| if i % 3 == 0 { random() } else { Scalar::from(i as u64 % 3) }).collect::<Vec<_>>(),
            );
            check(random(), &(0..count).map(|_| random()).collect::<Vec<_>>());
        }
    }
}
