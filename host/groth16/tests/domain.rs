//! The transforms, against evaluation point by point.

mod common;

use common::random_scalars;
use ff::Field;
use zkhost_groth16::Scalar;
use zkhost_groth16::domain::Domain;
use zkhost_groth16::key::RootGenerator;

fn value_at(coefficients: &[Scalar], point: Scalar) -> Scalar {
    coefficients.iter().rev().fold(Scalar::ZERO, |value, coefficient| value * point + coefficient)
}

/// Both transforms of a domain and their inverses, at every point if the domain is small, at some if it is not.
fn check(generator: RootGenerator, log2: u32) {
    let domain = Domain::new(generator, log2);
    let coefficients = random_scalars(u64::from(log2), domain.size());
    let (omega, eta) = (generator.root_of_unity(log2), generator.root_of_unity(log2 + 1));
    assert_eq!(eta.square(), omega);

    let mut on_domain = coefficients.clone();
    domain.evaluate(&mut on_domain);
    let mut on_coset = coefficients.clone();
    domain.evaluate_coset(&mut on_coset);
    let step = (domain.size() / 32).max(1);
    for i in (0..domain.size()).step_by(step) {
        let point = omega.pow_vartime([domain.reversed(i) as u64]);
        assert_eq!(on_domain[i], value_at(&coefficients, point), "2^{log2}, value {i}");
        assert_eq!(on_coset[i], value_at(&coefficients, eta * point), "2^{log2}, coset value {i}");
    }

    domain.interpolate(&mut on_domain);
    assert!(on_domain == coefficients, "2^{log2}, interpolated");
    domain.interpolate_coset(&mut on_coset);
    assert!(on_coset == coefficients, "2^{log2}, interpolated from the coset");
}

/// Results that were wrong below 2^14. From 2^11 on transforms are split over threads.
#[test]
fn gpusnarks_i15_domains_from_1_to_2_to_the_14() {
    for log2 in 0..=14 {
        check(RootGenerator::Seven, log2);
    }
}

/// snarkjs's root of unity.
#[test]
fn transforms_agree_with_evaluation_by_the_other_generator() {
    for log2 in 0..=10 {
        check(RootGenerator::Five, log2);
    }
}

#[test]
fn bit_reversal_is_its_own_inverse() {
    for log2 in 0..8 {
        let domain = Domain::new(RootGenerator::Seven, log2);
        let mut indices: Vec<usize> = (0..domain.size()).collect();
        domain.bit_reverse(&mut indices);
        assert!(indices.iter().enumerate().all(|(i, &j)| domain.reversed(i) == j));
        domain.bit_reverse(&mut indices);
        assert!(indices.iter().enumerate().all(|(i, &j)| i == j));
    }
}
