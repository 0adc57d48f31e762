//! The CPU prover: the bytes of the `groth16` crate for the same key, witness, r and s, proofs that both verifiers take, and
//! the blame when there is none.

mod common;

use bls12_381::{Bls12, Scalar as OtherScalar};
use common::{ForBellman, Term, fixture, le_bytes, random_circuit, random_scalars, record};
use ff::Field;
use proptest::prelude::*;
use reference_groth16::{Parameters, Proof as OtherProof, create_proof, prepare_verifying_key, verify_proof};
use std::sync::Arc;
use zkhost_groth16::assignment::Assignment;
use zkhost_groth16::formats::{Subgroup, Trailer, read_params, read_r1cs, read_wtns, write_params};
use zkhost_groth16::key::{KeyError, Phase2};
use zkhost_groth16::prover::reference;
use zkhost_groth16::r1cs::{CheckError, Counts, MatrixId, R1cs, ShapeLimits, ShapeRecorder};
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{CpuProver, HBasis, PreparedVerifyingKey, Proof, ProveError, Prover, ProvingKey, Scalar};

const R: u64 = 27134;
const S: u64 = 17146;

fn assignment(r1cs: &R1cs, z: &[Scalar]) -> Assignment {
    let (publics, aux) = z[1..].split_at(r1cs.public_count as usize);
    Assignment::from_values(publics, aux)
}

fn prover(key: ProvingKey, r1cs: &R1cs) -> CpuProver {
    CpuProver::new(Arc::new(key), Arc::new(r1cs.clone())).unwrap()
}

fn waste() -> ToxicWaste {
    ToxicWaste::insecure_from_seed(7)
}

/// Both bases of H and the reference prover give one proof for given r and s, randomised proofs verify, and, if the key can be
/// exported, the `groth16` crate gives the same bytes and each side takes the other's proofs.
fn check(r1cs: &R1cs, z: &[Scalar]) {
    let witness = assignment(r1cs, z);
    let (r, s) = (Scalar::from(R), Scalar::from(S));
    let monomial = setup(r1cs, &waste(), HBasis::Monomial).unwrap();
    let expected = reference::prove_with_fixed_blinding_for_tests(&monomial, r1cs, z, r, s).to_bytes();
    let mut params = vec![];
    let exported = write_params(&monomial, &mut params).is_ok();
    let verifier = PreparedVerifyingKey::from(&monomial.vk);
    let mut proofs = vec![];
    for key in [monomial, setup(r1cs, &waste(), HBasis::QuotientPoints).unwrap()] {
        let prover = prover(key, r1cs);
        let fixed = prover.prove_with_fixed_blinding_for_tests(&witness, r, s).unwrap();
        assert_eq!(hex::encode(fixed.to_bytes()), hex::encode(expected), "{:?}", prover.bound().key.h_basis);
        proofs.push(prover.prove(&witness).unwrap());
    }
    assert_ne!(proofs[0], proofs[1], "randomised");
    for proof in &proofs {
        verifier.verify(&Proof::from_bytes(&proof.to_bytes()).unwrap(), witness.publics()).unwrap();
    }
    if exported {
        check_against_groth16(r1cs, z, &params, &expected, &proofs);
    }
}

fn check_against_groth16(r1cs: &R1cs, z: &[Scalar], params: &[u8], expected: &[u8], ours: &[Proof]) {
    let theirs = Parameters::<Bls12>::read(params, true).unwrap();
    let prove = |r: u64, s: u64| {
        let circuit = ForBellman { r1cs, z: Some(z) };
        let proof = create_proof(circuit, &theirs, OtherScalar::from(r), OtherScalar::from(s)).unwrap();
        let mut bytes = vec![];
        proof.write(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(hex::encode(prove(R, S)), hex::encode(expected), "the groth16 crate's bytes");

    let publics = &z[1..=r1cs.public_count as usize];
    let our_verifier = PreparedVerifyingKey::from(&read_params(params, Subgroup::Check, Trailer::None).unwrap().vk);
    our_verifier.verify(&Proof::from_bytes(&prove(3, 5)).unwrap(), publics).unwrap();

    let their_verifier = prepare_verifying_key(&theirs.vk);
    let publics: Vec<OtherScalar> = publics.iter().map(|x| OtherScalar::from_bytes(&le_bytes(x)).unwrap()).collect();
    for proof in ours {
        let proof = OtherProof::<Bls12>::read(&proof.to_bytes()[..]).unwrap();
        verify_proof(&their_verifier, &proof, &publics).unwrap();
    }
}

/// Each variable's value.
#[derive(Clone, Copy, Debug)]
enum Witness {
    Random,
    All(i64),
    OneRandomValue,
    MostlyBoolean,
}

/// What rows are made of.
#[derive(Clone, Copy, Debug)]
struct Rows {
    /// B is the constant one throughout.
    linear: bool,
    /// Only every second variable has terms.
    unused: bool,
    /// Terms repeat, cancel or are zero.
    untidy: bool,
}

fn values(witness: Witness, seed: u64, count: usize) -> Vec<Scalar> {
    let random = random_scalars(seed, count + 1);
    let value = |i: usize| match witness {
        Witness::Random => random[i],
        Witness::All(value) if value < 0 => -Scalar::from(value.unsigned_abs()),
        Witness::All(value) => Scalar::from(value.unsigned_abs()),
        Witness::OneRandomValue => random[0],
        Witness::MostlyBoolean if i % 100 == 99 => random[i],
        Witness::MostlyBoolean => Scalar::from(u64::from(le_bytes(&random[i])[0] & 1)),
    };
    (0..count).map(value).collect()
}

/// A circuit that these values satisfy: a constant in C makes up for what is missing in a row.
fn circuit(seed: u64, dimensions: [usize; 3], rows: Rows, witness: Witness) -> (R1cs, Vec<Scalar>) {
    let [publics, aux, constraints] = dimensions;
    let mut z = vec![Scalar::ONE];
    z.extend(values(witness, seed, publics + aux));
    let step = if rows.unused { 2 } else { 1 };
    let coefficients = random_scalars(seed ^ 1, 16);
    let terms = |row: usize, salt: usize| -> Vec<Term> {
        let mut terms = vec![];
        for k in 0..2 + (row + salt) % 2 {
            let variable = (row * 3 + salt * 5 + k) * step % z.len();
            terms.push((variable as u32, coefficients[(row + 7 * k + salt) % 16]));
        }
        if rows.untidy {
            let (variable, coefficient) = terms[0];
            terms.extend([(variable, coefficient), (variable, Scalar::ZERO), (0, coefficient), (0, -coefficient)]);
        }
        terms
    };
    let value = |terms: &[Term]| terms.iter().map(|&(i, c)| z[i as usize] * c).sum::<Scalar>();
    let mut all = vec![];
    for row in 0..constraints {
        let a = terms(row, 0);
        let b = if rows.linear { vec![(0, Scalar::ONE)] } else { terms(row, 1) };
        let mut c = terms(row, 2);
        c.push((0, value(&a) * value(&b) - value(&c)));
        all.push([a, b, c]);
    }
    (record(publics as u64, aux as u64, &all), z)
}

fn any_rows() -> impl Strategy<Value = Rows> {
    any::<[bool; 3]>().prop_map(|[linear, unused, untidy]| Rows { linear, unused, untidy })
}

fn any_witness() -> impl Strategy<Value = Witness> {
    prop_oneof![
        Just(Witness::Random),
        Just(Witness::All(0)),
        Just(Witness::All(1)),
        Just(Witness::All(-1)),
        Just(Witness::OneRandomValue),
        Just(Witness::MostlyBoolean),
    ]
}

const TIDY: Rows = Rows { linear: false, unused: false, untidy: false };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_circuits_are_proved_as_by_groth16(
        seed: u64,
        publics in 0usize..5,
        aux in 0usize..30,
        constraints in 0usize..40,
        rows in any_rows(),
        witness in any_witness(),
    ) {
        let (r1cs, z) = circuit(seed, [publics, aux, constraints], rows, witness);
        check(&r1cs, &z);
    }
}

#[test]
fn no_constraint_and_one_constraint() {
    for dimensions in [[0, 0, 0], [1, 0, 0], [0, 1, 0], [3, 2, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1], [2, 3, 1]] {
        let (r1cs, z) = circuit(1, dimensions, TIDY, Witness::Random);
        check(&r1cs, &z);
    }
}

/// A circuit without products.
#[test]
fn gnark_i96_linear_circuits() {
    let (r1cs, z) = circuit(2, [2, 9, 12], Rows { linear: true, ..TIDY }, Witness::Random);
    check(&r1cs, &z);
}

/// No private variable at all.
#[test]
fn snarkjs_i116_no_private_variable() {
    let (r1cs, z) = circuit(3, [4, 0, 6], TIDY, Witness::Random);
    check(&r1cs, &z);
}

/// No public input.
#[test]
fn snarkjs_i447_no_public_input() {
    let (r1cs, z) = circuit(4, [0, 6, 9], TIDY, Witness::Random);
    check(&r1cs, &z);
}

/// Coefficients that are zero, and terms that cancel, used to need points the key does not have.
#[test]
fn bellman_p78_zero_coefficients() {
    let (r1cs, z) = circuit(5, [2, 8, 10], Rows { untidy: true, unused: true, linear: false }, Witness::Random);
    check(&r1cs, &z);
}

/// The smallest circuits.
#[test]
fn sppark_i7_every_tiny_domain() {
    for constraints in 0..20 {
        let (r1cs, z) = circuit(6, [1, 3, constraints], TIDY, Witness::Random);
        check(&r1cs, &z);
    }
}

#[test]
fn domains_exactly_full_and_one_row_more() {
    for rows in [63, 64, 65] {
        let (r1cs, z) = circuit(7, [1, 40, rows - 2], TIDY, Witness::Random);
        assert_eq!(r1cs.log2_domain(), if rows == 65 { 7 } else { 6 });
        check(&r1cs, &z);
    }
}

#[test]
fn every_kind_of_witness() {
    use Witness::*;
    for witness in [Random, All(0), All(1), All(-1), All(77), OneRandomValue, MostlyBoolean] {
        let (r1cs, z) = circuit(8, [3, 300, 200], TIDY, witness);
        check(&r1cs, &z);
    }
}

#[test]
fn transforms_and_products_that_are_split_over_threads() {
    let (r1cs, z) = random_circuit(9, 5, 3000, 5000);
    check(&r1cs, &z);
}

/// bellman counts inputs apart from other variables, so what was allocated first makes no difference.
#[test]
fn inputs_allocated_after_constraints() {
    let z = [1, 6, 2, 3].map(Scalar::from);
    let limbs = [1u64, 0, 0, 0];
    let mut recorder = ShapeRecorder::new(ShapeLimits::NONE, false);
    let one = recorder.add_coefficients(&limbs).unwrap();
    // 2 * 3 = 6 with private 0, private 1 and public 1, of which the guest has told nothing when it records this row.
    for (matrix, column) in MatrixId::ALL.into_iter().zip([0, 1, 1 | 1 << 31]) {
        recorder.add_rows(matrix, &[1], &[column], &[one]).unwrap();
    }
    check(&recorder.finish(Counts { publics: 1, aux: 2, constraints: 1 }).unwrap(), &z);
}

#[test]
fn golden_keys_and_witnesses_give_the_golden_proofs() {
    for name in ["mul2", "edge_pow2", "edge_range", "edge_nopublic"] {
        let r1cs = read_r1cs(&fixture(&format!("circom/{name}/circuit.r1cs"))).unwrap().r1cs;
        let z = read_wtns(&fixture(&format!("circom/{name}/witness.wtns"))).unwrap();
        let params = fixture(&format!("bellman-golden/{name}.params"));
        let params = read_params(&params, Subgroup::Check, Trailer::None).unwrap();
        let prover = prover(ProvingKey::import(params, &r1cs, Phase2::Required).unwrap(), &r1cs);
        let witness = assignment(&r1cs, &z);
        let proof = prover.prove_with_fixed_blinding_for_tests(&witness, Scalar::from(R), Scalar::from(S)).unwrap();
        assert_eq!(
            hex::encode(proof.to_bytes()),
            hex::encode(fixture(&format!("bellman-golden/{name}.proof"))),
            "{name}"
        );
    }
}

/// A key for which A0 = alpha + sum of z_v A_v is the identity: rho cannot hide that, so r and s do.
#[test]
fn an_identity_in_a0_is_blinded_by_r_and_s() {
    let one = Scalar::ONE;
    // x * 1 = x with x = 5: A_x = L_0 and, by the row of the one, A_1 = L_1 in the domain {1, -1}.
    let r1cs = record(0, 1, &[[vec![(1, one)], vec![(0, one)], vec![(1, one)]]]);
    let x = Scalar::from(5);
    let tau = Scalar::from(3673);
    let half = Scalar::from(2).invert().unwrap();
    let alpha = -(x * (one + tau) + (one - tau)) * half;
    for basis in [HBasis::Monomial, HBasis::QuotientPoints] {
        let secrets = ToxicWaste::fixed_for_tests(alpha, Scalar::from(11), Scalar::from(13), Scalar::from(17), tau);
        let prover = prover(setup(&r1cs, &secrets, basis).unwrap(), &r1cs);
        let witness = assignment(&r1cs, &[one, x]);
        assert!(bool::from(group::Group::is_identity(&prover.base(&witness).unwrap().a)));
        let proofs = [prover.prove(&witness).unwrap(), prover.prove(&witness).unwrap()];
        assert_ne!(proofs[0].a, proofs[1].a);
        Proof::from_bytes(&proofs[0].to_bytes()).unwrap();
    }
}

#[test]
fn an_unsatisfied_witness_is_blamed_by_its_row() {
    let (r1cs, z) = random_circuit(10, 2, 9, 12);
    for basis in [HBasis::Monomial, HBasis::QuotientPoints] {
        let prover = prover(setup(&r1cs, &waste(), basis).unwrap(), &r1cs);
        let mut wrong = z.clone();
        wrong[5] += Scalar::ONE;
        let witness = assignment(&r1cs, &wrong);
        let Err(CheckError::Unsatisfied(expected)) = r1cs.check(&witness) else { panic!("it must be unsatisfied") };
        let refused = prover.prove(&witness).unwrap_err();
        assert!(matches!(&refused, ProveError::Unsatisfied(row) if *row == expected), "{refused}");
        assert!(refused.to_string().contains(&format!("constraint {}", expected.index)), "{refused}");
    }
}

/// One value too few, one too many.
#[test]
fn rapidsnark_p2_witnesses_of_the_wrong_length() {
    let (r1cs, z) = random_circuit(11, 2, 9, 12);
    let prover = prover(setup(&r1cs, &waste(), HBasis::QuotientPoints).unwrap(), &r1cs);
    let (publics, aux) = z[1..].split_at(2);
    let longer: Vec<Scalar> = [aux, aux].concat();
    for witness in [
        Assignment::from_values(publics, &aux[1..]),
        Assignment::from_values(publics, &longer),
        Assignment::from_values(&publics[1..], aux),
        Assignment::from_values(&[], &[]),
    ] {
        let refused = prover.prove(&witness).unwrap_err();
        assert!(matches!(refused, ProveError::Mismatch(CheckError::Mismatch { .. })), "{refused}");
    }
}

/// A key for another circuit. Ours names its circuit; an imported one fits by its counts alone, and the first
/// proof tells.
#[test]
fn maci_i443_keys_of_another_circuit() {
    let rows = |coefficient: u64| {
        let term = |variable| vec![(variable, Scalar::from(coefficient))];
        record(1, 2, &[[term(2), term(3), vec![(1, Scalar::from(coefficient).square())]]])
    };
    let (mine, other) = (rows(1), rows(2));
    let key = setup(&other, &waste(), HBasis::Monomial).unwrap();
    let mut params = vec![];
    write_params(&key, &mut params).unwrap();
    let refused = CpuProver::new(Arc::new(key), Arc::new(mine.clone())).err().unwrap();
    assert!(matches!(refused, KeyError::Shape { .. }), "{refused}");

    let params = read_params(&params, Subgroup::Check, Trailer::None).unwrap();
    let prover = prover(ProvingKey::import(params, &mine, Phase2::Required).unwrap(), &mine);
    let refused = prover.prove(&assignment(&mine, &[1, 6, 2, 3].map(Scalar::from))).unwrap_err();
    assert!(refused.to_string().contains("no proof by this key ever verified"), "{refused}");
}
