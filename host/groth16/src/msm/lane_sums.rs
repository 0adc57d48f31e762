//! Sums of runs of points as in [`super::pairwise`], four additions at a time.
//!
//! Only pairs of different abscissas are added here. A pair that is equal, opposite or has an infinity makes the product of
//! its lane's denominators zero; then nothing is returned, and the caller adds one by one.

use super::coordinate::Coordinate;
use super::lanes::{Four, Stored, add, gather, mul, read, scatter, settle, store, sub};
use super::pairwise::Run;
use crate::points::FpLimbs;
use crate::secret::SecretBuffer;

/// x and y in Fp (N = 1) or Fp2 (N = 2), in blst's form.
type Coordinates<const N: usize> = [[FpLimbs; N]; 2];

/// Pairs added together.
const LANES: usize = 4;

/// Two points that fill lanes with no pair in them, and where their sum goes, after all others.
const FILLERS: usize = 3;

/// Memory for sums of as many points as a tile holds.
pub struct Scratch {
    /// For each point x, then y: N elements each.
    points: SecretBuffer<Stored>,
    /// For each four pairs the product of the denominators of those after them, N vectors each.
    prefixes: SecretBuffer<[Stored; LANES]>,
    pairs: SecretBuffer<Pair>,
    spans: SecretBuffer<Span>,
}

/// Points `from` and `from + 1` have their sum put at `to`.
#[derive(Clone, Copy, Default)]
struct Pair {
    from: u32,
    to: u32,
}

/// What is left of a run.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u32,
    points: u32,
}

impl Scratch {
    /// Room for this many points with coordinates of this many elements, if the processor has what it takes.
    pub fn detect(capacity: usize, elements: usize) -> Option<Self> {
        let detected = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let groups = (capacity / 2).div_ceil(LANES);
        detected.then(|| Self {
            points: SecretBuffer::zeros((capacity + FILLERS) * 2 * elements),
            prefixes: SecretBuffer::zeros(groups * elements),
            pairs: SecretBuffer::zeros(groups * LANES),
            spans: SecretBuffer::zeros(capacity),
        })
    }

    /// Replace points, which are the runs' one after another, by the runs' sums; false, and nothing is changed, if that takes
    /// anything but additions of different points.
    ///
    /// Panics if there are more points than there is room for.
    pub fn sum_runs<C: Coordinate, const N: usize>(&mut self, points: &mut [Coordinates<N>], runs: &[Run]) -> bool {
        // SAFETY: AVX2 and FMA are all that the function asks for; `detect`, which alone makes a `Scratch`, found them.
        unsafe { sum_runs::<C, N>(self, points, runs) }
    }
}

#[target_feature(enable = "avx2,fma")]
fn sum_runs<C: Coordinate, const N: usize>(scratch: &mut Scratch, points: &mut [Coordinates<N>], runs: &[Run]) -> bool {
    let filler = scratch.points.len() / (2 * N) - FILLERS;
    for (stored, element) in scratch.points.iter_mut().zip(points.as_flattened().as_flattened()) {
        *stored = store(element);
    }
    // Their difference is not zero.
    scratch.points[2 * N * (filler + 1)] = [1.0; 8];
    let mut start = 0;
    for (span, run) in scratch.spans.iter_mut().zip(runs) {
        *span = Span { start, points: run.points };
        start += run.points;
    }
    loop {
        let pairs = list_pairs(scratch, runs.len(), filler as u32);
        if pairs == 0 {
            break;
        }
        if !add_pairs::<C, N>(scratch, pairs) {
            return false;
        }
        for span in &mut scratch.spans[..runs.len()] {
            if span.points % 2 == 1 {
                let (from, to) = (span.start + span.points - 1, span.start + span.points / 2);
                let from = from as usize * 2 * N;
                scratch.points.copy_within(from..from + 2 * N, to as usize * 2 * N);
            }
            span.points = span.points.div_ceil(2);
        }
    }
    for (point, span) in points.iter_mut().zip(&scratch.spans[..runs.len()]) {
        // The first N elements of 2 N are x.
        let stored = &scratch.points[span.start as usize * 2 * N..][..2 * N];
        for (element, stored) in point.as_flattened_mut().iter_mut().zip(stored) {
            *element = read(stored);
        }
    }
    true
}

/// Write down the pairs of a round, and some of fillers to make their number one of full vectors.
fn list_pairs(scratch: &mut Scratch, runs: usize, filler: u32) -> usize {
    let mut count = 0;
    for span in &scratch.spans[..runs] {
        for i in 0..span.points / 2 {
            scratch.pairs[count] = Pair { from: span.start + 2 * i, to: span.start + i };
            count += 1;
        }
    }
    let padded = count.next_multiple_of(LANES);
    scratch.pairs[count..padded].fill(Pair { from: filler, to: filler + 2 });
    padded
}

/// Put the sum of each pair where it goes, by one inversion for all: Montgomery's trick, in each lane.
#[target_feature(enable = "avx2,fma")]
fn add_pairs<C: Coordinate, const N: usize>(scratch: &mut Scratch, pairs: usize) -> bool {
    let Scratch { points, prefixes, pairs: all_pairs, .. } = scratch;
    let pairs = &all_pairs[..pairs];
    // Backwards, so that sums can be written forwards over points that are already read: a run's lie in one piece.
    let mut product: Option<[Four; N]> = None;
    for (pairs, prefix) in pairs.chunks_exact(LANES).zip(prefixes.chunks_exact_mut(N)).rev() {
        let own = sub_each(&coordinate::<N>(points, pairs, 1, 0), &coordinate::<N>(points, pairs, 0, 0));
        product = Some(match product {
            // The next product is of two differences, in Fp2 of sums of two: limbs of 3 * 2^48 each, were neither settled.
            None => settle_each(&own),
            Some(product) => {
                prefix.copy_from_slice(&bytemuck::cast::<[Four; N], [[Stored; LANES]; N]>(product));
                mul_each(&product, &own)
            }
        });
    }
    let Some(mut inverse) = product.and_then(|product| invert_each::<C, N>(&product)) else { return false };
    let last = pairs.len() / LANES - 1;
    for (group, (pairs, prefix)) in pairs.chunks_exact(LANES).zip(prefixes.chunks_exact(N)).enumerate() {
        let (x1, x2) = (coordinate::<N>(points, pairs, 0, 0), coordinate::<N>(points, pairs, 1, 0));
        let (y1, y2) = (coordinate::<N>(points, pairs, 0, 1), coordinate::<N>(points, pairs, 1, 1));
        let mut own = inverse;
        if group != last {
            let prefix: [[Stored; LANES]; N] = prefix.try_into().expect("chunks have N vectors");
            own = mul_each(&inverse, &bytemuck::cast(prefix));
            inverse = mul_each(&inverse, &sub_each(&x2, &x1));
        }
        let slope = mul_each(&sub_each(&y2, &y1), &own);
        let x = settle_each(&sub_each(&sub_each(&mul_each(&slope, &slope), &x1), &x2));
        let y = settle_each(&sub_each(&mul_each(&sub_each(&x1, &x), &slope), &y1));
        for (c, value) in [x, y].iter().enumerate() {
            for (i, four) in value.iter().enumerate() {
                for (pair, stored) in pairs.iter().zip(scatter(four)) {
                    points[(2 * pair.to as usize + c) * N + i] = stored;
                }
            }
        }
    }
    true
}

/// A coordinate, x (0) or y (1), of the first (0) or second (1) points of four pairs.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn coordinate<const N: usize>(points: &[Stored], pairs: &[Pair], which: usize, c: usize) -> [Four; N] {
    let [a, b, d, e] = pairs else { unreachable!("pairs come in fours") };
    let at = |pair: &Pair| (2 * (pair.from as usize + which) + c) * N;
    let (a, b, d, e) = (at(a), at(b), at(d), at(e));
    let mut out: [Four; N] = bytemuck::Zeroable::zeroed();
    for (i, out) in out.iter_mut().enumerate() {
        *out = gather([&points[a + i], &points[b + i], &points[d + i], &points[e + i]]);
    }
    out
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn sub_each<const N: usize>(a: &[Four; N], b: &[Four; N]) -> [Four; N] {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = sub(out, b);
    }
    out
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn settle_each<const N: usize>(a: &[Four; N]) -> [Four; N] {
    let mut out = *a;
    for out in &mut out {
        *out = settle(out);
    }
    out
}

/// The product in Fp, or by Karatsuba in Fp2, u^2 being -1.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn mul_each<const N: usize>(a: &[Four; N], b: &[Four; N]) -> [Four; N] {
    let mut out = *a;
    out[0] = mul(&a[0], &b[0]);
    if N == 2 {
        let high = mul(&a[1], &b[1]);
        let cross = mul(&add(&a[0], &a[1]), &add(&b[0], &b[1]));
        // The factors' sums have limbs below 2^50 only if what was multiplied before was settled.
        out[1] = settle(&sub(&sub(&cross, &out[0]), &high));
        out[0] = settle(&sub(&out[0], &high));
    }
    out
}

/// The inverse in each lane; none if one of them has none.
#[target_feature(enable = "avx2,fma")]
fn invert_each<C: Coordinate, const N: usize>(product: &[Four; N]) -> Option<[Four; N]> {
    let mut elements = [[[0; 6]; N]; LANES];
    for (i, four) in product.iter().enumerate() {
        for (element, stored) in elements.iter_mut().zip(scatter(&settle(four))) {
            element[i] = read(&stored);
        }
    }
    let [a, b, c, d] = elements.map(|element| bytemuck::cast::<[FpLimbs; N], C>(element));
    let (ab, cd) = (a.mul(&b), c.mul(&d));
    let product = ab.mul(&cd);
    if product.is_zero() {
        return None;
    }
    let inverse = product.invert();
    let (ab, cd) = (inverse.mul(&cd), inverse.mul(&ab));
    let elements = [ab.mul(&b), ab.mul(&a), cd.mul(&d), cd.mul(&c)].map(bytemuck::cast::<C, [FpLimbs; N]>);
    let mut out: [Four; N] = bytemuck::Zeroable::zeroed();
    for (i, out) in out.iter_mut().enumerate() {
        let [a, b, c, d] = elements.map(|element| store(&element[i]));
        *out = gather([&a, &b, &c, &d]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::FP_MODULUS as MODULUS;

    /// p - 1: the largest limbs.
    const LARGEST: FpLimbs = [MODULUS[0] - 1, MODULUS[1], MODULUS[2], MODULUS[3], MODULUS[4], MODULUS[5]];

    /// Elements whose limbs, of 48 and of 64 bits, are all zeros, all ones or as large as can be, and what follows from them.
    fn awkward(count: usize) -> Vec<FpLimbs> {
        let zero = [0; 6];
        let mut all = vec![zero, LARGEST];
        for bit in (0..380).step_by(12) {
            let mut power = zero;
            power[bit / 64] = 1 << (bit % 64);
            all.extend([power, power.sub(&[1, 0, 0, 0, 0, 0]), LARGEST.sub(&power)]);
        }
        all.push([u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, LARGEST[5] - 1]);
        while all.len() < count {
            let (a, b) = (all[all.len() - 1], all[all.len() / 2]);
            all.push(a.mul(&b).add(&a));
        }
        all
    }

    /// The sum of two points with different abscissas; of any coordinates, whether on the curve or not.
    fn add_pair<C: Coordinate>([a, b]: [[C; 2]; 2]) -> [C; 2] {
        let slope = b[1].sub(&a[1]).mul(&b[0].sub(&a[0]).invert());
        let x = slope.square().sub(&a[0]).sub(&b[0]);
        [x, a[0].sub(&x).mul(&slope).sub(&a[1])]
    }

    /// Neighbours added, round by round; none if two have one abscissa.
    fn add_run<C: Coordinate>(mut points: Vec<[C; 2]>) -> Option<[C; 2]> {
        while points.len() > 1 {
            let (pairs, rest) = points.as_chunks::<2>();
            let distinct = pairs.iter().all(|[a, b]| !a[0].equals(&b[0]));
            points =
                distinct.then(|| pairs.iter().map(|pair| add_pair(*pair)).chain(rest.iter().copied()).collect())?;
        }
        points.first().copied()
    }

    /// Compares sums of runs with those made by blst; says whether there are any.
    fn check<C: Coordinate, const N: usize>(points: &[Coordinates<N>], lengths: &[usize]) -> bool {
        let Some(mut scratch) = Scratch::detect(points.len(), N) else { return false };
        let runs: Vec<Run> = lengths.iter().map(|length| Run { bucket: 0, points: *length as u32 }).collect();
        let mut rest = points;
        let expected: Option<Vec<[C; 2]>> = (lengths.iter())
            .map(|length| {
                let run;
                (run, rest) = rest.split_at(*length);
                add_run(run.iter().map(|point| bytemuck::cast(*point)).collect())
            })
            .collect();
        let mut sums = points.to_vec();
        let added = scratch.sum_runs::<C, N>(&mut sums, &runs);
        assert_eq!(added, expected.is_some(), "{lengths:?}");
        match expected {
            Some(expected) => {
                let expected: Vec<Coordinates<N>> = expected.into_iter().map(bytemuck::cast).collect();
                assert_eq!(sums[..expected.len()], expected, "{lengths:?}");
            }
            None => assert_eq!(sums, points, "{lengths:?}"),
        }
        added
    }

    /// Every awkward element meets every other as a coordinate.
    fn check_awkward<C: Coordinate, const N: usize>(count: usize) {
        let elements = awkward(count);
        let mut added = 0;
        for shift in 1..count {
            let element = |i: usize| elements[i % count];
            let point = |i: usize| [std::array::from_fn(|c| element(i + c * shift)), [element(i * shift + 1); N]];
            let points: Vec<Coordinates<N>> = (0..count).map(point).collect();
            for lengths in [vec![2; count / 2], vec![1, 2, 3, 4, 5, 6, 7, 8, 9], vec![count], vec![1]] {
                added += usize::from(check::<C, N>(&points[..lengths.iter().sum()], &lengths));
            }
        }
        assert!(added > 3 * count || Scratch::detect(1, N).is_none(), "only {added} had sums");
    }

    #[test]
    fn sums_of_awkward_coordinates_are_blsts_in_fp() {
        check_awkward::<FpLimbs, 1>(120);
    }

    #[test]
    fn sums_of_awkward_coordinates_are_blsts_in_fp2() {
        check_awkward::<[FpLimbs; 2], 2>(120);
    }

    /// A settled sum and a stored point without a partner have the difference of the largest limbs.
    #[test]
    fn sums_in_fp2_are_exact_where_differences_have_the_largest_limbs() {
        // All limbs of 48 bits are full but the highest one.
        let full: FpLimbs = [u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, 0xffff];
        let elements = awkward(24 * 256 * 4);
        for points in elements.as_chunks::<4>().0.as_chunks::<24>().0 {
            let mut points = points.map(|[a, b, c, d]| [[a, b], [c, d]]);
            points.iter_mut().skip(2).step_by(3).for_each(|point| point[0] = [full; 2]);
            check::<[FpLimbs; 2], 2>(&points, &[3; 8]);
        }
    }

    #[test]
    fn an_equal_abscissa_leaves_everything_as_it_was() {
        let mut points: Vec<Coordinates<1>> = awkward(120).iter().map(|element| [[*element], [*element]]).collect();
        points[119] = points[118];
        assert!(!check::<FpLimbs, 1>(&points, &[2; 60]));
    }
}
