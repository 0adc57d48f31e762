//! Sums of runs of points, pairwise, in affine coordinates.

use super::coordinate::Coordinate;
use super::lane_sums::Scratch;
use crate::Scalar;
use crate::points::{FpLimbs, G1Point, G2Point, Point};
use crate::secret::SecretBuffer;
use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;
use std::iter::Sum;

/// A point whose sums can be made in affine coordinates.
pub trait Summable: Point<Sum: Sum> {
    /// The field of its coordinates.
    type Coordinate: Coordinate;
    /// x and y, both zero at infinity.
    fn coordinates(&self) -> (&Self::Coordinate, &Self::Coordinate);
    /// The point of these coordinates.
    fn from_coordinates(x: Self::Coordinate, y: Self::Coordinate) -> Self;
    /// The product by one scalar.
    fn multiply(&self, scalar: &Scalar) -> Self::Sum;
    /// Memory for sums in vectors' lanes of as many points as this, if the processor has such vectors.
    fn lanes(points: usize) -> Option<Scratch>;
    /// [`Scratch::sum_runs`] of these points.
    fn sum_runs(scratch: &mut Scratch, points: &mut [Self], runs: &[Run]) -> bool;
}

impl Summable for G1Point {
    type Coordinate = FpLimbs;
    #[inline]
    fn coordinates(&self) -> (&FpLimbs, &FpLimbs) {
        (&self.x, &self.y)
    }
    #[inline]
    fn from_coordinates(x: FpLimbs, y: FpLimbs) -> Self {
        Self { x, y }
    }
    fn multiply(&self, scalar: &Scalar) -> Self::Sum {
        G1Affine::from(*self).to_curve() * scalar
    }
    fn lanes(points: usize) -> Option<Scratch> {
        Scratch::detect(points, 1)
    }
    fn sum_runs(scratch: &mut Scratch, points: &mut [Self], runs: &[Run]) -> bool {
        scratch.sum_runs::<FpLimbs, 1>(bytemuck::cast_slice_mut(points), runs)
    }
}

impl Summable for G2Point {
    type Coordinate = [FpLimbs; 2];
    #[inline]
    fn coordinates(&self) -> (&[FpLimbs; 2], &[FpLimbs; 2]) {
        (&self.x, &self.y)
    }
    #[inline]
    fn from_coordinates(x: [FpLimbs; 2], y: [FpLimbs; 2]) -> Self {
        Self { x, y }
    }
    fn multiply(&self, scalar: &Scalar) -> Self::Sum {
        G2Affine::from(*self).to_curve() * scalar
    }
    fn lanes(points: usize) -> Option<Scratch> {
        Scratch::detect(points, 2)
    }
    fn sum_runs(scratch: &mut Scratch, points: &mut [Self], runs: &[Run]) -> bool {
        scratch.sum_runs::<[FpLimbs; 2], 2>(bytemuck::cast_slice_mut(points), runs)
    }
}

/// Points added at a time: with what is kept for their inversion, 300 KiB in G1, a second-level cache.
pub(crate) const POINTS_PER_TILE: usize = 2048;

/// Points copied together out of a key, where they lie far apart: loads that do not wait for each other, so that their
/// cache misses overlap.
pub(crate) const POINTS_GATHERED: usize = 32;

/// A tile: consecutive runs of points, each of which is to be added up. Made once a task and filled again and again.
pub(crate) struct Tile<P: Summable> {
    points: SecretBuffer<P>,
    len: usize,
    runs: Vec<Run>,
    /// For each pair of a round, last pair first: the product of the denominators before it, and its own.
    products: SecretBuffer<[P::Coordinate; 2]>,
    lanes: Option<Scratch>,
}

/// Points of one bucket, side by side.
#[derive(Clone, Copy)]
pub struct Run {
    pub(super) bucket: u32,
    pub(super) points: u32,
}

impl<P: Summable> Tile<P> {
    /// Room for some points, at most [`POINTS_PER_TILE`].
    pub fn new(points: usize) -> Self {
        let capacity = points.min(POINTS_PER_TILE);
        Self {
            points: SecretBuffer::zeros(capacity),
            len: 0,
            runs: Vec::with_capacity(capacity),
            products: SecretBuffer::zeros(capacity / 2),
            lanes: P::lanes(capacity),
        }
    }

    /// Points it has room for.
    pub fn capacity(&self) -> usize {
        self.points.len()
    }

    /// Remove everything.
    pub fn clear(&mut self) {
        self.len = 0;
        self.runs.clear();
    }

    /// Append a point, or its negative, to a bucket; the points of a bucket are appended one after another.
    #[inline]
    pub fn push(&mut self, bucket: u32, point: &P, negative: bool) {
        let (x, y) = point.coordinates();
        if x.is_zero() && y.is_zero() {
            return;
        }
        self.points[self.len] = P::from_coordinates(*x, y.negate_if(negative));
        self.len += 1;
        match self.runs.last_mut() {
            Some(run) if run.bucket == bucket => run.points += 1,
            _ => self.runs.push(Run { bucket, points: 1 }),
        }
    }

    /// Add up every run, and return buckets and sums, in the order they were pushed.
    pub fn sums(&mut self) -> impl DoubleEndedIterator<Item = (u32, &P)> {
        self.sum_in_lanes();
        while self.runs.iter().any(|run| run.points > 1) {
            self.halve();
        }
        self.runs.iter().map(|run| run.bucket).zip(&self.points[..self.len])
    }

    /// Add up every run in vectors' lanes; nothing is changed where that cannot be.
    fn sum_in_lanes(&mut self) {
        let Self { points, len, runs, lanes, .. } = self;
        if let Some(scratch) = lanes
            && runs.len() < *len
            && P::sum_runs(scratch, &mut points[..*len], runs)
        {
            runs.iter_mut().for_each(|run| run.points = 1);
            *len = runs.len();
        }
    }

    /// Replace each pair of a run by its sum; an odd point stays. One inversion for all pairs, by Montgomery's trick.
    fn halve(&mut self) {
        let Self { points, len, runs, products, .. } = self;
        // Backwards, so that the sums can be written forwards over points that are already read.
        let (mut product, mut pairs, mut end) = (P::Coordinate::NONZERO, 0, *len);
        for run in runs.iter().rev() {
            let start = end - run.points as usize;
            for pair in points[start..end].chunks_exact(2).rev() {
                let own = denominator(&pair[0], &pair[1]);
                products[pairs] = [product, own];
                product = product.mul(&own);
                pairs += 1;
            }
            end = start;
        }
        let mut inverse = product.invert();
        let (mut read, mut write) = (0, 0);
        for run in runs.iter_mut() {
            for _ in 0..run.points / 2 {
                pairs -= 1;
                let [others, own] = &products[pairs];
                points[write] = add(&points[read], &points[read + 1], &inverse.mul(others));
                inverse = inverse.mul(own);
                (read, write) = (read + 2, write + 1);
            }
            if run.points % 2 == 1 {
                points[write] = points[read];
                (read, write) = (read + 1, write + 1);
            }
            run.points = run.points.div_ceil(2);
        }
        *len = write;
    }
}

impl<P: Summable> Drop for Tile<P> {
    fn drop(&mut self) {
        // Which buckets the points were in is their scalars' digits.
        self.runs.clear();
        self.runs.resize(self.runs.capacity(), Run { bucket: 0, points: 0 });
        zeroize::optimization_barrier(self.runs.as_slice());
    }
}

/// What the slope of the line through both points is divided by; something else where no slope is needed.
#[inline]
fn denominator<P: Summable>(p: &P, q: &P) -> P::Coordinate {
    let ((x1, y1), (x2, y2)) = (p.coordinates(), q.coordinates());
    match Pair::of(p, q) {
        Pair::Different => x2.sub(x1),
        Pair::Equal => y1.add(y2),
        Pair::FirstInfinite | Pair::SecondInfinite | Pair::Opposite => P::Coordinate::NONZERO,
    }
}

/// p + q, given the inverse of their denominator.
#[inline]
fn add<P: Summable>(p: &P, q: &P, inverse: &P::Coordinate) -> P {
    let ((x1, y1), (x2, y2)) = (p.coordinates(), q.coordinates());
    let slope = match Pair::of(p, q) {
        Pair::Different => y2.sub(y1).mul(inverse),
        Pair::Equal => {
            let square = x1.square();
            square.add(&square).add(&square).mul(inverse)
        }
        Pair::FirstInfinite => return *q,
        Pair::SecondInfinite => return *p,
        Pair::Opposite => return P::zeroed(),
    };
    let x = slope.square().sub(x1).sub(x2);
    let y = x1.sub(&x).mul(&slope).sub(y1);
    P::from_coordinates(x, y)
}

/// The cases of an addition.
enum Pair {
    Different,
    Equal,
    /// Opposite, or a point of order two twice: their sum is infinity.
    Opposite,
    FirstInfinite,
    SecondInfinite,
}

impl Pair {
    #[inline]
    fn of<P: Summable>(p: &P, q: &P) -> Self {
        let ((x1, y1), (x2, y2)) = (p.coordinates(), q.coordinates());
        // Nearly all pairs are decided by these three comparisons.
        if x1.is_zero() && y1.is_zero() {
            Self::FirstInfinite
        } else if x2.is_zero() && y2.is_zero() {
            Self::SecondInfinite
        } else if !x1.equals(x2) {
            Self::Different
        } else if y1.equals(y2) && !y1.is_zero() {
            Self::Equal
        } else {
            Self::Opposite
        }
    }
}
