//! Whole proofs of chains of squarings and of SHA-256, from a packed witness in page-locked memory.
//!
//! Keys are made on the device. Times are medians of host clocks around the proof without its verification.

#[allow(dead_code, reason = "the tests use the other circuits")]
#[path = "../../../cuda/tests/common/circuits.rs"]
mod circuits;

use std::{env, sync::Arc, time::Instant};

use ff::Field;
use sha256::Sha256Preimage;
use zkhost_bench_gpu::constraint_system;
use zkhost_cuda::{CudaKey, CudaProver, Device, DeviceChoice, DeviceMultiples, PinnedWindow};
use zkhost_groth16::{
    Assignment, Encoding, HBasis, Prover, R1cs, Scalar,
    assignment::{SegmentLimits, SegmentSink, SegmentWriter},
    scalar::{Limbs, to_canonical},
    setup::{ToxicWaste, setup_with},
};
use zkhost_guest::native;

const RUNS: usize = 9;

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

fn bench(device: &Arc<Device>, case: &str, r1cs: R1cs, assignment: Assignment) {
    let start = Instant::now();
    let multiples = DeviceMultiples::new(device).unwrap();
    let key = setup_with(&r1cs, &ToxicWaste::insecure_from_seed(4), HBasis::QuotientPoints, &multiples).unwrap();
    drop(multiples);
    let made = start.elapsed();
    let log_n = key.log2_domain;
    let (key, r1cs) = (Arc::new(key), Arc::new(r1cs));
    let resident = Arc::new(CudaKey::new(device, key, r1cs, 1).unwrap());
    let prover = CudaProver::new(resident).unwrap();
    eprintln!(
        "{case}: domain 2^{log_n}, key made in {made:.1?}, resident after {:.1?}, {} MiB in use",
        start.elapsed(),
        device.used_bytes() >> 20
    );
    let checked = prover.prove(&assignment).is_ok();
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            let base = prover.base(&assignment).unwrap();
            let ms = start.elapsed().as_secs_f64() * 1e3;
            drop(base);
            ms
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (date, commit) = (env::var("BENCH_DATE").unwrap_or_default(), env::var("BENCH_COMMIT").unwrap_or_default());
    println!(
        r#"{{"bench":"proof","case":"{case}","ours":{:.3},"peer":null,"peer_value":null,"unit":"ms","checked":{checked},"machine":"{}","date":"{date}","commit":"{commit}"}}"#,
        times[RUNS / 2],
        device.describe(),
    );
    let segment = &assignment.segments()[0];
    let bytes = size_of_val(segment.masks()) + size_of_val(segment.elements()) + 64 * (1 + assignment.publics().len());
    println!(
        r#"{{"bench":"link_bytes","case":"{case}","ours":{:.4},"peer":null,"peer_value":null,"unit":"bytes per variable","checked":{checked},"machine":"{}","date":"{date}","commit":"{commit}"}}"#,
        bytes as f64 / assignment.aux_count() as f64,
        device.describe(),
    );
}

fn main() {
    let (Some(device), _) = DeviceChoice::Auto.open() else {
        eprintln!("skipped: {}", DeviceChoice::Auto.open().1.unwrap_or_default());
        return;
    };
    // All cases, or those that are named.
    let named: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let wanted = |case: &str| named.is_empty() || named.iter().any(|name| name == case);
    for (case, log_n) in [("chain12", 12), ("chain18", 18), ("chain20", 20)] {
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
