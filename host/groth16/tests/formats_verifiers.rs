//! The files that verifiers take: those of other tools are read and written back, and whatever is wrong with one is told.

mod common;
#[path = "common/points.rs"]
mod points;

use common::{fixture, main_chain_proofs, random_scalars, scalars};
use points::{g1_outside, g2_outside};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;
use zkhost_groth16::formats::arkworks::Compression::{Compressed, Uncompressed};
use zkhost_groth16::formats::{
    DecodeError, Problem, arkworks, eip2537, gnark, plutus, read_vk, snarkjs, solidity, zokrates,
};
use zkhost_groth16::key::{KeyError, Phase2, VerifierKey};
use zkhost_groth16::points::PointError;
use zkhost_groth16::scalar::MODULUS;
use zkhost_groth16::{PreparedVerifyingKey, Proof, Scalar};

const CIRCUITS: [&str; 5] = ["mul2", "edge_pow2", "edge_range", "edge_nopublic", "edge_noconstraint"];

fn circom(name: &str, file: &str) -> Vec<u8> {
    fixture(&format!("circom/{name}/{file}"))
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// A statement of Sapling's Output: key, proof and public inputs.
static OUTPUT: LazyLock<(VerifierKey, Proof, Vec<Scalar>)> = LazyLock::new(|| {
    let vk = VerifierKey::from(&read_vk(&fixture("sapling/output.vk")).unwrap());
    let claim = main_chain_proofs().into_iter().find(|claim| claim.circuit == "sapling-output").unwrap();
    (vk, claim.proof, claim.publics)
});

fn verify(vk: &VerifierKey, proof: &Proof, publics: &[Scalar]) {
    PreparedVerifyingKey::from(vk).verify(proof, publics).unwrap();
}

#[test]
fn files_of_snarkjs_verify_and_are_written_as_they_were() {
    for name in CIRCUITS {
        let files = ["vkey.json", "proof.json", "public.json"].map(|file| circom(name, file));
        let vk = snarkjs::read_vk(&files[0]).unwrap();
        let (proof, publics) = (snarkjs::read_proof(&files[1]).unwrap(), snarkjs::read_publics(&files[2]).unwrap());
        verify(&vk, &proof, &publics);
        assert_eq!(json(snarkjs::write_vk(&vk).as_bytes()), json(&files[0]), "{name}");
        assert_eq!(json(snarkjs::write_proof(&proof).as_bytes()), json(&files[1]), "{name}");
        assert_eq!(json(snarkjs::write_publics(&publics).as_bytes()), json(&files[2]), "{name}");
    }
    for name in ["mul2", "edge_pow2", "edge_range"] {
        // What was re-encoded for bellman, elsewhere, and accepted by the `groth16` crate.
        let golden = |kind: &str| fixture(&format!("bellman-golden/snarkjs-{name}.{kind}"));
        let proof = snarkjs::read_proof(&circom(name, "proof.json")).unwrap();
        assert_eq!(proof.to_bytes()[..], golden("proof"));
        assert_eq!(snarkjs::read_publics(&circom(name, "public.json")).unwrap(), scalars(&golden("public")));
        let vk = VerifierKey::from(&read_vk(&golden("vk")).unwrap());
        assert_eq!(snarkjs::read_vk(&circom(name, "vkey.json")).unwrap(), vk);
    }
}

#[test]
fn files_of_zokrates_verify_and_are_written_as_they_were() {
    let files = ["vk.json", "proof.json"].map(|file| fixture(&format!("zokrates/{file}")));
    let vk = zokrates::read_vk(&files[0]).unwrap();
    let (proof, publics) = zokrates::read_proof(&files[1]).unwrap();
    assert_eq!(publics.len(), 2);
    verify(&vk, &proof, &publics);
    assert_eq!(json(zokrates::write_vk(&vk).as_bytes()), json(&files[0]));
    assert_eq!(json(zokrates::write_proof(&proof, &publics).as_bytes()), json(&files[1]));
}

/// Every decoder with its encoder: what one writes the other reads.
fn check_round_trips(vk: &VerifierKey, proof: &Proof, publics: &[Scalar]) {
    assert_eq!(&snarkjs::read_vk(snarkjs::write_vk(vk).as_bytes()).unwrap(), vk);
    assert_eq!(&zokrates::read_vk(zokrates::write_vk(vk).as_bytes()).unwrap(), vk);
    assert_eq!(&plutus::read_vk(plutus::write_vk(vk).as_bytes()).unwrap(), vk);
    assert_eq!(&snarkjs::read_proof(snarkjs::write_proof(proof).as_bytes()).unwrap(), proof);
    assert_eq!(&plutus::read_proof(plutus::write_proof(proof).as_bytes()).unwrap(), proof);
    assert_eq!(&gnark::read_proof(&gnark::write_proof(proof)).unwrap(), proof);
    assert_eq!(&eip2537::read_proof(&eip2537::write_proof(proof)).unwrap(), proof);
    for compression in [Compressed, Uncompressed] {
        assert_eq!(&arkworks::read_vk(&arkworks::write_vk(vk, compression), compression).unwrap(), vk);
        assert_eq!(&arkworks::read_proof(&arkworks::write_proof(proof, compression), compression).unwrap(), proof);
    }
    let both = (proof.clone(), publics.to_vec());
    assert_eq!(zokrates::read_proof(zokrates::write_proof(proof, publics).as_bytes()).unwrap(), both);
    assert_eq!(eip2537::read_calldata(&eip2537::write_calldata(proof, publics)).unwrap(), both);
    assert_eq!(snarkjs::read_publics(snarkjs::write_publics(publics).as_bytes()).unwrap(), publics);
    assert_eq!(eip2537::read_publics(&eip2537::write_publics(publics)).unwrap(), publics);
}

#[test]
fn every_format_gives_back_real_proofs_and_keys() {
    let (vk, _, _) = &*OUTPUT;
    for claim in main_chain_proofs().iter().take(12) {
        check_round_trips(vk, &claim.proof, &claim.publics);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn public_inputs_of_any_value_and_number_round_trip(seed: u64, count in 0usize..20) {
        let (vk, proof, _) = &*OUTPUT;
        let mut publics = random_scalars(seed, count);
        publics.extend([Scalar::from(0), Scalar::from(1), -Scalar::from(1)]);
        check_round_trips(vk, proof, &publics);
    }
}

#[test]
fn the_compressed_forms_are_bellmans_and_gnarks_is_52_bytes_longer() {
    let (_, proof, _) = &*OUTPUT;
    assert_eq!(arkworks::write_proof(proof, Compressed), proof.to_bytes());
    let gnark = gnark::write_proof(proof);
    assert_eq!((gnark.len(), &gnark[..192]), (244, &proof.to_bytes()[..]));
    assert_eq!(gnark[192..], [&[0, 0, 0, 0, 0xc0][..], &[0; 47]].concat());
}

/// snarkjs I432: c0 before c1, 16 zero bytes before each coordinate, against the EIP's own vectors.
#[test]
fn snarkjs_i432_points_are_those_of_the_eip() {
    let (_, proof, _) = &*OUTPUT;
    let bytes = eip2537::write_proof(proof);
    assert!(bytes.len() == eip2537::PROOF_BYTES && bytes.chunks(64).all(|c| c[..16] == [0; 16]));
    // The product of a point and one is the point: what the EIP writes for it.
    let vectors: Vec<Value> = serde_json::from_slice(&fixture("eip-2537/mul_G2.json")).unwrap();
    let generator = blstrs::G2Affine::from(<blstrs::G2Projective as group::Group>::generator());
    let encoded = hex::encode(eip2537::write_g2(&generator));
    assert!(vectors.iter().any(|v| v["Input"].as_str().unwrap().starts_with(&encoded)), "{encoded}");
    let vectors: Vec<Value> = serde_json::from_slice(&fixture("eip-2537/msm_G1.json")).unwrap();
    let generator = blstrs::G1Affine::from(<blstrs::G1Projective as group::Group>::generator());
    let encoded = hex::encode(eip2537::write_g1(&generator));
    assert!(vectors.iter().any(|v| v["Input"].as_str().unwrap().contains(&encoded)), "{encoded}");
}

#[test]
fn binary_files_cut_anywhere_or_longer_are_refused() {
    let (vk, proof, publics) = &*OUTPUT;
    fn check<T>(bytes: Vec<u8>, read: impl Fn(&[u8]) -> Result<T, DecodeError>) {
        assert!(read(&bytes).is_ok());
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
        assert!(read(&[&bytes[..], &[0]].concat()).is_err());
    }
    for compression in [Compressed, Uncompressed] {
        check(arkworks::write_vk(vk, compression), |bytes| arkworks::read_vk(bytes, compression));
        check(arkworks::write_proof(proof, compression), |bytes| arkworks::read_proof(bytes, compression));
    }
    check(gnark::write_proof(proof), gnark::read_proof);
    check(eip2537::write_proof(proof), eip2537::read_proof);
    check(eip2537::write_calldata(proof, publics), eip2537::read_calldata);
}

#[test]
fn json_files_cut_anywhere_are_refused() {
    let (vk, proof, publics) = &*OUTPUT;
    fn check<T>(text: String, read: impl Fn(&[u8]) -> Result<T, DecodeError>) {
        let text = text.trim_end();
        assert!(read(text.as_bytes()).is_ok());
        assert!((0..text.len()).all(|length| read(&text.as_bytes()[..length]).is_err()));
    }
    check(snarkjs::write_vk(vk), snarkjs::read_vk);
    check(snarkjs::write_proof(proof), snarkjs::read_proof);
    check(snarkjs::write_publics(publics), snarkjs::read_publics);
    check(zokrates::write_vk(vk), zokrates::read_vk);
    check(zokrates::write_proof(proof, publics), zokrates::read_proof);
    check(plutus::write_vk(vk), plutus::read_vk);
    check(plutus::write_proof(proof), plutus::read_proof);
}

/// What is said of a JSON file after a change of one place.
fn check_json<T>(
    text: String,
    pointer: &str,
    value: Value,
    read: impl Fn(&[u8]) -> Result<T, DecodeError>,
    expected: impl Fn(&Problem) -> bool,
) {
    let mut file = json(text.as_bytes());
    *file.pointer_mut(pointer).unwrap() = value.clone();
    let refused = read(file.to_string().as_bytes()).err().unwrap_or_else(|| panic!("{pointer} = {value}"));
    assert!(expected(&refused.problem), "{pointer} = {value}: {refused}");
    let section = pointer.split('/').rfind(|part| !part.is_empty() && part.parse::<u32>().is_err()).unwrap_or("file");
    assert_eq!(refused.section, section, "{refused}");
}

/// electron-rs I7: rapidsnark's proofs have no curve.
#[test]
fn electron_i7_the_curve_may_be_missing_or_written_either_way() {
    let (_, proof, _) = &*OUTPUT;
    let mut file = json(snarkjs::write_proof(proof).as_bytes());
    for curve in ["bls12381", "bls12-381"] {
        file["curve"] = curve.into();
        assert_eq!(&snarkjs::read_proof(file.to_string().as_bytes()).unwrap(), proof);
    }
    file.as_object_mut().unwrap().remove("curve");
    assert_eq!(&snarkjs::read_proof(file.to_string().as_bytes()).unwrap(), proof);
    let unexpected = |p: &Problem| matches!(p, Problem::Unexpected { .. });
    for curve in [json!("bn128"), json!(1), json!(null)] {
        check_json(snarkjs::write_proof(proof), "/curve", curve, snarkjs::read_proof, unexpected);
    }
    check_json(snarkjs::write_proof(proof), "/protocol", json!("plonk"), snarkjs::read_proof, unexpected);
}

fn r() -> String {
    "52435875175126190479447740508185965837690552500527637822603658699938581184513".into()
}

/// snarkjs I436, protocols I309: v and v + r were one public value.
#[test]
fn snarkjs_i436_public_values_at_or_above_r_are_refused() {
    let unreduced = |p: &Problem| *p == Problem::Unreduced;
    let (_, proof, _) = &*OUTPUT;
    let three = || snarkjs::write_publics(&[1, 2, 3].map(Scalar::from));
    check_json(three(), "/2", json!(r()), snarkjs::read_publics, unreduced);
    check_json(three(), "/0", json!("9".repeat(100)), snarkjs::read_publics, unreduced);
    let text = |value: &[u64; 4]| value.iter().rev().map(|limb| format!("{limb:016x}")).collect::<String>();
    let zok = || zokrates::write_proof(proof, &[Scalar::from(1)]);
    check_json(zok(), "/inputs/0", json!(format!("0x{}", text(&MODULUS))), zokrates::read_proof, unreduced);
    let mut word: Vec<u8> = MODULUS.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
    let refused = eip2537::read_publics(&[vec![0; 32], word.clone()].concat()).err().unwrap();
    assert_eq!((refused.index, refused.problem), (Some(1), Problem::Unreduced));
    word[31] -= 1;
    assert_eq!(eip2537::read_publics(&word).unwrap(), [-Scalar::from(1)]);
    // And what is no number at all.
    let no_json = |p: &Problem| matches!(p, Problem::Json(_));
    for odd in [
        json!(""),
        json!("-1"),
        json!("+1"),
        json!("1_0"),
        json!("0x10"),
        json!("1e3"),
        json!(1),
        json!(null),
        json!("9".repeat(129)),
    ] {
        check_json(three(), "/1", odd, snarkjs::read_publics, no_json);
    }
    for odd in [json!("0x"), json!("10"), json!("0x-1"), json!("0xg")] {
        check_json(zok(), "/inputs/0", odd, zokrates::read_proof, no_json);
    }
}

/// gnark I2, libsnark I61: points of a proof were not checked for the subgroup. In every format, for every point.
#[test]
fn gnark_i2_points_outside_the_subgroup_or_at_infinity_are_refused() {
    let (vk, proof, publics) = &*OUTPUT;
    let bad = [
        Proof { a: g1_outside(proof.a), ..proof.clone() },
        Proof { b: g2_outside(), ..proof.clone() },
        Proof { c: g1_outside(proof.c), ..proof.clone() },
    ];
    let infinite = [
        Proof { a: Default::default(), ..proof.clone() },
        Proof { b: Default::default(), ..proof.clone() },
        Proof { c: Default::default(), ..proof.clone() },
    ];
    let cases =
        bad.iter().map(|p| (p, PointError::NotInSubgroup)).chain(infinite.iter().map(|p| (p, PointError::Infinity)));
    for (proof, expected) in cases {
        let binary = [
            gnark::read_proof(&gnark::write_proof(proof)).err(),
            eip2537::read_proof(&eip2537::write_proof(proof)).err(),
            eip2537::read_calldata(&eip2537::write_calldata(proof, publics)).err(),
            arkworks::read_proof(&arkworks::write_proof(proof, Compressed), Compressed).err(),
            arkworks::read_proof(&arkworks::write_proof(proof, Uncompressed), Uncompressed).err(),
            plutus::read_proof(plutus::write_proof(proof).as_bytes()).err(),
        ];
        for refused in binary {
            let refused = refused.unwrap();
            assert_eq!(refused.problem, Problem::Point(expected), "{refused}");
        }
        // The JSON forms of infinity are no coordinates.
        assert!(snarkjs::read_proof(snarkjs::write_proof(proof).as_bytes()).is_err());
        assert!(zokrates::read_proof(zokrates::write_proof(proof, publics).as_bytes()).is_err());
    }
    for bad in [
        VerifierKey { alpha_g1: g1_outside(vk.alpha_g1), ..vk.clone() },
        VerifierKey { gamma_g2: g2_outside(), ..vk.clone() },
        VerifierKey { ic: vec![vk.ic[0], Default::default()], ..vk.clone() },
        VerifierKey { delta_g2: Default::default(), ..vk.clone() },
        VerifierKey { ic: vec![], ..vk.clone() },
    ] {
        assert!(snarkjs::read_vk(snarkjs::write_vk(&bad).as_bytes()).is_err());
        assert!(zokrates::read_vk(zokrates::write_vk(&bad).as_bytes()).is_err());
        assert!(plutus::read_vk(plutus::write_vk(&bad).as_bytes()).is_err());
        assert!(arkworks::read_vk(&arkworks::write_vk(&bad, Compressed), Compressed).is_err());
        assert!(arkworks::read_vk(&arkworks::write_vk(&bad, Uncompressed), Uncompressed).is_err());
    }
}

#[test]
fn damage_in_json_is_told_by_its_field() {
    let (vk, proof, _) = &*OUTPUT;
    let no_json = |p: &Problem| matches!(p, Problem::Json(_));
    let point = |expected: PointError| move |p: &Problem| *p == Problem::Point(expected);
    let p = || snarkjs::write_proof(proof);
    check_json(p(), "/pi_a", json!([]), snarkjs::read_proof, no_json);
    check_json(p(), "/pi_a/2", json!("2"), snarkjs::read_proof, |p| matches!(p, Problem::Unexpected { .. }));
    check_json(p(), "/pi_b/2/1", json!("1"), snarkjs::read_proof, |p| matches!(p, Problem::Unexpected { .. }));
    check_json(p(), "/pi_a/0", json!("1"), snarkjs::read_proof, point(PointError::NotOnCurve));
    // 2^381 and 2^384 - 1 would be flags of an encoded point.
    for number in [
        num_bigint::BigUint::from(1u8) << 381u32,
        (num_bigint::BigUint::from(1u8) << 384u32) - num_bigint::BigUint::from(1u8),
        num_bigint::BigUint::from(1u8) << 390u32,
    ] {
        check_json(p(), "/pi_c/1", json!(number.to_string()), snarkjs::read_proof, point(PointError::Encoding));
    }
    let k = || snarkjs::write_vk(vk);
    let disagrees = |p: &Problem| matches!(p, Problem::Disagrees { .. });
    check_json(k(), "/nPublic", json!(4), snarkjs::read_vk, disagrees);
    check_json(k(), "/nPublic", json!(u64::MAX), snarkjs::read_vk, disagrees);
    check_json(k(), "/IC/2/0", json!("1"), snarkjs::read_vk, point(PointError::NotOnCurve));
    check_json(k(), "/vk_alphabeta_12/0/0/0", json!("1"), snarkjs::read_vk, no_json);
    check_json(zokrates::write_vk(vk), "/gamma_abc", json!([]), zokrates::read_vk, |p| {
        matches!(p, Problem::Unexpected { .. })
    });
    check_json(zokrates::write_vk(vk), "/curve", json!("bn128"), zokrates::read_vk, |p| {
        matches!(p, Problem::Unexpected { .. })
    });
    check_json(plutus::write_vk(vk), "/vkIC/0", json!("00"), plutus::read_vk, no_json);
    check_json(plutus::write_vk(vk), "/nPublic", json!(9), plutus::read_vk, disagrees);
    let refused = snarkjs::read_proof(b"{\"protocol\":\"groth16\"}").err().unwrap();
    assert_eq!((refused.section, refused.problem), ("pi_a", Problem::NoSection));
}

#[test]
fn proofs_of_gnark_with_commitments_are_refused() {
    let (_, proof, _) = &*OUTPUT;
    let mut bytes = gnark::write_proof(proof);
    bytes[195] = 1;
    assert_eq!(gnark::read_proof(&bytes).err().unwrap().section, "commitments");
    let mut bytes = gnark::write_proof(proof);
    bytes[196..].copy_from_slice(&proof.to_bytes()[..48]);
    assert_eq!(gnark::read_proof(&bytes).err().unwrap().section, "proof of knowledge");
}

#[test]
fn zeto_i186_a_key_without_phase_2_is_refused_unless_that_is_allowed() {
    let (vk, _, _) = &*OUTPUT;
    assert_eq!(vk.check_phase2(Phase2::Required), Ok(()));
    let bad = VerifierKey { delta_g2: vk.gamma_g2, ..vk.clone() };
    assert_eq!(bad.check_phase2(Phase2::Required), Err(KeyError::NoPhase2));
    assert_eq!(bad.check_phase2(Phase2::MayBeMissingForTests), Ok(()));
}

#[test]
fn a_contract_holds_the_negated_key_and_no_more_inputs_than_fit() {
    let (vk, _, _) = &*OUTPUT;
    let contract = solidity::write_verifier(vk).unwrap();
    assert!(["{constants}", "{publics}", "{proof_bytes}", "{r}"].iter().all(|hole| !contract.contains(hole)));
    for part in [eip2537::write_g1(&vk.alpha_g1), eip2537::write_g1(&vk.ic[5])] {
        assert!(contract.contains(&hex::encode(part)));
    }
    for point in [vk.beta_g2, vk.gamma_g2, vk.delta_g2] {
        let minus = hex::encode(eip2537::write_g2(&-point));
        assert!(contract.contains(&minus[..256]) && contract.contains(&minus[256..]));
    }
    assert!(contract.contains("INPUTS = 5;"));
    let large = |publics: usize| VerifierKey { ic: vec![vk.ic[0]; publics + 1], ..vk.clone() };
    assert!(solidity::write_verifier(&large(solidity::PUBLICS_MAX)).is_ok());
    assert!(solidity::write_verifier(&large(solidity::PUBLICS_MAX + 1)).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0usize..700, text in "[\\[\\]{}\",:0-9a-fx]{0,40}") {
        let (vk, proof, publics) = &*OUTPUT;
        let over = |good: &[u8], new: &[u8]| {
            let mut bad = good.to_vec();
            let end = bad.len().min(at + new.len());
            bad[at.min(end)..end].copy_from_slice(&new[..end - at.min(end)]);
            bad
        };
        let _ = gnark::read_proof(&over(&gnark::write_proof(proof), &bytes));
        let _ = eip2537::read_calldata(&over(&eip2537::write_calldata(proof, publics), &bytes));
        let _ = arkworks::read_vk(&over(&arkworks::write_vk(vk, Compressed), &bytes), Compressed);
        let _ = arkworks::read_proof(&over(&arkworks::write_proof(proof, Uncompressed), &bytes), Uncompressed);
        let _ = snarkjs::read_proof(&over(snarkjs::write_proof(proof).as_bytes(), text.as_bytes()));
        let _ = snarkjs::read_vk(&over(&circom("mul2", "vkey.json"), text.as_bytes()));
        let _ = zokrates::read_proof(&over(zokrates::write_proof(proof, publics).as_bytes(), text.as_bytes()));
        let _ = plutus::read_vk(&over(plutus::write_vk(vk).as_bytes(), text.as_bytes()));
        let _ = snarkjs::read_publics(text.as_bytes());
    }
}
