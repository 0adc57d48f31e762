//! Scalars as signed numbers, and their digits.

use crate::scalar::{Limbs, MODULUS, Scalar, to_canonical};

/// A scalar as a number of least absolute value: below 2^254 with a sign in bit 255. So -1 is as short as 1.
#[derive(Clone, Copy, Default)]
pub struct SignedScalar(Limbs);

/// Bits of the absolute value.
const MAGNITUDE_BITS: usize = 254;
const SIGN: u64 = 1 << 63;

impl SignedScalar {
    /// Of canonical limbs, below the modulus.
    pub fn from_canonical(limbs: &Limbs) -> Self {
        // Above the half, (r - 1) / 2, if r - x is smaller.
        let opposite = subtract(&MODULUS, limbs);
        if opposite.iter().rev().lt(limbs.iter().rev()) {
            let [low @ .., top] = opposite;
            Self([low[0], low[1], low[2], top | SIGN])
        } else {
            Self(*limbs)
        }
    }

    fn is_negative(&self) -> bool {
        self.0[3] & SIGN != 0
    }

    /// Bits `from..from + len` of the absolute value; len is below 32.
    #[inline]
    fn bits(&self, from: usize, len: usize) -> u64 {
        let limb = |i: usize| match i {
            3 => self.0[3] & !SIGN,
            _ => self.0.get(i).copied().unwrap_or(0),
        };
        let (i, shift) = (from / 64, from % 64);
        let mut bits = limb(i) >> shift;
        if shift + len > 64 {
            bits |= limb(i + 1) << (64 - shift);
        }
        bits & ((1 << len) - 1)
    }
}

impl From<&Scalar> for SignedScalar {
    fn from(scalar: &Scalar) -> Self {
        Self::from_canonical(&to_canonical(scalar))
    }
}

/// a - b, for b <= a.
fn subtract(a: &Limbs, b: &Limbs) -> Limbs {
    let mut borrow = false;
    std::array::from_fn(|i| {
        let (difference, borrow_1) = a[i].overflowing_sub(b[i]);
        let (difference, borrow_2) = difference.overflowing_sub(borrow.into());
        borrow = borrow_1 | borrow_2;
        difference
    })
}

/// Windows of this width that hold every digit: one bit more than the magnitude, for the last carry.
pub(super) fn windows(bits: usize) -> usize {
    (MAGNITUDE_BITS + 1).div_ceil(bits)
}

/// The width of windows that costs least for this many terms.
pub(super) fn window_bits(terms: usize) -> usize {
    // Weighting a bucket costs two additions, by row and by column, and a share of weighting rows and columns.
    const BUCKET_COST: usize = 3;
    let cost = |bits: &usize| windows(*bits).saturating_mul(terms.saturating_add(BUCKET_COST << (bits - 1)));
    (2..=20).min_by_key(cost).expect("the range is not empty")
}

/// One window of digits.
#[derive(Clone, Copy)]
pub(super) struct Window {
    first_bit: usize,
    bits: usize,
}

impl Window {
    pub fn new(index: usize, bits: usize) -> Self {
        Self { first_bit: index * bits, bits }
    }

    /// Buckets that a digit can fall into: 1 to 2^(w-1).
    pub fn buckets(&self) -> usize {
        1 << (self.bits - 1)
    }

    /// The digit: its absolute value and whether it is negative, the scalar's own sign included. Booth's: the window's top bit
    /// counts negative, and the top bit of the window below is carried in.
    #[inline]
    pub fn digit(&self, scalar: &SignedScalar) -> (u32, bool) {
        // The window and the bit below it.
        let raw = match self.first_bit {
            0 => scalar.bits(0, self.bits) << 1,
            first => scalar.bits(first - 1, self.bits + 1),
        };
        let value = (raw >> 1) + (raw & 1);
        let top = raw >> self.bits;
        let magnitude = if top == 1 { (1 << self.bits) - value } else { value };
        (magnitude as u32, (top == 1) ^ scalar.is_negative())
    }
}
