//! Fr in lanes: six limbs of 48 bits and R' = 2^288.
//!
//! R' is 2^33 r: products of values are between -0.6 r and 1.6 r as long as the product of both is below 2^29 r^2, and the
//! values of a pass are never reduced. What grows are limbs: a product needs them below 2^51, roots being below 2^48. Those of
//! loaded and multiplied values are below 2^48; a sum has one such unit more than its largest addend at most (forward) or twice
//! as many (inverse), and [`carry`] brings it below one. At the end of a pass, in which a value grows to 25 r and limbs to 7
//! units at most, [`settle`] makes values canonical, exactly, as 32 units fit into a double.
//!
//! What is on the stack meanwhile, a few elements of a witness's transform on each thread, is overwritten by what runs next, not
//! cleared.

use crate::doubles::{
    BIAS, HIGH, HIGH_AND_LOW, LIMB_BITS, LIMB_MASK, LOW, add_row, broadcast, columns, friendly_quotient, last_quotient,
    low_limb, minus_inverse, split, to_doubles, to_limbs, transpose,
};
use crate::scalar::{MODULUS, Scalar, from_montgomery, to_montgomery};
use std::arch::x86_64::{
    __m256d, __m256i, _mm256_add_epi64, _mm256_add_pd, _mm256_and_si256, _mm256_blendv_pd, _mm256_castpd_si256,
    _mm256_castsi256_pd, _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_mul_pd, _mm256_or_si256, _mm256_set1_epi64x,
    _mm256_set1_pd, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_sub_epi64, _mm256_sub_pd,
};

/// Limbs of one element.
pub(super) const LIMBS: usize = 6;

/// Four elements: vector i holds limb i of each.
pub(super) type Four = [__m256d; LIMBS];

const MODULUS_LIMBS: [f64; LIMBS] = to_doubles(&split(&MODULUS));
const QUOTIENT_LIMBS: [f64; LIMBS] = to_doubles(&split(&friendly_quotient(&MODULUS)));
const MINUS_INVERSE: f64 = minus_inverse(MODULUS[0]) as f64;
const COLUMNS: [u64; 2 * LIMBS] = columns::<LIMBS, { 2 * LIMBS }>();
/// r in units of the top limb.
const TOP: f64 = MODULUS_LIMBS[LIMBS - 1] + MODULUS_LIMBS[LIMBS - 2] / (1u64 << LIMB_BITS) as f64;

/// The same value with all limbs but the top one within 2^47 and what is carried.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn carry(a: &Four) -> Four {
    let mut out = *a;
    let mut carried = _mm256_set1_pd(0.0);
    for limb in &mut out[..LIMBS - 1] {
        let high = _mm256_sub_pd(_mm256_add_pd(*limb, _mm256_set1_pd(HIGH)), _mm256_set1_pd(HIGH));
        *limb = _mm256_add_pd(_mm256_sub_pd(*limb, high), carried);
        carried = _mm256_mul_pd(high, _mm256_set1_pd(1.0 / (1u64 << LIMB_BITS) as f64));
    }
    out[LIMBS - 1] = _mm256_add_pd(out[LIMBS - 1], carried);
    out
}

/// a b / R', limbs below 2^48.
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
pub(super) fn mul(a: &Four, b: &Four) -> Four {
    let mut columns = [_mm256_setzero_si256(); LIMBS + 2];
    for (column, start) in columns.iter_mut().zip(&COLUMNS[..=LIMBS]) {
        *column = _mm256_set1_epi64x(*start as i64);
    }
    let quotient_limbs = broadcast(&QUOTIENT_LIMBS);
    for (limb, start) in a[..LIMBS - 1].iter().zip(&COLUMNS[LIMBS + 1..]) {
        columns[LIMBS + 1] = _mm256_set1_epi64x(*start as i64);
        add_row!(columns, 0, *limb, b; 0 1 2 3 4 5);
        // T + q k r = T - q + 2^48 q Q, and q is T's low limb.
        let quotient = low_limb(columns[0]);
        columns[1] = _mm256_add_epi64(columns[1], _mm256_srli_epi64::<48>(columns[0]));
        add_row!(columns, 1, quotient, quotient_limbs; 0 1 2 3 4 5);
        let [_, c1, c2, c3, c4, c5, c6, c7] = columns;
        columns = [c1, c2, c3, c4, c5, c6, c7, c7];
    }
    add_row!(columns, 0, a[LIMBS - 1], b; 0 1 2 3 4 5);
    // The last step, modulo r.
    let (quotient, modulus) = (last_quotient(columns[0], MINUS_INVERSE), broadcast(&MODULUS_LIMBS));
    add_row!(columns, 0, quotient, modulus; 0 1 2 3 4 5);
    to_limbs(columns)
}

/// Elements as limbs.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn load(elements: [&Scalar; 4]) -> Four {
    let [w0, w1, w2, w3] =
        transpose(elements.map(|element| bytemuck::cast(to_montgomery(element)))).map(|word| _mm256_castpd_si256(word));
    let limbs = [
        w0,
        _mm256_or_si256(_mm256_srli_epi64::<48>(w0), _mm256_slli_epi64::<16>(w1)),
        _mm256_or_si256(_mm256_srli_epi64::<32>(w1), _mm256_slli_epi64::<32>(w2)),
        _mm256_srli_epi64::<16>(w2),
        w3,
        _mm256_srli_epi64::<48>(w3),
    ];
    let mut out = [_mm256_set1_pd(0.0); LIMBS];
    for (out, limb) in out.iter_mut().zip(limbs) {
        *out = low_limb(limb);
    }
    out
}

/// The elements, reduced, of values below 25 r with limbs below 7 * 2^48.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn settle(a: &Four, out: [&mut Scalar; 4]) {
    let integer = _mm256_set1_pd(LOW);
    // Within a thousandth of the value in units of r, so that the rest is between -0.51 r and 0.51 r.
    let scaled = _mm256_fmadd_pd(a[LIMBS - 1], _mm256_set1_pd(1.0 / TOP), integer);
    let quotient = _mm256_sub_pd(scaled, integer);
    let mut limbs = [_mm256_setzero_si256(); LIMBS];
    for ((limb, a), modulus) in limbs.iter_mut().zip(a).zip(MODULUS_LIMBS) {
        let rest = _mm256_fnmadd_pd(quotient, _mm256_set1_pd(modulus), *a);
        *limb = to_integer(rest);
    }
    // A modulus is added to what is negative.
    let modulus = split::<4, LIMBS>(&MODULUS);
    let more = carry_integers(&limbs, &modulus.map(|limb| limb as i64));
    let less = carry_integers(&limbs, &[0; LIMBS]);
    let negative = _mm256_castsi256_pd(less[LIMBS - 1]);
    let mut words = limbs;
    for ((word, more), less) in words.iter_mut().zip(more).zip(less) {
        *word = _mm256_castpd_si256(_mm256_blendv_pd(_mm256_castsi256_pd(less), _mm256_castsi256_pd(more), negative));
    }
    let [l0, l1, l2, l3, l4, l5] = words;
    let words = [
        _mm256_or_si256(l0, _mm256_slli_epi64::<48>(l1)),
        _mm256_or_si256(_mm256_srli_epi64::<16>(l1), _mm256_slli_epi64::<32>(l2)),
        _mm256_or_si256(_mm256_srli_epi64::<32>(l2), _mm256_slli_epi64::<16>(l3)),
        _mm256_or_si256(l4, _mm256_slli_epi64::<48>(l5)),
    ];
    let elements = transpose(words.map(|word| _mm256_castsi256_pd(word)));
    for (out, element) in out.into_iter().zip(elements) {
        *out = from_montgomery(&bytemuck::cast(element)).expect("a settled value is reduced");
    }
}

/// An integer of less than 2^53 in absolute value.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn to_integer(double: __m256d) -> __m256i {
    // In two halves, as adding LOW is exact below 2^51 only.
    let multiple = _mm256_set1_pd(HIGH_OF_INTEGER);
    let sum = _mm256_add_pd(double, multiple);
    let low = _mm256_sub_pd(double, _mm256_sub_pd(sum, multiple));
    let high = _mm256_sub_epi64(_mm256_castpd_si256(sum), _mm256_castpd_si256(multiple));
    let integer = _mm256_set1_pd(LOW);
    let low = _mm256_sub_epi64(_mm256_castpd_si256(_mm256_add_pd(low, integer)), _mm256_castpd_si256(integer));
    _mm256_add_epi64(_mm256_slli_epi64::<16>(high), low)
}

/// Adding it rounds to a multiple of 2^16.
const HIGH_OF_INTEGER: f64 = 1.5 * (1u128 << 68) as f64;

/// Limbs from 0 to 2^48, but for the top one, which has the sign, of the sum with a constant.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn carry_integers(limbs: &[__m256i; LIMBS], constant: &[i64; LIMBS]) -> [__m256i; LIMBS] {
    let mut out = *limbs;
    let mask = _mm256_set1_epi64x(LIMB_MASK as i64);
    let mut carried = _mm256_setzero_si256();
    for (i, (limb, constant)) in out.iter_mut().zip(constant).enumerate() {
        // Shifted as an unsigned number that has the bias; the next limb takes what that carries.
        let bias = if i + 1 < LIMBS { BIAS as i64 } else { 0 };
        let unbias = if i > 0 { (BIAS >> LIMB_BITS) as i64 } else { 0 };
        *limb = _mm256_add_epi64(*limb, _mm256_set1_epi64x(constant + bias - unbias));
        *limb = _mm256_add_epi64(*limb, carried);
        carried = _mm256_srli_epi64::<48>(*limb);
        if i + 1 < LIMBS {
            *limb = _mm256_and_si256(*limb, mask);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::{BigInt, Sign};

    const UNIT: f64 = (1u64 << LIMB_BITS) as f64;

    fn modulus() -> BigInt {
        value(&MODULUS_LIMBS)
    }

    /// The integer that limbs stand for.
    fn value(limbs: &[f64; LIMBS]) -> BigInt {
        limbs.iter().rev().fold(BigInt::ZERO, |value, limb| (value << LIMB_BITS) + *limb as i64)
    }

    /// Limbs below one unit of an integer, but for the top one; then units are moved from each limb to the next below.
    fn limbs(of: &BigInt, moved: [i32; LIMBS - 1]) -> [f64; LIMBS] {
        let (mut rest, mut limbs) = (of.clone(), [0.0; LIMBS]);
        for limb in &mut limbs[..LIMBS - 1] {
            let low = ((&rest % (1u64 << LIMB_BITS)) + (1u64 << LIMB_BITS)) % (1u64 << LIMB_BITS);
            *limb = u64::try_from(&low).unwrap() as f64;
            rest = (rest - low) >> LIMB_BITS;
        }
        limbs[LIMBS - 1] = i64::try_from(&rest).unwrap() as f64;
        for (i, moved) in moved.into_iter().enumerate() {
            limbs[i] += f64::from(moved) * UNIT;
            limbs[i + 1] -= f64::from(moved);
        }
        assert_eq!(value(&limbs), *of);
        limbs
    }

    /// Limbs settle to the canonical value, and so does their product with the largest factor there is.
    #[target_feature(enable = "avx2,fma")]
    fn check(value_limbs: &[f64; LIMBS]) {
        let r = modulus();
        let settled = |four: &Four| {
            let mut out = [Scalar::from(0); 4];
            settle(four, out.each_mut());
            assert!(out.iter().all(|lane| *lane == out[0]));
            let bytes: Vec<u8> = to_montgomery(&out[0]).iter().flat_map(|word| word.to_le_bytes()).collect();
            BigInt::from_bytes_le(Sign::Plus, &bytes)
        };
        let canonical = |value: BigInt| ((value % &r) + &r) % &r;
        let four = broadcast(value_limbs);
        assert_eq!(settled(&four), canonical(value(value_limbs)), "{value_limbs:?}");
        let factor = limbs(&(&r - 1), [0; LIMBS - 1]);
        let product = settled(&mul(&four, &broadcast(&factor)));
        assert_eq!(canonical(product << 288), canonical(value(value_limbs) * (&r - 1)), "{value_limbs:?} times r - 1");
        assert_eq!(settled(&carry(&four)), canonical(value(value_limbs)), "{value_limbs:?} carried");
    }

    #[test]
    fn values_and_limbs_may_be_as_large_as_they_become() {
        if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
            return;
        }
        let r = modulus();
        for multiple in -24..=24 {
            for part in 0..8 {
                for less in -1..=1 {
                    let of = &r * multiple + &r * part / 8 + less;
                    for moved in [[0; 5], [6; 5], [-6; 5], [6, -6, 6, -6, 6], [-6, 6, -6, 6, -6], [6, 6, -6, -6, 6]] {
                        // SAFETY: AVX2 and FMA were found.
                        unsafe { check(&limbs(&of, moved)) };
                    }
                }
            }
        }
    }
}
