//! Curve points as plain memory: the layout of key images, of pinned memory and of the device.
//!
//! Affine, Montgomery coordinates (R = 2^384), little-endian u64 limbs, x before y, in G2 c0 before c1; the point at
//! infinity is all zero. This is also the layout of `blst_p1_affine` and `blst_p2_affine`.

use blst::{blst_fp, blst_fp2, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G2Affine};
use bytemuck::{Pod, Zeroable};

/// A coordinate: six limbs, Montgomery.
pub type FpLimbs = [u64; 6];

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

impl G1Point {
    /// The point at infinity.
    pub const INFINITY: Self = Self { x: [0; 6], y: [0; 6] };

    /// Whether this is the point at infinity.
    pub fn is_infinity(&self) -> bool {
        *self == Self::INFINITY
    }
}

impl G2Point {
    /// The point at infinity.
    pub const INFINITY: Self = Self { x: [[0; 6]; 2], y: [[0; 6]; 2] };

    /// Whether this is the point at infinity.
    pub fn is_infinity(&self) -> bool {
        *self == Self::INFINITY
    }
}

impl From<G1Affine> for G1Point {
    fn from(p: G1Affine) -> Self {
        let p: &blst_p1_affine = p.as_ref();
        G1Point { x: p.x.l, y: p.y.l }
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
        let mut bytes = [0; 96];
        // SAFETY: the output is the 96 bytes that an uncompressed point of G1 takes; the input is a plain value.
        unsafe { blst::blst_p1_affine_serialize(bytes.as_mut_ptr(), &p.into()) };
        G1Affine::from_uncompressed_unchecked(&bytes).expect("what blst wrote it reads")
    }
}

impl From<G2Affine> for G2Point {
    fn from(p: G2Affine) -> Self {
        let mut out = blst_p2_affine::default();
        let bytes = p.to_uncompressed();
        // SAFETY: the input is the 192 bytes of an uncompressed point of G2; the output is a plain value.
        let code = unsafe { blst::blst_p2_deserialize(&mut out, bytes.as_ptr()) };
        debug_assert_eq!(code, blst::BLST_ERROR::BLST_SUCCESS);
        out.into()
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
        let mut bytes = [0; 192];
        // SAFETY: the output is the 192 bytes that an uncompressed point of G2 takes; the input is a plain value.
        unsafe { blst::blst_p2_affine_serialize(bytes.as_mut_ptr(), &p.into()) };
        G2Affine::from_uncompressed_unchecked(&bytes).expect("what blst wrote it reads")
    }
}
