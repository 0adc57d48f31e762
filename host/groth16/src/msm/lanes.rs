//! Fp and Fp2 in the four lanes of 256-bit vectors: four independent products for less than the price of two in integers.
//!
//! An element is eight limbs of 48 bits, held as doubles: R = 2^384, so the Montgomery form is blst's. Limbs are signed and
//! need not be carried: a sum or difference is eight vector instructions, and [`settle`] makes limbs and value small again.
//! The two halves of a product of limbs come from two fused multiply-adds, exactly (N. Emmart, J. Luitjens, C. Weems and
//! C. Woolley, "Faster modular exponentiation using double precision floating point arithmetic on the GPU", ARITH 2018).
//!
//! Seven of eight reduction steps divide by 2^48 modulo k p with k p = -1 modulo 2^48, whose quotient is the low limb
//! itself; the last one, modulo p, makes the value small. (Orup, "Simplifying quotient determination in high-radix modular
//! multiplication", ARITH 1995.)
//!
//! Bounds, in units of p = 2^384 / 9.8: a settled value is within 0.51 of zero and its limbs within 2^47 + 2^5; a product of
//! values within a and b is between -0.5 - ab/9.8 and 1.5 + ab/9.8. Factors' limbs must be below 2^49.5, so that a product
//! of two is below 2^99.

use crate::points::{FP_MODULUS as MODULUS, FpLimbs};
use std::arch::x86_64::{
    __m256d, __m256i, _mm256_add_epi64, _mm256_add_pd, _mm256_and_si256, _mm256_castpd_si256, _mm256_castsi256_pd,
    _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_mul_pd, _mm256_or_si256, _mm256_permute2f128_pd, _mm256_set1_epi64x,
    _mm256_set1_pd, _mm256_setzero_si256, _mm256_srli_epi64, _mm256_sub_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd,
};

/// Limbs of one element.
const LIMBS: usize = 8;
const LIMB_BITS: usize = 48;
const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// An element of Fp, limb by limb.
pub(super) type Stored = [f64; LIMBS];
/// Four elements of Fp: vector i holds limb i of each.
pub(super) type Four = [__m256d; LIMBS];

const MODULUS_LIMBS: Stored = to_doubles(&split(&MODULUS));
const QUOTIENT_LIMBS: Stored = to_doubles(&split(&friendly_quotient()));
const MINUS_INVERSE: f64 = minus_inverse() as f64;

/// Adding it to a product of limbs rounds to a multiple of 2^48: the high half is in the mantissa.
const HIGH: f64 = 1.5 * (1u128 << 100) as f64;
/// Numbers about it are integers in the mantissa.
const LOW: f64 = 1.5 * (1u64 << 52) as f64;
/// Exact: LOW is a multiple of 2^48.
const HIGH_AND_LOW: f64 = HIGH + LOW;
/// With a limb in its mantissa, 2^52 more than the limb.
const INTEGER: f64 = (1u64 << 52) as f64;
/// Keeps columns from being negative where they are shifted; what it carries is taken back in the next column.
const BIAS: u64 = 1 << 60;
/// What each column starts from, so that all that is in it beside the halves of products comes to nothing.
const COLUMNS: [u64; 2 * LIMBS] = columns();

/// 48-bit limbs.
const fn split(words: &FpLimbs) -> [u64; LIMBS] {
    let mut limbs = [0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        let (word, shift) = (i * LIMB_BITS / 64, i * LIMB_BITS % 64);
        let mut limb = words[word] >> shift;
        if shift > 64 - LIMB_BITS {
            limb |= words[word + 1] << (64 - shift);
        }
        limbs[i] = limb & LIMB_MASK;
        i += 1;
    }
    limbs
}

const fn to_doubles(limbs: &[u64; LIMBS]) -> Stored {
    let mut doubles = [0.0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        doubles[i] = limbs[i] as f64;
        i += 1;
    }
    doubles
}

/// -1/p modulo 2^48: Newton's iteration doubles the bits that are right, of which one is at first.
const fn minus_inverse() -> u64 {
    let mut inverse = 1u64;
    let mut bits = 1;
    while bits < LIMB_BITS {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(MODULUS[0].wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse.wrapping_neg() & LIMB_MASK
}

/// (k p + 1) / 2^48, which is below p.
const fn friendly_quotient() -> FpLimbs {
    let (k, mut carry) = (minus_inverse() as u128, 1u128);
    let mut words = [0u64; 7];
    let mut i = 0;
    while i < 6 {
        let word = MODULUS[i] as u128 * k + carry;
        (words[i], carry) = (word as u64, word >> 64);
        i += 1;
    }
    words[6] = carry as u64;
    let mut quotient = [0; 6];
    i = 0;
    while i < 6 {
        quotient[i] = words[i] >> LIMB_BITS | words[i + 1] << (64 - LIMB_BITS);
        i += 1;
    }
    quotient
}

/// Every product of limbs adds the bits of [`LOW`] to one column and those of [`HIGH`] to the next.
const fn columns() -> [u64; 2 * LIMBS] {
    let mut columns = [0u64; 2 * LIMBS + 1];
    let mut row = 0;
    while row < LIMBS {
        // The products of row i start in column i; so do those of the last reduction step, those of others in the next one.
        let starts = [row, if row + 1 < LIMBS { row + 1 } else { row }];
        let mut product = 0;
        while product < 2 * LIMBS {
            let column = starts[product / LIMBS] + product % LIMBS;
            columns[column] = columns[column].wrapping_sub(LOW.to_bits());
            columns[column + 1] = columns[column + 1].wrapping_sub(HIGH.to_bits());
            product += 1;
        }
        row += 1;
    }
    let mut out = [0; 2 * LIMBS];
    let mut i = 0;
    while i < 2 * LIMBS {
        let carried_in = if i > 0 { BIAS >> LIMB_BITS } else { 0 };
        // The last column is not shifted, but becomes a double as it is.
        let own = if i + 1 < 2 * LIMBS { BIAS } else { LOW.to_bits() };
        out[i] = columns[i].wrapping_add(own).wrapping_sub(carried_in);
        i += 1;
    }
    out
}

/// The limbs of an element in blst's form.
#[inline]
pub(super) fn store(element: &FpLimbs) -> Stored {
    to_doubles(&split(element))
}

/// The element, reduced, of a settled value.
pub(super) fn read(stored: &Stored) -> FpLimbs {
    let mut words = [0u64; 6];
    let mut carry = 0i64;
    for (i, (limb, modulus)) in stored.iter().zip(split(&MODULUS)).enumerate() {
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

#[target_feature(enable = "avx2,fma")]
#[inline]
fn transpose(rows: [__m256d; 4]) -> [__m256d; 4] {
    let [a, b, c, d] = rows;
    let (ab_even, ab_odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    let (cd_even, cd_odd) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
    [
        _mm256_permute2f128_pd::<0x20>(ab_even, cd_even),
        _mm256_permute2f128_pd::<0x20>(ab_odd, cd_odd),
        _mm256_permute2f128_pd::<0x31>(ab_even, cd_even),
        _mm256_permute2f128_pd::<0x31>(ab_odd, cd_odd),
    ]
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

/// Columns under accumulation, of ascending weight.
type Columns = [__m256i; LIMBS + 2];

/// Add the eight products of one limb to the columns from one on.
macro_rules! add_row {
    ($columns:ident, $from:literal, $limb:expr, $limbs:expr; $($i:literal)*) => {
        $({
            let (limb, other) = ($limb, $limbs[$i]);
            let high = _mm256_fmadd_pd(limb, other, _mm256_set1_pd(HIGH));
            let low = _mm256_fmadd_pd(limb, other, _mm256_sub_pd(_mm256_set1_pd(HIGH_AND_LOW), high));
            $columns[$from + $i] = _mm256_add_epi64($columns[$from + $i], _mm256_castpd_si256(low));
            $columns[$from + $i + 1] = _mm256_add_epi64($columns[$from + $i + 1], _mm256_castpd_si256(high));
        })*
    };
    ($columns:ident, $from:literal, $limb:expr, $limbs:expr) => {
        add_row!($columns, $from, $limb, $limbs; 0 1 2 3 4 5 6 7)
    };
}

/// The low 48 bits as a number.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn low_limb(column: __m256i) -> __m256d {
    let limb = _mm256_and_si256(column, _mm256_set1_epi64x(LIMB_MASK as i64));
    let double = _mm256_or_si256(limb, _mm256_set1_epi64x(INTEGER.to_bits() as i64));
    _mm256_sub_pd(_mm256_castsi256_pd(double), _mm256_set1_pd(INTEGER))
}

/// a b / R.
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
pub(super) fn mul(a: &Four, b: &Four) -> Four {
    let mut columns: Columns = [_mm256_setzero_si256(); LIMBS + 2];
    for (column, start) in columns.iter_mut().zip(&COLUMNS[..=LIMBS]) {
        *column = _mm256_set1_epi64x(*start as i64);
    }
    let quotient_limbs = broadcast(&QUOTIENT_LIMBS);
    for (limb, start) in a[..LIMBS - 1].iter().zip(&COLUMNS[LIMBS + 1..]) {
        columns[LIMBS + 1] = _mm256_set1_epi64x(*start as i64);
        add_row!(columns, 0, *limb, b);
        // T + q k p = T - q + 2^48 q Q, and q is T's low limb.
        let quotient = low_limb(columns[0]);
        columns[1] = _mm256_add_epi64(columns[1], _mm256_srli_epi64::<48>(columns[0]));
        add_row!(columns, 1, quotient, quotient_limbs);
        let [_, c1, c2, c3, c4, c5, c6, c7, c8, c9] = columns;
        columns = [c1, c2, c3, c4, c5, c6, c7, c8, c9, c9];
    }
    add_row!(columns, 0, a[LIMBS - 1], b);
    finish(columns)
}

/// The last reduction step, modulo p, and the carries.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn finish(mut columns: Columns) -> Four {
    let (limb, factor) = (low_limb(columns[0]), _mm256_set1_pd(MINUS_INVERSE));
    let high = _mm256_fmadd_pd(limb, factor, _mm256_set1_pd(HIGH));
    let low = _mm256_fmadd_pd(limb, factor, _mm256_sub_pd(_mm256_set1_pd(HIGH_AND_LOW), high));
    let quotient = _mm256_sub_pd(low, _mm256_set1_pd(LOW));
    let modulus = broadcast(&MODULUS_LIMBS);
    add_row!(columns, 0, quotient, modulus);
    let mut out = [_mm256_set1_pd(0.0); LIMBS];
    for i in 0..LIMBS - 1 {
        columns[i + 1] = _mm256_add_epi64(columns[i + 1], _mm256_srli_epi64::<48>(columns[i]));
        out[i] = low_limb(columns[i + 1]);
    }
    columns[LIMBS] = _mm256_add_epi64(columns[LIMBS], _mm256_srli_epi64::<48>(columns[LIMBS - 1]));
    out[LIMBS - 1] = _mm256_sub_pd(_mm256_castsi256_pd(columns[LIMBS]), _mm256_set1_pd(LOW));
    out
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn broadcast(limbs: &Stored) -> Four {
    let mut out = [_mm256_set1_pd(0.0); LIMBS];
    for (out, limb) in out.iter_mut().zip(limbs) {
        *out = _mm256_set1_pd(*limb);
    }
    out
}
