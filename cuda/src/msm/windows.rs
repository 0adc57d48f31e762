//! How scalars are cut into digits.

use crate::error::CudaError;

/// Digits must cover this many bits: scalars are below r/2 after a change of sign, and a digit needs one bit for its own.
const SCALAR_BITS: u32 = 255;
/// The widest digits that are considered: 2^23 buckets a set.
const BITS_MAX: u32 = 24;
/// The narrowest: a block's shared memory must hold all digits of 512 scalars.
const BITS_MIN: u32 = 7;
/// What adding up one bucket costs, in additions of an affine point.
const BUCKET_COST: f64 = 2.85;
/// Buckets lie in at most so many fine bins, and those in coarse ones.
pub(super) const FINE_BINS: usize = 1 << 14;
pub(super) const COARSE_BINS: usize = FINE_BINS / 64;
/// r / 2^254, rounded up.
const ORDER_BY_2_254: f64 = 1.812;

/// Windows of signed digits, and which of them share a set of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    bits: u32,
    count: u32,
    sets: u32,
}

impl Windows {
    /// The cheapest windows for `len` full-size scalars, when there may be up to `copies_max` copies of the bases (1 means
    /// the bases alone, see [`super::Table`]).
    pub fn for_len(len: usize, copies_max: usize) -> Self {
        let candidates = (BITS_MIN..=BITS_MAX).map(|bits| {
            let count = SCALAR_BITS.div_ceil(bits);
            let sets = count.div_ceil((copies_max.max(1) as u32).min(count));
            Self { bits, count, sets }
        });
        candidates.min_by(|a, b| a.cost(len).total_cmp(&b.cost(len))).expect("there are candidates")
    }

    /// Windows of `bits` bits with `copies` copies of the bases.
    pub fn new(bits: u32, copies: usize) -> Result<Self, CudaError> {
        if !(BITS_MIN..=BITS_MAX).contains(&bits) || copies == 0 {
            return Err(CudaError::Unsupported(format!(
                "windows of {bits} bits and {copies} copies of the bases: expected {BITS_MIN} to {BITS_MAX} bits and at \
                 least one copy"
            )));
        }
        let count = SCALAR_BITS.div_ceil(bits);
        Ok(Self { bits, count, sets: count.div_ceil((copies as u32).min(count)) })
    }

    fn cost(&self, len: usize) -> f64 {
        len as f64 * f64::from(self.count) + BUCKET_COST * self.buckets() as f64
    }

    /// Bits of a digit, sign included.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Digits of a scalar.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Sets of buckets.
    pub fn sets(&self) -> u32 {
        self.sets
    }

    /// Copies of the bases, the bases themselves included: copy k is 2^(bits * sets * k) times the bases.
    pub fn copies(&self) -> usize {
        self.count.div_ceil(self.sets) as usize
    }

    /// log2 of the buckets in a set.
    pub(super) fn set_log2(&self) -> u32 {
        self.bits - 1
    }

    /// Buckets of all sets.
    pub(super) fn buckets(&self) -> usize {
        (self.sets as usize) << self.set_log2()
    }

    /// A bucket's fine bin is its number shifted right by this.
    pub(super) fn fine_shift(&self) -> u32 {
        self.buckets().div_ceil(FINE_BINS).next_power_of_two().ilog2()
    }

    /// How many multiples of r may be added to a scalar below r/2 so that all digits still hold it: sums stay below
    /// 2^(bits * count - 1) - r/2.
    pub(super) fn spread(&self) -> u32 {
        let room = 2f64.powi((self.bits * self.count) as i32 - 1 - 254) / ORDER_BY_2_254;
        (room.floor() as u32).saturating_sub(1).max(1)
    }
}
