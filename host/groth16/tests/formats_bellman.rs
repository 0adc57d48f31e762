//! bellman's key files: what is written is what was read, and damage is told with its place.

mod common;
#[path = "common/points.rs"]
mod points;

use blstrs::{G1Affine, G1Projective};
use common::{fixture, random_circuit};
use group::Group;
use proptest::prelude::*;
use zkhost_groth16::formats::{
    DecodeError, Problem, Subgroup, Trailer, known_params, read_params, read_r1cs, read_vk, sha256, write_params,
    write_vk,
};
use zkhost_groth16::key::{KeyError, Phase2};
use zkhost_groth16::points::PointError;
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{HBasis, ProvingKey};

const GOLDEN: [&str; 4] = ["mul2", "edge_pow2", "edge_range", "edge_nopublic"];
/// Bytes of the fixed points before IC's count.
const IC_AT: usize = 3 * 96 + 3 * 192;

fn golden(name: &str) -> Vec<u8> {
    fixture(&format!("bellman-golden/{name}.params"))
}

fn read(bytes: &[u8]) -> Result<zkhost_groth16::formats::ParamsFile, DecodeError> {
    read_params(bytes, Subgroup::Check, Trailer::None)
}

fn problem(bytes: &[u8]) -> DecodeError {
    read(bytes).err().expect("the file is refused")
}

#[test]
fn golden_keys_round_trip() {
    for name in GOLDEN {
        let r1cs = read_r1cs(&fixture(&format!("circom/{name}/circuit.r1cs"))).unwrap().r1cs;
        let key = ProvingKey::import(read(&golden(name)).unwrap(), &r1cs, Phase2::Required).unwrap();
        assert!(!key.proven && key.check_circuit(&r1cs).is_ok());
        let (mut params, mut vk) = (vec![], vec![]);
        write_params(&key, &mut params).unwrap();
        write_vk(&key.vk, &mut vk).unwrap();
        assert!(params == golden(name) && vk == fixture(&format!("bellman-golden/{name}.vk")), "{name}");
        assert_eq!(read_vk(&vk).unwrap(), key.vk);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn random_keys_round_trip(seed: u64, publics in 0u64..4, aux in 1u64..9, constraints in 1u64..20) {
        let (r1cs, _) = random_circuit(seed, publics, aux, constraints);
        let key = setup(&r1cs, &ToxicWaste::insecure_from_seed(seed), HBasis::Monomial).unwrap();
        let mut bytes = vec![];
        write_params(&key, &mut bytes).unwrap();
        let again = ProvingKey::import(read(&bytes).unwrap(), &r1cs, Phase2::Required).unwrap();
        prop_assert!(*again.h == *key.h && *again.l == *key.l && *again.a == *key.a);
        prop_assert!(*again.b_g1 == *key.b_g1 && *again.b_g2 == *key.b_g2 && again.vk == key.vk);
    }
}

#[test]
fn a_key_cut_anywhere_is_refused_as_incomplete() {
    let bytes = golden("mul2");
    for length in 0..bytes.len() {
        let refused = problem(&bytes[..length]);
        assert!(matches!(refused.problem, Problem::Truncated { .. }), "{length}: {refused}");
    }
    let vk = fixture("bellman-golden/mul2.vk");
    for length in 0..vk.len() {
        assert!(matches!(read_vk(&vk[..length]).unwrap_err().problem, Problem::Truncated { .. }), "{length}");
    }
}

#[test]
fn rust_fil_proofs_i480_empty_short_and_long_keys_are_refused_with_a_hint() {
    let bytes = golden("edge_pow2");
    assert_eq!(
        problem(&[]).to_string(),
        "bellman proving key (.params): alpha in G1: the file ends 96 bytes too early; it is empty or incomplete, get it again"
    );
    let short = problem(&bytes[..bytes.len() - 1]);
    assert_eq!((short.section, short.problem), ("B query in G2", Problem::Truncated { missing: 1 }));
    let long = problem(&[&bytes[..], &[0]].concat());
    assert!(matches!(long.problem, Problem::UnpinnedTrailer { bytes: 1, .. }), "{long}");
    let vk = fixture("bellman-golden/edge_pow2.vk");
    assert_eq!(read_vk(&[&vk[..], &[0]].concat()).unwrap_err().problem, Problem::Trailing { bytes: 1 });
}

#[test]
fn a_key_with_any_bit_flipped_is_refused() {
    let bytes = golden("edge_nopublic");
    for bit in (0..8 * bytes.len()).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn sapling_o9_a_trailer_is_taken_when_the_digest_is_pinned() {
    let with_trailer = [&golden("mul2")[..], b"transcript"].concat();
    let digest = sha256(&with_trailer);
    let read = |bytes: &[u8], digest| read_params(bytes, Subgroup::Check, Trailer::Pinned(digest));
    assert_eq!(read(&with_trailer, digest).unwrap().trailer_bytes, 10);
    // Neither refused nor ignored: a change of the trailer alone is found.
    let mut damaged = with_trailer.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let refused = read(&damaged, digest).err().unwrap();
    assert!(matches!(refused.problem, Problem::Digest { .. }), "{refused}");
}

#[test]
fn lotus_i2237_a_wrong_digest_is_told_with_both_and_what_to_do() {
    let bytes = golden("mul2");
    let refused = read_params(&bytes, Subgroup::Check, Trailer::Pinned([0xab; 32])).err().unwrap().to_string();
    let found: String = sha256(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(
        refused.contains(&found) && refused.contains(&"ab".repeat(32)) && refused.contains("get it again"),
        "{refused}"
    );
}

#[test]
fn the_digest_is_sha256() {
    let digest: String = sha256(b"abc").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(known_params(47_958_396).unwrap().name, "sapling-spend");
    assert!(known_params(47_958_397).is_none());
}

/// Overwrite part of a golden key; what the reader then says.
fn check_overwritten(at: usize, with: &[u8], section: &str, index: Option<u64>, expected: PointError) {
    let mut bytes = golden("mul2");
    bytes[at..at + with.len()].copy_from_slice(with);
    let refused = problem(&bytes);
    assert_eq!(
        (refused.section, refused.index, &refused.problem),
        (section, index, &Problem::Point(expected)),
        "{refused}"
    );
}

/// Where the second IC point, and the first point of H, lie in `mul2.params`.
const IC_1: usize = IC_AT + 4 + 96;
const H_0: usize = IC_AT + 4 + 2 * 96 + 4;

#[test]
fn supra_seal_i32_a_bad_point_is_told_by_section_and_index() {
    let generator = G1Affine::from(G1Projective::generator());
    let mut infinity = [0; 96];
    infinity[0] = 0x40;
    check_overwritten(0, &infinity, "alpha in G1", None, PointError::Infinity);
    check_overwritten(IC_1, &infinity, "IC", Some(1), PointError::Infinity);
    check_overwritten(H_0, &infinity, "H query", Some(0), PointError::Infinity);
    check_overwritten(H_0, &[0xff; 48], "H query", Some(0), PointError::Encoding);
    check_overwritten(H_0 + 48, &[0x11; 48], "H query", Some(0), PointError::NotOnCurve);
    // A compressed point is 48 bytes: what follows it would go unread.
    check_overwritten(H_0, &generator.to_compressed(), "H query", Some(0), PointError::Encoding);
}

#[test]
fn snarkjs_o4_an_infinity_without_its_flag_is_refused_and_explained() {
    check_overwritten(H_0, &[0; 96], "H query", Some(0), PointError::Zeros);
    assert!(PointError::Zeros.to_string().contains("snarkjs"));
}

#[test]
fn rust_fil_proofs_i1185_a_point_outside_the_subgroup_is_told_by_section_and_index() {
    let bad = points::g1_outside(G1Projective::generator().into());
    check_overwritten(IC_1, &bad.to_uncompressed(), "IC", Some(1), PointError::NotInSubgroup);
    check_overwritten(H_0, &bad.to_uncompressed(), "H query", Some(0), PointError::NotInSubgroup);
    check_overwritten(96 * 2, &points::g2_outside().to_uncompressed(), "beta in G2", None, PointError::NotInSubgroup);
}

/// A key whose H has many points, so that they are checked in batches, one of them outside the subgroup, perhaps.
fn check_batch(bad_at: Option<usize>) {
    const POINTS: usize = 5000;
    let good = G1Affine::from(G1Projective::generator());
    let bytes = golden("mul2");
    let mut long = bytes[..H_0 - 4].to_vec();
    long.extend((POINTS as u32).to_be_bytes());
    for at in 0..POINTS {
        let point = if Some(at) == bad_at { points::g1_outside(good) } else { good };
        long.extend(point.to_uncompressed());
    }
    // mul2 has a domain of 4, so three H points.
    long.extend(&bytes[H_0 + 3 * 96..]);
    match bad_at {
        None => assert_eq!(read(&long).unwrap().h.len(), POINTS),
        Some(at) => {
            let refused = problem(&long);
            assert_eq!((refused.section, refused.index), ("H query", Some(at as u64)));
            assert_eq!(refused.problem, Problem::Point(PointError::NotInSubgroup));
        }
    }
}

#[test]
fn batches_find_a_point_of_the_least_order_outside_the_subgroup() {
    check_batch(None);
    for at in [0, 1, 2500, 4999] {
        check_batch(Some(at));
    }
}

#[test]
fn maci_i443_a_key_of_another_circuit_is_refused_by_what_differs() {
    let r1cs = read_r1cs(&fixture("circom/edge_pow2/circuit.r1cs")).unwrap().r1cs;
    for name in ["mul2", "edge_range", "edge_nopublic"] {
        let refused = ProvingKey::import(read(&golden(name)).unwrap(), &r1cs, Phase2::Required).err().unwrap();
        assert!(matches!(refused, KeyError::Count { .. }), "{refused}");
    }
    // The same counts, another circuit.
    let (one, _) = random_circuit(1, 2, 4, 9);
    let (two, _) = random_circuit(2, 2, 4, 9);
    let key = setup(&one, &ToxicWaste::insecure_from_seed(1), HBasis::Monomial).unwrap();
    assert!(matches!(key.check_circuit(&two), Err(KeyError::Shape { .. })));
}

#[test]
fn gnark_i476_an_h_query_of_another_length_is_refused() {
    let r1cs = read_r1cs(&fixture("circom/edge_pow2/circuit.r1cs")).unwrap().r1cs;
    for change in [-1, 1] {
        let mut params = read(&golden("edge_pow2")).unwrap();
        let (length, point) = (params.h.len(), params.h[0]);
        params.h.resize(length.checked_add_signed(change).unwrap(), point);
        let refused = ProvingKey::import(params, &r1cs, Phase2::Required).err().unwrap();
        assert!(
            matches!(refused, KeyError::Count { what: "H points (from the domain)", expected: 63, .. }),
            "{refused}"
        );
    }
}

#[test]
fn zeto_i186_a_key_without_phase_two_is_refused_unless_for_tests() {
    let r1cs = read_r1cs(&fixture("circom/mul2/circuit.r1cs")).unwrap().r1cs;
    let mut bytes = golden("mul2");
    // gamma in G2 over delta in G2.
    let gamma = bytes[96 * 2 + 192..][..192].to_vec();
    bytes[96 * 3 + 192 * 2..][..192].copy_from_slice(&gamma);
    let import = |phase2| ProvingKey::import(read(&bytes).unwrap(), &r1cs, phase2).map(|_| ());
    assert_eq!(import(Phase2::Required), Err(KeyError::NoPhase2));
    assert_eq!(import(Phase2::MayBeMissingForTests), Ok(()));
}

/// Read a ceremony key; its counts are those of the circuit: H, L, A, B in G1, B in G2.
fn check_ceremony_key(name: &str, ic: usize, counts: [usize; 5]) {
    let path = format!("{}/../../build/sapling/{name}.params", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}; run `make sapling-keys` first"));
    let known = known_params(bytes.len() as u64).unwrap();
    assert_eq!(known.name, name);
    let key = read_params(&bytes, Subgroup::Check, Trailer::Pinned(known.sha256)).unwrap();
    assert_eq!([key.h.len(), key.l.len(), key.a.len(), key.b_g1.len(), key.b_g2.len()], counts);
    assert_eq!((key.vk.ic.len(), key.trailer_bytes), (ic, 52_836));
    let refused = read_params(&bytes, Subgroup::CheckedBefore, Trailer::None).err().unwrap();
    assert!(matches!(refused.problem, Problem::UnpinnedTrailer { bytes: 52_836, .. }), "{refused}");
}

#[test]
fn sapling_o9_the_ceremony_keys_are_read_with_their_trailers() {
    check_ceremony_key("sapling-spend", 8, [131_071, 98_638, 85_390, 61_300, 61_300]);
    check_ceremony_key("sapling-output", 6, [8_191, 7_821, 6_298, 4_850, 4_850]);
}
