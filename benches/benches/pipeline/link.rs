//! The link: copies from leases of the arena and from ordinary memory, with the machine idle or busy.

use super::circuits::{Guest, sha_input};
use cudarc::driver::{result, sys};
use std::hint::black_box;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use zkhost_cuda::{Device, PinnedBuffer, Stream};
use zkhost_engine::arena::Arena;
use zkhost_groth16::assignment::{Segment, SegmentLimits, SegmentSink, SegmentWriter};
use zkhost_groth16::{Encoding, scalar::Limbs};

/// Bytes that each thread works on: far more than its share of any cache.
const LOAD_BYTES: usize = 256 << 20;
/// Copies that are timed; the median counts.
const COPIES: usize = 25;
/// How long the load runs by itself, to see how much memory traffic it is when nothing else is.
const ALONE: Duration = Duration::from_secs(1);

/// What other threads do to memory meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    Idle,
    /// Copies between arrays, which the library does with stores around the caches: the memory bus's limit.
    Copy,
    /// Every word of an array is read, changed and written, from its beginning to its end.
    Update,
    /// An array is read from its beginning to its end.
    Read,
    /// Words all over an array are changed.
    Scatter,
    /// SHA-256 components write witnesses in their sandboxes: what the engine's own threads do.
    Guests,
}

impl Load {
    pub const ALL: [Self; 6] = [Self::Idle, Self::Copy, Self::Update, Self::Read, Self::Scatter, Self::Guests];

    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Copy => "copy arrays",
            Self::Update => "change arrays in place",
            Self::Read => "read arrays",
            Self::Scatter => "change words at random",
            Self::Guests => "write witnesses",
        }
    }

    /// Do it until told to stop; count bytes read and written as the work goes on, of guests those of their witnesses.
    fn run(self, guest: &Guest, done: &AtomicBool, moved: &AtomicU64) {
        let mut words = vec![1u64; if self == Self::Guests { 0 } else { LOAD_BYTES / 8 }];
        let half = words.len() / 2;
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        while !done.load(Ordering::Relaxed) {
            let bytes = match self {
                Self::Idle => return,
                Self::Copy => {
                    let (a, b) = words.split_at_mut(half);
                    a.copy_from_slice(black_box(b));
                    LOAD_BYTES
                }
                Self::Update => {
                    black_box(&mut words).iter_mut().for_each(|word| *word = word.wrapping_mul(3) ^ 1);
                    2 * LOAD_BYTES
                }
                Self::Read => {
                    black_box(words.iter().fold(0, |sum, word| sum ^ word));
                    LOAD_BYTES
                }
                Self::Scatter => {
                    const WORDS: usize = 1 << 20;
                    for _ in 0..WORDS {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let index = random as usize % words.len();
                        words[index] ^= random;
                    }
                    // A line of the cache, in and out.
                    2 * 64 * WORDS
                }
                Self::Guests => {
                    let assignment = guest.assignment(&sha_input(7));
                    let segments = assignment.segments().iter();
                    segments.map(|each| size_of_val(each.masks()) + size_of_val(each.elements())).sum()
                }
            };
            moved.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

/// GB/s.
pub struct Rates {
    /// From a lease.
    pub lease: f64,
    /// From a lease by two streams at once.
    pub two_streams: f64,
    /// From memory that the driver allocated.
    pub driver: f64,
    /// From such memory that no cache holds, so that none has to be asked: fast to write, very slow to read.
    pub uncached: f64,
    /// From a vector.
    pub heap: f64,
    /// What the load moves by itself, and beside copies from the lease.
    pub load: [f64; 2],
}

/// Write-combined page-locked memory.
struct Uncached(&'static mut [Limbs]);

impl Uncached {
    fn new(len: usize) -> Self {
        // SAFETY: a context is current, for streams were made; flags are valid.
        let memory = unsafe { result::malloc_host(len * size_of::<Limbs>(), sys::CU_MEMHOSTALLOC_WRITECOMBINED) };
        let memory = memory.expect("there is memory").cast::<Limbs>();
        // SAFETY: it is page-aligned, so long, nobody else's, freed when this is dropped, and any bytes are limbs.
        Self(unsafe { std::slice::from_raw_parts_mut(memory, len) })
    }
}

impl Deref for Uncached {
    type Target = [Limbs];

    fn deref(&self) -> &[Limbs] {
        self.0
    }
}

impl DerefMut for Uncached {
    fn deref_mut(&mut self) -> &mut [Limbs] {
        self.0
    }
}

impl Drop for Uncached {
    fn drop(&mut self) {
        // SAFETY: the pointer came from malloc_host, and copies from it were waited for.
        unsafe { result::free_host(self.0.as_mut_ptr().cast()) }.expect("the device works");
    }
}

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

/// GB/s of copies of so many bytes, the median; `copy` does one and says how many milliseconds it took.
fn median_rate(bytes: usize, mut copy: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..COPIES).map(|_| copy()).collect();
    times.sort_by(f64::total_cmp);
    bytes as f64 / times[COPIES / 2] / 1e6
}

/// GB/s of copies of these elements to the device, by its events.
fn rate(stream: &Stream, elements: &[Limbs]) -> f64 {
    let target = stream.device().allocate::<Limbs>(elements.len()).expect("the device has room");
    median_rate(size_of_val(elements), || {
        let before = stream.timestamp().expect("the device works");
        stream.upload(target.as_slice(), elements).expect("the device works");
        let after = stream.timestamp().expect("the device works");
        f64::from(before.milliseconds_to(&after).expect("the device works"))
    })
}

/// GB/s of copies of these elements, one half by each of two streams, by the host's clock.
fn rate_of_two(streams: [&Stream; 2], elements: &[Limbs]) -> f64 {
    let parts = elements.split_at(elements.len() / 2);
    let parts = [parts.0, parts.1];
    let allocate = |part: &[Limbs]| streams[0].device().allocate::<Limbs>(part.len()).expect("the device has room");
    let targets = parts.map(allocate);
    median_rate(size_of_val(elements), || {
        let began = Instant::now();
        for ((stream, part), target) in streams.into_iter().zip(parts).zip(&targets) {
            // SAFETY: the elements outlive the waits below and nobody changes them.
            unsafe { stream.upload_async(target.as_slice(), part) }.expect("the device works");
        }
        streams.into_iter().for_each(|stream| stream.synchronize().expect("the device works"));
        began.elapsed().as_secs_f64() * 1e3
    })
}

/// Rates of copies of so many bytes while so many other threads are a load on memory.
pub fn under_load(
    device: &Arc<Device>,
    arena: &Arena,
    bytes: usize,
    (load, threads): (Load, usize),
    guest: &Guest,
) -> Rates {
    let streams = [(); 2].map(|()| device.stream().expect("the device works"));
    let segment = leased(arena, bytes);
    let heap = segment.elements().to_vec();
    let mut pinned = PinnedBuffer::<Limbs>::new(device, heap.len()).expect("there is memory");
    pinned.copy_from_slice(&heap);
    let mut uncached = Uncached::new(heap.len());
    uncached.copy_from_slice(&heap);
    let (done, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    let traffic = |work: &mut dyn FnMut()| {
        let (before, began) = (moved.load(Ordering::Relaxed), Instant::now());
        work();
        (moved.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64() / 1e9
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| load.run(guest, &done, &moved));
        }
        // Until all of them have their memory.
        thread::sleep(Duration::from_secs(1));
        let alone = traffic(&mut || thread::sleep(ALONE));
        let mut lease = vec![];
        let beside = traffic(&mut || {
            let began = Instant::now();
            while began.elapsed() < ALONE {
                lease.push(rate(&streams[0], segment.elements()));
            }
        });
        lease.sort_by(f64::total_cmp);
        let rates = Rates {
            lease: lease[lease.len() / 2],
            two_streams: rate_of_two(streams.each_ref(), segment.elements()),
            driver: rate(&streams[0], &pinned),
            uncached: rate(&streams[0], &uncached),
            heap: rate(&streams[0], &heap),
            load: [alone, beside],
        };
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
