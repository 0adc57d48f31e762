//! Whole proofs of chains of squarings and of hash-like circuits, from a packed witness in page-locked memory.
//!
//! Keys are made on the device. Times are medians of host clocks around the proof without its verification.

#[path = "../tests/common/circuits.rs"]
mod circuits;

use std::{env, sync::Arc, time::Instant};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use zkhost_cuda::{CudaKey, CudaProver, Device, DeviceChoice, DeviceMultiples, PinnedWindow};
use zkhost_groth16::{
    Assignment, Encoding, HBasis, Prover, R1cs, Scalar,
    assignment::{SegmentLimits, SegmentSink, SegmentWriter},
    scalar::{Limbs, to_canonical},
    setup::{ToxicWaste, setup_with},
};

const RUNS: usize = 9;

/// The values as a guest writes them, in page-locked memory.
fn pinned(device: &Arc<Device>, publics: &[Scalar], aux: &[Scalar]) -> Assignment {
    let canonical: Vec<Limbs> = aux.iter().map(to_canonical).collect();
    let is_bit = |limbs: &Limbs| limbs[0] < 2 && limbs[1..] == [0; 3];
    let full_max = canonical.iter().filter(|limbs| !is_bit(limbs)).count() as u64;
    let limits = SegmentLimits { aux_count: aux.len() as u64, full_max, public_count: publics.len() as u64 };
    let window = PinnedWindow::new(device, limits).unwrap();
    let mut writer = SegmentWriter::new(Box::new(window), Encoding::Canonical, limits);
    let limbs: Vec<u64> = publics.iter().flat_map(to_canonical).collect();
    writer.write_public(&limbs).unwrap();
    for group in canonical.chunks(64) {
        let mut masks = [0u64; 2];
        let elements: Vec<Limbs> = group.iter().filter(|limbs| !is_bit(limbs)).copied().collect();
        for (bit, limbs) in group.iter().enumerate() {
            masks[usize::from(is_bit(limbs))] |= u64::from(!is_bit(limbs) || limbs[0] == 1) << bit;
        }
        writer.write_groups(&masks, elements.as_flattened()).unwrap();
    }
    Assignment::new(vec![writer.finish().unwrap()])
}

fn bench(device: &Arc<Device>, case: &str, (r1cs, publics, aux): (R1cs, Vec<Scalar>, Vec<Scalar>)) {
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
    let assignment = pinned(device, &publics, &aux);
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
    let bytes = size_of_val(segment.masks()) + size_of_val(segment.elements()) + 64 * (1 + publics.len());
    println!(
        r#"{{"bench":"link_bytes","case":"{case}","ours":{:.4},"peer":null,"peer_value":null,"unit":"bytes per variable","checked":{checked},"machine":"{}","date":"{date}","commit":"{commit}"}}"#,
        bytes as f64 / aux.len() as f64,
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
    for log_n in [12, 16, 18, 20] {
        let case = format!("chain{log_n}");
        if wanted(&case) {
            bench(&device, &case, circuits::squarings((1 << log_n) - 8));
        }
    }
    // As many constraints as SHA-256 of 40 and of 160 blocks.
    for (case, bits) in [("bits40", 500_000), ("bits160", 2_000_000)] {
        if wanted(case) {
            bench(&device, case, circuits::booleans(bits, &mut ChaCha8Rng::seed_from_u64(1)));
        }
    }
}
