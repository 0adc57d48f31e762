//! Many multiples of one base, the group's generator, by a table of its multiples.

use crate::msm::{POINTS_PER_TILE, Summable, Tile};
use crate::points::{G1Point, G2Point};
use crate::scalar::{Scalar, to_canonical};
use group::Group;
use rayon::prelude::*;

/// What computes multiples of the generators: nearly all the work of making a key. The CPU here, a device elsewhere.
pub trait GeneratorMultiples {
    /// G1's generator times each scalar; zero gives the point at infinity. The error says why there is no result.
    fn g1(&self, scalars: &[Scalar]) -> Result<Vec<G1Point>, String>;
    /// G2's generator times each scalar, likewise.
    fn g2(&self, scalars: &[Scalar]) -> Result<Vec<G2Point>, String>;
}

/// Tables of both generators.
pub(crate) struct CpuMultiples {
    g1: FixedBase<G1Point>,
    g2: FixedBase<G2Point>,
}

impl CpuMultiples {
    pub fn new() -> Self {
        Self { g1: FixedBase::new(), g2: FixedBase::new() }
    }
}

impl GeneratorMultiples for CpuMultiples {
    fn g1(&self, scalars: &[Scalar]) -> Result<Vec<G1Point>, String> {
        Ok(self.g1.multiply(scalars))
    }

    fn g2(&self, scalars: &[Scalar]) -> Result<Vec<G2Point>, String> {
        Ok(self.g2.multiply(scalars))
    }
}

/// Bits per window: 26 terms a product, from tables of a few megabytes.
const WINDOW_BITS: usize = 10;
const WINDOWS: usize = 255usize.div_ceil(WINDOW_BITS);
/// Multiples 1 to 2^10 - 1 of each window's base.
const MULTIPLES: usize = (1 << WINDOW_BITS) - 1;
/// Products whose terms fill a tile.
const SCALARS_PER_TILE: usize = POINTS_PER_TILE / WINDOWS;

/// Multiples of the generator: entry d - 1 of window k is d * 2^(10 k) times it.
struct FixedBase<P> {
    windows: Vec<Vec<P>>,
}

impl<P: Summable> FixedBase<P> {
    fn new() -> Self {
        let mut bases = vec![P::Sum::generator()];
        while bases.len() < WINDOWS {
            let last = bases[bases.len() - 1];
            bases.push((0..WINDOW_BITS).fold(last, |base, _| base.double()));
        }
        let multiples = |base: &P::Sum| {
            let multiples = std::iter::successors(Some(*base), |multiple| Some(*multiple + base)).take(MULTIPLES);
            P::normalize(&multiples.collect::<Vec<_>>())
        };
        Self { windows: bases.par_iter().map(multiples).collect() }
    }

    /// The generator times each scalar. Zero gives the point at infinity.
    fn multiply(&self, scalars: &[Scalar]) -> Vec<P> {
        let mut out = vec![P::zeroed(); scalars.len()];
        let new_tile = || Tile::new(POINTS_PER_TILE);
        let tasks = out.par_chunks_mut(SCALARS_PER_TILE).zip(scalars.par_chunks(SCALARS_PER_TILE));
        tasks.for_each_init(new_tile, |tile, (out, scalars)| {
            tile.clear();
            for (index, scalar) in (0..).zip(scalars) {
                let limbs = to_canonical(scalar);
                for (window, multiples) in self.windows.iter().enumerate() {
                    let digit = digit(&limbs, window * WINDOW_BITS);
                    if digit != 0 {
                        tile.push(index, &multiples[digit - 1], false);
                    }
                }
            }
            tile.sums().for_each(|(index, sum)| out[index as usize] = *sum);
        });
        out
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
