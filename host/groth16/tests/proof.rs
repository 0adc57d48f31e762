//! The encoding of proofs.

mod common;
#[path = "common/points.rs"]
mod points;

use blstrs::{G1Projective, G2Projective};
use common::{fixture, main_chain_proofs};
use group::Group;
use proptest::prelude::*;
use zkhost_groth16::Proof;
use zkhost_groth16::formats::Problem;
use zkhost_groth16::points::PointError;

fn golden() -> Vec<u8> {
    fixture("bellman-golden/mul2.proof")
}

#[test]
fn proofs_round_trip() {
    for proof in main_chain_proofs() {
        assert_eq!(Proof::from_bytes(&proof.bytes).unwrap().to_bytes(), proof.bytes[..]);
    }
}

#[test]
fn aligned_layer_i2152_no_length_but_192_is_a_proof() {
    let bytes = [golden(), golden(), vec![0; 16]].concat();
    for length in 0..=400 {
        match Proof::from_bytes(&bytes[..length]) {
            Ok(_) => assert_eq!(length, Proof::BYTES),
            Err(error) if length < Proof::BYTES => assert!(matches!(error.problem, Problem::Truncated { .. })),
            Err(error) => assert_eq!(error.problem, Problem::Trailing { bytes: (length - Proof::BYTES) as u64 }),
        }
    }
}

/// Overwrite one point of a proof; what the reader then says.
fn check_overwritten(at: usize, with: &[u8], section: &str, expected: PointError) {
    let mut bytes = golden();
    bytes[at..at + with.len()].copy_from_slice(with);
    let refused = Proof::from_bytes(&bytes).unwrap_err();
    assert_eq!((refused.section, &refused.problem), (section, &Problem::Point(expected)), "{refused}");
}

#[test]
fn gnark_i2_points_outside_the_subgroup_are_refused() {
    let g1 = points::g1_outside(G1Projective::generator().into()).to_compressed();
    let g2 = points::g2_outside().to_compressed();
    check_overwritten(0, &g1, "A", PointError::NotInSubgroup);
    check_overwritten(48, &g2, "B", PointError::NotInSubgroup);
    check_overwritten(144, &g1, "C", PointError::NotInSubgroup);
}

#[test]
fn infinities_and_wrong_encodings_are_refused() {
    check_overwritten(0, &G1Projective::identity().to_compressed(), "A", PointError::Infinity);
    check_overwritten(48, &G2Projective::identity().to_compressed(), "B", PointError::Infinity);
    check_overwritten(144, &G1Projective::identity().to_compressed(), "C", PointError::Infinity);
    check_overwritten(0, &[0; 48], "A", PointError::Encoding);
    check_overwritten(0, &[0xff; 48], "A", PointError::Encoding);
    // x = p, which is zero unreduced.
    let p =
        hex::decode("9a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab")
            .unwrap();
    check_overwritten(144, &p, "C", PointError::Encoding);
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Proof::from_bytes(&bytes);
    }
}
