//! Peak memory of proving Sapling Spend beyond the key, beside the crates `groth16` and `bellperson` (`spend_memory`).
//!
//! An allocator counts everything from the witness in hand to the proof: for ours the prover's tables too, for theirs what
//! they copy of the values, both without the key and the constraint system.

use bls12_381::Bls12;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use zkhost_bench_peers::{ForBellperson, ForGroth16, Spend};
use zkhost_benches::Measurement;
use zkhost_groth16::{CpuProver, Prover, Scalar};

/// The system's allocator, with counts of the bytes that are allocated and of the most there ever were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes allocated at a time during some work, beyond those before it.
fn peak_bytes(work: impl FnOnce()) -> f64 {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    (PEAK.load(Relaxed) - before) as f64
}

fn main() {
    let spend = Spend::record();
    let key = Arc::new(spend.key());
    let (r, s) = (Scalar::from(27134), Scalar::from(17146));
    let publics = spend.r1cs.public_count as usize;
    let mut expected = None;
    let assignment = spend.assignment();
    // The prover's own tables count too.
    let ours = peak_bytes(|| {
        let prover = CpuProver::new(key, spend.r1cs.clone()).expect("the key is Spend's");
        let proof = prover.prove_with_fixed_blinding_for_tests(&assignment, r, s).expect("Spend proves");
        expected = Some(proof.to_bytes());
    });

    let params = reference_groth16::Parameters::<Bls12>::read(&spend.params[..], false).expect("the key reads");
    let (values, rows) = (ForGroth16::values(&spend), ForGroth16::rows(&spend));
    let circuit = ForGroth16::new(&values, publics, &rows);
    let mut bytes = vec![];
    let groth16 = peak_bytes(|| {
        let proof = reference_groth16::create_proof(circuit, &params, 27134.into(), 17146.into());
        proof.expect("Spend proves").write(&mut bytes).expect("memory takes it");
    });
    record("groth16", ours, groth16, Some(&bytes[..]) == expected.as_ref().map(|proof| &proof[..]));
    drop(params);

    let params =
        bellperson::groth16::Parameters::<blstrs::Bls12>::read(&spend.params[..], false).expect("the key reads");
    let (values, rows) = (ForBellperson::values(&spend), ForBellperson::rows(&spend));
    let circuit = ForBellperson::new(&values, publics, &rows);
    bytes.clear();
    let bellperson = peak_bytes(|| {
        let proof = bellperson::groth16::create_proof(circuit, &params, r, s);
        proof.expect("Spend proves").write(&mut bytes).expect("memory takes it");
    });
    record("bellperson", ours, bellperson, Some(&bytes[..]) == expected.as_ref().map(|proof| &proof[..]));
}

fn record(peer: &str, ours: f64, theirs: f64, checked: bool) {
    let peer_value = Some(theirs);
    Measurement { bench: "spend_memory", case: peer, ours, peer: Some(peer), peer_value, unit: "bytes", checked }
        .record()
        .expect("the result is written");
}
