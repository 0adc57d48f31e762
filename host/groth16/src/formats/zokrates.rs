//! ZoKrates's JSON files: proof (public inputs included) and verifying key, scheme `g16`.
//!
//! Numbers are hexadecimal strings, points affine, in G2 c0 before c1. Source: files written by ZoKrates 0.8 (npm
//! `zokrates-js` 1.1.9).

use super::DecodeError;
use super::json::{self, Json, Radix};
use crate::Proof;
use crate::key::VerifierKey;
use crate::scalar::Scalar;
use blstrs::{G1Affine, G2Affine};
use serde_json::{Value, json};

const PROOF: &str = "ZoKrates proof (.json)";
const VK: &str = "ZoKrates verifying key (.json)";
const RADIX: Radix = Radix::Hexadecimal;
const SCHEME: &str = "g16";
const CURVE: &str = "bls12_381";

/// Read a proof and its public inputs. Points are on the curve, in the subgroup and not at infinity, inputs below r.
pub fn read_proof(bytes: &[u8]) -> Result<(Proof, Vec<Scalar>), DecodeError> {
    let value = json::parse(PROOF, bytes)?;
    let file = Json::new(PROOF, &value);
    check_kind(&file)?;
    let points = file.field("proof")?;
    let proof = Proof { a: g1(&points.field("a")?)?, b: g2(&points.field("b")?)?, c: g1(&points.field("c")?)? };
    let inputs = file.field("inputs")?.list()?;
    Ok((proof, inputs.iter().map(|entry| entry.scalar(RADIX)).collect::<Result<_, _>>()?))
}

/// Write a proof and its public inputs.
pub fn write_proof(proof: &Proof, publics: &[Scalar]) -> String {
    let inputs: Value = publics.iter().map(|x| json::scalar(RADIX, x)).collect();
    let points = json!({ "a": write_g1(&proof.a), "b": write_g2(&proof.b), "c": write_g1(&proof.c) });
    pretty(&json!({ "scheme": SCHEME, "curve": CURVE, "proof": points, "inputs": inputs }))
}

/// Read a verifying key. Its points are checked like a proof's.
pub fn read_vk(bytes: &[u8]) -> Result<VerifierKey, DecodeError> {
    let value = json::parse(VK, bytes)?;
    let file = Json::new(VK, &value);
    check_kind(&file)?;
    let ic = file.field("gamma_abc")?;
    let points = ic.list()?.iter().map(g1).collect::<Result<Vec<_>, _>>()?;
    if points.is_empty() {
        return Err(ic.error(super::Problem::no_ic()));
    }
    Ok(VerifierKey {
        alpha_g1: g1(&file.field("alpha")?)?,
        beta_g2: g2(&file.field("beta")?)?,
        gamma_g2: g2(&file.field("gamma")?)?,
        delta_g2: g2(&file.field("delta")?)?,
        ic: points,
    })
}

/// Write a verifying key.
pub fn write_vk(vk: &VerifierKey) -> String {
    pretty(&json!({
        "scheme": SCHEME,
        "curve": CURVE,
        "alpha": write_g1(&vk.alpha_g1),
        "beta": write_g2(&vk.beta_g2),
        "gamma": write_g2(&vk.gamma_g2),
        "delta": write_g2(&vk.delta_g2),
        "gamma_abc": vk.ic.iter().map(write_g1).collect::<Value>(),
    }))
}

fn check_kind(file: &Json) -> Result<(), DecodeError> {
    file.expect("scheme", &[SCHEME])?;
    file.expect("curve", &[CURVE])
}

fn g1(point: &Json) -> Result<G1Affine, DecodeError> {
    point.g1(RADIX, point.tuple()?)
}

fn g2(point: &Json) -> Result<G2Affine, DecodeError> {
    point.g2(RADIX, point.tuple()?)
}

fn write_g1(point: &G1Affine) -> Value {
    json::g1(RADIX, point).into_iter().collect()
}

fn write_g2(point: &G2Affine) -> Value {
    json::g2(RADIX, point).into_iter().collect()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
