//! Multi-scalar multiplication: sums of scalars times points, by Pippenger's buckets.
//!
//! Booth digits of w bits sort the terms of each window into 2^(w-1) buckets; the points of a bucket are added pairwise in
//! affine coordinates, with one inversion for many additions (six products each, against eleven); so are the rows and columns
//! of the bucket sums as a grid, which are then weighted by running sums. Windows, and equal pieces of a window's sorted terms
//! whatever their buckets, are the tasks: no choice of scalars makes a piece longer, and no lock is held anywhere.
//!
//! Everything is exact for infinities, repeated points and opposite points. Digits, sorted terms, tiles of points and sums are
//! zeroed after use. That memory is accessed and time is spent according to scalars is inherent in the algorithm.

mod coordinate;
mod digits;
#[cfg(target_arch = "x86_64")]
mod lane_sums;
#[cfg(not(target_arch = "x86_64"))]
#[path = "msm/no_lanes.rs"]
mod lane_sums;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod pairwise;
mod terms;
mod window;

pub use coordinate::Coordinate;
pub use digits::SignedScalar;
pub use pairwise::Summable;
pub(crate) use pairwise::{POINTS_GATHERED, POINTS_PER_TILE, Tile};
pub use terms::{Plan, Query, SecretSignedScalars, Terms};

use crate::secret::SecretBuffer;
use group::Group;
use rayon::prelude::*;

/// The sum of scalars times points. Zeros cost little, the order of terms is of no matter.
///
/// Panics if a term names a point or scalar that is not there.
pub fn msm<P: Summable>(points: &[P], terms: &Terms) -> P::Sum {
    let bits = digits::window_bits(terms.len());
    let mut windows = vec![P::Sum::identity(); digits::windows(bits)];
    windows.par_iter_mut().enumerate().for_each(|(window, sum)| {
        *sum = window::sum(points, terms, digits::Window::new(window, bits));
    });
    let shift = |sum: P::Sum| (0..bits).fold(sum, |sum, _| sum.double());
    let sum = windows.iter().rev().fold(P::Sum::identity(), |high, low| shift(high) + low);
    windows.fill(P::Sum::identity());
    // Without it the compiler may drop stores to memory that is about to be freed.
    zeroize::optimization_barrier(windows.as_slice());
    sum
}

/// The sum of the points at these indices.
pub fn sum<P: Summable>(points: &[P], indices: &[u32]) -> P::Sum {
    let pieces = indices.par_chunks(window::ENTRIES_PER_PIECE);
    pieces
        .map(|piece| {
            let mut entries = SecretBuffer::zeros(piece.len());
            entries.iter_mut().zip(piece).for_each(|(entry, &index)| *entry = window::Entry::new(index, false));
            window::weighted_sum(points, &entries, &window::Buckets::all_in_first())
        })
        .reduce(P::Sum::identity, |a, b| a + b)
}

/// The same sum, term by term: for few terms, and what [`msm`] is tested against.
pub fn naive<P: Summable>(points: &[P], scalars: &[crate::Scalar]) -> P::Sum {
    points.iter().zip(scalars).map(|(point, scalar)| P::multiply(point, scalar)).sum()
}
