//! Whether every point of a list is in the subgroup of order r, in random batches.
//!
//! A point outside has a component of some order p | cofactor, p >= 3 in G1 and >= 13 in G2. A combination with random
//! coefficients below that least p loses the component with probability at most 1/p, so 42 combinations in G1 (3^-42) and
//! 18 in G2 (13^-18) leave an error below 2^-64. They cost less than one addition per point and combination: a pass adds
//! each point to one random bucket of p^d, whose index written in base p holds the coefficients of d combinations at once.

use crate::msm::{POINTS_GATHERED, POINTS_PER_TILE, Summable, Tile};
use crate::points::{G1Point, G2Point};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::Group;
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use rayon::prelude::*;

/// Below this length every point is checked by itself.
const BATCH_FROM_POINTS: usize = 4096;

/// Points of a pass sorted together by their buckets: tens for each bucket, so that few sums are left to add to it.
const POINTS_PER_SORT: usize = 1 << 17;

/// A group whose cofactor's least prime is known.
pub(crate) trait Cofactored: Summable {
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
    let mut tile = Tile::new(POINTS_PER_TILE);
    for points in points.chunks(POINTS_PER_SORT) {
        // 2^64 is no multiple of the number of buckets; the bias, below 2^-52, is lost in the bound's slack.
        let chosen = points.iter().map(|_| (rng.next_u64() % buckets.len() as u64) as u32).collect::<Vec<_>>();
        add_to_buckets(points, &chosen, &mut buckets, &mut tile);
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

/// Add each point to the bucket chosen for it; the points of a bucket are first added up in affine coordinates.
fn add_to_buckets<P: Summable>(points: &[P], chosen: &[u32], buckets: &mut [P::Sum], tile: &mut Tile<P>) {
    let mut places = vec![0; buckets.len() + 1];
    chosen.iter().for_each(|&bucket| places[bucket as usize + 1] += 1);
    (0..buckets.len()).for_each(|bucket| places[bucket + 1] += places[bucket]);
    let mut order = vec![0; points.len()];
    for (index, &bucket) in (0u32..).zip(chosen) {
        let place: &mut usize = &mut places[bucket as usize];
        order[*place] = index;
        *place += 1;
    }
    let mut gathered = [P::zeroed(); POINTS_GATHERED];
    for order in order.chunks(tile.capacity()) {
        tile.clear();
        for order in order.chunks(POINTS_GATHERED) {
            gathered.iter_mut().zip(order).for_each(|(gathered, &index)| *gathered = points[index as usize]);
            for (point, &index) in gathered.iter().zip(order) {
                tile.push(chosen[index as usize], point, false);
            }
        }
        tile.sums().for_each(|(bucket, sum)| buckets[bucket as usize] += &P::Affine::from(*sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Point;

    /// Compares with points added one by one.
    fn check<P: Cofactored<Sum: std::fmt::Debug>>(count: usize, buckets: usize, chosen: impl Fn(usize) -> usize) {
        let multiples = std::iter::successors(Some(P::Sum::identity()), |last| Some(*last + P::Sum::generator()));
        let multiples: Vec<P::Sum> = multiples.take(60).flat_map(|point| [point, -point]).collect();
        let points: Vec<P> = P::normalize(&multiples).into_iter().cycle().take(count).collect();
        let chosen: Vec<u32> = (0..count).map(|i| (chosen(i) % buckets) as u32).collect();
        let (mut sums, mut expected) = (vec![P::Sum::generator(); buckets], vec![P::Sum::generator(); buckets]);
        add_to_buckets(&points, &chosen, &mut sums, &mut Tile::new(POINTS_PER_TILE));
        chosen.iter().zip(&points).for_each(|(&bucket, point)| expected[bucket as usize] += &P::Affine::from(*point));
        assert_eq!(sums, expected, "{count} points in {buckets} buckets");
    }

    #[test]
    fn points_added_to_buckets_are_those_added_one_by_one() {
        for count in (0..130).chain([2047, 2048, 2049, 5000]) {
            check::<G1Point>(count, 7, |i| i * i);
            check::<G1Point>(count, 2187, |i| i * 77);
            check::<G2Point>(count, 13, |_| 5);
        }
    }

    /// The tests of keys do this for G1; their lists of G2 are too short for batches.
    #[test]
    fn one_point_of_g2_outside_the_subgroup_among_many_is_found() {
        // Nearly every x with a y gives one.
        let decode = |x: u8| {
            let mut bytes = [0u8; 96];
            (bytes[0], bytes[95]) = (0x80, x);
            G2Point::decode_compressed(&bytes).ok()
        };
        let bad = (1u8..).filter_map(decode).find(|point: &G2Point| !point.is_in_subgroup()).expect("there is one");
        let good = G2Point::normalize(&[G2Projective::generator()])[0];
        let mut points = vec![good; BATCH_FROM_POINTS];
        // Not only found to be good one by one.
        assert!(pass_is_inside(&points));
        for at in [0, 2048, BATCH_FROM_POINTS - 1] {
            points[at] = bad;
            assert_eq!(first_outside(&points), Some(at));
            points[at] = good;
        }
    }
}
