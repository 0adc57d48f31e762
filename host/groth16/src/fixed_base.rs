//! Many products of one base, the group's generator, by a table of its multiples.

use crate::points::Point;
use crate::scalar::{Scalar, to_canonical};
use group::Group;
use rayon::prelude::*;

/// Bits per window: 26 additions a product, with tables that fit the second-level cache.
const WINDOW_BITS: usize = 10;
const WINDOWS: usize = 255usize.div_ceil(WINDOW_BITS);
/// Multiples 1 to 2^10 - 1 of each window's base.
const MULTIPLES: usize = (1 << WINDOW_BITS) - 1;

/// Multiples of the generator: entry d - 1 of window k is d * 2^(10 k) times it.
pub(crate) struct FixedBase<P: Point> {
    windows: Vec<Vec<P::Affine>>,
}

impl<P: Point> FixedBase<P> {
    pub fn new() -> Self {
        let mut bases = vec![P::Sum::generator()];
        while bases.len() < WINDOWS {
            let last = bases[bases.len() - 1];
            bases.push((0..WINDOW_BITS).fold(last, |base, _| base.double()));
        }
        let multiples = |base: &P::Sum| {
            let multiples = std::iter::successors(Some(*base), |multiple| Some(*multiple + base)).take(MULTIPLES);
            P::normalize(&multiples.collect::<Vec<_>>()).into_iter().map(P::Affine::from).collect()
        };
        Self { windows: bases.par_iter().map(multiples).collect() }
    }

    /// The generator times each scalar. Zero gives the point at infinity.
    pub fn multiply(&self, scalars: &[Scalar]) -> Vec<P> {
        const SCALARS_PER_TASK: usize = 512;
        let tasks = scalars.par_chunks(SCALARS_PER_TASK);
        tasks
            .flat_map_iter(|scalars| {
                P::normalize(&scalars.iter().map(|scalar| self.multiply_one(scalar)).collect::<Vec<_>>())
            })
            .collect()
    }

    fn multiply_one(&self, scalar: &Scalar) -> P::Sum {
        let limbs = to_canonical(scalar);
        let mut sum = P::Sum::identity();
        for (window, multiples) in self.windows.iter().enumerate() {
            let digit = digit(&limbs, window * WINDOW_BITS);
            if digit != 0 {
                sum += &multiples[digit - 1];
            }
        }
        sum
    }
}

/// The window of bits from `bit` on.
fn digit(limbs: &[u64; 4], bit: usize) -> usize {
    let (limb, shift) = (bit / 64, bit % 64);
    let mut bits = limbs[limb] >> shift;
    if shift + WINDOW_BITS > 64 && limb < 3 {
        bits |= limbs[limb + 1] << (64 - shift);
    }
    bits as usize & MULTIPLES
}
