//! The link: copies from leases of the arena and from ordinary memory, with the machine idle or busy.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use zkhost_cuda::{Device, PinnedBuffer, Stream};
use zkhost_engine::arena::Arena;
use zkhost_groth16::assignment::{Segment, SegmentLimits, SegmentSink, SegmentWriter};
use zkhost_groth16::{Encoding, scalar::Limbs};

/// Bytes that each of them copies back and forth.
const THRASH_BYTES: usize = 256 << 20;
/// Copies that are timed; the median counts.
const COPIES: usize = 25;

/// A segment of so many bytes of elements in a lease.
fn leased(arena: &Arena, bytes: usize) -> Segment {
    let count = (bytes / size_of::<Limbs>()) as u64;
    let limits = SegmentLimits { aux_count: count, full_max: count, public_count: 0 };
    let lease = arena.lease(&[limits], 0, 0).expect("the arena is large enough").remove(0);
    let mut writer = SegmentWriter::new(Box::new(lease), Encoding::Canonical, limits);
    let elements = vec![[7u64, 0, 0, 0]; 64 << 10];
    let masks = [u64::MAX, 0].repeat(1 << 10);
    for _ in 0..count >> 16 {
        writer.write_groups(&masks, elements.as_flattened()).expect("the lease has room");
    }
    writer.finish().expect("it is complete")
}

/// GB/s of copies of these elements to the device, the median.
fn rate(stream: &Stream, elements: &[Limbs]) -> f64 {
    let target = stream.device().allocate::<Limbs>(elements.len()).expect("the device has room");
    let mut times: Vec<f64> = (0..COPIES)
        .map(|_| {
            let before = stream.timestamp().expect("the device works");
            stream.upload(target.as_slice(), elements).expect("the device works");
            let after = stream.timestamp().expect("the device works");
            f64::from(before.milliseconds_to(&after).expect("the device works"))
        })
        .collect();
    times.sort_by(f64::total_cmp);
    size_of_val(elements) as f64 / times[COPIES / 2] / 1e6
}

/// GB/s from a lease, from memory that the driver allocated, and from a vector of so many bytes, while so many other threads
/// thrash memory.
pub fn under_load(device: &Arc<Device>, arena: &Arena, bytes: usize, thrashers: usize) -> [f64; 3] {
    let stream = device.stream().expect("the device works");
    let segment = leased(arena, bytes);
    let heap = segment.elements().to_vec();
    let mut pinned = PinnedBuffer::<Limbs>::new(device, heap.len()).expect("there is memory");
    pinned.copy_from_slice(&heap);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..thrashers {
            scope.spawn(|| {
                let (mut a, mut b) = (vec![1u8; THRASH_BYTES / 2], vec![2u8; THRASH_BYTES / 2]);
                while !done.load(Ordering::Relaxed) {
                    a.copy_from_slice(&b);
                    b.copy_from_slice(black_box(&a));
                }
            });
        }
        // Until all of them have their memory.
        thread::sleep(std::time::Duration::from_secs(2));
        let rates = [segment.elements(), &pinned, &heap].map(|elements| rate(&stream, elements));
        done.store(true, Ordering::Relaxed);
        rates
    })
}

/// GB/s from leases of so many bytes to each device, all at once.
pub fn all_at_once(devices: &[Arc<Device>], arena: &Arena, bytes: usize) -> Vec<f64> {
    let segments: Vec<_> = devices.iter().map(|_| leased(arena, bytes)).collect();
    thread::scope(|scope| {
        let copies: Vec<_> = devices
            .iter()
            .zip(&segments)
            .map(|(device, segment)| {
                scope.spawn(move || rate(&device.stream().expect("the device works"), segment.elements()))
            })
            .collect();
        copies.into_iter().map(|copy| copy.join().expect("copying does not panic")).collect()
    })
}
