//! The scalar field of BLS12-381.
//!
//! Elements are held in Montgomery form, x · 2^256 mod r, as four `u64`. Products are the coarsely integrated operand
//! scanning of Koç, Acar and Kaliski ("Analyzing and Comparing Montgomery Multiplication Algorithms", 1996), without the
//! carry word, which a modulus below 2^255 does not need. They are written with `u128` so that a WebAssembly engine with
//! wide arithmetic runs them as single instructions.

#[cfg(any(feature = "ff13", feature = "ff14"))]
mod field;
mod ops;

use std::fmt;

type Limbs = [u64; 4];

/// The modulus r, least significant limb first.
pub const MODULUS: Limbs = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
/// The modulus as ff writes it.
pub const MODULUS_TEXT: &str = "0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
/// -1/r mod 2^64.
const NEG_INV: u64 = 0xffff_fffe_ffff_ffff;
/// 2^256 mod r.
const R: Limbs = [0x0000_0001_ffff_fffe, 0x5884_b7fa_0003_4802, 0x998c_4fef_ecbc_4ff5, 0x1824_b159_acc5_056f];
/// 2^512 mod r.
const R2: Limbs = [0xc999_e990_f3f2_9c6d, 0x2b6c_edcb_8792_5c23, 0x05d3_1496_7254_398f, 0x0748_d9d9_9f59_ff11];

/// An element of the scalar field of BLS12-381, with the traits of ff 0.13 and ff 0.14 (features `ff13` and `ff14`).
///
/// Arithmetic takes the same time for all values, `invert` and `Debug` excepted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Fr(Limbs);

impl Fr {
    /// Zero.
    pub const ZERO: Fr = Fr([0; 4]);
    /// One.
    pub const ONE: Fr = Fr(R);

    /// The element of canonical limbs, least significant first, if they are below r.
    pub const fn from_canonical(limbs: [u64; 4]) -> Option<Fr> {
        if is_below_modulus(&limbs) { Some(Fr(mul(&limbs, &R2))) } else { None }
    }

    /// The canonical limbs, least significant first.
    pub const fn to_canonical(self) -> [u64; 4] {
        mul(&self.0, &[1, 0, 0, 0])
    }

    /// The element x whose Montgomery form x · 2^256 mod r is given, if it is below r.
    pub const fn from_montgomery(limbs: [u64; 4]) -> Option<Fr> {
        if is_below_modulus(&limbs) { Some(Fr(limbs)) } else { None }
    }

    /// The Montgomery form x · 2^256 mod r.
    pub const fn to_montgomery(self) -> [u64; 4] {
        self.0
    }

    /// The element of 32 little-endian bytes, if they are below r.
    pub fn from_le_bytes(bytes: &[u8; 32]) -> Option<Fr> {
        Fr::from_canonical(limbs_from_le_bytes(bytes))
    }

    /// 32 little-endian bytes.
    pub fn to_le_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, limb) in bytes.chunks_exact_mut(8).zip(self.to_canonical()) {
            chunk.copy_from_slice(&limb.to_le_bytes());
        }
        bytes
    }

    /// 512 bits, least significant limb first, modulo r: uniform bits give an element uniform up to 2^-256.
    pub const fn from_wide(limbs: [u64; 8]) -> Fr {
        let low = reduce([limbs[0], limbs[1], limbs[2], limbs[3]]);
        let high = reduce([limbs[4], limbs[5], limbs[6], limbs[7]]);
        // Montgomery form of low + 2^256 · high.
        Fr(add(&mul(&low, &R2), &mul(&high, &mul(&R2, &R2))))
    }

    /// Whether the element is zero.
    pub const fn is_zero(&self) -> bool {
        self.0[0] | self.0[1] | self.0[2] | self.0[3] == 0
    }

    /// x².
    pub const fn square(&self) -> Fr {
        Fr(mul(&self.0, &self.0))
    }

    /// 2x.
    pub const fn double(&self) -> Fr {
        Fr(add(&self.0, &self.0))
    }

    /// x to the power of an exponent of four limbs, least significant first; takes time that depends on the exponent.
    pub const fn pow(&self, exponent: &[u64; 4]) -> Fr {
        let mut result = R;
        let mut bit = 256;
        while bit > 0 {
            bit -= 1;
            result = mul(&result, &result);
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
                result = mul(&result, &self.0);
            }
        }
        Fr(result)
    }

    /// The sum of products of two lists of the same length: faster than products and sums, which each reduce modulo r.
    pub fn dot(left: &[Fr], right: &[Fr]) -> Fr {
        assert_eq!(left.len(), right.len(), "elements of two lists");
        let chunks = left.chunks(DOT_TERMS_MAX).zip(right.chunks(DOT_TERMS_MAX));
        chunks.map(|(left, right)| Fr(dot(left, right))).sum()
    }

    /// The inverses of several elements in their places; zeros stay. One inversion and three products an element
    /// (Montgomery, "Speeding the Pollard and elliptic curve methods of factorization", 1987, section 10.3.1).
    pub fn invert_batch(elements: &mut [Fr]) {
        let mut product = Fr::ONE;
        let before = elements.iter().map(|element| {
            let before = product;
            product *= if element.is_zero() { Fr::ONE } else { *element };
            before
        });
        let before: Vec<Fr> = before.collect();
        let mut inverse = product.invert().expect("a product of elements that are not zero");
        for (element, before) in elements.iter_mut().zip(before).rev().filter(|(element, _)| !element.is_zero()) {
            let inverted = inverse * before;
            inverse *= *element;
            *element = inverted;
        }
    }

    /// 1/x, or none for zero. In a component the host computes it.
    pub fn invert(&self) -> Option<Fr> {
        if self.is_zero() { None } else { Some(invert_nonzero(self)) }
    }
}

/// The host inverts some twenty times faster than a component would, the call included.
#[cfg(target_arch = "wasm32")]
fn invert_nonzero(x: &Fr) -> Fr {
    let (a, b, c, d) = crate::export::bindings::zkhost::circuit::accel::invert_one(x.0[0], x.0[1], x.0[2], x.0[3]);
    Fr([a, b, c, d])
}

/// x^(r-2), by Fermat's little theorem.
#[cfg(not(target_arch = "wasm32"))]
fn invert_nonzero(x: &Fr) -> Fr {
    x.pow(&[MODULUS[0] - 2, MODULUS[1], MODULUS[2], MODULUS[3]])
}

impl From<u64> for Fr {
    fn from(value: u64) -> Fr {
        Fr(mul(&[value, 0, 0, 0], &R2))
    }
}

impl fmt::Debug for Fr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.to_canonical();
        write!(f, "0x{d:016x}{c:016x}{b:016x}{a:016x}")
    }
}

/// Terms of one sum of products: their sum then is below 8r before it is reduced.
const DOT_TERMS_MAX: usize = 12;
/// 4r, 2r and r, least significant limb first.
const MULTIPLES: [[u64; 5]; 3] = [multiple(2), multiple(1), multiple(0)];

/// 2^log · r, for log up to 2.
const fn multiple(log: u32) -> [u64; 5] {
    let [a, b, c, d] = MODULUS;
    let carried = 64 - log;
    if log == 0 {
        return [a, b, c, d, 0];
    }
    [a << log, b << log | a >> carried, c << log | b >> carried, d << log | c >> carried, d >> carried]
}

/// Σ a_i · b_i / 2^256 mod r, reduced once: Montgomery's reduction interleaved with the products, limb by limb of `right`
/// (Longa, "Efficient Algorithms for Large Prime Characteristic Fields and Their Application to Bilinear Pairings", 2022,
/// section 3). With n terms below r² the result before the last step is below (n · r / 2^256 + 1) · r < (n / 2 + 1) · r.
fn dot(left: &[Fr], right: &[Fr]) -> Limbs {
    let mut t = [0u64; 5];
    for limb in 0..4 {
        let mut high = 0;
        for (a, b) in left.iter().zip(right) {
            let mut carry;
            (t[0], carry) = mac(t[0], a.0[0], b.0[limb], 0);
            (t[1], carry) = mac(t[1], a.0[1], b.0[limb], carry);
            (t[2], carry) = mac(t[2], a.0[2], b.0[limb], carry);
            (t[3], carry) = mac(t[3], a.0[3], b.0[limb], carry);
            (t[4], carry) = adc(t[4], carry, 0);
            high += carry;
        }
        let m = t[0].wrapping_mul(NEG_INV);
        let (_, carry) = mac(t[0], m, MODULUS[0], 0);
        let (t0, carry) = mac(t[1], m, MODULUS[1], carry);
        let (t1, carry) = mac(t[2], m, MODULUS[2], carry);
        let (t2, carry) = mac(t[3], m, MODULUS[3], carry);
        let (t3, carry) = adc(t[4], carry, 0);
        t = [t0, t1, t2, t3, high + carry];
    }
    for multiple in &MULTIPLES {
        let mut difference = [0; 5];
        let mut borrow = 0;
        for i in 0..5 {
            (difference[i], borrow) = sbb(t[i], multiple[i], borrow);
        }
        let keep = 0u64.wrapping_sub(borrow);
        t = std::array::from_fn(|i| t[i] & keep | difference[i] & !keep);
    }
    [t[0], t[1], t[2], t[3]]
}

/// Whether a field's modulus, as ff writes it, is r.
#[cfg(any(feature = "bellman", feature = "bellpepper"))]
pub(crate) const fn is_modulus(text: &str) -> bool {
    let (text, wanted) = (text.as_bytes(), MODULUS_TEXT.as_bytes());
    if text.len() != wanted.len() {
        return false;
    }
    let mut i = 0;
    while i < text.len() {
        if text[i] != wanted[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Limbs, least significant first, of 32 little-endian bytes.
pub(crate) fn limbs_from_le_bytes(bytes: &[u8; 32]) -> Limbs {
    let mut limbs = [0; 4];
    for (limb, chunk) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
    limbs
}

const fn is_below_modulus(limbs: &Limbs) -> bool {
    sub_with_borrow(limbs, &MODULUS).1 != 0
}

/// a + b + carry, and the carry out.
#[inline(always)]
const fn adc(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// a - b - borrow with borrow 0 or 1, and the borrow out.
#[inline(always)]
const fn sbb(a: u64, b: u64, borrow: u64) -> (u64, u64) {
    let difference = (a as u128).wrapping_sub(b as u128 + borrow as u128);
    (difference as u64, (difference >> 127) as u64)
}

/// a + b · c + carry, and the carry out.
#[inline(always)]
const fn mac(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 * c as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

#[inline(always)]
const fn sub_with_borrow(a: &Limbs, b: &Limbs) -> (Limbs, u64) {
    let (d0, borrow) = sbb(a[0], b[0], 0);
    let (d1, borrow) = sbb(a[1], b[1], borrow);
    let (d2, borrow) = sbb(a[2], b[2], borrow);
    let (d3, borrow) = sbb(a[3], b[3], borrow);
    ([d0, d1, d2, d3], borrow)
}

#[inline(always)]
const fn add_wrapping(a: &Limbs, b: &Limbs) -> Limbs {
    let (s0, carry) = adc(a[0], b[0], 0);
    let (s1, carry) = adc(a[1], b[1], carry);
    let (s2, carry) = adc(a[2], b[2], carry);
    let (s3, _) = adc(a[3], b[3], carry);
    [s0, s1, s2, s3]
}

/// x - r if that is not negative, for x < 2r.
#[inline(always)]
const fn subtract_modulus(x: &Limbs) -> Limbs {
    let (difference, borrow) = sub_with_borrow(x, &MODULUS);
    let keep = 0u64.wrapping_sub(borrow);
    add_wrapping(&difference, &[MODULUS[0] & keep, MODULUS[1] & keep, MODULUS[2] & keep, MODULUS[3] & keep])
}

/// Any 256 bits modulo r; they are below 3r.
const fn reduce(x: Limbs) -> Limbs {
    subtract_modulus(&subtract_modulus(&x))
}

#[inline(always)]
const fn add(a: &Limbs, b: &Limbs) -> Limbs {
    subtract_modulus(&add_wrapping(a, b))
}

#[inline(always)]
const fn sub(a: &Limbs, b: &Limbs) -> Limbs {
    let (difference, borrow) = sub_with_borrow(a, b);
    let mask = 0u64.wrapping_sub(borrow);
    add_wrapping(&difference, &[MODULUS[0] & mask, MODULUS[1] & mask, MODULUS[2] & mask, MODULUS[3] & mask])
}

/// The Montgomery product a · b / 2^256 mod r of a, b < r.
#[inline]
const fn mul(a: &Limbs, b: &Limbs) -> Limbs {
    let mut t = [0u64; 4];
    let mut i = 0;
    while i < 4 {
        let (t0, high) = mac(t[0], a[0], b[i], 0);
        let m = t0.wrapping_mul(NEG_INV);
        let (_, carry) = mac(t0, m, MODULUS[0], 0);
        let (t1, high) = mac(t[1], a[1], b[i], high);
        let (r0, carry) = mac(t1, m, MODULUS[1], carry);
        let (t2, high) = mac(t[2], a[2], b[i], high);
        let (r1, carry) = mac(t2, m, MODULUS[2], carry);
        let (t3, high) = mac(t[3], a[3], b[i], high);
        let (r2, carry) = mac(t3, m, MODULUS[3], carry);
        t = [r0, r1, r2, carry + high];
        i += 1;
    }
    subtract_modulus(&t)
}
