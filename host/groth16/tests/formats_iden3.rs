//! iden3's files: circom's own read right, and every bound is checked.

mod common;

use common::{fixture, le_bytes, random_circuit};
use ff::PrimeField;
use proptest::prelude::*;
use zkhost_groth16::Scalar;
use zkhost_groth16::formats::{DecodeError, Problem, R1csFile, read_r1cs, read_wtns, write_r1cs, write_wtns};
use zkhost_groth16::r1cs::{MatrixId, R1cs};
use zkhost_groth16::scalar::{MODULUS, limbs_to_le_bytes};

const CIRCUITS: [&str; 5] = ["mul2", "edge_pow2", "edge_range", "edge_nopublic", "edge_noconstraint"];

fn frame(tag: &[u8; 4], version: u32, sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = [&tag[..], &version.to_le_bytes(), &(sections.len() as u32).to_le_bytes()].concat();
    for (id, bytes) in sections {
        out.extend([&id.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), bytes].concat());
    }
    out
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn field() -> Vec<u8> {
    [&32u32.to_le_bytes()[..], &limbs_to_le_bytes(&MODULUS)].concat()
}

/// The naive encoder: header and constraints, all publics as inputs.
fn r1cs_sections(r1cs: &R1cs) -> [(u32, Vec<u8>); 2] {
    let counts = words(&[r1cs.variables() as u32, 0, r1cs.public_count, 0, 0, 0, r1cs.constraints() as u32]);
    let coefficients = r1cs.coefficients();
    let mut body = vec![];
    for row in 0..r1cs.constraints() {
        for id in MatrixId::ALL {
            let terms: Vec<_> = r1cs.matrix(id).row(row).collect();
            body.extend((terms.len() as u32).to_le_bytes());
            for (column, coefficient) in terms {
                body.extend(column.to_le_bytes());
                body.extend(le_bytes(&coefficients[coefficient as usize]));
            }
        }
    }
    [(1, [field(), counts].concat()), (2, body)]
}

fn wtns_sections(values: &[[u8; 32]]) -> [(u32, Vec<u8>); 2] {
    [(1, [field(), words(&[values.len() as u32])].concat()), (2, values.concat())]
}

#[test]
fn the_witnesses_of_circom_satisfy_its_circuits() {
    for name in CIRCUITS {
        let file = read_r1cs(&fixture(&format!("circom/{name}/circuit.r1cs"))).unwrap();
        let z = read_wtns(&fixture(&format!("circom/{name}/witness.wtns"))).unwrap();
        assert_eq!(z.len(), file.r1cs.variables(), "{name}");
        let [a, b, c] = MatrixId::ALL.map(|id| file.r1cs.evaluate(id, &z));
        assert!(a.iter().zip(&b).zip(&c).all(|((a, b), c)| a * b == *c), "{name}");
        // snarkjs lists the public values, outputs first, in the order of z.
        let json: Vec<String> = serde_json::from_slice(&fixture(&format!("circom/{name}/public.json"))).unwrap();
        let publics: Vec<Scalar> = json.iter().map(|text| Scalar::from_str_vartime(text).unwrap()).collect();
        assert_eq!(z[1..=publics.len()], publics, "{name}");
        assert_eq!(publics.len(), file.r1cs.public_count as usize, "{name}");
    }
}

proptest! {
    #[test]
    fn systems_round_trip_in_either_order_of_sections(seed: u64, publics in 0u64..4, aux in 0u64..9, rows in 1u64..20, swap: bool) {
        let (r1cs, z) = random_circuit(seed, publics, aux, rows);
        let mut sections = r1cs_sections(&r1cs);
        if swap {
            sections.reverse();
        }
        prop_assert_eq!(&read_r1cs(&frame(b"r1cs", 1, &sections)).unwrap().r1cs, &r1cs);
        let values: Vec<_> = z.iter().map(le_bytes).collect();
        prop_assert!(*read_wtns(&frame(b"wtns", 2, &wtns_sections(&values))).unwrap() == z[..]);
        // What is written is the naive encoder's, but for the labels.
        let mut out = vec![];
        write_wtns(&z, &mut out).unwrap();
        prop_assert!(out == frame(b"wtns", 2, &wtns_sections(&values)));
        let mut out = vec![];
        write_r1cs(&R1csFile { r1cs, public_outputs: 0, private_inputs: 0 }, &mut out).unwrap();
        prop_assert_eq!(&read_r1cs(&out).unwrap().r1cs, &read_r1cs(&frame(b"r1cs", 1, &sections)).unwrap().r1cs);
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..300) {
        for (name, tag) in [("circuit.r1cs", b"r1cs"), ("witness.wtns", b"wtns")] {
            let mut real = fixture(&format!("circom/mul2/{name}"));
            let end = real.len().min(at + bytes.len());
            real[at.min(end)..end].copy_from_slice(&bytes[..end - at.min(end)]);
            let _ = (read_r1cs(&real), read_wtns(&real));
            let framed = [&tag[..], &bytes].concat();
            let _ = (read_r1cs(&framed), read_wtns(&framed));
        }
    }
}

/// Rows are recorded many at a time, and few of many coefficients are found without looking them up.
#[test]
fn systems_round_trip_about_the_rows_that_are_recorded_together() {
    for rows in (0..5).chain([1023, 1024, 1025, 2047, 2048, 2049]) {
        let (mut r1cs, _) = random_circuit(rows, 2, 60, rows);
        check_round_trip(&r1cs);
        // Coefficients that differ each time they are met, in one limb or in all.
        let mut entry = 0;
        r1cs.dictionary.clear();
        for coefficient in r1cs.matrices.iter_mut().flat_map(|matrix| &mut matrix.coefficients) {
            *coefficient = entry;
            entry += 1;
            r1cs.dictionary.push([u64::from(entry), 0, 0, u64::from(entry) << 8]);
        }
        check_round_trip(&r1cs);
    }
}

fn check_round_trip(r1cs: &R1cs) {
    let again = read_r1cs(&frame(b"r1cs", 1, &r1cs_sections(r1cs))).unwrap().r1cs;
    assert!(again == *r1cs, "{} rows, {} coefficients", r1cs.constraints(), r1cs.dictionary.len());
}

#[test]
fn files_of_circom_come_back_from_what_is_written() {
    for name in CIRCUITS {
        let wtns = fixture(&format!("circom/{name}/witness.wtns"));
        let mut out = vec![];
        write_wtns(&read_wtns(&wtns).unwrap(), &mut out).unwrap();
        assert!(out == wtns, "{name}");
        let file = read_r1cs(&fixture(&format!("circom/{name}/circuit.r1cs"))).unwrap();
        let mut out = vec![];
        write_r1cs(&file, &mut out).unwrap();
        let again = read_r1cs(&out).unwrap();
        assert_eq!(again.r1cs, file.r1cs, "{name}");
        assert_eq!((again.public_outputs, again.private_inputs), (file.public_outputs, file.private_inputs), "{name}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for name in CIRCUITS {
        let (r1cs, wtns) =
            (fixture(&format!("circom/{name}/circuit.r1cs")), fixture(&format!("circom/{name}/witness.wtns")));
        for length in 0..r1cs.len() {
            assert!(read_r1cs(&r1cs[..length]).is_err(), "{name}, {length}");
        }
        for length in 0..wtns.len() {
            assert!(read_wtns(&wtns[..length]).is_err(), "{name}, {length}");
        }
        assert!(read_r1cs(&[&r1cs[..], &[0]].concat()).is_err() && read_wtns(&[&wtns[..], &[0]].concat()).is_err());
    }
}

#[test]
fn snarkjs_o5_a_value_at_or_above_r_is_refused_by_index() {
    let refused = read_wtns(&fixture("negative/noncanonical-scalar.wtns")).err().unwrap();
    assert!(matches!(refused, DecodeError { index: Some(_), problem: Problem::Unreduced, .. }), "{refused}");
    let one = le_bytes(&Scalar::from(1));
    let refused =
        read_wtns(&frame(b"wtns", 2, &wtns_sections(&[one, one, limbs_to_le_bytes(&MODULUS)]))).err().unwrap();
    assert_eq!((refused.index, refused.problem), (Some(2), Problem::Unreduced));
}

#[test]
fn a_coefficient_at_or_above_r_is_refused_by_constraint() {
    let (r1cs, _) = random_circuit(1, 1, 2, 3);
    let mut sections = r1cs_sections(&r1cs);
    // The last term of the last constraint.
    let end = sections[1].1.len();
    sections[1].1[end - 32..].copy_from_slice(&limbs_to_le_bytes(&MODULUS));
    let refused = read_r1cs(&frame(b"r1cs", 1, &sections)).err().unwrap();
    assert_eq!((refused.index, refused.problem), (Some(2), Problem::Unreduced));
}

/// What is said of one constraint of a file whose header has these counts: wires, outputs, inputs, private, constraints.
fn check_header(counts: [u32; 5], body: &[u32], section: &str) {
    let [wires, outputs, inputs, private, constraints] = counts;
    let header = [field(), words(&[wires, outputs, inputs, private, 0, 0, constraints])].concat();
    let refused = read_r1cs(&frame(b"r1cs", 1, &[(1, header), (2, words(body))])).err().unwrap();
    assert_eq!(refused.section, section, "{refused}");
}

#[test]
fn counts_that_lie_are_refused() {
    check_header([0, 0, 0, 0, 0], &[], "header section");
    check_header([3, 1, 1, 1, 0], &[], "header section");
    check_header([9, u32::MAX, u32::MAX, u32::MAX, 0], &[], "header section");
    check_header([u32::MAX, 0, 0, 0, 0], &[], "header section");
    check_header([1, 0, 0, 0, 1], &[0, 0], "constraints section");
    check_header([1, 0, 0, 0, 1], &[0, 0, 0, 0], "constraints section");
    check_header([1, 0, 0, 0, u32::MAX], &[0, 0, 0], "constraints section");
    check_header([1, 0, 0, 0, 1], &[u32::MAX, 0, 0], "constraints section");
    // Wire 1 of a circuit that has wire 0 alone.
    check_header([1, 0, 0, 0, 1], &[1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "constraints section");
}

#[test]
fn another_field_kind_or_version_is_refused() {
    let good = wtns_sections(&[le_bytes(&Scalar::from(1))]);
    assert!(read_wtns(&frame(b"wtns", 2, &good)).is_ok());
    let check = |tag, version, sections: &[(u32, Vec<u8>)], problem: fn(&Problem) -> bool| {
        let refused = read_wtns(&frame(tag, version, sections)).err().unwrap();
        assert!(problem(&refused.problem), "{refused}");
    };
    check(b"r1cs", 2, &good, |p| matches!(p, Problem::Unexpected { what: "the tag", .. }));
    check(b"wtns", 1, &good, |p| matches!(p, Problem::Unexpected { what: "the version", .. }));
    check(b"wtns", 2, &good[..1], |p| matches!(p, Problem::NoSection));
    let twice = [good.clone(), good.clone()].concat();
    check(b"wtns", 2, &twice, |p| matches!(p, Problem::Unexpected { what: "the number of such sections", .. }));
    let mut other = good.clone();
    other[0].1[4] ^= 1;
    check(b"wtns", 2, &other, |p| matches!(p, Problem::OtherField));
    check(b"wtns", 2, &wtns_sections(&[le_bytes(&Scalar::from(2))]), |p| matches!(p, Problem::Unexpected { .. }));
    check(b"wtns", 2, &wtns_sections(&[]), |p| matches!(p, Problem::Unexpected { .. }));
    let gates = [r1cs_sections(&random_circuit(1, 1, 1, 1).0).to_vec(), vec![(4, vec![1, 0, 0, 0])]].concat();
    assert!(read_r1cs(&frame(b"r1cs", 1, &gates)).is_err());
}
