//! Key images: mapped keys are the keys that were written, and damage is told with its place.

mod common;

use common::{Term, random_circuit, record};
use ff::Field;
use std::io::{Seek, Write};
use zkhost_groth16::formats::{DecodeError, Problem};
use zkhost_groth16::image::{ImageError, open_image, write_image};
use zkhost_groth16::key::{KeyError, Phase2};
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{G1Point, HBasis, ProvingKey, Scalar};

fn key(basis: HBasis) -> ProvingKey {
    setup(&random_circuit(3, 2, 70, 90).0, &ToxicWaste::insecure_from_seed(3), basis).unwrap()
}

fn image(key: &ProvingKey) -> Vec<u8> {
    let mut bytes = vec![];
    write_image(key, &mut bytes).unwrap();
    bytes
}

/// Open these bytes as a file.
fn open(bytes: &[u8]) -> Result<ProvingKey, ImageError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    open_image(&file, Phase2::Required)
}

fn check_same(a: &ProvingKey, b: &ProvingKey) {
    assert!(a.vk == b.vk && a.shape == b.shape && a.proven == b.proven && a.root == b.root && a.h_basis == b.h_basis);
    assert_eq!((a.log2_domain, a.public_count, a.aux_count), (b.log2_domain, b.public_count, b.aux_count));
    assert!(a.a_density == b.a_density && a.b_density == b.b_density);
    assert!(*a.a == *b.a && *a.b_g1 == *b.b_g1 && *a.b_g2 == *b.b_g2 && *a.h == *b.h && *a.l == *b.l);
}

#[test]
fn a_mapped_key_is_the_key_that_was_written() {
    for basis in [HBasis::Monomial, HBasis::QuotientPoints] {
        let mut key = key(basis);
        for proven in [true, false] {
            key.proven = proven;
            check_same(&open(&image(&key)).unwrap(), &key);
        }
    }
}

#[test]
fn keys_of_degenerate_circuits_have_images() {
    let used: Vec<Term> = vec![(1, Scalar::ONE)];
    let unused_variable = record(0, 2, &[[used.clone(), used.clone(), used]]);
    for r1cs in [record(0, 0, &[]), record(3, 0, &[]), record(0, 3, &[]), unused_variable] {
        for basis in [HBasis::Monomial, HBasis::QuotientPoints] {
            let key = setup(&r1cs, &ToxicWaste::insecure_from_seed(1), basis).unwrap();
            check_same(&open(&image(&key)).unwrap(), &key);
        }
    }
}

fn decode_error(bytes: &[u8]) -> DecodeError {
    match open(bytes).err().expect("the image is refused") {
        ImageError::Decode(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn an_image_cut_anywhere_is_refused_as_incomplete() {
    let bytes = image(&key(HBasis::QuotientPoints));
    assert!(matches!(open(&[]), Err(ImageError::Io(_) | ImageError::Decode(_))));
    for length in [1, 4095, 4096, 5000, 8192, 20_000, bytes.len() - 4096, bytes.len() - 1] {
        let refused = decode_error(&bytes[..length]);
        assert!(matches!(refused.problem, Problem::Truncated { .. }), "{length}: {refused}");
    }
    assert_eq!(decode_error(&bytes[..bytes.len() - 1]).section, "L query");
    let long = decode_error(&[&bytes[..], &[0]].concat());
    assert_eq!((long.section, long.problem), ("end", Problem::Trailing { bytes: 1 }));
}

#[test]
fn a_flipped_bit_is_found_anywhere_and_told_by_section() {
    let bytes = image(&key(HBasis::QuotientPoints));
    let mut sections = vec![];
    for at in (0..bytes.len()).step_by(499) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        let refused = decode_error(&bytes);
        if sections.last() != Some(&refused.section) {
            sections.push(refused.section);
        }
    }
    let expected = [
        "header",
        "hashes",
        "verifying key",
        "A density",
        "B density",
        "A query",
        "B query in G1",
        "B query in G2",
        "H query",
        "L query",
    ];
    assert_eq!(sections, expected);
}

#[test]
fn damage_in_a_large_section_is_told_by_its_megabyte() {
    let mut key = key(HBasis::QuotientPoints);
    // 2^15 points take 3 MiB.
    key.log2_domain = 15;
    key.h = vec![key.h[0]; 1 << 15].into();
    let mut bytes = image(&key);
    assert_eq!(open(&bytes).unwrap().h.len(), 1 << 15);
    let l_bytes = (key.l.len() * size_of::<G1Point>()).next_multiple_of(4096);
    let h_end = bytes.len() - l_bytes;
    bytes[h_end - (1 << 20) - 1] ^= 1;
    let refused = decode_error(&bytes);
    assert_eq!(
        (refused.section, refused.problem),
        ("H query", Problem::DamagedRange { first: 1 << 20, last: (2 << 20) - 1 })
    );
}

#[test]
fn another_kind_of_file_is_refused() {
    let refused = decode_error(&[0x42; 8192]);
    assert!(matches!(refused.problem, Problem::Unexpected { what: "the tag", .. }), "{refused}");
}

/// Nothing is inferred: what a header may say of root and basis is a closed list.
#[test]
fn an_unknown_root_or_basis_is_refused_by_name() {
    const ROOT: usize = 16 + 2 * 4;
    for (at, value, what) in [
        (ROOT, 3, "the generator of the root of unity"),
        (ROOT + 4, 3, "the basis of H"),
        (ROOT + 4, 7, "the basis of H"),
    ] {
        let mut bytes = image(&key(HBasis::OddCoset));
        bytes[at] = value;
        let hash = *blake3::hash(&bytes[..4064]).as_bytes();
        bytes[4064..4096].copy_from_slice(&hash);
        let refused = decode_error(&bytes);
        assert!(matches!(refused.problem, Problem::Unexpected { what: found, .. } if found == what), "{refused}");
    }
}

#[test]
fn sections_that_do_not_fit_the_dimensions_are_refused() {
    type Change = fn(&mut ProvingKey);
    let changes: [Change; 6] = [
        |k| k.h = k.h[1..].to_vec().into(),
        |k| k.l = k.l[1..].to_vec().into(),
        |k| k.a = k.a[1..].to_vec().into(),
        |k| k.b_g1 = k.b_g1[1..].to_vec().into(),
        |k| k.b_g2 = k.b_g2[1..].to_vec().into(),
        |k| k.log2_domain = 60,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut key = key(HBasis::QuotientPoints);
        change(&mut key);
        assert!(matches!(open(&image(&key)), Err(ImageError::Key(KeyError::Count { .. }))), "change {n}");
    }
    let mut key = key(HBasis::QuotientPoints);
    key.aux_count += 64;
    assert_eq!(decode_error(&image(&key)).section, "A density");
}

#[test]
fn an_identity_in_a_sparse_query_is_refused_by_name() {
    let mut key = key(HBasis::QuotientPoints);
    let mut a = key.a.to_vec();
    a[5] = G1Point::INFINITY;
    key.a = a.into();
    let ImageError::Key(refused) = open(&image(&key)).err().unwrap() else { panic!("another error") };
    assert_eq!(refused, KeyError::Identity { what: "A query, entry 5,".into() });
}

#[test]
fn zeto_i186_an_image_without_phase_two_is_refused_unless_for_tests() {
    let mut key = key(HBasis::Monomial);
    key.vk.delta_g2 = key.vk.gamma_g2;
    let bytes = image(&key);
    assert!(matches!(open(&bytes), Err(ImageError::Key(KeyError::NoPhase2))));
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    assert!(open_image(&file, Phase2::MayBeMissingForTests).is_ok());
}
