//! Whole proofs of chains of squarings and of SHA-256, from a packed witness in page-locked memory.
//!
//! Keys are made on the device. Times are medians of host clocks: from the witness in page-locked memory to the proof's
//! 192 bytes, re-randomised; each is verified after its time. With the feature `supraseal` the peer proves the same
//! statements in between, from the same secrets, and its proof for fixed r and s must be ours byte for byte.

#[allow(dead_code, reason = "the tests use the other circuits")]
#[path = "../../../cuda/tests/common/circuits.rs"]
mod circuits;

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use ff::Field;
use serde_json::json;
use sha256::Sha256Preimage;
use zkhost_bench_gpu::{Peer, constraint_system};
use zkhost_cuda::{CudaKey, CudaProver, Device, DeviceChoice, DeviceMultiples, PinnedWindow};
use zkhost_groth16::{
    Assignment, CpuProver, Encoding, HBasis, Prover, R1cs, Scalar,
    assignment::{SegmentLimits, SegmentSink, SegmentWriter},
    scalar::{Limbs, to_canonical},
    setup::{ToxicWaste, setup, setup_with},
};
use zkhost_guest::native;

/// Proofs by the peer, and ours for each.
const RUNS: usize = 5;
const RUNS_EACH: usize = 5;
/// Beyond it the peer takes minutes.
const PEER_LOG_DOMAIN_MAX: u32 = 23;

/// What a guest writes, in page-locked memory.
fn pinned(device: &Arc<Device>, publics: &[Limbs], aux_count: usize, masks: &[u64], elements: &[u64]) -> Assignment {
    let full_max = elements.len() as u64 / 4;
    let limits = SegmentLimits { aux_count: aux_count as u64, full_max, public_count: publics.len() as u64 };
    let window = PinnedWindow::new(device, limits).unwrap();
    let mut writer = SegmentWriter::new(Box::new(window), Encoding::Canonical, limits);
    writer.write_public(publics.as_flattened()).unwrap();
    writer.write_groups(masks, elements).unwrap();
    Assignment::new(vec![writer.finish().unwrap()])
}

/// Masks and elements of values.
fn pack(aux: &[Scalar]) -> (Vec<u64>, Vec<u64>) {
    let (mut masks, mut elements) = (vec![], vec![]);
    for group in aux.chunks(64) {
        let mut pair = [0u64; 2];
        for (bit, value) in group.iter().enumerate() {
            if *value == Scalar::ONE {
                pair[1] |= 1 << bit;
            } else if *value != Scalar::ZERO {
                pair[0] |= 1 << bit;
                elements.extend(to_canonical(value));
            }
        }
        masks.extend(pair);
    }
    (masks, elements)
}

/// SHA-256 of a preimage of so many blocks, padding included.
fn sha(device: &Arc<Device>, case: &str, blocks: usize) {
    let bytes = 64 * blocks - 9;
    let params = format!(r#"{{"preimage_bytes": {bytes}}}"#);
    let input = format!(r#"{{"preimage": "{}"}}"#, "a7".repeat(bytes));
    let run = native::run::<Sha256Preimage>(params.as_bytes(), input.as_bytes()).expect("the circuit runs");
    let r1cs = constraint_system(&run.shape);
    let assignment = &run.assignments[0];
    let publics: Vec<Limbs> = assignment.publics.iter().map(|x| x.to_canonical()).collect();
    let witness = pinned(device, &publics, assignment.aux.len(), &assignment.masks, &assignment.elements);
    drop(run);
    bench(device, case, r1cs, witness);
}

fn squarings(device: &Arc<Device>, case: &str, steps: usize) {
    let (r1cs, publics, aux) = circuits::squarings(steps);
    let (masks, elements) = pack(&aux);
    let publics: Vec<Limbs> = publics.iter().map(to_canonical).collect();
    bench(device, case, r1cs, pinned(device, &publics, aux.len(), &masks, &elements));
}

/// Our proofs beside the peer's, from keys with the same secrets: ours holds the H query as quotient points, the peer's
/// as powers. The witness is in page-locked memory; the proof's 192 bytes end the time.
fn bench(device: &Arc<Device>, case: &str, r1cs: R1cs, assignment: Assignment) {
    let r1cs = Arc::new(r1cs);
    let start = Instant::now();
    let waste = ToxicWaste::insecure_from_seed(4);
    let multiples = DeviceMultiples::new(device).unwrap();
    let key = setup_with(&r1cs, &waste, HBasis::QuotientPoints, &multiples).unwrap();
    let made_ms = start.elapsed().as_secs_f64() * 1e3;
    let log_n = key.log2_domain;
    let z = assignment.z();
    let peer = (log_n <= PEER_LOG_DOMAIN_MAX).then(|| Peer::new(&r1cs, &waste, &multiples, &z)).flatten();
    drop(multiples);
    let resident = Arc::new(CudaKey::new(device, Arc::new(key), r1cs.clone(), 1).unwrap());
    let prover = CudaProver::new(resident).unwrap();
    eprintln!(
        "{case}: domain 2^{log_n}, resident after {:.1?}, {} MiB in use",
        start.elapsed(),
        device.used_bytes() >> 20
    );

    let (r, s) = (Scalar::from(3), Scalar::from(5));
    let mut checked = prover.prove(&assignment).is_ok();
    if let Some(peer) = &peer {
        let ours = prover.prove_with_fixed_blinding_for_tests(&assignment, r, s).unwrap().to_bytes();
        checked &= peer.prove(r, s).0 == ours;
    }
    let (mut times, mut peer_times) = (vec![], vec![]);
    for _ in 0..RUNS {
        for _ in 0..RUNS_EACH {
            let start = Instant::now();
            let proof = prover.prove_unverified(&assignment).unwrap();
            let bytes = proof.to_bytes();
            times.push(start.elapsed());
            checked &= bytes.len() == 192 && prover.bound().verify(case, &proof, &assignment).is_ok();
        }
        peer_times.extend(peer.as_ref().map(|peer| peer.prove(r, s).1));
    }
    let peer_ms = (!peer_times.is_empty()).then(|| median_ms(peer_times));
    report(device, "proof", case, median_ms(times), "ms", peer_ms.map(|ms| (Peer::NAME, ms)), checked);
    let segment = &assignment.segments()[0];
    let bytes = size_of_val(segment.masks()) + size_of_val(segment.elements()) + 64 * (1 + assignment.publics().len());
    let per_variable = bytes as f64 / assignment.aux_count() as f64;
    report(device, "link_bytes", case, per_variable, "bytes per variable", None, checked);
    // That proofs verify says that the key is right.
    report(device, "setup", case, made_ms, "ms", None, checked);
}

/// A small proof on the device beside one on the CPU: which of them is to prove small domains.
fn device_or_cpu(device: &Arc<Device>, log_n: u32) {
    let (r1cs, publics, aux) = circuits::squarings((1 << log_n) - 8);
    let r1cs = Arc::new(r1cs);
    let waste = ToxicWaste::insecure_from_seed(4);
    let key = Arc::new(setup(&r1cs, &waste, HBasis::QuotientPoints).unwrap());
    let (masks, elements) = pack(&aux);
    let publics: Vec<Limbs> = publics.iter().map(to_canonical).collect();
    let assignment = pinned(device, &publics, aux.len(), &masks, &elements);
    let gpu = CudaProver::new(Arc::new(CudaKey::new(device, key.clone(), r1cs.clone(), 1).unwrap())).unwrap();
    let cpu = CpuProver::new(key, r1cs).unwrap();
    let time = |prover: &dyn Prover| {
        let start = Instant::now();
        let proof = prover.prove_unverified(&assignment).unwrap();
        let took = start.elapsed();
        (took, prover.bound().verify("either", &proof, &assignment).is_ok())
    };
    (time(&gpu), time(&cpu));
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..RUNS * RUNS_EACH).map(|_| (time(&gpu), time(&cpu))).unzip();
    let checked = ours.iter().chain(&theirs).all(|run| run.1);
    let [ours, theirs] = [ours, theirs].map(|runs| median_ms(runs.into_iter().map(|run| run.0).collect()));
    report(device, "device_or_cpu", &format!("2^{log_n}"), ours, "ms", Some((&cpu.describe(), theirs)), checked);
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn report(device: &Device, bench: &str, case: &str, ours: f64, unit: &str, peer: Option<(&str, f64)>, checked: bool) {
    let line = json!({
        "bench": bench, "case": case, "ours": round(ours), "peer": peer.map(|(name, _)| name),
        "peer_value": peer.map(|(_, value)| round(value)), "unit": unit, "checked": checked, "machine": device.describe(),
        "date": env::var("BENCH_DATE").unwrap_or_default(), "commit": env::var("BENCH_COMMIT").unwrap_or_default(),
    });
    println!("{line}");
}

/// To four decimals.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn main() {
    let (Some(device), _) = DeviceChoice::Auto.open() else {
        eprintln!("skipped: {}", DeviceChoice::Auto.open().1.unwrap_or_default());
        return;
    };
    // All cases, or those that are named.
    let named: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let wanted = |case: &str| named.is_empty() || named.iter().any(|name| name == case);
    if wanted("device_or_cpu") {
        (4..=14).step_by(2).for_each(|log_n| device_or_cpu(&device, log_n));
    }
    for (case, log_n) in [("chain12", 12), ("chain18", 18), ("chain20", 20), ("chain24", 24)] {
        if wanted(case) {
            squarings(&device, case, (1 << log_n) - 8);
        }
    }
    for (case, blocks) in [("sha40", 40), ("sha160", 160)] {
        if wanted(case) {
            sha(&device, case, blocks);
        }
    }
}
