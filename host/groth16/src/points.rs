//! Curve points as plain memory: the layout of key images, of pinned memory and of the device.
//!
//! Affine, Montgomery coordinates (R = 2^384), little-endian u64 limbs, x before y, in G2 c0 before c1; the point at
//! infinity is all zero. This is also the layout of `blst_p1_affine` and `blst_p2_affine`.
//!
//! Files carry points in Zcash's encoding: big-endian coordinates, in G2 the imaginary part first, three flag bits
//! (compressed, infinity, sign) in the first byte.

use blst::{BLST_ERROR, blst_fp, blst_fp2, blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use bytemuck::{Pod, Zeroable};
use group::Group;
use std::{ops::AddAssign, ptr};

/// A coordinate: six limbs, Montgomery.
pub type FpLimbs = [u64; 6];

/// The modulus of the coordinates' field, canonical limbs.
pub const FP_MODULUS: FpLimbs = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// The flag bit of a compressed encoding.
const COMPRESSED_FLAG: u8 = 0x80;

/// An affine point of G1, 96 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct G1Point {
    /// x, Montgomery.
    pub x: FpLimbs,
    /// y, Montgomery.
    pub y: FpLimbs,
}

/// An affine point of G2, 192 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct G2Point {
    /// x = c0 + c1 u, Montgomery.
    pub x: [FpLimbs; 2],
    /// y = c0 + c1 u, Montgomery.
    pub y: [FpLimbs; 2],
}

/// What is wrong with an encoded point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// Flags or a coordinate that no encoder writes.
    #[error("the point's flag bits are wrong or a coordinate is not below the field's modulus")]
    Encoding,
    /// Coordinates that do not satisfy the curve's equation.
    #[error("the point is not on the curve")]
    NotOnCurve,
    /// A point of another order.
    #[error("the point is not in the subgroup of order r")]
    NotInSubgroup,
    /// Zeros only, which is no encoding.
    #[error(
        "the point's bytes are all zero, which is how snarkjs's `zkey export bellman` writes the point at infinity; such a \
         file is unusable, other tools refuse it too"
    )]
    Zeros,
    /// The point at infinity where it has no place.
    #[error("the point is the point at infinity, which is not allowed here")]
    Infinity,
}

impl From<BLST_ERROR> for PointError {
    fn from(error: BLST_ERROR) -> Self {
        match error {
            BLST_ERROR::BLST_POINT_NOT_ON_CURVE => Self::NotOnCurve,
            BLST_ERROR::BLST_POINT_NOT_IN_GROUP => Self::NotInSubgroup,
            _ => Self::Encoding,
        }
    }
}

/// What the two groups have in common, for code that reads and checks either.
pub trait Point: Pod + Default + Eq + Send + Sync {
    /// Projective coordinates, for sums.
    type Sum: Group + for<'a> AddAssign<&'a Self::Affine> + Send + Sync;
    /// Affine coordinates, for addends.
    type Affine: From<Self> + Send + Sync;
    /// Bytes of the uncompressed encoding.
    const ENCODED_BYTES: usize;
    /// Bytes of the compressed encoding.
    const COMPRESSED_BYTES: usize;
    /// Many sums in affine coordinates, by one inversion.
    fn normalize(sums: &[Self::Sum]) -> Vec<Self>;
    /// Read the uncompressed encoding: the point is on the curve, not necessarily in the subgroup, and may be infinity.
    ///
    /// Panics if `bytes` has another length than [`Self::ENCODED_BYTES`].
    fn decode(bytes: &[u8]) -> Result<Self, PointError>;
    /// Read the layout of this module, which is that of snarkjs's keys: coordinates are reduced, and the point is infinity or
    /// on the curve, not necessarily in the subgroup.
    ///
    /// Panics if `bytes` has another length than the type.
    fn from_montgomery_bytes(bytes: &[u8]) -> Result<Self, PointError> {
        let point: Self = bytemuck::pod_read_unaligned(bytes);
        let coordinates: &[FpLimbs] = bytemuck::cast_slice(std::slice::from_ref(&point));
        if !coordinates.iter().all(|c| c.iter().rev().lt(FP_MODULUS.iter().rev())) {
            return Err(PointError::Encoding);
        }
        if point.is_infinity() || point.is_on_curve() { Ok(point) } else { Err(PointError::NotOnCurve) }
    }
    /// Whether the coordinates, which are reduced, satisfy the curve's equation; infinity has none.
    fn is_on_curve(&self) -> bool;
    /// Read the compressed encoding, as [`Self::decode`] does the other.
    ///
    /// Panics if `bytes` has another length than [`Self::COMPRESSED_BYTES`].
    fn decode_compressed(bytes: &[u8]) -> Result<Self, PointError>;
    /// Append the compressed encoding.
    fn encode_compressed(&self, out: &mut Vec<u8>);
    /// Append the uncompressed encoding.
    fn encode(&self, out: &mut Vec<u8>);
    /// Whether this is the point at infinity.
    fn is_infinity(&self) -> bool {
        *self == Self::zeroed()
    }
    /// Whether this point, on the curve, is in the subgroup of order r.
    fn is_in_subgroup(&self) -> bool;
}

impl Point for G1Point {
    type Sum = G1Projective;
    type Affine = G1Affine;
    const ENCODED_BYTES: usize = 96;
    const COMPRESSED_BYTES: usize = 48;

    fn normalize(sums: &[G1Projective]) -> Vec<Self> {
        let sums: Vec<blst_p1> = sums.iter().map(|sum| *sum.as_ref()).collect();
        let mut out = vec![blst_p1_affine::default(); sums.len()];
        if !sums.is_empty() {
            // A null pointer after the first tells blst that the points follow each other in memory.
            let points = [sums.as_ptr(), ptr::null()];
            // SAFETY: `points` leads to sums.len() points, `out` has room for as many; both outlive the call.
            unsafe { blst::blst_p1s_to_affine(out.as_mut_ptr(), points.as_ptr(), sums.len()) };
        }
        out.into_iter().map(Self::from).collect()
    }

    fn decode(bytes: &[u8]) -> Result<Self, PointError> {
        assert_eq!(bytes.len(), Self::ENCODED_BYTES, "a point of G1 takes 96 bytes");
        if bytes[0] & COMPRESSED_FLAG != 0 {
            return Err(PointError::Encoding);
        }
        let mut point = blst_p1_affine::default();
        // SAFETY: the input is 96 readable bytes, as asserted; the output is a plain value.
        match unsafe { blst::blst_p1_deserialize(&mut point, bytes.as_ptr()) } {
            BLST_ERROR::BLST_SUCCESS => Ok(point.into()),
            _ if bytes.iter().all(|&byte| byte == 0) => Err(PointError::Zeros),
            error => Err(error.into()),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&G1Affine::from(*self).to_uncompressed());
    }

    fn decode_compressed(bytes: &[u8]) -> Result<Self, PointError> {
        assert_eq!(bytes.len(), Self::COMPRESSED_BYTES, "a compressed point of G1 takes 48 bytes");
        let mut point = blst_p1_affine::default();
        // SAFETY: the input is 48 readable bytes, as asserted; the output is a plain value.
        match unsafe { blst::blst_p1_uncompress(&mut point, bytes.as_ptr()) } {
            BLST_ERROR::BLST_SUCCESS => Ok(point.into()),
            error => Err(error.into()),
        }
    }

    fn encode_compressed(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&G1Affine::from(*self).to_compressed());
    }

    fn is_on_curve(&self) -> bool {
        let point = blst_p1_affine::from(*self);
        // SAFETY: the function reads one point, which lives on this stack.
        unsafe { blst::blst_p1_affine_on_curve(&point) }
    }

    fn is_in_subgroup(&self) -> bool {
        G1Affine::from(*self).is_torsion_free().into()
    }
}

impl Point for G2Point {
    type Sum = G2Projective;
    type Affine = G2Affine;
    const ENCODED_BYTES: usize = 192;
    const COMPRESSED_BYTES: usize = 96;

    fn normalize(sums: &[G2Projective]) -> Vec<Self> {
        let sums: Vec<blst_p2> = sums.iter().map(|sum| *sum.as_ref()).collect();
        let mut out = vec![blst_p2_affine::default(); sums.len()];
        if !sums.is_empty() {
            // A null pointer after the first tells blst that the points follow each other in memory.
            let points = [sums.as_ptr(), ptr::null()];
            // SAFETY: `points` leads to sums.len() points, `out` has room for as many; both outlive the call.
            unsafe { blst::blst_p2s_to_affine(out.as_mut_ptr(), points.as_ptr(), sums.len()) };
        }
        out.into_iter().map(Self::from).collect()
    }

    fn decode(bytes: &[u8]) -> Result<Self, PointError> {
        assert_eq!(bytes.len(), Self::ENCODED_BYTES, "a point of G2 takes 192 bytes");
        if bytes[0] & COMPRESSED_FLAG != 0 {
            return Err(PointError::Encoding);
        }
        let mut point = blst_p2_affine::default();
        // SAFETY: the input is 192 readable bytes, as asserted; the output is a plain value.
        match unsafe { blst::blst_p2_deserialize(&mut point, bytes.as_ptr()) } {
            BLST_ERROR::BLST_SUCCESS => Ok(point.into()),
            _ if bytes.iter().all(|&byte| byte == 0) => Err(PointError::Zeros),
            error => Err(error.into()),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&G2Affine::from(*self).to_uncompressed());
    }

    fn decode_compressed(bytes: &[u8]) -> Result<Self, PointError> {
        assert_eq!(bytes.len(), Self::COMPRESSED_BYTES, "a compressed point of G2 takes 96 bytes");
        let mut point = blst_p2_affine::default();
        // SAFETY: the input is 96 readable bytes, as asserted; the output is a plain value.
        match unsafe { blst::blst_p2_uncompress(&mut point, bytes.as_ptr()) } {
            BLST_ERROR::BLST_SUCCESS => Ok(point.into()),
            error => Err(error.into()),
        }
    }

    fn encode_compressed(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&G2Affine::from(*self).to_compressed());
    }

    fn is_on_curve(&self) -> bool {
        let point = blst_p2_affine::from(*self);
        // SAFETY: the function reads one point, which lives on this stack.
        unsafe { blst::blst_p2_affine_on_curve(&point) }
    }

    fn is_in_subgroup(&self) -> bool {
        G2Affine::from(*self).is_torsion_free().into()
    }
}

impl G1Point {
    /// The point at infinity.
    pub const INFINITY: Self = Self { x: [0; 6], y: [0; 6] };
}

impl G2Point {
    /// The point at infinity.
    pub const INFINITY: Self = Self { x: [[0; 6]; 2], y: [[0; 6]; 2] };
}

impl From<G1Affine> for G1Point {
    fn from(p: G1Affine) -> Self {
        (*p.as_ref()).into()
    }
}

impl From<G1Point> for blst_p1_affine {
    fn from(p: G1Point) -> Self {
        blst_p1_affine { x: blst_fp { l: p.x }, y: blst_fp { l: p.y } }
    }
}

impl From<blst_p1_affine> for G1Point {
    fn from(p: blst_p1_affine) -> Self {
        G1Point { x: p.x.l, y: p.y.l }
    }
}

impl From<G1Point> for G1Affine {
    fn from(p: G1Point) -> Self {
        let mut out = G1Affine::default();
        *out.as_mut() = p.into();
        out
    }
}

impl From<G2Affine> for G2Point {
    fn from(p: G2Affine) -> Self {
        (*p.as_ref()).into()
    }
}

impl From<G2Point> for blst_p2_affine {
    fn from(p: G2Point) -> Self {
        let fp2 = |c: [FpLimbs; 2]| blst_fp2 { fp: c.map(|l| blst_fp { l }) };
        blst_p2_affine { x: fp2(p.x), y: fp2(p.y) }
    }
}

impl From<blst_p2_affine> for G2Point {
    fn from(p: blst_p2_affine) -> Self {
        let limbs = |c: blst_fp2| c.fp.map(|c| c.l);
        G2Point { x: limbs(p.x), y: limbs(p.y) }
    }
}

impl From<G2Point> for G2Affine {
    fn from(p: G2Point) -> Self {
        let mut out = G2Affine::default();
        *out.as_mut() = p.into();
        out
    }
}
