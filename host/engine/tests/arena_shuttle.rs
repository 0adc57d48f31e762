//! The arena's locking under many interleavings: `cargo test -p zkhost-engine --features shuttle --test arena_shuttle`.
#![cfg(feature = "shuttle")]

use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;
use std::sync::Arc;
use zkhost_engine::arena::{Arena, DeviceEvent, Ordinary, SlabSpec};
use zkhost_groth16::assignment::{SegmentLimits, Window};

const ITERATIONS: usize = 2000;

fn arena() -> Arena {
    Arena::new(&[SlabSpec { node: 0, bytes: 128 << 10 }], Arc::new(Ordinary)).unwrap()
}

fn segment() -> SegmentLimits {
    SegmentLimits { aux_count: 64, full_max: 64, public_count: 0 }
}

struct Event(AtomicBool);

impl DeviceEvent for Event {
    fn has_fired(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Run under random schedules and under schedules with few, well-placed switches.
fn check(body: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(body.clone(), ITERATIONS);
    shuttle::check_pct(body, ITERATIONS, 3);
}

#[test]
fn leases_of_racing_threads_are_disjoint_and_clean() {
    check(|| {
        let arena = arena();
        let threads: Vec<_> = (1..=3u64)
            .map(|value| {
                let arena = arena.clone();
                thread::spawn(move || {
                    for _ in 0..2 {
                        let Some(mut leases) = arena.lease(&[segment()], 0, 0) else { continue };
                        leases[0].append_masks(&[value; 2]);
                        leases[0].append_elements(&[[value; 4]; 64]);
                        thread::yield_now();
                        let words = leases[0].masks().iter().chain(leases[0].elements().as_flattened());
                        assert!(words.copied().all(|word| word == value));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((arena.used_bytes(), arena.dirty_free_bytes()), (0, 0));
    });
}

#[test]
fn an_event_that_fires_at_any_moment_frees_once() {
    check(|| {
        let arena = arena();
        let event = Arc::new(Event(AtomicBool::new(false)));
        let mut lease = arena.lease(&[segment()], 0, 0).unwrap().pop().unwrap();
        lease.append_masks(&[3; 2]);
        arena.hold(lease.tag(), event.clone()).unwrap();
        let fires = thread::spawn(move || event.0.store(true, Ordering::SeqCst));
        let drops = thread::spawn(move || drop(lease));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let arena = arena.clone();
                thread::spawn(move || arena.reclaim())
            })
            .collect();
        for thread in others.into_iter().chain([fires, drops]) {
            thread.join().unwrap();
        }
        arena.reclaim();
        assert_eq!((arena.used_bytes(), arena.quarantined(), arena.dirty_free_bytes()), (0, 0, 0));
    });
}
