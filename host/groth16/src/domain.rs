//! The evaluation domain: the n-th roots of unity, n = 2^k, and their odd coset.
//!
//! Transforms are those of the remainder tree of X^2n - 1, as in Kyber and in Bernstein's "Multidigit multiplication for
//! mathematicians", section 8: its left half is X^n - 1, the domain; its right half X^n + 1, the coset eta * domain with
//! eta^2 = omega. One sequence of n powers serves both, in both directions; every block of a layer has one factor; a coset
//! costs nothing more than the domain. Values at points are in bit-reversed order, coefficients in natural order.
//!
//! The sequence is a product of two tables of about sqrt(n): only the blocks of the last half of the layers pay for that,
//! with one product each, n in all beside n/2 log2(n) of the transform itself.
//!
//! Where the processor has vectors, domains of 2^8 and more are transformed in their lanes (`lanes.rs`); the functions here are
//! for the others, and what those are tested against.

#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(not(target_arch = "x86_64"))]
#[path = "domain/no_lanes.rs"]
mod lanes;

use crate::key::RootGenerator;
use crate::scalar::Scalar;
use ff::Field;
use lanes::Lanes;
use rayon::prelude::*;

/// Elements below which a transform stays on one thread: 128 KiB, a share of the second-level cache.
const SERIAL_ELEMENTS: usize = 1 << 12;

/// Blocks of the remainder tree of X^2n - 1 at the layer of X^n - 1 and X^n + 1.
#[derive(Clone, Copy)]
enum Half {
    Domain = 0,
    Coset = 1,
}

/// The domain of size n = 2^k and its coset.
pub struct Domain {
    log2: u32,
    roots: Roots,
    size_inverse: Scalar,
    lanes: Option<Lanes>,
}

/// The sequence whose entry j is eta to the bit-reversal of j: 1, i, sqrt(i), ... It is the same for every domain, and entry
/// j + k, with no bit in common, is the product of entries j and k.
struct Roots {
    low_bits: u32,
    /// Entries j < 2^low_bits.
    low: Vec<Scalar>,
    /// Entries j 2^low_bits.
    high: Vec<Scalar>,
}

impl Roots {
    /// The first 2^log2 entries.
    fn new(generator: RootGenerator, log2: u32) -> Self {
        let low_bits = log2.div_ceil(2);
        // Bit b of an index stands for the root of order 4 * 2^b.
        let table = |bits: std::ops::Range<u32>| {
            let mut entries = vec![Scalar::ONE];
            for bit in bits {
                let root = generator.root_of_unity(bit + 2);
                entries.extend_from_within(..);
                let half = entries.len() / 2;
                entries[half..].iter_mut().for_each(|entry| *entry *= root);
            }
            entries
        };
        Self { low_bits, low: table(0..low_bits), high: table(low_bits..log2) }
    }

    #[inline]
    fn get(&self, index: usize) -> Scalar {
        match index >> self.low_bits {
            0 => self.low[index],
            high => self.low[index & (self.low.len() - 1)] * self.high[high],
        }
    }
}

impl Domain {
    /// The largest domain, log2: the coset takes a root of twice its order.
    pub const MAX_LOG2: u32 = 31;

    /// The domain of size 2^log2, with the root that this generator gives. About 200 sqrt(n) bytes.
    ///
    /// Panics if log2 is above [`Self::MAX_LOG2`].
    pub fn new(generator: RootGenerator, log2: u32) -> Self {
        assert!(log2 <= Self::MAX_LOG2, "the field has no root of unity of twice this order");
        let size_inverse = Scalar::from(1 << log2).invert().expect("a power of two is not zero");
        let roots = Roots::new(generator, log2);
        let lanes = if log2 >= lanes::LEAST_LOG2 { Lanes::detect(&roots, &size_inverse) } else { None };
        Self { log2, roots, size_inverse, lanes }
    }

    /// n.
    pub fn size(&self) -> usize {
        1 << self.log2
    }

    /// Coefficients, natural order, of the polynomial of degree < n whose values at omega^j are given in bit-reversed order.
    ///
    /// Panics, as all transforms do, if there are not n elements.
    pub fn interpolate(&self, values: &mut [Scalar]) {
        self.inverse(values, Half::Domain);
    }

    /// As [`Self::interpolate`], from the values at eta * omega^j.
    pub fn interpolate_coset(&self, values: &mut [Scalar]) {
        self.inverse(values, Half::Coset);
    }

    /// The values at omega^j, bit-reversed order, of the polynomial with these coefficients.
    pub fn evaluate(&self, coefficients: &mut [Scalar]) {
        self.forward(coefficients, Half::Domain);
    }

    /// As [`Self::evaluate`], the values at eta * omega^j.
    pub fn evaluate_coset(&self, coefficients: &mut [Scalar]) {
        self.forward(coefficients, Half::Coset);
    }

    /// Exchange natural and bit-reversed order.
    pub fn bit_reverse<T>(&self, values: &mut [T]) {
        assert_eq!(values.len(), self.size(), "one element for each point of the domain");
        for i in 0..values.len() {
            let j = self.reversed(i);
            if i < j {
                values.swap(i, j);
            }
        }
    }

    /// The bit-reversal of an index.
    pub fn reversed(&self, index: usize) -> usize {
        // Shifting by all 64 bits is what a domain of one element would ask for.
        if self.log2 == 0 { 0 } else { index.reverse_bits() >> (usize::BITS - self.log2) }
    }

    fn forward(&self, values: &mut [Scalar], half: Half) {
        assert_eq!(values.len(), self.size(), "one element for each point of the domain");
        match &self.lanes {
            Some(lanes) => lanes.forward(values, half as usize, &self.roots),
            None => forward(values, half as usize, &self.roots),
        }
    }

    fn inverse(&self, values: &mut [Scalar], half: Half) {
        assert_eq!(values.len(), self.size(), "one element for each point of the domain");
        if let Some(lanes) = &self.lanes {
            return lanes.inverse(values, half as usize, &self.roots);
        }
        inverse(values, half as usize, &self.roots);
        values.par_iter_mut().with_min_len(SERIAL_ELEMENTS).for_each(|value| *value *= self.size_inverse);
    }
}

/// Reduce a polynomial modulo X^m - root^2, m its length, down to its values. `block` counts blocks of this layer from the left.
fn forward(values: &mut [Scalar], block: usize, roots: &Roots) {
    if values.len() <= SERIAL_ELEMENTS {
        return forward_serial(values, block, roots);
    }
    let (low, high) = values.split_at_mut(values.len() / 2);
    let root = &roots.get(block);
    let pairs = low.par_chunks_mut(SERIAL_ELEMENTS).zip(high.par_chunks_mut(SERIAL_ELEMENTS));
    pairs.for_each(|(low, high)| split(low, high, root));
    rayon::join(|| forward(low, 2 * block, roots), || forward(high, 2 * block + 1, roots));
}

fn forward_serial(values: &mut [Scalar], first_block: usize, roots: &Roots) {
    let (mut length, mut first_block) = (values.len(), first_block);
    while length > 1 {
        for (block, values) in (first_block..).zip(values.chunks_exact_mut(length)) {
            let (low, high) = values.split_at_mut(length / 2);
            split(low, high, &roots.get(block));
        }
        (length, first_block) = (length / 2, 2 * first_block);
    }
}

/// (u, v) to (u + root v, u - root v): from modulo X^2m - root^2 to modulo X^m - root and X^m + root.
#[inline]
fn split(low: &mut [Scalar], high: &mut [Scalar], root: &Scalar) {
    for (low, high) in low.iter_mut().zip(high) {
        let product = *high * root;
        *high = *low - product;
        *low += product;
    }
}

/// The way back from [`forward`], without the division by two of each layer.
fn inverse(values: &mut [Scalar], block: usize, roots: &Roots) {
    if values.len() <= SERIAL_ELEMENTS {
        return inverse_serial(values, block, roots);
    }
    let (low, high) = values.split_at_mut(values.len() / 2);
    rayon::join(|| inverse(low, 2 * block, roots), || inverse(high, 2 * block + 1, roots));
    let pairs = low.par_chunks_mut(SERIAL_ELEMENTS).zip(high.par_chunks_mut(SERIAL_ELEMENTS));
    pairs.for_each(|(low, high)| join(low, high, block, roots));
}

fn inverse_serial(values: &mut [Scalar], first_block: usize, roots: &Roots) {
    let (mut length, mut first_block) = (2, first_block * values.len() / 2);
    while length <= values.len() {
        for (block, values) in (first_block..).zip(values.chunks_exact_mut(length)) {
            let (low, high) = values.split_at_mut(length / 2);
            join(low, high, block, roots);
        }
        (length, first_block) = (2 * length, first_block / 2);
    }
}

/// (u, v) to (u + v, (u - v) / root of the block).
#[inline]
fn join(low: &mut [Scalar], high: &mut [Scalar], block: usize, roots: &Roots) {
    let negated_inverse = mirrored(block).map_or(-Scalar::ONE, |index| roots.get(index));
    for (low, high) in low.iter_mut().zip(high) {
        let difference = *high - *low;
        *low += *high;
        *high = difference * negated_inverse;
    }
}

/// The block whose root is minus the inverse of this one's: its mirror image among the blocks of as many bits. None for the
/// first one, whose root is one.
fn mirrored(block: usize) -> Option<usize> {
    let bits = block.checked_ilog2()?;
    Some(3 * (1 << bits) - 1 - block)
}
