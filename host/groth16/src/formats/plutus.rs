//! Verifying keys and proofs for Cardano (Plutus V3): the fields of Aiken's library `ak-381` in JSON, points compressed, in
//! hexadecimal.
//!
//! `vkAlphaBeta`, which that library's verifier does not read, is an empty list.

use super::json::{self, Json};
use super::{DecodeError, Problem};
use crate::Proof;
use crate::key::VerifierKey;
use crate::points::{G1Point, G2Point, Point};
use blstrs::G1Affine;
use serde_json::{Value, json};

const VK: &str = "Plutus verifying key (.json)";
const PROOF: &str = "Plutus proof (.json)";

/// Read a verifying key. Its points are on the curve, in the subgroup and not at infinity.
pub fn read_vk(bytes: &[u8]) -> Result<VerifierKey, DecodeError> {
    let value = json::parse(VK, bytes)?;
    let file = Json::new(VK, &value);
    let ic = file
        .field("vkIC")?
        .list()?
        .iter()
        .map(|p| point::<G1Point>(p).map(G1Affine::from))
        .collect::<Result<Vec<_>, _>>()?;
    let publics = file.field("nPublic")?;
    let (expected, found) = (ic.len() as u64, publics.count()?.saturating_add(1));
    if expected != found {
        let what = "its value and one";
        return Err(publics.error(Problem::Disagrees { what, expected, found, from: "the length of vkIC" }));
    }
    Ok(VerifierKey {
        alpha_g1: point::<G1Point>(&file.field("vkAlpha")?)?.into(),
        beta_g2: point::<G2Point>(&file.field("vkBeta")?)?.into(),
        gamma_g2: point::<G2Point>(&file.field("vkGamma")?)?.into(),
        delta_g2: point::<G2Point>(&file.field("vkDelta")?)?.into(),
        ic,
    })
}

/// Write a verifying key.
pub fn write_vk(vk: &VerifierKey) -> String {
    let value = json!({
        "nPublic": vk.public_count(),
        "vkAlpha": text::<G1Point>(vk.alpha_g1),
        "vkBeta": text::<G2Point>(vk.beta_g2),
        "vkGamma": text::<G2Point>(vk.gamma_g2),
        "vkDelta": text::<G2Point>(vk.delta_g2),
        "vkAlphaBeta": [],
        "vkIC": vk.ic.iter().map(|p| text::<G1Point>(*p)).collect::<Value>(),
    });
    format!("{value:#}\n")
}

/// Read a proof. Its points are checked like a key's.
pub fn read_proof(bytes: &[u8]) -> Result<Proof, DecodeError> {
    let value = json::parse(PROOF, bytes)?;
    let file = Json::new(PROOF, &value);
    Ok(Proof {
        a: point::<G1Point>(&file.field("piA")?)?.into(),
        b: point::<G2Point>(&file.field("piB")?)?.into(),
        c: point::<G1Point>(&file.field("piC")?)?.into(),
    })
}

/// Write a proof.
pub fn write_proof(proof: &Proof) -> String {
    let (a, b, c) = (text::<G1Point>(proof.a), text::<G2Point>(proof.b), text::<G1Point>(proof.c));
    format!("{:#}\n", json!({ "piA": a, "piB": b, "piC": c }))
}

fn point<P: Point>(field: &Json) -> Result<P, DecodeError> {
    let mut bytes = vec![0; P::COMPRESSED_BYTES];
    hex::decode_to_slice(field.text()?, &mut bytes)
        .map_err(|_| field.error(Problem::Json(format!("expected {} hexadecimal digits", 2 * P::COMPRESSED_BYTES))))?;
    field.checked(P::decode_compressed(&bytes))
}

fn text<P: Point>(point: impl Into<P>) -> String {
    let mut bytes = vec![];
    point.into().encode_compressed(&mut bytes);
    hex::encode(bytes)
}
