//! Constraint systems: recording makes them canonical, the hash names them, the check finds what is broken.

mod common;

use common::{Term, fixture, le_bytes, random_circuit, record};
use ff::Field;
use proptest::prelude::*;
use zkhost_groth16::formats::{read_r1cs, read_wtns};
use zkhost_groth16::r1cs::{
    CheckError, Counts, Matrix, MatrixId, NAME_OVERHEAD_BYTES, R1cs, ShapeError, ShapeLimits, ShapeRecorder,
    Unsatisfied,
};
use zkhost_groth16::scalar::MODULUS;
use zkhost_groth16::{Assignment, Scalar};

const PUBLIC: u32 = 1 << 31;

fn recorder() -> ShapeRecorder {
    let mut recorder = ShapeRecorder::new(ShapeLimits::NONE, false);
    recorder.add_coefficients(&[1, 0, 0, 0]).unwrap();
    recorder
}

/// z as a packed assignment.
fn assignment(r1cs: &R1cs, z: &[Scalar]) -> Assignment {
    let (publics, aux) = z[1..].split_at(r1cs.public_count as usize);
    Assignment::from_values(publics, aux)
}

#[test]
fn a_small_system_is_what_was_recorded() {
    let (one, five) = (Scalar::ONE, Scalar::from(5));
    let r1cs = record(1, 2, &[[vec![(3, five), (0, one)], vec![(2, one)], vec![(1, five)]]]);
    assert_eq!(r1cs.dictionary, [[1, 0, 0, 0], [5, 0, 0, 0]]);
    assert_eq!(r1cs.matrix(MatrixId::A).row(0).collect::<Vec<_>>(), [(0, 0), (3, 1)]);
    assert_eq!((r1cs.variables(), r1cs.constraints(), r1cs.log2_domain()), (4, 1, 2));
    assert_eq!((r1cs.a_density(), r1cs.b_density()), (vec![0b1011], vec![0b0100]));
}

proptest! {
    /// A guest may repeat terms, split coefficients, add zeros and reorder: the system stays the same.
    #[test]
    fn noise_in_the_recording_changes_nothing(seed: u64, split in any::<u64>()) {
        let (r1cs, _) = random_circuit(seed, 2, 5, 9);
        let coefficients = r1cs.coefficients();
        let noisy = |id: MatrixId, row: usize| -> Vec<Term> {
            let terms = r1cs.matrix(id).row(row).flat_map(|(column, coefficient)| {
                let (whole, part) = (coefficients[coefficient as usize], Scalar::from(split));
                [(column, part), ((column + 1) % 8, Scalar::ZERO), (column, whole - part)]
            });
            let mut terms: Vec<Term> = terms.collect();
            terms.extend([(7, Scalar::from(3)), (7, -Scalar::from(3))]);
            terms.reverse();
            terms
        };
        let rows: Vec<_> = (0..9).map(|row| MatrixId::ALL.map(|id| noisy(id, row))).collect();
        let again = record(2, 5, &rows);
        prop_assert_eq!(again.hash(), r1cs.hash());
        prop_assert_eq!(again, r1cs);
    }

    #[test]
    fn satisfied_systems_pass_and_a_changed_value_is_caught(seed: u64, at in 3usize..8) {
        let (r1cs, mut z) = random_circuit(seed, 2, 5, 9);
        prop_assert_eq!(r1cs.check(&assignment(&r1cs, &z)), Ok(()));
        z[at] += Scalar::ONE;
        let broken = matches!(r1cs.check(&assignment(&r1cs, &z)), Err(CheckError::Unsatisfied(_)));
        prop_assert!(broken);
    }
}

#[test]
fn rows_are_evaluated_in_every_block() {
    let (r1cs, z) = random_circuit(5, 3, 40, 9000);
    let [a, b, c] = MatrixId::ALL.map(|id| r1cs.evaluate(id, &z));
    for row in [0, 1, 4095, 4096, 8191, 8999] {
        let terms = r1cs.matrix(MatrixId::A).row(row);
        let naive: Scalar = terms.map(|(i, k)| z[i as usize] * r1cs.coefficients()[k as usize]).sum();
        assert_eq!(a[row], naive, "row {row}");
    }
    assert!(a.iter().zip(&b).zip(&c).all(|((a, b), c)| a * b == *c));
}

#[test]
fn each_part_of_the_shape_counts_in_the_hash() {
    let one = Scalar::ONE;
    let row = |a: Term, b: Term, c: Term| [vec![a], vec![b], vec![c]];
    let base = || row((1, one), (2, one), (3, one));
    let shapes = [
        record(1, 2, &[base()]),
        record(2, 1, &[base()]),
        record(1, 3, &[base()]),
        record(1, 2, &[base(), base()]),
        record(1, 2, &[row((2, one), (1, one), (3, one))]),
        record(1, 2, &[row((1, -one), (2, one), (3, one))]),
        record(1, 2, &[[vec![(1, one), (2, one)], vec![], vec![(3, one)]]]),
        record(1, 2, &[]),
    ];
    for (i, one) in shapes.iter().enumerate() {
        for other in &shapes[i + 1..] {
            assert_ne!(one.hash(), other.hash());
        }
    }
}

#[test]
fn the_hash_is_stable() {
    let r1cs = read_r1cs(&fixture("circom/edge_pow2/circuit.r1cs")).unwrap().r1cs;
    let hash = "f294a1c47d1ce4f0ca7f29a32462cb7817503d4b8741a289a9bf304616c46c95";
    assert_eq!(r1cs.hash().to_string(), hash, "a change of the hash must change its context string and version");
}

/// The documented encoding, whole, without buffers.
fn naive_hash(r1cs: &R1cs) -> [u8; 32] {
    let mut bytes = vec![];
    for count in [u64::from(r1cs.public_count), u64::from(r1cs.aux_count), r1cs.constraints() as u64] {
        bytes.extend(count.to_le_bytes());
    }
    let coefficients = r1cs.coefficients();
    for id in MatrixId::ALL {
        for row in 0..r1cs.constraints() {
            bytes.extend((r1cs.matrix(id).row(row).count() as u32).to_le_bytes());
            for (column, coefficient) in r1cs.matrix(id).row(row) {
                bytes.extend(column.to_le_bytes());
                bytes.extend(le_bytes(&coefficients[coefficient as usize]));
            }
        }
    }
    blake3::derive_key("zkhost R1CS over BLS12-381, version 1", &bytes)
}

#[test]
fn the_hash_is_that_of_the_documented_encoding() {
    for constraints in [20, 9000] {
        let (r1cs, _) = random_circuit(4, 2, 30, constraints);
        assert_eq!(r1cs.hash().0, naive_hash(&r1cs));
    }
}

/// Rows are written down by many tasks, and hashed in rounds that end by their rows or by their terms; one row of B is longer
/// than a round.
#[test]
fn the_hash_of_more_than_is_hashed_at_a_time_is_that_of_the_documented_encoding() {
    const ROUND: usize = 1 << 20;
    const ROWS: usize = ROUND + 20_000;
    let matrix = |length: fn(usize) -> usize| {
        let mut end = 0;
        let row_ends: Vec<u64> = (0..ROWS)
            .map(|row| {
                end += length(row) as u64;
                end
            })
            .collect();
        let columns = (0..ROWS).flat_map(|row| 0..length(row) as u32).collect();
        let coefficients = (0..end as u32).map(|term| term % 2).collect();
        Matrix { row_ends, columns, coefficients }
    };
    let matrices = [
        matrix(|row| usize::from(row % 5 > 0)),
        matrix(|row| if row == 70_000 { ROUND + 5 } else { 0 }),
        matrix(|row| if row < 600_000 { 2 } else { 0 }),
    ];
    let dictionary = vec![[1, 0, 0, 0], [2, 0, 0, 0]];
    let r1cs = R1cs { public_count: 3, aux_count: ROUND as u32 + 10, dictionary, matrices, names: vec![] };
    assert_eq!(r1cs.hash().0, naive_hash(&r1cs));
}

#[test]
fn the_first_of_many_broken_constraints_is_named() {
    let (r1cs, mut z) = random_circuit(6, 1, 9500, 9000);
    // Aux variable i has a term in row i mod 9000 and in few others.
    for at in [2 + 8900, 2 + 5000] {
        z[at] += Scalar::ONE;
        let [a, b, c] = MatrixId::ALL.map(|id| r1cs.evaluate(id, &z));
        let first = (0..9000).find(|&i| a[i] * b[i] != c[i]).unwrap();
        let refused = r1cs.check(&assignment(&r1cs, &z));
        assert_eq!(refused, Err(Unsatisfied { index: first, name: None }.into()));
    }
}

#[test]
fn names_do_not_count_in_the_hash_but_are_told() {
    let mut recorder = ShapeRecorder::new(ShapeLimits::NONE, true);
    recorder.add_coefficients(&[1, 0, 0, 0]).unwrap();
    for id in MatrixId::ALL {
        recorder.add_rows(id, &[1, 1], &[0, PUBLIC], &[0, 0]).unwrap();
    }
    recorder.name_rows("sum/bit 0\nsum/bit 1\n").unwrap();
    let named = recorder.finish(Counts { publics: 0, aux: 1, constraints: 2 }).unwrap();
    let one = vec![(0, Scalar::ONE)];
    let aux = vec![(1, Scalar::ONE)];
    assert_eq!(named.hash(), record(0, 1, &[[aux.clone(), aux.clone(), aux], [one.clone(), one.clone(), one]]).hash());
    let refused = named.check(&Assignment::from_values(&[], &[Scalar::from(2)])).unwrap_err();
    assert_eq!(refused, Unsatisfied { index: 0, name: Some("sum/bit 0".into()) }.into());
    assert_eq!(refused.to_string(), "constraint 0 (sum/bit 0) is not satisfied");
}

#[test]
fn snarkjs_o3_an_unsatisfied_witness_is_refused_by_row() {
    let r1cs = read_r1cs(&fixture("circom/edge_pow2/circuit.r1cs")).unwrap().r1cs;
    let good = read_wtns(&fixture("circom/edge_pow2/witness.wtns")).unwrap();
    assert_eq!(r1cs.check(&assignment(&r1cs, &good)), Ok(()));
    let bad = read_wtns(&fixture("negative/unsatisfied.wtns")).unwrap();
    let CheckError::Unsatisfied(row) = r1cs.check(&assignment(&r1cs, &bad)).unwrap_err() else {
        panic!("another error")
    };
    // The naive twin: the first row whose product differs.
    let [a, b, c] = MatrixId::ALL.map(|id| r1cs.evaluate(id, &bad));
    assert_eq!(Some(row.index), (0..a.len()).find(|&i| a[i] * b[i] != c[i]));
}

#[test]
fn rapidsnark_p2_a_witness_of_another_length_is_refused() {
    let r1cs = read_r1cs(&fixture("circom/edge_pow2/circuit.r1cs")).unwrap().r1cs;
    let z = read_wtns(&fixture("circom/edge_pow2/witness.wtns")).unwrap();
    for length in [z.len() - 1, z.len() + 1] {
        let z: Vec<Scalar> = z.iter().cycle().take(length).copied().collect();
        let refused = r1cs.check(&assignment(&r1cs, &z)).unwrap_err();
        assert!(matches!(refused, CheckError::Mismatch { what: "private variables", .. }), "{refused}");
    }
    let (publics, aux) = z[1..].split_at(1);
    let refused = r1cs.check(&Assignment::from_values(publics, aux)).unwrap_err();
    assert!(matches!(refused, CheckError::Mismatch { what: "public inputs", expected: 2, found: 1 }), "{refused}");
}

#[test]
fn a_bad_call_is_refused_with_its_place() {
    use MatrixId::B;
    let mut r = recorder();
    assert_eq!(r.add_coefficients(&[1, 2, 3]), Err(ShapeError::OddCoefficient { limbs: 3 }));
    let two = [2, 0, 0, 0];
    assert_eq!(r.add_coefficients(&[two, MODULUS].concat()), Err(ShapeError::Unreduced { index: 2 }));
    assert_eq!(r.add_rows(B, &[1, 0], &[0], &[0]), Ok(()));
    let lengths = ShapeError::Lengths { matrix: B, row: 2, lengths: 2, columns: 1, coefficients: 1 };
    assert_eq!(r.add_rows(B, &[2], &[0], &[0]), Err(lengths));
    // Row 2 is empty, row 3 has one good term, row 4 the bad one.
    let missing = ShapeError::NoCoefficient { matrix: B, row: 4, index: 9, entries: 1 };
    assert_eq!(r.add_rows(B, &[0, 1, 2], &[0, 0, 0], &[0, 0, 9]), Err(missing));
    assert_eq!(r.name_rows("a"), Err(ShapeError::NamesNotAsked));
}

/// What `finish` says of one row with this column in A, counted as 1 public and 1 aux.
fn check_column(column: u32) -> Result<R1cs, ShapeError> {
    let mut r = recorder();
    r.add_rows(MatrixId::A, &[1], &[column], &[0]).unwrap();
    r.add_rows(MatrixId::B, &[0], &[], &[]).unwrap();
    r.add_rows(MatrixId::C, &[0], &[], &[]).unwrap();
    r.finish(Counts { publics: 1, aux: 1, constraints: 1 })
}

#[test]
fn columns_past_the_counts_are_refused() {
    for column in [0, PUBLIC, PUBLIC + 1] {
        assert!(check_column(column).is_ok());
    }
    for column in [1, PUBLIC - 1, PUBLIC + 2, u32::MAX] {
        assert!(matches!(check_column(column), Err(ShapeError::NoColumn { row: 0, .. })), "{column}");
    }
}

#[test]
fn counts_that_lie_are_refused() {
    let finish = |counts| recorder().finish(counts).unwrap_err();
    let rows = ShapeError::Rows { matrix: MatrixId::A, rows: 0, constraints: 3 };
    assert_eq!(finish(Counts { publics: 0, aux: 0, constraints: 3 }), rows);
    let mut unequal = recorder();
    unequal.add_rows(MatrixId::A, &[0], &[], &[]).unwrap();
    let rows = ShapeError::Rows { matrix: MatrixId::B, rows: 0, constraints: 1 };
    assert_eq!(unequal.finish(Counts { publics: 0, aux: 0, constraints: 1 }), Err(rows));
    let mut unnamed = ShapeRecorder::new(ShapeLimits::NONE, true);
    for id in MatrixId::ALL {
        unnamed.add_rows(id, &[0], &[], &[]).unwrap();
    }
    let names = ShapeError::NameCount { names: 0, constraints: 1 };
    assert_eq!(unnamed.finish(Counts { publics: 0, aux: 0, constraints: 1 }), Err(names));
}

#[test]
fn gnark_i611_counts_that_overflow_are_refused() {
    let limitless = u64::MAX;
    let limits = ShapeLimits {
        publics: limitless,
        aux: limitless,
        constraints: limitless,
        terms: limitless,
        coefficients: limitless,
        name_bytes: limitless,
    };
    for (publics, aux, constraints) in
        [(limitless, 0, 0), (0, limitless, 0), (0, 0, limitless), (1 << 31, 0, 0), (0, 1 << 31, 0), (0, 0, 1 << 32)]
    {
        assert!(ShapeRecorder::new(limits, false).finish(Counts { publics, aux, constraints }).is_err());
    }
}

#[test]
fn every_limit_is_named() {
    let limits = ShapeLimits {
        publics: 1,
        aux: 2,
        constraints: 3,
        terms: 4,
        coefficients: 5,
        name_bytes: 6 + NAME_OVERHEAD_BYTES,
    };
    let new = || {
        let mut r = ShapeRecorder::new(limits, true);
        r.add_coefficients(&[1, 0, 0, 0]).unwrap();
        r
    };
    let check =
        |result: Result<(), ShapeError>, what, limit| assert_eq!(result, Err(ShapeError::Limit { what, limit }));
    check(new().add_coefficients(&[0; 20]).map(|_| ()), "coefficients", 5);
    check(new().add_rows(MatrixId::A, &[0; 4], &[], &[]), "constraints", 3);
    check(new().add_rows(MatrixId::A, &[5], &[0; 5], &[0; 5]), "terms", 4);
    check(new().name_rows("\n\n\n\n"), "row names", 3);
    check(new().name_rows("1234567"), "bytes of row names", limits.name_bytes);
    assert_eq!(new().name_rows("123456"), Ok(()));
    check(new().name_rows("\n\n"), "bytes of row names", limits.name_bytes);
    check(new().finish(Counts { publics: 2, aux: 0, constraints: 0 }).map(|_| ()), "public inputs", 1);
    check(new().finish(Counts { publics: 0, aux: 3, constraints: 0 }).map(|_| ()), "aux variables", 2);
}

/// Merging a row's terms makes coefficients that nobody recorded: here 1 + 2 and 1 + 2 + 2.
#[test]
fn coefficients_that_merging_makes_count_against_their_limit() {
    let finish = |coefficients| {
        let mut r = ShapeRecorder::new(ShapeLimits { coefficients, ..ShapeLimits::NONE }, false);
        r.add_coefficients(&[1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
        r.add_rows(MatrixId::A, &[2], &[0, 0], &[0, 1]).unwrap();
        r.add_rows(MatrixId::B, &[3], &[0, 0, 0], &[0, 1, 1]).unwrap();
        r.add_rows(MatrixId::C, &[0], &[], &[]).unwrap();
        r.finish(Counts { publics: 0, aux: 1, constraints: 1 })
    };
    for limit in [2, 3] {
        assert_eq!(finish(limit), Err(ShapeError::Limit { what: "coefficients", limit }));
    }
    assert_eq!(finish(4).unwrap().dictionary, [[3, 0, 0, 0], [5, 0, 0, 0]]);
}
