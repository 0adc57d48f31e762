//! The pinned arena: leases are disjoint, clean and counted, and their memory waits for devices.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zkhost_engine::arena::{Arena, DeviceEvent, GRANULE_BYTES, Lease, Ordinary, PageLock, SlabSpec, class_bytes};
use zkhost_groth16::assignment::{SegmentLimits, Window};

const MEBIBYTE: u64 = 1 << 20;

fn arena(slab_bytes: &[u64]) -> Arena {
    let specs: Vec<_> = (0..).zip(slab_bytes).map(|(node, &bytes)| SlabSpec { node, bytes }).collect();
    Arena::new(&specs, Arc::new(Ordinary)).unwrap()
}

fn segment(aux_count: u64) -> SegmentLimits {
    SegmentLimits { aux_count, full_max: aux_count, public_count: 0 }
}

/// Fill a lease to the brim with a value.
fn fill(lease: &mut Lease, value: u64) {
    let layout = lease.layout();
    lease.append_masks(&vec![value; layout.mask_bytes as usize / 8]);
    lease.append_elements(&vec![[value; 4]; layout.element_bytes as usize / 32]);
}

fn holds(lease: &Lease, value: u64) -> bool {
    lease.masks().iter().chain(lease.elements().as_flattened()).all(|&word| word == value)
}

/// Lease and drop at random; every lease keeps its own pattern, and free memory stays clean.
fn check(seed: u64, slab_bytes: &[u64], steps: u64) {
    let arena = arena(slab_bytes);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut leases: Vec<(u64, Lease)> = vec![];
    for step in 1..=steps {
        let sizes: Vec<_> = (0..1 + rng.next_u64() % 3).map(|_| segment(rng.next_u64() % 9000)).collect();
        if rng.next_u64() % 5 < 3 {
            match arena.lease(&sizes, (rng.next_u64() % 3) as u32, 0) {
                Some(new) => {
                    for mut lease in new {
                        assert!(lease.masks().is_empty() && lease.elements().is_empty());
                        fill(&mut lease, step);
                        leases.push((step, lease));
                    }
                }
                None => assert!(!leases.is_empty() || !arena.could_ever_lease(&sizes, 0), "seed {seed}"),
            }
        } else if !leases.is_empty() {
            let (value, lease) = leases.swap_remove(rng.next_u64() as usize % leases.len());
            assert!(holds(&lease, value), "seed {seed}: another lease wrote here");
        }
        assert!(arena.used_bytes() <= arena.capacity_bytes());
        if step % 50 == 0 {
            assert_eq!(arena.dirty_free_bytes(), 0, "seed {seed}: a witness is in free memory");
        }
    }
    assert!(leases.iter().all(|(value, lease)| holds(lease, *value)), "seed {seed}");
    drop(leases);
    assert_eq!((arena.used_bytes(), arena.dirty_free_bytes()), (0, 0), "seed {seed}");
    // Everything joined again: each slab is one piece.
    let whole: Vec<_> = slab_bytes.iter().map(|bytes| segment(bytes / 33)).collect();
    assert!(arena.lease(&whole, 0, 0).is_some());
}

#[test]
fn leases_are_disjoint_and_leave_nothing_behind() {
    for seed in 0..20 {
        check(seed, &[MEBIBYTE], 300);
        check(seed, &[MEBIBYTE, 2 * MEBIBYTE], 300);
    }
}

#[derive(Default)]
struct Counting {
    locked: AtomicU64,
    unlocked: AtomicU64,
    bytes_max: Option<usize>,
}

impl PageLock for Counting {
    fn lock(&self, _memory: NonNull<u8>, bytes: usize) -> Result<(), String> {
        if self.bytes_max.is_some_and(|max| bytes > max) {
            return Err("the limit of locked memory is reached".into());
        }
        self.locked.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn unlock(&self, _memory: NonNull<u8>, _bytes: usize) {
        self.unlocked.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn nothing_is_page_locked_after_start_up() {
    let counting = Arc::new(Counting::default());
    let specs = [SlabSpec { node: 0, bytes: MEBIBYTE }, SlabSpec { node: 1, bytes: MEBIBYTE }];
    let arena = Arena::new(&specs, counting.clone()).unwrap();
    assert_eq!(arena.page_lock_calls(), 2);
    for _ in 0..1000 {
        let mut leases = arena.lease(&[segment(3000), segment(500)], 0, 0).unwrap();
        leases.iter_mut().for_each(|lease| fill(lease, 7));
    }
    assert_eq!((arena.page_lock_calls(), counting.locked.load(Ordering::Relaxed)), (2, 2));
    drop(arena);
    assert_eq!(counting.unlocked.load(Ordering::Relaxed), 2);
}

#[test]
fn a_slab_that_is_not_locked_is_an_error_and_the_others_are_unlocked() {
    let counting = Arc::new(Counting { bytes_max: Some(MEBIBYTE as usize), ..Counting::default() });
    let specs = [SlabSpec { node: 0, bytes: MEBIBYTE }, SlabSpec { node: 1, bytes: 2 * MEBIBYTE }];
    let Err(error) = Arena::new(&specs, counting.clone()) else { panic!("the second slab is too large") };
    let sentence = error.to_string();
    assert!(sentence.starts_with("the slab of 2097152 bytes on NUMA node 1 was not page-locked"), "{sentence}");
    assert_eq!((counting.locked.load(Ordering::Relaxed), counting.unlocked.load(Ordering::Relaxed)), (1, 1));
}

#[derive(Default)]
struct Switch(AtomicBool);

impl DeviceEvent for Switch {
    fn has_fired(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn memory_that_a_device_reads_is_neither_changed_nor_leased() {
    let arena = arena(&[MEBIBYTE]);
    let mut lease = arena.lease(&[segment(20_000)], 0, 0).unwrap().pop().unwrap();
    fill(&mut lease, 5);
    let (event, address, bytes) = (Arc::new(Switch::default()), lease.elements().as_ptr(), arena.used_bytes());
    arena.hold(lease.tag(), event.clone()).unwrap();
    drop(lease);
    assert_eq!((arena.used_bytes(), arena.quarantined()), (bytes, 1), "it still counts");
    assert!(arena.lease(&[segment(20_000)], 0, 0).is_none());
    // SAFETY: the lease's memory is in quarantine, which keeps it as it was, and `arena` keeps it mapped.
    let read_by_device = unsafe { address.read_volatile() };
    assert_eq!(read_by_device, [5; 4]);
    event.0.store(true, Ordering::Relaxed);
    let again = arena.lease(&[segment(20_000)], 0, 0).expect("the event has fired");
    assert_eq!((again[0].elements().as_ptr(), arena.quarantined()), (address, 0));
    assert_eq!(arena.dirty_free_bytes(), 0);
}

#[test]
fn a_tag_names_its_own_lease_only() {
    let arena = arena(&[MEBIBYTE]);
    let lease = || arena.lease(&[segment(100)], 0, 0).unwrap().pop().unwrap();
    let first = lease();
    let tag = first.tag();
    drop(first);
    assert!(arena.hold(tag, Arc::new(Switch::default())).is_err());
    let second = lease();
    assert_ne!(second.tag(), tag);
    assert!(arena.hold(tag, Arc::new(Switch::default())).is_err(), "the same memory, another lease");
    assert_eq!(arena.quarantined(), 0);
}

#[test]
fn leases_come_all_at_once_or_not_at_all() {
    let arena = arena(&[MEBIBYTE]);
    let half = segment(14_000);
    let one = arena.lease(&[half], 0, 0).unwrap();
    let used = arena.used_bytes();
    assert!(arena.lease(&[half, half], 0, 0).is_none());
    assert_eq!(arena.used_bytes(), used);
    assert!(arena.could_ever_lease(&[half, half], 0), "it would do to wait");
    assert!(!arena.could_ever_lease(&[half, half, half], 0), "it would not");
    drop(one);
    assert!(arena.lease(&[half, half], 0, 0).is_some());
}

#[test]
fn head_room_is_left_for_others() {
    let arena = arena(&[MEBIBYTE]);
    let half = segment(14_000);
    assert!(arena.lease(&[half, half], 0, 4 * GRANULE_BYTES).is_none());
    let _normal = arena.lease(&[half], 0, 4 * GRANULE_BYTES).unwrap();
    assert!(arena.lease(&[half], 0, 4 * GRANULE_BYTES).is_none());
    assert!(arena.lease(&[half], 0, 0).is_some(), "an urgent one may have it");
}

#[test]
fn sizes_that_overflow_never_fit() {
    let arena = arena(&[MEBIBYTE]);
    for aux_count in [u64::MAX, u64::MAX / 32, 1 << 58, MEBIBYTE] {
        assert!(!arena.could_ever_lease(&[segment(aux_count)], 0));
        assert!(arena.lease(&[segment(aux_count)], 0, 0).is_none());
    }
    assert!(!Arena::new(&[], Arc::new(Ordinary)).unwrap().could_ever_lease(&[segment(1)], 0));
}

#[test]
fn a_size_class_wastes_an_eighth_at_most() {
    for bytes in (1..2000).map(|i| i * 40_961).chain([1, GRANULE_BYTES - 1, GRANULE_BYTES, GRANULE_BYTES + 1]) {
        let class = class_bytes(bytes).unwrap();
        assert!(class >= bytes && class - bytes < (bytes / 8).max(2 * GRANULE_BYTES), "{bytes} gets {class}");
        assert_eq!((class_bytes(class), class % GRANULE_BYTES), (Some(class), 0));
    }
    assert_eq!(class_bytes(u64::MAX), None);
}

#[test]
fn threads_never_see_each_others_witnesses() {
    let arena = arena(&[2 * MEBIBYTE]);
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            let arena = &arena;
            scope.spawn(move || {
                for round in 0..300 {
                    let Some(mut leases) = arena.lease(&[segment(2000 + 50 * round)], 0, 0) else { continue };
                    fill(&mut leases[0], thread);
                    assert!(holds(&leases[0], thread));
                }
            });
        }
    });
    assert_eq!((arena.used_bytes(), arena.dirty_free_bytes()), (0, 0));
}
