//! The prover that the others are tested against: Groth16 as bellman computes it, by the shortest code.

use crate::domain::Domain;
use crate::key::{HBasis, ProvingKey};
use crate::msm::naive;
use crate::r1cs::{MatrixId, R1cs};
use crate::{Proof, Scalar};
use ff::Field;
use group::Curve;

/// Prove from a key with monomial H. Slow, and not for use: see `Prover::prove_with_fixed_blinding_for_tests`.
///
/// Panics if the key has another basis or z is not [1, publics, aux] of this circuit.
pub fn prove_with_fixed_blinding_for_tests(key: &ProvingKey, r1cs: &R1cs, z: &[Scalar], r: Scalar, s: Scalar) -> Proof {
    assert_eq!(key.h_basis, HBasis::Monomial, "the reference prover reads monomial keys");
    let publics = 1 + key.public_count as usize;
    let vk = &key.vk;
    let a = naive(&key.a, &marked(z, &key.a_density));
    let b_g1 = naive(&key.b_g1, &marked(z, &key.b_density));
    let b_g2 = naive(&key.b_g2, &marked(z, &key.b_density));
    let h = naive(&key.h, &quotient(key, r1cs, z));
    let l = naive(&key.l, &z[publics..]);

    let a = a + vk.alpha_g1 + vk.delta_g1 * r;
    let b_g1 = b_g1 + vk.beta_g1 + vk.delta_g1 * s;
    let b_g2 = b_g2 + vk.beta_g2 + vk.delta_g2 * s;
    let c = h + l + a * s + b_g1 * r - vk.delta_g1 * (r * s);
    Proof { a: a.to_affine(), b: b_g2.to_affine(), c: c.to_affine() }
}

/// The values of the variables that a query has points for.
fn marked(z: &[Scalar], density: &[u64]) -> Vec<Scalar> {
    let marked = z.iter().enumerate().filter(|(i, _)| density[i / 64] >> (i % 64) & 1 == 1);
    marked.map(|(_, value)| *value).collect()
}

/// (A B - C) / (X^n - 1), as values on the odd coset, where the divisor is -2, and back.
fn quotient(key: &ProvingKey, r1cs: &R1cs, z: &[Scalar]) -> Vec<Scalar> {
    let domain = Domain::new(key.root, key.log2_domain);
    let [a, b, c] = MatrixId::ALL.map(|id| {
        let mut values = r1cs.evaluate(id, z);
        if id == MatrixId::A {
            values.extend(&z[..=key.public_count as usize]);
        }
        values.resize(domain.size(), Scalar::ZERO);
        domain.bit_reverse(&mut values);
        domain.interpolate(&mut values);
        domain.evaluate_coset(&mut values);
        values
    });
    let minus_half = -Scalar::from(2).invert().expect("two is not zero");
    let mut h: Vec<Scalar> = (0..domain.size()).map(|i| (a[i] * b[i] - c[i]) * minus_half).collect();
    domain.interpolate_coset(&mut h);
    h.truncate(key.h.len());
    h
}
