//! Development keys: the same as the `groth16` crate makes from the same secrets, and for circuits that it refuses.

mod common;

use bls12_381::{Bls12, G1Projective as OtherG1, G2Projective as OtherG2, Scalar as OtherScalar};
use blstrs::{G1Affine, G1Projective};
use common::{ForBellman, Term, fixture, random_circuit, record};
use ff::Field;
use group::Group;
use proptest::prelude::*;
use zkhost_groth16::formats::{ExportError, read_r1cs, write_params, write_vk};
use zkhost_groth16::key::RootGenerator;
use zkhost_groth16::r1cs::{MatrixId, R1cs};
use zkhost_groth16::setup::{GeneratorMultiples, SetupError, ToxicWaste, setup, setup_with};
use zkhost_groth16::{G1Point, G2Point, HBasis, ProvingKey, Scalar};

const SECRETS: [u64; 5] = [48577, 22580, 53332, 5481, 3673];

fn waste() -> ToxicWaste {
    let [alpha, beta, gamma, delta, tau] = SECRETS.map(Scalar::from);
    ToxicWaste::fixed_for_tests(alpha, beta, gamma, delta, tau)
}

fn params_bytes(key: &ProvingKey) -> Vec<u8> {
    let mut bytes = vec![];
    write_params(key, &mut bytes).unwrap();
    bytes
}

#[test]
fn fixed_secrets_give_the_golden_keys() {
    for name in ["mul2", "edge_pow2", "edge_range", "edge_nopublic"] {
        let r1cs = read_r1cs(&fixture(&format!("circom/{name}/circuit.r1cs"))).unwrap().r1cs;
        let key = setup(&r1cs, &waste(), HBasis::Monomial).unwrap();
        assert!(params_bytes(&key) == fixture(&format!("bellman-golden/{name}.params")), "{name}");
        let mut vk = vec![];
        write_vk(&key.vk, &mut vk).unwrap();
        assert!(vk == fixture(&format!("bellman-golden/{name}.vk")), "{name}");
    }
}

/// The key must be the `groth16` crate's, byte for byte.
fn check_against_groth16(r1cs: &R1cs) {
    let [alpha, beta, gamma, delta, tau] = SECRETS.map(OtherScalar::from);
    let circuit = ForBellman { r1cs, z: None };
    let (g1, g2) = (OtherG1::generator(), OtherG2::generator());
    let theirs = reference_groth16::generate_parameters::<Bls12, _>(circuit, g1, g2, alpha, beta, gamma, delta, tau);
    let mut expected = vec![];
    theirs.unwrap().write(&mut expected).unwrap();
    let ours = setup(r1cs, &waste(), HBasis::Monomial).unwrap();
    assert!(params_bytes(&ours) == expected, "the keys differ");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn random_circuits_give_the_keys_of_groth16(seed: u64, publics in 0u64..5, aux in 1u64..20, constraints in 1u64..40) {
        check_against_groth16(&random_circuit(seed, publics, aux, constraints).0);
    }
}

#[test]
fn domains_around_a_power_of_two_give_the_keys_of_groth16() {
    for rows in [6, 7, 8, 9, 30, 31, 32, 33] {
        // One public: rows + 2 is what the domain must hold.
        check_against_groth16(&random_circuit(rows, 1, 4, rows - 2).0);
    }
}

/// Terms of more variables than one task has.
#[test]
fn a_circuit_of_many_variables_gives_the_key_of_groth16() {
    check_against_groth16(&random_circuit(7, 2, 4200, 20).0);
}

/// Naive quotient points: P_j = (1/(n Z_c)) sum over k of (eta omega^j)^-k H_k, Z_c = -2.
fn naive_quotient_points(h: &[G1Point], log2: u32, first: Scalar) -> Vec<G1Projective> {
    let n = 1usize << log2;
    let omega = RootGenerator::Seven.root_of_unity(log2);
    let factor = (Scalar::from(n as u64) * -Scalar::from(2)).invert().unwrap();
    let point = |j: usize| {
        let x = (first * omega.pow_vartime([j as u64])).invert().unwrap();
        let terms = h.iter().enumerate().map(|(k, h)| G1Affine::from(*h) * (x.pow_vartime([k as u64]) * factor));
        terms.sum()
    };
    (0..n).map(point).collect()
}

/// The quotient form must follow from the monomial one by formulas (1) and (2).
fn check_quotient_form(r1cs: &R1cs) {
    let monomial = setup(r1cs, &waste(), HBasis::Monomial).unwrap();
    let quotient = setup(r1cs, &waste(), HBasis::QuotientPoints).unwrap();
    let log2 = monomial.log2_domain;
    let eta = RootGenerator::Seven.root_of_unity(log2 + 1);
    let p = naive_quotient_points(&monomial.h, log2, eta);
    assert!(quotient.h.iter().zip(&p).all(|(ours, p)| G1Affine::from(*ours) == p.into()), "P differs");
    assert_eq!(quotient.h.len(), p.len());

    let r = naive_quotient_points(&monomial.h, log2, Scalar::ONE);
    let mut l = vec![G1Projective::identity(); r1cs.variables()];
    let aux = l[1 + r1cs.public_count as usize..].iter_mut();
    aux.zip(monomial.l.iter()).for_each(|(l, point)| *l += G1Affine::from(*point));
    let (c, coefficients) = (r1cs.matrix(MatrixId::C), r1cs.coefficients());
    for (row, r) in r.iter().enumerate().take(c.rows()) {
        for (column, coefficient) in c.row(row) {
            l[column as usize] -= r * coefficients[coefficient as usize];
        }
    }
    assert_eq!(quotient.l.len(), l.len());
    assert!(quotient.l.iter().zip(&l).all(|(ours, l)| G1Affine::from(*ours) == l.into()), "L' differs");
    assert!(quotient.vk == monomial.vk && *quotient.a == *monomial.a && *quotient.b_g2 == *monomial.b_g2);
}

#[test]
fn quotient_points_follow_from_the_monomial_form() {
    for (seed, (publics, aux, constraints)) in
        [(0, 1, 1), (1, 2, 1), (2, 3, 6), (0, 5, 31), (3, 9, 12)].into_iter().enumerate()
    {
        check_quotient_form(&random_circuit(seed as u64, publics, aux, constraints).0);
    }
}

#[test]
fn quotient_points_exist_for_domains_of_one_and_two() {
    check_quotient_form(&record(0, 0, &[]));
    check_quotient_form(&record(1, 0, &[]));
    check_quotient_form(&record(0, 3, &[]));
}

#[test]
fn quotient_points_of_the_smallest_domains_are_equal() {
    let one = setup(&record(0, 0, &[]), &waste(), HBasis::QuotientPoints).unwrap();
    assert_eq!(*one.h, [G1Point::INFINITY]);
    let two = setup(&record(1, 0, &[]), &waste(), HBasis::QuotientPoints).unwrap();
    assert_eq!(two.h[0], two.h[1]);
}

/// A constraint of one term each.
fn row(a: &[Term], b: &[Term], c: &[Term]) -> [Vec<Term>; 3] {
    [a.to_vec(), b.to_vec(), c.to_vec()]
}

#[test]
fn gnark_i96_linear_and_empty_circuits_have_keys() {
    let one = Scalar::ONE;
    let linear = record(1, 2, &[row(&[(2, one), (3, one)], &[(0, one)], &[(1, one)])]);
    for basis in [HBasis::Monomial, HBasis::QuotientPoints] {
        for r1cs in [&linear, &record(0, 0, &[]), &record(2, 0, &[])] {
            setup(r1cs, &waste(), basis).unwrap();
        }
    }
}

#[test]
fn groth16_o1_circuits_without_private_variables_have_keys() {
    let r1cs = read_r1cs(&fixture("circom/edge_noconstraint/circuit.r1cs")).unwrap().r1cs;
    assert_eq!(r1cs.aux_count, 0);
    for basis in [HBasis::Monomial, HBasis::QuotientPoints] {
        let key = setup(&r1cs, &waste(), basis).unwrap();
        assert_eq!(key.vk.ic.len(), r1cs.public_count as usize + 1);
    }
}

#[test]
fn bellman_p78_zero_coefficients_have_no_points() {
    let (one, zero) = (Scalar::ONE, Scalar::ZERO);
    let plain = record(1, 3, &[row(&[(2, one)], &[(3, one)], &[(1, one), (4, one)])]);
    let padded = record(
        1,
        3,
        &[row(&[(2, one), (4, zero)], &[(3, one), (2, one), (2, -one)], &[(4, one), (1, one), (3, zero)])],
    );
    assert_eq!(plain, padded);
    check_against_groth16(&plain);
    let key = setup(&padded, &waste(), HBasis::Monomial).unwrap();
    assert_eq!((key.a.len(), key.b_g2.len()), (3, 1));
}

#[test]
fn an_unused_variable_has_a_key_but_no_params() {
    let one = Scalar::ONE;
    let r1cs = record(1, 3, &[row(&[(2, one)], &[(3, one)], &[(1, one)])]);
    let key = setup(&r1cs, &waste(), HBasis::Monomial).unwrap();
    let refused = write_params(&key, vec![]).unwrap_err();
    assert!(matches!(refused, ExportError::Infinity { section: "L query", index: 2 }), "{refused}");
    let quotient = setup(&r1cs, &waste(), HBasis::QuotientPoints).unwrap();
    assert!(matches!(write_params(&quotient, vec![]), Err(ExportError::HBasis)));
}

#[test]
fn secrets_that_give_no_key_are_refused() {
    let r1cs = random_circuit(1, 1, 3, 5).0;
    let root = RootGenerator::Seven.root_of_unity(r1cs.log2_domain());
    let coset = RootGenerator::Seven.root_of_unity(r1cs.log2_domain() + 1);
    for (at, bad) in [
        (0, Scalar::ZERO),
        (1, Scalar::ZERO),
        (2, Scalar::ZERO),
        (3, Scalar::ZERO),
        (4, Scalar::ZERO),
        (4, root),
        (4, coset),
    ] {
        let mut secrets = SECRETS.map(Scalar::from);
        secrets[at] = bad;
        let [alpha, beta, gamma, delta, tau] = secrets;
        let refused =
            setup(&r1cs, &ToxicWaste::fixed_for_tests(alpha, beta, gamma, delta, tau), HBasis::QuotientPoints);
        assert!(matches!(refused, Err(SetupError::Unlucky { .. })), "secret {at}");
    }
}

#[test]
fn a_seed_gives_one_key_and_randomness_another() {
    let r1cs = random_circuit(2, 1, 3, 5).0;
    let key = |waste: &ToxicWaste| setup(&r1cs, waste, HBasis::Monomial).unwrap().vk;
    assert_eq!(key(&ToxicWaste::insecure_from_seed(7)), key(&ToxicWaste::insecure_from_seed(7)));
    assert_ne!(key(&ToxicWaste::insecure_from_seed(7)), key(&ToxicWaste::insecure_from_seed(8)));
    assert_ne!(key(&ToxicWaste::random()), key(&ToxicWaste::random()));
}

/// A device that fails, or loses a point.
struct Broken {
    fails: bool,
}

impl GeneratorMultiples for Broken {
    fn g1(&self, scalars: &[Scalar]) -> Result<Vec<G1Point>, String> {
        if self.fails { Err("the device is gone".into()) } else { Ok(vec![G1Point::INFINITY; scalars.len() - 1]) }
    }

    fn g2(&self, scalars: &[Scalar]) -> Result<Vec<G2Point>, String> {
        Ok(vec![G2Point::INFINITY; scalars.len()])
    }
}

#[test]
fn multiples_that_fail_or_are_too_few_are_refused() {
    let r1cs = random_circuit(1, 1, 3, 5).0;
    for fails in [true, false] {
        let refused = setup_with(&r1cs, &waste(), HBasis::Monomial, &Broken { fails });
        assert!(matches!(refused, Err(SetupError::Multiples(_))));
    }
}
