//! One window of a multi-scalar multiplication.

use super::digits::Window;
use super::pairwise::{POINTS_GATHERED, POINTS_PER_TILE, Summable, Tile};
use super::terms::Terms;
use crate::secret::SecretBuffer;
use group::Group;
use rayon::prelude::*;

/// Sorted terms one task sums.
pub(super) const ENTRIES_PER_PIECE: usize = 1 << 15;

/// Bucket sums below which they are weighted one by one: rounds of few additions hardly share their inversion.
const LEAST_GRID: usize = 64;

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
    let mut sums = BucketSums::new(entries.len());
    let (mut total, mut start) = (P::Sum::identity(), 0);
    while start < entries.len() {
        let end = entries.len().min(start + tile.capacity());
        let mut bucket = buckets.of(first + start);
        let mut bucket_end = buckets.ends[bucket - 1] as usize;
        if !sums.has_room(buckets.of(first + end - 1) - bucket + 1) {
            total += sums.drain_weighted(&mut tile);
        }
        tile.clear();
        for (index, entries) in (start..).step_by(POINTS_GATHERED).zip(entries[start..end].chunks(POINTS_GATHERED)) {
            gathered.iter_mut().zip(entries).for_each(|(gathered, entry)| *gathered = points[entry.point()]);
            for ((index, entry), point) in (first + index..).zip(entries).zip(gathered.iter()) {
                while bucket_end <= index {
                    bucket += 1;
                    bucket_end = buckets.ends[bucket - 1] as usize;
                }
                tile.push(bucket as u32, point, entry.is_negative());
            }
        }
        tile.sums().for_each(|(bucket, sum)| sums.push(bucket, sum));
        start = end;
    }
    total + sums.drain_weighted(&mut tile)
}

/// Sums of buckets of ascending numbers, until they are weighted together.
struct BucketSums<P: Summable> {
    sums: SecretBuffer<(u32, P)>,
    len: usize,
}

impl<P: Summable> BucketSums<P> {
    /// Room for those of one tile at least, and for those of this many points at most.
    fn new(points: usize) -> Self {
        Self { sums: SecretBuffer::zeros(points.min(POINTS_PER_TILE)), len: 0 }
    }

    fn has_room(&self, sums: usize) -> bool {
        self.len + sums <= self.sums.len()
    }

    fn push(&mut self, bucket: u32, sum: &P) {
        self.sums[self.len] = (bucket, *sum);
        self.len += 1;
    }

    /// The sum of bucket number times bucket sum, leaving nothing behind. The tile must have room for all sums.
    ///
    /// Bucket b of a grid of c columns is in row b / c and column b modulo c. Rows and columns are added up in affine
    /// coordinates, many at a time; what is left to weight are some square roots of the buckets' number, rows c times.
    fn drain_weighted(&mut self, tile: &mut Tile<P>) -> P::Sum {
        let sums = &self.sums[..std::mem::take(&mut self.len)];
        let range = sums.last().map_or(0, |(highest, _)| highest - sums[0].0);
        let columns = range.isqrt().next_power_of_two();
        // Few sums, or lonely ones.
        if sums.len() < LEAST_GRID.max(4 * columns as usize) {
            return weighted(sums.iter().map(|(bucket, sum)| (*bucket, sum)).rev());
        }
        tile.clear();
        sums.iter().for_each(|(bucket, sum)| tile.push(bucket / columns, sum, false));
        let rows = weighted(tile.sums().rev());
        let rows = (0..columns.ilog2()).fold(rows, |rows, _| rows.double());
        tile.clear();
        for index in by_column(sums, columns).iter() {
            let (bucket, sum) = &sums[*index as usize];
            tile.push(bucket % columns, sum, false);
        }
        rows + weighted(tile.sums().rev())
    }
}

/// The order of sums by column, for a number of columns that is a power of two.
fn by_column<P: Copy>(sums: &[(u32, P)], columns: u32) -> SecretBuffer<u32> {
    let mut starts = SecretBuffer::zeros(columns as usize + 1);
    sums.iter().for_each(|(bucket, _)| starts[(bucket % columns) as usize + 1] += 1);
    (0..columns as usize).for_each(|column| starts[column + 1] += starts[column]);
    let mut order = SecretBuffer::zeros(sums.len());
    for (index, (bucket, _)) in (0..).zip(sums) {
        let place: &mut u32 = &mut starts[(bucket % columns) as usize];
        order[*place as usize] = index;
        *place += 1;
    }
    order
}

/// The sum of number times point, over descending numbers.
fn weighted<'a, P: Summable>(sums: impl Iterator<Item = (u32, &'a P)>) -> P::Sum {
    let mut weighted = Weighted::new();
    sums.for_each(|(number, sum)| weighted.add(number, sum));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::{G1Point, G2Point};

    /// Some multiples of the generator, infinity among them, and opposites.
    fn points<P: Summable>() -> Vec<P> {
        let multiples = std::iter::successors(Some(P::Sum::identity()), |last| Some(*last + P::Sum::generator()));
        let multiples: Vec<P::Sum> = multiples.take(100).collect();
        P::normalize(&multiples.iter().flat_map(|point| [*point, -*point]).collect::<Vec<_>>())
    }

    /// Compares with the sum bucket by bucket, for buckets of these sizes.
    fn check<P: Summable<Sum: std::fmt::Debug>>(sizes: &[usize], case: &str) {
        let points = points::<P>();
        let (mut entries, mut ends, mut expected) = (vec![], vec![], P::Sum::identity());
        for (bucket, &size) in (1..).zip(sizes) {
            let mut sum = P::Sum::identity();
            for i in 0..size {
                // Two neighbours of one bucket are opposites now and then.
                let entry = Entry::new(((bucket * 7 + i as u32) % points.len() as u32) ^ 1, bucket % 3 == 0);
                let mut point = P::Sum::identity();
                point += &P::Affine::from(points[entry.point()]);
                sum += if entry.is_negative() { -point } else { point };
                entries.push(entry);
            }
            ends.push(entries.len() as u32);
            expected += times(&sum, bucket);
        }
        let sum = weighted_sum(&points, &entries, &Buckets { ends: SecretBuffer::new(ends) });
        assert_eq!(sum, expected, "{case}, {} buckets", sizes.len());
    }

    #[test]
    fn weighted_sums_are_those_bucket_by_bucket() {
        for buckets in (1..140).chain([255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049]) {
            check::<G1Point>(&vec![1; buckets], "one entry each");
            check::<G1Point>(&(0..buckets).map(|i| i % 4).collect::<Vec<_>>(), "up to three entries each");
        }
        for buckets in [63, 64, 65, 300] {
            check::<G2Point>(&(0..buckets).map(|i| i % 3).collect::<Vec<_>>(), "up to two entries each");
        }
    }

    #[test]
    fn weighted_sums_are_exact_where_buckets_are_more_than_are_weighted_together() {
        check::<G1Point>(&vec![1; 3 * POINTS_PER_TILE + 1], "one entry each");
        check::<G1Point>(&(0..9000).map(|i| usize::from(i % 50 == 7)).collect::<Vec<_>>(), "lonely buckets");
        let skewed = [vec![5000], vec![0; 3000], vec![1; 100], vec![0; 70000], vec![2; 200]].concat();
        check::<G1Point>(&skewed, "skewed buckets");
    }
}
