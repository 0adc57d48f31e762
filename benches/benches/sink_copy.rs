//! A guest's lists into a lease of the engine's arena: 256 MiB of full elements in chunks of 64 KiB, with all checks, beside
//! `memcpy` of the same chunks into a buffer of that size (`sink_copy`).
//!
//! A guest's list is borrowed where it lies and moved in bulk, never element by element (wasmtime I13788).
//!
//! Both buffers are touched before they are timed, as page-locked leases are: otherwise page faults are what is measured.

#[path = "../../host/runtime/tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{ELEMENTS, Guest, MASKS, plan_of};
use zkhost_benches::{Measurement, paired};
use zkhost_engine::arena::{Arena, Ordinary, SlabSpec};
use zkhost_groth16::assignment::{SegmentLimits, SegmentWriter};
use zkhost_groth16::scalar::Limbs;
use zkhost_groth16::{Encoding, SegmentSink};
use zkhost_runtime::{Circuit, Input, Limits};

const RUNS: usize = 15;
/// Elements of a chunk: 64 KiB.
const CHUNK: usize = 2_048;
/// Chunks: 256 MiB in all.
const CHUNKS: usize = 4_096;
const LIMITS: SegmentLimits =
    SegmentLimits { aux_count: (CHUNK * CHUNKS) as u64, full_max: (CHUNK * CHUNKS) as u64, public_count: 0 };

/// Every element of the guest's chunk: nothing special, and below the modulus.
const ELEMENT: Limbs = [0x0123_4567_89ab_cdef, 2, 3, 0x1111_2222_3333_4444];

/// Where a guest's elements lie: on a page's start, and where a lease's elements are 16 bytes further modulo 4 KiB, at
/// which processors' copies stumble.
const ALIGNED: u32 = ELEMENTS + 65_536;
const MISPLACED: u32 = ALIGNED + 4_096 - 16;

/// The arena, with room for one segment.
fn arena() -> Arena {
    let spec = SlabSpec { node: 0, bytes: 2 * (32 * CHUNK * CHUNKS) as u64 };
    Arena::new(&[spec], Arc::new(Ordinary)).expect("there is memory")
}

/// A writer into a lease.
fn writer(arena: &Arena) -> SegmentWriter {
    let mut leases = arena.lease(&[LIMITS], 0, 0).expect("the arena has room for the segment");
    let lease = leases.pop().expect("one lease a segment");
    SegmentWriter::new(Box::new(lease), Encoding::Canonical, LIMITS)
}

/// A guest that fills a chunk when it is opened and sends it over and over.
fn circuit(elements: u32) -> Circuit {
    let groups = CHUNK / 64;
    let fill = |at: u32, step: u32, end: u32, value: u64| {
        format!(
            "(local.set $params (i32.const {at}))
             (loop $more (i64.store (local.get $params) (i64.const {}))
               (local.set $params (i32.add (local.get $params) (i32.const {step})))
               (br_if $more (i32.lt_u (local.get $params) (i32.const {end}))))",
            value as i64
        )
    };
    let end = elements + 32 * CHUNK as u32;
    let mut open = fill(MASKS, 16, MASKS + 16 * groups as u32, u64::MAX);
    for (i, limb) in ELEMENT.into_iter().enumerate() {
        open += &fill(elements + 8 * i as u32, 32, end, limb);
    }
    let assign = format!(
        "(local.set $job (i32.const {CHUNKS}))
         (loop $more
           (call $write_groups (local.get $out) (i32.const {MASKS}) (i32.const {}) (i32.const {elements}) (i32.const {}))
           (br_if $more (local.tee $job (i32.sub (local.get $job) (i32.const 1)))))",
        2 * groups,
        4 * CHUNK
    );
    Guest { pages: 5, plan: plan_of(1, &[(0, LIMITS.aux_count, 0)]), open, assign, ..Guest::default() }
        .load(Limits::default())
}

fn main() {
    let arena = arena();
    for (case, elements) in [("guest", ALIGNED), ("guest, list misplaced", MISPLACED)] {
        let mut job = circuit(elements).open(b"", &Input::from(vec![])).expect("it opens");
        let guest = || {
            let writer = writer(&arena);
            let started = Instant::now();
            let writer = job.assign(0, 0, writer).expect("it writes");
            let time = started.elapsed();
            let segment = writer.finish().expect("it is complete");
            assert!(segment.elements().iter().all(|element| *element == ELEMENT), "every element arrived");
            time
        };
        let (ours, peer) = paired(RUNS, guest, memcpy);
        record(case, ours, peer);
    }
    // Where a difference comes from: the same checks without a guest.
    let (ours, peer) = paired(RUNS, || native(&arena), memcpy);
    record("native caller", ours, peer);
}

/// The chunks copied with no check and no guest.
fn memcpy() -> Duration {
    let (masks, elements) = (vec![u64::MAX; CHUNK / 32], vec![ELEMENT; CHUNK]);
    let (mut all_masks, mut all_elements) = (vec![1; CHUNK * CHUNKS / 32], vec![[1; 4]; CHUNK * CHUNKS]);
    all_masks.clear();
    all_elements.clear();
    let started = Instant::now();
    for _ in 0..CHUNKS {
        all_elements.extend_from_slice(&elements);
        all_masks.extend_from_slice(&masks);
    }
    let time = started.elapsed();
    assert_eq!((all_masks.len(), all_elements.len()), (CHUNK * CHUNKS / 32, CHUNK * CHUNKS));
    time
}

/// The chunks checked and copied, without a guest.
fn native(arena: &Arena) -> Duration {
    let masks: Vec<u64> = (0..CHUNK / 32).map(|i| if i % 2 == 0 { u64::MAX } else { 0 }).collect();
    let elements = vec![ELEMENT; CHUNK];
    let mut writer = writer(arena);
    let started = Instant::now();
    for _ in 0..CHUNKS {
        writer.write_groups(&masks, elements.as_flattened()).expect("it is well-formed");
    }
    let time = started.elapsed();
    writer.finish().expect("it is complete");
    time
}

fn record(case: &str, ours: Duration, memcpy: Duration) {
    let rate = |time: Duration| (32 * CHUNK * CHUNKS) as f64 / time.as_secs_f64() / 1e9;
    println!("{case}: {:.0} % of memcpy", 100.0 * rate(ours) / rate(memcpy));
    let measurement = Measurement {
        bench: "sink_copy",
        case,
        ours: rate(ours),
        peer: Some("memcpy"),
        peer_value: Some(rate(memcpy)),
        unit: "GB/s",
        checked: true,
    };
    measurement.record().expect("results can be written");
}
