//! Whether every point of a list is in the subgroup of order r, in random batches.
//!
//! A point outside has a component of some order p | cofactor, p >= 3 in G1 and >= 13 in G2. A combination with random
//! coefficients below that least p loses the component with probability at most 1/p, so 42 combinations in G1 (3^-42) and
//! 18 in G2 (13^-18) leave an error below 2^-64. They cost less than one addition per point and combination: a pass adds
//! each point to one random bucket of p^d, whose index written in base p holds the coefficients of d combinations at once.

use crate::points::{G1Point, G2Point, Point};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::Group;
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use rayon::prelude::*;

/// Below this length every point is checked by itself.
const BATCH_FROM_POINTS: usize = 4096;

/// A group whose cofactor's least prime is known.
pub(crate) trait Cofactored: Point {
    /// The least prime factor of the cofactor.
    const LEAST_PRIME: usize;
    /// Combinations per pass: d.
    const DIGITS: u32;
    /// Passes.
    const PASSES: usize;
    /// Whether a sum is in the subgroup.
    fn sum_is_in_subgroup(sum: &Self::Sum) -> bool;
}

impl Cofactored for G1Point {
    const LEAST_PRIME: usize = 3;
    const DIGITS: u32 = 7;
    const PASSES: usize = 6;
    fn sum_is_in_subgroup(sum: &G1Projective) -> bool {
        G1Affine::from(sum).is_torsion_free().into()
    }
}

impl Cofactored for G2Point {
    const LEAST_PRIME: usize = 13;
    const DIGITS: u32 = 3;
    const PASSES: usize = 6;
    fn sum_is_in_subgroup(sum: &G2Projective) -> bool {
        G2Affine::from(sum).is_torsion_free().into()
    }
}

/// The index of the first point outside the subgroup. All points are on the curve.
pub(crate) fn first_outside<P: Cofactored>(points: &[P]) -> Option<usize> {
    if points.len() >= BATCH_FROM_POINTS && (0..P::PASSES).into_par_iter().all(|_| pass_is_inside(points)) {
        return None;
    }
    points.par_iter().position_first(|point| !point.is_in_subgroup())
}

/// d random combinations of the points are all in the subgroup.
fn pass_is_inside<P: Cofactored>(points: &[P]) -> bool {
    // Who made the points must not foresee the coefficients.
    let mut rng = ChaCha20Rng::from_rng(OsRng).expect("the operating system has randomness");
    let mut buckets = vec![P::Sum::identity(); P::LEAST_PRIME.pow(P::DIGITS)];
    for point in points {
        // 2^64 is no multiple of the number of buckets; the bias, below 2^-52, is lost in the bound's slack.
        let bucket = rng.next_u64() % buckets.len() as u64;
        buckets[bucket as usize] += &P::Affine::from(*point);
    }
    (0..P::DIGITS).all(|_| {
        // The most significant digit that is left: part c holds the sums of points with coefficient c.
        let parts: Vec<&[P::Sum]> = buckets.chunks(buckets.len() / P::LEAST_PRIME).collect();
        // Sum of c * S_c, as the sum over c of S_c + S_(c+1) + ...
        let (mut suffix, mut combination) = (P::Sum::identity(), P::Sum::identity());
        for part in parts[1..].iter().rev() {
            suffix += part.iter().sum::<P::Sum>();
            combination += suffix;
        }
        // Then the digit does not matter any more.
        let merge = |i: usize| parts.iter().map(|part| part[i]).sum();
        buckets = (0..parts[0].len()).map(merge).collect();
        P::sum_is_in_subgroup(&combination)
    })
}
