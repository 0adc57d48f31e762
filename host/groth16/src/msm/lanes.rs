//! Fp and Fp2 in the four lanes of 256-bit vectors: four independent products for less than the price of two in integers.
//!
//! An element is eight limbs of 48 bits, held as doubles: R = 2^384, so the Montgomery form is blst's. Limbs are signed and
//! need not be carried: a sum or difference is eight vector instructions, and [`settle`] makes limbs and value small again.
//! What a product is made of is said in [`crate::doubles`].
//!
//! Bounds, in units of p = 2^384 / 9.8: a settled value is within 0.51 of zero and its limbs within 2^47 + 2^5; a product of
//! values within a and b is between -0.5 - ab/9.8 and 1.5 + ab/9.8. Factors' limbs must be below 2^49.5, so that a product
//! of two is below 2^99.

use crate::doubles::{
    HIGH, HIGH_AND_LOW, INTEGER, LIMB_BITS, LIMB_MASK, LOW, add_row, broadcast, columns, friendly_quotient,
    last_quotient, low_limb, minus_inverse, split, to_doubles, to_limbs, transpose,
};
use crate::points::{FP_MODULUS as MODULUS, FpLimbs};
use std::arch::x86_64::{
    __m256d, _mm256_add_epi64, _mm256_add_pd, _mm256_castpd_si256, _mm256_castsi256_pd, _mm256_fmadd_pd,
    _mm256_fnmadd_pd, _mm256_mul_pd, _mm256_or_si256, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_sub_pd,
};

/// Limbs of one element.
const LIMBS: usize = 8;

/// An element of Fp, limb by limb.
pub(super) type Stored = [f64; LIMBS];
/// Four elements of Fp: vector i holds limb i of each.
pub(super) type Four = [__m256d; LIMBS];

const MODULUS_LIMBS: Stored = to_doubles(&split(&MODULUS));
const QUOTIENT_LIMBS: Stored = to_doubles(&split(&friendly_quotient(&MODULUS)));
const MINUS_INVERSE: f64 = minus_inverse(MODULUS[0]) as f64;
const COLUMNS: [u64; 2 * LIMBS] = columns::<LIMBS, { 2 * LIMBS }>();

/// The limbs of an element in blst's form.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn store(element: &FpLimbs) -> Stored {
    // A limb is six bytes: of sixteen, the first twelve or, at the end, the last twelve are two limbs.
    const LIMBS_AT_0: [i8; 16] = [0, 1, 2, 3, 4, 5, -1, -1, 6, 7, 8, 9, 10, 11, -1, -1];
    const LIMBS_AT_4: [i8; 16] = [4, 5, 6, 7, 8, 9, -1, -1, 10, 11, 12, 13, 14, 15, -1, -1];
    let bytes: &[u8; 48] = bytemuck::cast_ref(element);
    let four = |at: [usize; 2], places: [[i8; 16]; 2]| {
        let halves = at.map(|at| <[u8; 16]>::try_from(&bytes[at..at + 16]).expect("sixteen bytes"));
        let limbs = _mm256_shuffle_epi8(bytemuck::cast(halves), bytemuck::cast(places));
        let double = _mm256_or_si256(limbs, _mm256_castpd_si256(_mm256_set1_pd(INTEGER)));
        _mm256_sub_pd(_mm256_castsi256_pd(double), _mm256_set1_pd(INTEGER))
    };
    bytemuck::cast([four([0, 12], [LIMBS_AT_0; 2]), four([24, 32], [LIMBS_AT_0, LIMBS_AT_4])])
}

/// The element, reduced, of a settled value.
pub(super) fn read(stored: &Stored) -> FpLimbs {
    let mut words = [0u64; 6];
    let mut carry = 0i64;
    for (i, (limb, modulus)) in stored.iter().zip(split::<6, LIMBS>(&MODULUS)).enumerate() {
        // Above zero in all with a modulus added.
        let sum = *limb as i64 + modulus as i64 + carry;
        carry = sum >> LIMB_BITS;
        let (limb, word, shift) = (sum as u64 & LIMB_MASK, i * LIMB_BITS / 64, i * LIMB_BITS % 64);
        words[word] |= limb << shift;
        if shift > 64 - LIMB_BITS {
            words[word + 1] |= limb >> (64 - shift);
        }
    }
    let mut borrow = false;
    let less = std::array::from_fn(|i| {
        let (difference, first) = words[i].overflowing_sub(MODULUS[i]);
        let (difference, second) = difference.overflowing_sub(borrow.into());
        borrow = first | second;
        difference
    });
    if borrow { words } else { less }
}

/// Four elements side by side.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn gather(elements: [&Stored; 4]) -> Four {
    let [a, b, c, d] = elements;
    let ([a_low, a_high], [b_low, b_high]) = (load(a), load(b));
    let ([c_low, c_high], [d_low, d_high]) = (load(c), load(d));
    bytemuck::cast([transpose([a_low, b_low, c_low, d_low]), transpose([a_high, b_high, c_high, d_high])])
}

/// The opposite of [`gather`].
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn scatter(four: &Four) -> [Stored; 4] {
    let [low, high]: [[__m256d; 4]; 2] = bytemuck::cast(*four);
    let (low, high) = (transpose(low), transpose(high));
    let mut out = [[0.0; LIMBS]; 4];
    for (out, halves) in out.iter_mut().zip(low.into_iter().zip(high)) {
        *out = bytemuck::cast([halves.0, halves.1]);
    }
    out
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn load(element: &Stored) -> [__m256d; 2] {
    bytemuck::cast(*element)
}

/// a + b, limb by limb.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn add(a: &Four, b: &Four) -> Four {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = _mm256_add_pd(*out, *b);
    }
    out
}

/// a - b, limb by limb.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn sub(a: &Four, b: &Four) -> Four {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = _mm256_sub_pd(*out, *b);
    }
    out
}

/// The same elements with values and limbs as small as the bounds above say; of values below 12 p, limbs below 2^51.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn settle(a: &Four) -> Four {
    let mut out = *a;
    // The top limb is the value in units of 2^336, to within 2^4 of its 2^45.
    let integer = _mm256_set1_pd(LOW);
    let scaled = _mm256_fmadd_pd(a[LIMBS - 1], _mm256_set1_pd(1.0 / MODULUS_LIMBS[LIMBS - 1]), integer);
    let quotient = _mm256_sub_pd(scaled, integer);
    for (out, modulus) in out.iter_mut().zip(MODULUS_LIMBS) {
        *out = _mm256_fnmadd_pd(quotient, _mm256_set1_pd(modulus), *out);
    }
    let mut carry = _mm256_set1_pd(0.0);
    let multiple = _mm256_set1_pd(HIGH);
    for out in &mut out[..LIMBS - 1] {
        let high = _mm256_sub_pd(_mm256_add_pd(*out, multiple), multiple);
        *out = _mm256_add_pd(_mm256_sub_pd(*out, high), carry);
        carry = _mm256_mul_pd(high, _mm256_set1_pd(1.0 / (1u64 << LIMB_BITS) as f64));
    }
    out[LIMBS - 1] = _mm256_add_pd(out[LIMBS - 1], carry);
    out
}

/// a b / R.
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
pub(super) fn mul(a: &Four, b: &Four) -> Four {
    // Of ascending weight.
    let mut columns = [_mm256_setzero_si256(); LIMBS + 2];
    for (column, start) in columns.iter_mut().zip(&COLUMNS[..=LIMBS]) {
        *column = _mm256_set1_epi64x(*start as i64);
    }
    let quotient_limbs = broadcast(&QUOTIENT_LIMBS);
    for (limb, start) in a[..LIMBS - 1].iter().zip(&COLUMNS[LIMBS + 1..]) {
        columns[LIMBS + 1] = _mm256_set1_epi64x(*start as i64);
        add_row!(columns, 0, *limb, b; 0 1 2 3 4 5 6 7);
        // T + q k p = T - q + 2^48 q Q, and q is T's low limb.
        let quotient = low_limb(columns[0]);
        columns[1] = _mm256_add_epi64(columns[1], _mm256_srli_epi64::<48>(columns[0]));
        add_row!(columns, 1, quotient, quotient_limbs; 0 1 2 3 4 5 6 7);
        let [_, c1, c2, c3, c4, c5, c6, c7, c8, c9] = columns;
        columns = [c1, c2, c3, c4, c5, c6, c7, c8, c9, c9];
    }
    add_row!(columns, 0, a[LIMBS - 1], b; 0 1 2 3 4 5 6 7);
    // The last step, modulo p.
    let (quotient, modulus) = (last_quotient(columns[0], MINUS_INVERSE), broadcast(&MODULUS_LIMBS));
    add_row!(columns, 0, quotient, modulus; 0 1 2 3 4 5 6 7);
    to_limbs(columns)
}
