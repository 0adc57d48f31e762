//! Verifying 90 proofs in one batch beside verifying them one by one (`batch_verify`).
//!
//! The proofs are Sapling Spend proofs of Zcash's main chain, with the network's own verifying key. The fixtures hold fewer
//! than 90, so they are taken again from the start; the verifier does not know.

use serde_json::Value;
use std::path::Path;
use zkhost_benches::{Measurement, milliseconds, paired, timed};
use zkhost_groth16::formats::read_vk;
use zkhost_groth16::scalar::{from_canonical, limbs_from_le_bytes};
use zkhost_groth16::{PreparedVerifyingKey, Proof, Scalar};

const PROOFS: usize = 90;
const RUNS: usize = 15;

fn main() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/sapling");
    let vk = std::fs::read(fixtures.join("spend.vk")).expect("the verifying key is a fixture");
    let key = PreparedVerifyingKey::from(&read_vk(&vk).expect("the verifying key reads"));
    let lines = std::fs::read_to_string(fixtures.join("mainnet-proofs.jsonl")).expect("the proofs are a fixture");
    let spends: Vec<(Proof, Vec<Scalar>)> = lines.lines().filter_map(spend).collect();
    let claims: Vec<(&Proof, &[Scalar])> =
        spends.iter().map(|(proof, publics)| (proof, &publics[..])).cycle().take(PROOFS).collect();

    // A false claim among them must make the batch false, or the batch's time means nothing.
    let mut broken = claims.clone();
    broken[PROOFS / 2].1 = broken[0].1;
    assert!(key.verify_batch(&broken).is_err(), "a batch with a false claim is false");

    let together = || timed(|| key.verify_batch(&claims).expect("main-chain proofs verify"));
    let one_by_one = || {
        timed(|| {
            claims.iter().for_each(|(proof, publics)| key.verify(proof, publics).expect("main-chain proofs verify"))
        })
    };
    let (ours, peer) = paired(RUNS, together, one_by_one);
    Measurement {
        bench: "batch_verify",
        case: "90 Sapling Spend proofs",
        ours: milliseconds(ours),
        peer: Some("one by one"),
        peer_value: Some(milliseconds(peer)),
        unit: "ms",
        checked: true,
    }
    .record()
    .expect("the result is written");
}

/// The proof and public inputs of a line, if it is a Spend proof.
fn spend(line: &str) -> Option<(Proof, Vec<Scalar>)> {
    let json: Value = serde_json::from_str(line).expect("a line is one JSON object");
    let bytes = |value: &Value| hex::decode(value.as_str().expect("bytes are text")).expect("bytes are hexadecimal");
    let scalar = |value: &Value| {
        let bytes: [u8; 32] = bytes(value).try_into().expect("a scalar has 32 bytes");
        from_canonical(&limbs_from_le_bytes(&bytes)).expect("a scalar is below the modulus")
    };
    (json["circuit"] == "sapling-spend").then(|| {
        let publics = json["public_inputs_le"].as_array().expect("public inputs are a list");
        (Proof::from_bytes(&bytes(&json["proof"])).expect("a proof decodes"), publics.iter().map(scalar).collect())
    })
}
