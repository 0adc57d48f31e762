//! The file of a recorded shape.

mod common;

use common::random_circuit;
use proptest::prelude::*;
use zkhost_groth16::formats::{Problem, read_shape, write_shape};
use zkhost_groth16::r1cs::{Counts, MatrixId, R1cs, ShapeLimits, ShapeRecorder};

fn file(r1cs: &R1cs) -> Vec<u8> {
    let mut bytes = vec![];
    write_shape(r1cs, &mut bytes).unwrap();
    bytes
}

/// The file with its hash made right again.
fn rehashed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 32;
    let hash = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(hash.as_bytes());
    bytes
}

proptest! {
    #[test]
    fn shapes_round_trip(seed: u64, publics in 0u64..4, aux in 0u64..9, rows in 1u64..20) {
        let (r1cs, _) = random_circuit(seed, publics, aux, rows);
        prop_assert_eq!(read_shape(&file(&r1cs)).unwrap(), r1cs);
    }

    /// Whoever can write the file can hash it: what is accepted is a system that can be used without a panic.
    #[test]
    fn a_forged_shape_is_refused_or_canonical(seed: u64, at in 16usize..2000, byte: u8) {
        let (r1cs, z) = random_circuit(seed, 1, 4, 5);
        let mut bytes = file(&r1cs);
        let at = 16 + at % (bytes.len() - 48);
        bytes[at] = byte;
        if let Ok(forged) = read_shape(&rehashed(bytes)) {
            if forged.variables() == z.len() {
                let _ = MatrixId::ALL.map(|id| forged.evaluate(id, &z));
            }
            let _ = (forged.hash(), forged.a_density());
        }
    }
}

#[test]
fn names_are_kept() {
    let mut recorder = ShapeRecorder::new(ShapeLimits::NONE, true);
    MatrixId::ALL.into_iter().for_each(|id| recorder.add_rows(id, &[0, 0], &[], &[]).unwrap());
    recorder.name_rows("a/b 1\nc").unwrap();
    let r1cs = recorder.finish(Counts { publics: 0, aux: 0, constraints: 2 }).unwrap();
    assert_eq!(read_shape(&file(&r1cs)).unwrap().names, ["a/b 1", "c"]);
}

/// Found by the fuzz target `shape`, after 15 million inputs.
#[test]
fn a_name_that_ends_in_a_carriage_return_keeps_it() {
    let mut recorder = ShapeRecorder::new(ShapeLimits::NONE, true);
    MatrixId::ALL.into_iter().for_each(|id| recorder.add_rows(id, &[0, 0], &[], &[]).unwrap());
    recorder.name_rows("a\r\n\r").unwrap();
    let r1cs = recorder.finish(Counts { publics: 0, aux: 0, constraints: 2 }).unwrap();
    let again = read_shape(&file(&r1cs)).unwrap();
    assert_eq!(again.names, r1cs.names);
    assert_eq!(again.names, ["a\r", "\r"]);
}

#[test]
fn a_shape_cut_or_damaged_anywhere_is_refused() {
    let bytes = file(&random_circuit(1, 1, 4, 5).0);
    for length in 0..bytes.len() {
        assert!(matches!(read_shape(&bytes[..length]).unwrap_err().problem, Problem::Truncated { .. }), "{length}");
    }
    for bit in (0..8 * bytes.len()).step_by(3) {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(read_shape(&bytes).is_err(), "bit {bit}");
    }
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let refused = read_shape(&damaged).unwrap_err().to_string();
    assert!(refused.ends_with("delete it, the circuit is recorded again when it is next needed"), "{refused}");
}
