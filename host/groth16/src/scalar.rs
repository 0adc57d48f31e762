//! Elements of the scalar field Fr as limbs: the form in which they cross every boundary of the host.

use ff::PrimeField;

/// An element of the scalar field of BLS12-381.
pub use blstrs::Scalar;

/// Four u64 limbs, least significant first; canonical or Montgomery as the holder says.
pub type Limbs = [u64; 4];

/// The modulus r of the scalar field, canonical limbs.
pub const MODULUS: Limbs = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

/// 2^512 modulo r: the Montgomery limbs of 2^256.
const R_SQUARED: Limbs = [0xc999_e990_f3f2_9c6d, 0x2b6c_edcb_8792_5c23, 0x05d3_1496_7254_398f, 0x0748_d9d9_9f59_ff11];

/// Whether the limbs are below the modulus: the condition on an element in either representation.
#[inline]
pub fn is_reduced(limbs: &Limbs) -> bool {
    // Nearly every element is decided by its top limb.
    if limbs[3] != MODULUS[3] {
        return limbs[3] < MODULUS[3];
    }
    limbs.iter().rev().lt(MODULUS.iter().rev())
}

/// Finds out, while elements are copied, whether all of them are below the modulus.
///
/// It looks at the top limbs alone, without a branch, and only when one of them reaches the modulus's own are whole
/// elements compared.
#[derive(Default)]
pub struct ReducedCheck {
    /// How many top limbs so far are at least the modulus's.
    suspects: u64,
}

impl ReducedCheck {
    /// Copy elements to `destination` by `copy`, which is given one piece after another, and look at each piece while it is
    /// in the nearest cache.
    ///
    /// Where destination and source differ by less than a vector modulo 4 KiB, which two mapped memories easily do, loads
    /// wait for stores that they have nothing to do with: a fifth of the speed. That holds for a loop over elements as for
    /// the processor's string copy, which `memcpy` takes for 4 KiB and more. Below, it takes vectors in an order that does
    /// not mind, at four fifths of the speed.
    #[inline]
    pub fn copy(&mut self, elements: &[Limbs], destination: *const Limbs, mut copy: impl FnMut(&[Limbs])) {
        const PIECE_ELEMENTS: usize = 512;
        const SMALL_PIECE_ELEMENTS: usize = 64;
        let offset = destination.addr().wrapping_sub(elements.as_ptr().addr()) % 4096;
        let piece = if (1..size_of::<Limbs>()).contains(&offset) { SMALL_PIECE_ELEMENTS } else { PIECE_ELEMENTS };
        for piece in elements.chunks(piece) {
            copy(piece);
            self.look(piece);
        }
    }

    /// Look at elements.
    #[inline]
    fn look(&mut self, elements: &[Limbs]) {
        self.suspects += elements.iter().map(|element| u64::from(element[3] >= MODULUS[3])).sum::<u64>();
    }

    /// The index of the first element that is not below the modulus, among those looked at.
    #[inline]
    pub fn first_unreduced(self, looked_at: &[Limbs]) -> Option<usize> {
        if self.suspects == 0 {
            return None;
        }
        looked_at.iter().position(|element| !is_reduced(element))
    }
}

/// The index of the first element that is not below the modulus.
pub fn first_unreduced(elements: &[Limbs]) -> Option<usize> {
    let mut check = ReducedCheck::default();
    check.look(elements);
    check.first_unreduced(elements)
}

/// The element of these canonical limbs; none if they are not below the modulus.
pub fn from_canonical(limbs: &Limbs) -> Option<Scalar> {
    // Taken for a Montgomery form it lacks a factor, which one product gives; the library's conversion costs four.
    from_montgomery(limbs).map(|scalar| scalar * Scalar::from(blst::blst_fr { l: R_SQUARED }))
}

/// The element of these Montgomery limbs (x * 2^256 mod r); none if they are not below the modulus.
pub fn from_montgomery(limbs: &Limbs) -> Option<Scalar> {
    is_reduced(limbs).then(|| Scalar::from(blst::blst_fr { l: *limbs }))
}

/// Canonical limbs of an element.
pub fn to_canonical(scalar: &Scalar) -> Limbs {
    limbs_from_le_bytes(&scalar.to_repr())
}

/// Montgomery limbs of an element.
pub fn to_montgomery(scalar: &Scalar) -> Limbs {
    blst::blst_fr::from(*scalar).l
}

/// Limbs of 32 little-endian bytes, not checked against the modulus.
pub fn limbs_from_le_bytes(bytes: &[u8; 32]) -> Limbs {
    std::array::from_fn(|i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("eight bytes")))
}

/// 32 little-endian bytes of limbs.
pub fn limbs_to_le_bytes(limbs: &Limbs) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, limb) in bytes.chunks_exact_mut(8).zip(limbs) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    bytes
}

/// `0x` and 64 digits, big-endian: what [`parse_limbs`] reads.
pub fn to_hex(scalar: &Scalar) -> String {
    let mut bytes = limbs_to_le_bytes(&to_canonical(scalar));
    bytes.reverse();
    format!("0x{}", hex::encode(bytes))
}

/// Why a text is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// It is neither decimal nor, after `0x`, hexadecimal.
    #[error("a decimal number, or a hexadecimal one after 0x, was expected")]
    Form,
    /// It has more bits than there is room for.
    #[error("the number is too large")]
    Large,
}

/// The number that a text denotes, decimal, or hexadecimal after `0x`; not checked against the modulus.
pub fn parse_limbs(text: &str) -> Result<Limbs, NumberError> {
    let (digits, base) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let digit = |digit: char| digit.to_digit(base).ok_or(NumberError::Form);
    if digits.is_empty() {
        return Err(NumberError::Form);
    }
    // The form first, so that a large text of another form is not called a large number.
    digits.chars().try_for_each(|c| digit(c).map(drop))?;
    digits.chars().try_fold([0; 4], |number, c| times_plus(number, base, digit(c)?).ok_or(NumberError::Large))
}

/// number * base + digit, if there is room for it.
fn times_plus(number: Limbs, base: u32, digit: u32) -> Option<Limbs> {
    let mut carry = u128::from(digit);
    let limbs = number.map(|limb| {
        carry += u128::from(limb) * u128::from(base);
        let low = carry as u64;
        carry >>= 64;
        low
    });
    (carry == 0).then_some(limbs)
}

/// Elements that are secret, or derived from a secret: they are zeroed before their memory is freed, and have no Debug.
pub type SecretScalars = crate::secret::SecretBuffer<Scalar>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_limbs_are_read_as_the_library_reads_them() {
        let mut limbs = vec![[0; 4], MODULUS, [u64::MAX; 4]];
        for bit in 0..256 {
            let mut power = [0; 4];
            power[bit / 64] = 1u64 << (bit % 64);
            // About powers of two, and about the modulus.
            limbs.extend([power, power.map(u64::wrapping_neg), std::array::from_fn(|i| MODULUS[i] ^ power[i])]);
        }
        for distance in 0..300 {
            limbs.push([distance, 0, 0, 0]);
            limbs.push([MODULUS[0].wrapping_sub(distance), MODULUS[1], MODULUS[2], MODULUS[3]]);
        }
        for limbs in &limbs {
            let expected: Option<Scalar> = Scalar::from_u64s_le(limbs).into();
            assert_eq!(from_canonical(limbs), expected, "{limbs:x?}");
        }
    }
}
