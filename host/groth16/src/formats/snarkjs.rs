//! snarkjs's JSON files: proof, public inputs, verifying key.
//!
//! Numbers are decimal strings, points projective with a last coordinate of one, in G2 c0 before c1. The curve is called
//! `bls12381`, elsewhere `bls12-381`; rapidsnark's proofs do not name it. Source: files written by snarkjs 0.7.6.

use super::json::{self, Json, Radix};
use super::{DecodeError, Problem};
use crate::Proof;
use crate::key::VerifierKey;
use crate::scalar::Scalar;
use blst::{blst_fp, blst_fp12, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G2Affine};
use serde_json::{Value, json};

const PROOF: &str = "snarkjs proof (.json)";
const PUBLICS: &str = "snarkjs public inputs (.json)";
const VK: &str = "snarkjs verifying key (.json)";
const RADIX: Radix = Radix::Decimal;
const CURVE: &str = "bls12381";

/// Read a proof. Its points are on the curve, in the subgroup and not at infinity.
pub fn read_proof(bytes: &[u8]) -> Result<Proof, DecodeError> {
    let value = json::parse(PROOF, bytes)?;
    let file = Json::new(PROOF, &value);
    check_kind(&file)?;
    Ok(Proof { a: g1(&file.field("pi_a")?)?, b: g2(&file.field("pi_b")?)?, c: g1(&file.field("pi_c")?)? })
}

/// Write a proof.
pub fn write_proof(proof: &Proof) -> String {
    let (a, b, c) = (write_g1(&proof.a), write_g2(&proof.b), write_g1(&proof.c));
    pretty(&json!({ "pi_a": a, "pi_b": b, "pi_c": c, "protocol": "groth16", "curve": CURVE }))
}

/// Read public inputs. One at or above r is refused: v and v + r would be one input with two names.
pub fn read_publics(bytes: &[u8]) -> Result<Vec<Scalar>, DecodeError> {
    let value = json::parse(PUBLICS, bytes)?;
    Json::new(PUBLICS, &value).list()?.iter().map(|entry| entry.scalar(RADIX)).collect()
}

/// Write public inputs.
pub fn write_publics(publics: &[Scalar]) -> String {
    pretty(&publics.iter().map(|x| json::scalar(RADIX, x)).collect())
}

/// Read a verifying key. Its points are checked like a proof's. If it has e(alpha, beta), that must be theirs.
pub fn read_vk(bytes: &[u8]) -> Result<VerifierKey, DecodeError> {
    let value = json::parse(VK, bytes)?;
    let file = Json::new(VK, &value);
    check_kind(&file)?;
    let ic = file.field("IC")?.list()?.iter().map(g1).collect::<Result<Vec<_>, _>>()?;
    let publics = file.field("nPublic")?;
    let (expected, found) = (ic.len() as u64, publics.count()?.saturating_add(1));
    if expected != found {
        let what = "its value and one";
        return Err(publics.error(Problem::Disagrees { what, expected, found, from: "the length of IC" }));
    }
    let vk = VerifierKey {
        alpha_g1: g1(&file.field("vk_alpha_1")?)?,
        beta_g2: g2(&file.field("vk_beta_2")?)?,
        gamma_g2: g2(&file.field("vk_gamma_2")?)?,
        delta_g2: g2(&file.field("vk_delta_2")?)?,
        ic,
    };
    if let Some(pairing) = value.get("vk_alphabeta_12")
        && *pairing != write_pairing(&vk)
    {
        let damaged = Problem::Json("it is not the pairing of vk_alpha_1 and vk_beta_2".into());
        return Err(file.field("vk_alphabeta_12")?.error(damaged));
    }
    Ok(vk)
}

/// Write a verifying key.
pub fn write_vk(vk: &VerifierKey) -> String {
    pretty(&json!({
        "protocol": "groth16",
        "curve": CURVE,
        "nPublic": vk.public_count(),
        "vk_alpha_1": write_g1(&vk.alpha_g1),
        "vk_beta_2": write_g2(&vk.beta_g2),
        "vk_gamma_2": write_g2(&vk.gamma_g2),
        "vk_delta_2": write_g2(&vk.delta_g2),
        "vk_alphabeta_12": write_pairing(vk),
        "IC": vk.ic.iter().map(write_g1).collect::<Value>(),
    }))
}

fn check_kind(file: &Json) -> Result<(), DecodeError> {
    file.expect("protocol", &["groth16"])?;
    if file.get("curve").is_some() { file.expect("curve", &[CURVE, "bls12-381"]) } else { Ok(()) }
}

fn g1(point: &Json) -> Result<G1Affine, DecodeError> {
    let [x, y, z] = point.tuple()?;
    z.constant(RADIX, 1)?;
    point.g1(RADIX, [x, y])
}

fn g2(point: &Json) -> Result<G2Affine, DecodeError> {
    let [x, y, z] = point.tuple()?;
    let [z0, z1] = z.tuple()?;
    z0.constant(RADIX, 1)?;
    z1.constant(RADIX, 0)?;
    point.g2(RADIX, [x, y])
}

fn write_g1(point: &G1Affine) -> Value {
    let [x, y] = json::g1(RADIX, point);
    json!([x, y, "1"])
}

fn write_g2(point: &G2Affine) -> Value {
    let [x, y] = json::g2(RADIX, point);
    json!([x, y, ["1", "0"]])
}

/// e(alpha, beta), coefficient by coefficient of the tower over Fp2.
fn write_pairing(vk: &VerifierKey) -> Value {
    let (p, q): (&blst_p1_affine, &blst_p2_affine) = (vk.alpha_g1.as_ref(), vk.beta_g2.as_ref());
    let pairing = blst_fp12::miller_loop(q, p).final_exp();
    let fp = |x: &blst_fp| {
        let mut bytes = [0; 48];
        // SAFETY: the output takes the 48 bytes of a coordinate; the input is a plain value.
        unsafe { blst::blst_bendian_from_fp(bytes.as_mut_ptr(), x) };
        json::number(RADIX, &bytes)
    };
    pairing
        .fp6
        .iter()
        .map(|c| c.fp2.iter().map(|c| c.fp.iter().map(fp).collect::<Value>()).collect::<Value>())
        .collect()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
