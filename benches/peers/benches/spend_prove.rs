//! Sapling Spend from witness in hand to proof, beside the crates `groth16` and `bellperson` (`spend_prove`).
//!
//! All three get the same key, assignment, r and s, so that their proofs must be the same bytes; ours is timed with its own
//! verification, as it is used.

use bls12_381::Bls12;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zkhost_bench_peers::{ForBellperson, ForGroth16, Spend};
use zkhost_benches::{Measurement, milliseconds, paired};
use zkhost_groth16::{Assignment, CpuProver, Prover, Scalar};

const RUNS: usize = 7;
const R: u64 = 27134;
const S: u64 = 17146;

fn main() {
    let spend = Spend::record();
    let prover = CpuProver::new(Arc::new(spend.key()), spend.r1cs.clone()).expect("the key is Spend's");
    let (assignment, publics) = (spend.assignment(), spend.r1cs.public_count as usize);
    let (r, s) = (Scalar::from(R), Scalar::from(S));
    let expected = prover.prove_with_fixed_blinding_for_tests(&assignment, r, s).expect("Spend proves").to_bytes();

    let params = reference_groth16::Parameters::<Bls12>::read(&spend.params[..], false).expect("the key reads");
    let (values, rows) = (ForGroth16::values(&spend), ForGroth16::rows(&spend));
    let circuit = ForGroth16::new(&values, publics, &rows);
    compare(&prover, &assignment, "groth16", || {
        let (r, s) = (R.into(), S.into());
        let started = Instant::now();
        let proof = reference_groth16::create_proof(circuit, &params, r, s).expect("Spend proves");
        let time = started.elapsed();
        let mut bytes = vec![];
        proof.write(&mut bytes).expect("memory takes it");
        assert!(bytes == expected, "groth16's proof differs");
        time
    });
    drop(params);

    let params =
        bellperson::groth16::Parameters::<blstrs::Bls12>::read(&spend.params[..], false).expect("the key reads");
    let (values, rows) = (ForBellperson::values(&spend), ForBellperson::rows(&spend));
    let circuit = ForBellperson::new(&values, publics, &rows);
    compare(&prover, &assignment, "bellperson", || {
        let started = Instant::now();
        let proof = bellperson::groth16::create_proof(circuit, &params, r, s).expect("Spend proves");
        let time = started.elapsed();
        let mut bytes = vec![];
        proof.write(&mut bytes).expect("memory takes it");
        assert!(bytes == expected, "bellperson's proof differs");
        time
    });
}

fn compare(prover: &CpuProver, assignment: &Assignment, peer: &str, prove: impl FnMut() -> Duration) {
    let ours = || {
        let started = Instant::now();
        prover.prove(assignment).expect("Spend proves");
        started.elapsed()
    };
    let (ours, theirs) = paired(RUNS, ours, prove);
    let (ours, peer_value) = (milliseconds(ours), Some(milliseconds(theirs)));
    Measurement { bench: "spend_prove", case: peer, ours, peer: Some(peer), peer_value, unit: "ms", checked: true }
        .record()
        .expect("the result is written");
}
