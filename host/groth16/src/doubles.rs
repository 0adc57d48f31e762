//! Elements of prime fields in the four lanes of 256-bit vectors: limbs of 48 bits, held as doubles.
//!
//! The two halves of a product of limbs come from two fused multiply-adds, exactly (N. Emmart, J. Luitjens, C. Weems and
//! C. Woolley, "Faster modular exponentiation using double precision floating point arithmetic on the GPU", ARITH 2018): the
//! factors' product must be below 2^99. All reduction steps but the last divide by 2^48 modulo k p with k p = -1 modulo 2^48,
//! whose quotient is the low limb itself; the last one, modulo p, makes the value small. (Orup, "Simplifying quotient
//! determination in high-radix modular multiplication", ARITH 1995.)
//!
//! [`crate::msm`] has Fp so, [`crate::domain`] Fr. Here is what does not depend on the number of limbs.

use std::arch::x86_64::{
    __m256d, __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_castpd_si256, _mm256_castsi256_pd, _mm256_fmadd_pd,
    _mm256_or_si256, _mm256_permute2f128_pd, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_srli_epi64, _mm256_sub_pd,
    _mm256_unpackhi_pd, _mm256_unpacklo_pd,
};

pub(crate) const LIMB_BITS: usize = 48;
pub(crate) const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// Adding it to a product of limbs rounds to a multiple of 2^48: the high half is in the mantissa.
pub(crate) const HIGH: f64 = 1.5 * (1u128 << 100) as f64;
/// Numbers about it are integers in the mantissa.
pub(crate) const LOW: f64 = 1.5 * (1u64 << 52) as f64;
/// Exact: LOW is a multiple of 2^48.
pub(crate) const HIGH_AND_LOW: f64 = HIGH + LOW;
/// With a limb in its mantissa, 2^52 more than the limb.
pub(crate) const INTEGER: f64 = (1u64 << 52) as f64;
/// Keeps columns from being negative where they are shifted; what it carries is taken back in the next column.
pub(crate) const BIAS: u64 = 1 << 60;

/// 48-bit limbs.
pub(crate) const fn split<const WORDS: usize, const LIMBS: usize>(words: &[u64; WORDS]) -> [u64; LIMBS] {
    let mut limbs = [0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        let (word, shift) = (i * LIMB_BITS / 64, i * LIMB_BITS % 64);
        if word < WORDS {
            let mut limb = words[word] >> shift;
            if shift > 64 - LIMB_BITS && word + 1 < WORDS {
                limb |= words[word + 1] << (64 - shift);
            }
            limbs[i] = limb & LIMB_MASK;
        }
        i += 1;
    }
    limbs
}

pub(crate) const fn to_doubles<const LIMBS: usize>(limbs: &[u64; LIMBS]) -> [f64; LIMBS] {
    let mut doubles = [0.0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        doubles[i] = limbs[i] as f64;
        i += 1;
    }
    doubles
}

/// -1/p modulo 2^48, of p's low word: Newton's iteration doubles the bits that are right, of which one is at first.
pub(crate) const fn minus_inverse(modulus: u64) -> u64 {
    let mut inverse = 1u64;
    let mut bits = 1;
    while bits < LIMB_BITS {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(modulus.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse.wrapping_neg() & LIMB_MASK
}

/// (k p + 1) / 2^48, which is below p.
pub(crate) const fn friendly_quotient<const WORDS: usize>(modulus: &[u64; WORDS]) -> [u64; WORDS] {
    let (k, mut carry) = (minus_inverse(modulus[0]) as u128, 1u128);
    let (mut quotient, mut below, mut i) = ([0; WORDS], 0, 0);
    while i <= WORDS {
        let word = if i < WORDS { modulus[i] as u128 * k + carry } else { carry };
        carry = word >> 64;
        if i > 0 {
            quotient[i - 1] = below >> LIMB_BITS | (word as u64) << (64 - LIMB_BITS);
        }
        below = word as u64;
        i += 1;
    }
    quotient
}

/// What each of 2 LIMBS columns starts from, so that all that is in it beside the halves of products comes to nothing: every
/// product of limbs adds the bits of [`LOW`] to one column and those of [`HIGH`] to the next.
pub(crate) const fn columns<const LIMBS: usize, const COLUMNS: usize>() -> [u64; COLUMNS] {
    let mut columns = [0u64; COLUMNS];
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
    let mut i = 0;
    while i < COLUMNS {
        let carried_in = if i > 0 { BIAS >> LIMB_BITS } else { 0 };
        // The last column is not shifted, but becomes a double as it is.
        let own = if i + 1 < COLUMNS { BIAS } else { LOW.to_bits() };
        columns[i] = columns[i].wrapping_add(own).wrapping_sub(carried_in);
        i += 1;
    }
    columns
}

/// Add the products of one limb and others, of these indices, to the columns from one on.
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
}
pub(crate) use add_row;

/// The low 48 bits as a number.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(crate) fn low_limb(column: __m256i) -> __m256d {
    let limb = _mm256_and_si256(column, _mm256_set1_epi64x(LIMB_MASK as i64));
    let double = _mm256_or_si256(limb, _mm256_castpd_si256(_mm256_set1_pd(INTEGER)));
    _mm256_sub_pd(_mm256_castsi256_pd(double), _mm256_set1_pd(INTEGER))
}

/// The quotient of the last reduction step: what times p makes the column a multiple of 2^48.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(crate) fn last_quotient(column: __m256i, minus_inverse: f64) -> __m256d {
    let (limb, factor) = (low_limb(column), _mm256_set1_pd(minus_inverse));
    let high = _mm256_fmadd_pd(limb, factor, _mm256_set1_pd(HIGH));
    let low = _mm256_fmadd_pd(limb, factor, _mm256_sub_pd(_mm256_set1_pd(HIGH_AND_LOW), high));
    _mm256_sub_pd(low, _mm256_set1_pd(LOW))
}

/// The columns behind the first, which has become a multiple of 2^48, as limbs: what goes beyond one is carried.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(crate) fn to_limbs<const LIMBS: usize, const COLUMNS: usize>(mut columns: [__m256i; COLUMNS]) -> [__m256d; LIMBS] {
    let mut out = [_mm256_set1_pd(0.0); LIMBS];
    for i in 0..LIMBS - 1 {
        columns[i + 1] = _mm256_add_epi64(columns[i + 1], _mm256_srli_epi64::<48>(columns[i]));
        out[i] = low_limb(columns[i + 1]);
    }
    columns[LIMBS] = _mm256_add_epi64(columns[LIMBS], _mm256_srli_epi64::<48>(columns[LIMBS - 1]));
    out[LIMBS - 1] = _mm256_sub_pd(_mm256_castsi256_pd(columns[LIMBS]), _mm256_set1_pd(LOW));
    out
}

/// One element in all lanes.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(crate) fn broadcast<const LIMBS: usize>(limbs: &[f64; LIMBS]) -> [__m256d; LIMBS] {
    let mut out = [_mm256_set1_pd(0.0); LIMBS];
    for (out, limb) in out.iter_mut().zip(limbs) {
        *out = _mm256_set1_pd(*limb);
    }
    out
}

#[target_feature(enable = "avx2,fma")]
#[inline]
pub(crate) fn transpose(rows: [__m256d; 4]) -> [__m256d; 4] {
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
