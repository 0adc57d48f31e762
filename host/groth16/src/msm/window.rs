//! One window of a multi-scalar multiplication.

use super::digits::Window;
use super::pairwise::{Summable, Tile};
use super::terms::Terms;
use crate::secret::SecretBuffer;
use group::Group;
use rayon::prelude::*;

/// Sorted terms one task sums.
pub(super) const ENTRIES_PER_PIECE: usize = 1 << 14;

/// Points copied together out of the key, where they lie far apart: loads that do not wait for each other, so that their
/// cache misses overlap.
const POINTS_GATHERED: usize = 32;

/// A point to add or subtract: its index, and the sign in bit 31.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry(u32);

impl Entry {
    #[inline]
    pub fn new(point: u32, negative: bool) -> Self {
        assert!(point >> 31 == 0, "a key has fewer than 2^31 points in a section");
        Self(point | u32::from(negative) << 31)
    }

    fn point(self) -> usize {
        (self.0 & !(1 << 31)) as usize
    }

    fn is_negative(self) -> bool {
        self.0 >> 31 == 1
    }
}

/// Where the entries of each bucket end in the sorted list; bucket b has index b - 1.
pub(super) struct Buckets {
    ends: SecretBuffer<u32>,
}

impl Buckets {
    /// One bucket, number 1, for all entries.
    pub fn all_in_first() -> Self {
        Self { ends: SecretBuffer::new(vec![u32::MAX]) }
    }

    /// The bucket that an entry is in.
    fn of(&self, entry: usize) -> usize {
        self.ends.partition_point(|&end| end as usize <= entry) + 1
    }
}

/// The sum of digit times point over all terms.
pub(super) fn sum<P: Summable>(points: &[P], terms: &Terms, window: Window) -> P::Sum {
    let (entries, buckets) = sort(terms, window);
    let pieces = entries.par_chunks(ENTRIES_PER_PIECE).enumerate();
    pieces
        .map(|(piece, entries)| weighted_sum_from(points, entries, piece * ENTRIES_PER_PIECE, &buckets))
        .reduce(P::Sum::identity, |a, b| a + b)
}

/// Sort the terms whose digit is not zero by bucket: count, then place.
fn sort(terms: &Terms, window: Window) -> (SecretBuffer<Entry>, Buckets) {
    let mut ends = SecretBuffer::zeros(window.buckets());
    for (_, scalar) in terms.iter() {
        let (digit, _) = window.digit(scalar);
        if digit != 0 {
            ends[digit as usize - 1] += 1u32;
        }
    }
    let mut total = 0;
    for end in ends.iter_mut() {
        // The start for now: placing an entry moves it on, so that it is the end when all are placed.
        (*end, total) = (total, total + *end);
    }
    let mut entries = SecretBuffer::zeros(total as usize);
    for (point, scalar) in terms.iter() {
        let (digit, negative) = window.digit(scalar);
        if digit != 0 {
            let place = &mut ends[digit as usize - 1];
            entries[*place as usize] = Entry::new(point, negative);
            *place += 1;
        }
    }
    (entries, Buckets { ends })
}

/// As [`weighted_sum_from`], of the first entries.
pub(super) fn weighted_sum<P: Summable>(points: &[P], entries: &[Entry], buckets: &Buckets) -> P::Sum {
    weighted_sum_from(points, entries, 0, buckets)
}

/// The sum of bucket number times point over some consecutive entries of the sorted list, the first of which has index `first`.
fn weighted_sum_from<P: Summable>(points: &[P], entries: &[Entry], first: usize, buckets: &Buckets) -> P::Sum {
    let mut tile = Tile::new(entries.len());
    let mut gathered = SecretBuffer::zeros(POINTS_GATHERED);
    let mut weighted = Weighted::new();
    let mut end = entries.len();
    // From the highest bucket down, as the running sum goes.
    while end > 0 {
        let start = end.saturating_sub(tile.capacity());
        tile.clear();
        let mut bucket = buckets.of(first + start);
        let mut bucket_end = buckets.ends[bucket - 1] as usize;
        for (index, entries) in
            (first + start..).step_by(POINTS_GATHERED).zip(entries[start..end].chunks(POINTS_GATHERED))
        {
            gathered.iter_mut().zip(entries).for_each(|(gathered, entry)| *gathered = points[entry.point()]);
            for ((index, entry), point) in (index..).zip(entries).zip(gathered.iter()) {
                while bucket_end <= index {
                    bucket += 1;
                    bucket_end = buckets.ends[bucket - 1] as usize;
                }
                tile.push(bucket as u32, point, entry.is_negative());
            }
        }
        for (bucket, sum) in tile.sums().rev() {
            weighted.add(bucket, sum);
        }
        end = start;
    }
    weighted.finish()
}

/// A sum of bucket numbers times bucket sums, by a running sum over descending buckets.
struct Weighted<P: Summable> {
    bucket: u32,
    running: P::Sum,
    total: P::Sum,
}

impl<P: Summable> Weighted<P> {
    fn new() -> Self {
        Self { bucket: 0, running: P::Sum::identity(), total: P::Sum::identity() }
    }

    /// Add to a bucket that is not above the last one.
    fn add(&mut self, bucket: u32, point: &P) {
        self.descend(bucket);
        self.bucket = bucket;
        self.running += &P::Affine::from(*point);
    }

    /// Every bucket down adds the running sum once.
    fn descend(&mut self, bucket: u32) {
        let steps = self.bucket.saturating_sub(bucket);
        match steps {
            0 => {}
            1 => self.total += &self.running,
            _ => self.total += &times(&self.running, steps),
        }
    }

    fn finish(mut self) -> P::Sum {
        self.descend(0);
        self.total
    }
}

impl<P: Summable> Drop for Weighted<P> {
    fn drop(&mut self) {
        (self.bucket, self.running, self.total) = (0, P::Sum::identity(), P::Sum::identity());
        // Without it the compiler may drop stores to memory that is not read again.
        zeroize::optimization_barrier(self);
    }
}

/// A small multiple.
fn times<S: Group>(point: &S, factor: u32) -> S {
    let mut product = S::identity();
    for bit in (0..u32::BITS - factor.leading_zeros()).rev() {
        product = product.double();
        if factor >> bit & 1 == 1 {
            product += point;
        }
    }
    product
}
