//! Elements of the scalar field Fr as limbs: the form in which they cross every boundary of the host.

use ff::PrimeField;

/// An element of the scalar field of BLS12-381.
pub use blstrs::Scalar;

/// Four u64 limbs, least significant first; canonical or Montgomery as the holder says.
pub type Limbs = [u64; 4];

/// The modulus r of the scalar field, canonical limbs.
pub const MODULUS: Limbs = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

/// Whether the limbs are below the modulus: the condition on an element in either representation.
#[inline]
pub fn is_reduced(limbs: &Limbs) -> bool {
    // Nearly every element is decided by its top limb.
    if limbs[3] != MODULUS[3] {
        return limbs[3] < MODULUS[3];
    }
    limbs.iter().rev().lt(MODULUS.iter().rev())
}

/// The element of these canonical limbs; none if they are not below the modulus.
pub fn from_canonical(limbs: &Limbs) -> Option<Scalar> {
    let mut bytes = [0; 32];
    for (chunk, limb) in bytes.chunks_exact_mut(8).zip(limbs) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    Scalar::from_repr(bytes).into()
}

/// The element of these Montgomery limbs (x * 2^256 mod r); none if they are not below the modulus.
pub fn from_montgomery(limbs: &Limbs) -> Option<Scalar> {
    is_reduced(limbs).then(|| Scalar::from(blst::blst_fr { l: *limbs }))
}

/// Canonical limbs of an element.
pub fn to_canonical(scalar: &Scalar) -> Limbs {
    let bytes = scalar.to_repr();
    std::array::from_fn(|i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("eight bytes")))
}

/// Montgomery limbs of an element.
pub fn to_montgomery(scalar: &Scalar) -> Limbs {
    blst::blst_fr::from(*scalar).l
}
