//! The transforms of [`super`] in the four lanes of 256-bit vectors.
//!
//! An element of Fr is six limbs of 48 bits, held as doubles; see [`crate::doubles`]. Products are divided by R' = 2^288, and
//! roots are multiplied by it, so that values may be in any form; they are in blst's.
//!
//! How large values and limbs may be is said in [`field`].

mod field;

use super::{Roots, mirrored};
use crate::doubles::{broadcast, split, to_doubles, transpose};
use crate::scalar::{Scalar, to_montgomery};
use crate::secret::SecretBuffer;
use field::{Four, LIMBS, carry, load, mul, settle};
use std::arch::x86_64::{
    __m256d, _mm256_add_pd, _mm256_permute4x64_pd, _mm256_set1_pd, _mm256_sub_pd, _mm256_unpackhi_pd,
    _mm256_unpacklo_pd,
};

/// log2 of the elements of a block that one thread transforms from one end to the other: 192 KiB, a share of the second-level
/// cache.
const BLOCK_LOG2: u32 = 12;
/// Layers above that are done together, at most, and then written down.
const LAYERS: u32 = 4;
/// The bounds in [`field`] are of so many at most.
const _: () = assert!(BLOCK_LOG2 <= 12 && LAYERS <= 4);
/// Columns of such layers that are a task.
const COLUMNS_PER_TASK: usize = 256;
/// log2 of the smallest domain that is transformed here.
pub(super) const LEAST_LOG2: u32 = 8;

/// Four elements in memory.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
struct Stored([[f64; 4]; LIMBS]);

/// What the transforms of a domain need; only [`Lanes::detect`] makes one.
pub(super) struct Lanes {
    /// Entries of the low table of [`Roots`] times 2^32: in blst's form these are roots times R'.
    low_scalars: Vec<Scalar>,
    /// The same, four in each.
    low: Vec<Stored>,
    /// Entries of the high table, times R'.
    high: Vec<[f64; LIMBS]>,
    /// The factors of the first four blocks on the way back.
    first_inverses: Stored,
    /// 1 / n, times R'.
    scale: [f64; LIMBS],
}

/// Forward, from coefficients to values, or back.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Back,
}

impl Lanes {
    /// If the processor has what it takes. The low table must have 16 entries or more.
    pub fn detect(roots: &Roots, size_inverse: &Scalar) -> Option<Self> {
        if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
            return None;
        }
        let shift = Scalar::from(1 << 32);
        let limbs = |scalar: &Scalar| to_doubles(&split(&to_montgomery(scalar)));
        let low_scalars: Vec<Scalar> = roots.low.iter().map(|root| root * shift).collect();
        let stored = |scalars: &[Scalar]| {
            let elements: [[f64; LIMBS]; 4] = std::array::from_fn(|i| limbs(&scalars[i]));
            Stored(std::array::from_fn(|limb| elements.map(|element| element[limb])))
        };
        let inverses = [0, 1, 2, 3].map(|block| match mirrored(block) {
            None => -shift,
            Some(index) => low_scalars[index],
        });
        Some(Self {
            low: low_scalars.chunks_exact(4).map(stored).collect(),
            high: roots.high.iter().map(|root| limbs(&(root * shift))).collect(),
            first_inverses: stored(&inverses),
            scale: limbs(&(size_inverse * shift)),
            low_scalars,
        })
    }

    /// As [`super::forward`].
    pub fn forward(&self, values: &mut [Scalar], block: usize, roots: &Roots) {
        let Some(layers) = layers_above(values) else {
            // SAFETY: AVX2 and FMA are all that the function asks for; `detect`, which alone makes a `Lanes`, found them.
            return unsafe { forward_block(self, values, block, roots) };
        };
        self.columns(values.chunks_exact_mut(values.len() >> layers).collect(), Way::Forward, block, roots);
        self.blocks(values, layers, block, &|values, block| self.forward(values, block, roots));
    }

    /// As [`super::inverse`], and divided by n.
    pub fn inverse(&self, values: &mut [Scalar], block: usize, roots: &Roots) {
        let Some(layers) = layers_above(values) else {
            // SAFETY: AVX2 and FMA are all that the function asks for; `detect`, which alone makes a `Lanes`, found them.
            return unsafe { inverse_block(self, values, block, roots) };
        };
        self.blocks(values, layers, block, &|values, block| self.inverse(values, block, roots));
        self.columns(values.chunks_exact_mut(values.len() >> layers).collect(), Way::Back, block, roots);
    }

    /// Do something to each of the blocks that so many layers make of one.
    fn blocks(&self, values: &mut [Scalar], layers: u32, block: usize, act: &(impl Fn(&mut [Scalar], usize) + Sync)) {
        if layers == 0 {
            return act(values, block);
        }
        let (low, high) = values.split_at_mut(values.len() / 2);
        rayon::join(
            || self.blocks(low, layers - 1, 2 * block, act),
            || self.blocks(high, layers - 1, 2 * block + 1, act),
        );
    }

    /// The layers that make rows of a block, or the other way, in all columns.
    fn columns(&self, mut rows: Vec<&mut [Scalar]>, way: Way, block: usize, roots: &Roots) {
        if rows[0].len() <= COLUMNS_PER_TASK {
            // SAFETY: AVX2 and FMA are all that the function asks for; `detect`, which alone makes a `Lanes`, found them.
            return unsafe { transform_columns(self, &mut rows, way, block, roots) };
        }
        let (left, right) = rows.into_iter().map(|row| row.split_at_mut(row.len() / 2)).unzip();
        rayon::join(|| self.columns(left, way, block, roots), || self.columns(right, way, block, roots));
    }
}

/// How many layers are to be done before blocks are small enough; none if they are.
fn layers_above(values: &[Scalar]) -> Option<u32> {
    match values.len().ilog2() {
        0..=BLOCK_LOG2 => None,
        log2 => Some((log2 - BLOCK_LOG2).min(LAYERS)),
    }
}

#[target_feature(enable = "avx2,fma")]
fn transform_columns(lanes: &Lanes, rows: &mut [&mut [Scalar]], way: Way, block: usize, roots: &Roots) {
    let mut values = SecretBuffer::<Stored>::zeros(rows.len());
    let count = rows.len();
    for column in (0..rows[0].len()).step_by(4) {
        for (value, row) in values.iter_mut().zip(&*rows) {
            let [a, b, c, d] = &row[column..][..4] else { unreachable!("rows are powers of two") };
            *value = to_memory(&load([a, b, c, d]));
        }
        match way {
            Way::Forward => {
                let (mut length, mut first) = (count, block);
                while length > 1 {
                    for (block, values) in (first..).zip(values.chunks_exact_mut(length)) {
                        let (low, high) = values.split_at_mut(length / 2);
                        split_all(low, high, &lanes.root(block, roots), false);
                    }
                    (length, first) = (length / 2, 2 * first);
                }
            }
            Way::Back => {
                let (mut length, mut first) = (2, block * count / 2);
                while length <= count {
                    for (block, values) in (first..).zip(values.chunks_exact_mut(length)) {
                        let (low, high) = values.split_at_mut(length / 2);
                        join_all(low, high, &lanes.inverse_root(block, roots));
                    }
                    (length, first) = (2 * length, first / 2);
                }
            }
        }
        for (value, row) in values.iter().zip(&mut *rows) {
            let [a, b, c, d] = &mut row[column..][..4] else { unreachable!("rows are powers of two") };
            settle(&to_vectors(value), [a, b, c, d]);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn forward_block(lanes: &Lanes, values: &mut [Scalar], first: usize, roots: &Roots) {
    let mut stored = SecretBuffer::<Stored>::zeros(values.len() / 4);
    for (stored, values) in stored.iter_mut().zip(values.as_chunks::<4>().0) {
        *stored = to_memory(&load(values.each_ref()));
    }
    let (mut length, mut first, mut layer) = (values.len() / 4, first, 0);
    while length > 1 {
        layer += 1;
        for (block, stored) in (first..).zip(stored.chunks_exact_mut(length)) {
            let (low, high) = stored.split_at_mut(length / 2);
            split_all(low, high, &lanes.root(block, roots), layer % 4 == 0);
        }
        (length, first) = (length / 2, 2 * first);
    }
    // The last two layers are within fours: here four of them are taken apart, so that a vector has the same place of each.
    let tasks = stored.as_chunks::<4>().0.iter().zip(values.as_chunks_mut::<16>().0);
    for (blocks, (stored, values)) in (first..).step_by(4).zip(tasks) {
        let [mut a, mut b, mut c, mut d] = transpose_each(stored);
        let root = lanes.four_roots(blocks);
        (a, c) = split_four(&carry(&a), &c, &root);
        (b, d) = split_four(&carry(&b), &d, &root);
        let (even, odd) = deinterleave(&lanes.four_roots(2 * blocks), &lanes.four_roots(2 * blocks + 4));
        (a, b) = split_four(&a, &b, &even);
        (c, d) = split_four(&c, &d, &odd);
        let mut places = values.as_chunks_mut::<4>().0.iter_mut();
        let [w, x, y, z] = std::array::from_fn(|_| places.next().expect("sixteen are four fours").each_mut());
        let [[w0, w1, w2, w3], [x0, x1, x2, x3], [y0, y1, y2, y3], [z0, z1, z2, z3]] = [w, x, y, z];
        settle(&a, [w0, x0, y0, z0]);
        settle(&b, [w1, x1, y1, z1]);
        settle(&c, [w2, x2, y2, z2]);
        settle(&d, [w3, x3, y3, z3]);
    }
}

#[target_feature(enable = "avx2,fma")]
fn inverse_block(lanes: &Lanes, values: &mut [Scalar], first: usize, roots: &Roots) {
    let mut stored = SecretBuffer::<Stored>::zeros(values.len() / 4);
    let blocks = first * values.len() / 4;
    let tasks = stored.as_chunks_mut::<4>().0.iter_mut().zip(values.as_chunks::<16>().0);
    for (blocks, (stored, v)) in (blocks..).step_by(4).zip(tasks) {
        let [mut a, mut b, mut c, mut d] = [0, 1, 2, 3].map(|i| load([&v[i], &v[i + 4], &v[i + 8], &v[i + 12]]));
        let pairs = [lanes.four_inverse_roots(2 * blocks), lanes.four_inverse_roots(2 * blocks + 4)];
        let (even, odd) = deinterleave(&pairs[0], &pairs[1]);
        (a, b) = join_four(&a, &b, &even);
        (c, d) = join_four(&c, &d, &odd);
        let root = lanes.four_inverse_roots(blocks);
        (a, c) = join_four(&a, &c, &root);
        (b, d) = join_four(&b, &d, &root);
        *stored = transpose_each(&[a, b, c, d].map(|four| to_memory(&four))).map(|four| to_memory(&four));
    }
    let (mut length, mut first) = (2, first * stored.len() / 2);
    while length <= stored.len() {
        for (block, stored) in (first..).zip(stored.chunks_exact_mut(length)) {
            let (low, high) = stored.split_at_mut(length / 2);
            join_all(low, high, &lanes.inverse_root(block, roots));
        }
        (length, first) = (2 * length, first / 2);
    }
    // Sums of 2^12 values are too large to be settled; products are not.
    let scale = broadcast(&lanes.scale);
    for (stored, values) in stored.iter().zip(values.as_chunks_mut::<4>().0) {
        settle(&mul(&to_vectors(stored), &scale), values.each_mut());
    }
}

impl Lanes {
    /// The root of a block, times R', in all lanes.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn root(&self, block: usize, roots: &Roots) -> Four {
        let low = self.low_scalars[block & (self.low_scalars.len() - 1)];
        let root = match block >> roots.low_bits {
            0 => low,
            high => low * roots.high[high],
        };
        broadcast(&to_doubles(&split(&to_montgomery(&root))))
    }

    /// The factor of a block on the way back, times R', in all lanes.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn inverse_root(&self, block: usize, roots: &Roots) -> Four {
        match mirrored(block) {
            Some(index) => self.root(index, roots),
            None => {
                let mut out = to_vectors(&self.first_inverses);
                out.iter_mut().for_each(|limb| *limb = first_lane(*limb));
                out
            }
        }
    }

    /// The roots of four blocks, times R', the first one a multiple of four.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn four_roots(&self, first: usize) -> Four {
        let low = to_vectors(&self.low[(first & (self.low_scalars.len() - 1)) / 4]);
        match first / self.low_scalars.len() {
            0 => low,
            high => mul(&low, &broadcast(&self.high[high])),
        }
    }

    /// The factors of four blocks on the way back.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn four_inverse_roots(&self, first: usize) -> Four {
        // Of four blocks that are not the first, the mirror images are four, in the opposite order.
        match mirrored(first + 3) {
            Some(last) if first > 0 => {
                let mut out = self.four_roots(last);
                out.iter_mut().for_each(|limb| *limb = _mm256_permute4x64_pd::<0b00_01_10_11>(*limb));
                out
            }
            _ => to_vectors(&self.first_inverses),
        }
    }
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn first_lane(vector: __m256d) -> __m256d {
    _mm256_permute4x64_pd::<0>(vector)
}

/// Of eight elements those at even and those at odd places.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn deinterleave(low: &Four, high: &Four) -> (Four, Four) {
    let (mut even, mut odd) = (*low, *high);
    for ((even, odd), (low, high)) in even.iter_mut().zip(&mut odd).zip(low.iter().zip(high)) {
        // Unpacking takes places 0, 0, 2, 2.
        *even = _mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_unpacklo_pd(*low, *high));
        *odd = _mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_unpackhi_pd(*low, *high));
    }
    (even, odd)
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn to_vectors(stored: &Stored) -> Four {
    bytemuck::cast(stored.0)
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn to_memory(four: &Four) -> Stored {
    Stored(bytemuck::cast(*four))
}

/// Element i of four fours, for each i.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn transpose_each(stored: &[Stored; 4]) -> [Four; 4] {
    let mut out = [[_mm256_set1_pd(0.0); LIMBS]; 4];
    for limb in 0..LIMBS {
        let rows = transpose([0, 1, 2, 3].map(|i| bytemuck::cast(stored[i].0[limb])));
        out.iter_mut().zip(rows).for_each(|(out, row)| out[limb] = row);
    }
    out
}

/// [`super::split`] of fours, low limbs carried before if asked.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn split_all(low: &mut [Stored], high: &mut [Stored], root: &Four, carried: bool) {
    for (low, high) in low.iter_mut().zip(high) {
        let u = to_vectors(low);
        let u = if carried { carry(&u) } else { u };
        let (sum, difference) = split_four(&u, &to_vectors(high), root);
        (*low, *high) = (to_memory(&sum), to_memory(&difference));
    }
}

/// [`super::join`] of fours.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn join_all(low: &mut [Stored], high: &mut [Stored], root: &Four) {
    for (low, high) in low.iter_mut().zip(high) {
        let (sum, product) = join_four(&to_vectors(low), &to_vectors(high), root);
        (*low, *high) = (to_memory(&sum), to_memory(&product));
    }
}

/// (u + root v, u - root v).
#[target_feature(enable = "avx2,fma")]
#[inline]
fn split_four(u: &Four, v: &Four, root: &Four) -> (Four, Four) {
    let product = mul(v, root);
    let (mut sum, mut difference) = (*u, *u);
    for (i, limb) in product.iter().enumerate() {
        sum[i] = _mm256_add_pd(u[i], *limb);
        difference[i] = _mm256_sub_pd(u[i], *limb);
    }
    (sum, difference)
}

/// (u + v, (v - u) root), the sum carried.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn join_four(u: &Four, v: &Four, root: &Four) -> (Four, Four) {
    let (mut sum, mut difference) = (*u, *u);
    for i in 0..LIMBS {
        sum[i] = _mm256_add_pd(u[i], v[i]);
        difference[i] = _mm256_sub_pd(v[i], u[i]);
    }
    (carry(&sum), mul(&difference, root))
}

#[cfg(test)]
mod tests {
    use super::super::{Domain, Half, forward, inverse};
    use super::*;
    use crate::key::RootGenerator;
    use crate::scalar::{MODULUS, from_montgomery};
    use ff::Field;

    /// Compares with the transforms element by element.
    fn check(values: &[Scalar], case: &str) {
        let domain = Domain::new(RootGenerator::Five, values.len().ilog2());
        let Some(lanes) = &domain.lanes else { return };
        for half in [Half::Domain, Half::Coset] {
            let (mut expected, mut found) = (values.to_vec(), values.to_vec());
            forward(&mut expected, half as usize, &domain.roots);
            lanes.forward(&mut found, half as usize, &domain.roots);
            assert!(found == expected, "{case}, 2^{}, forward", domain.log2);
            let (mut expected, mut found) = (values.to_vec(), values.to_vec());
            inverse(&mut expected, half as usize, &domain.roots);
            expected.iter_mut().for_each(|value| *value *= domain.size_inverse);
            lanes.inverse(&mut found, half as usize, &domain.roots);
            assert!(found == expected, "{case}, 2^{}, back", domain.log2);
        }
    }

    #[test]
    fn transforms_in_lanes_are_those_element_by_element() {
        // Up to a block, one layer of columns above it, and two times columns.
        for log2 in LEAST_LOG2..=17 {
            let n = 1usize << log2;
            let mut last = Scalar::from(3);
            let mut random = || {
                last = last.square() + Scalar::ONE;
                last
            };
            let random: Vec<Scalar> = (0..n).map(|_| random()).collect();
            check(&random, "any values");
            if !(log2 == LEAST_LOG2 || log2.is_multiple_of(4) || log2 == 17) {
                continue;
            }
            // Montgomery limbs that are full, and values that add up to the largest there are.
            let limbs = |limbs| from_montgomery(&limbs).expect("it is below the modulus");
            let full = limbs([u64::MAX, u64::MAX, u64::MAX, MODULUS[3] - 1]);
            let largest = limbs([MODULUS[0] - 1, MODULUS[1], MODULUS[2], MODULUS[3]]);
            let awkward = [full, largest, Scalar::ZERO, limbs([1, 0, 0, 0]), limbs([0, 0, 0, MODULUS[3]])];
            for value in awkward {
                check(&vec![value; n], "one value");
                check(&(0..n).map(|i| if i == n / 3 { value } else { Scalar::ZERO }).collect::<Vec<_>>(), "one place");
            }
            check(&(0..n).map(|i| awkward[i * i % 7 % 5]).collect::<Vec<_>>(), "awkward values");
            check(&(0..n).map(|i| if i < n / 2 { largest } else { Scalar::ZERO }).collect::<Vec<_>>(), "a half");
        }
    }
}
