//! A Groth16 proof: three points, 192 bytes.

use crate::formats::{DecodeError, Problem, Reader};
use crate::points::{G1Point, G2Point, Point, PointError};
use blst::{BLST_ERROR, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G2Affine};

/// A proof. Its encoding is A, B, C compressed, 48 + 96 + 48 bytes, as in bellman, arkworks and Zcash.
///
/// Proofs are malleable: anyone can re-randomise a valid one. Nothing may use a proof's bytes as an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// A.
    pub a: G1Affine,
    /// B.
    pub b: G2Affine,
    /// C.
    pub c: G1Affine,
}

impl Proof {
    /// Bytes of a proof.
    pub const BYTES: usize = 192;

    /// Encode.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..48].copy_from_slice(&self.a.to_compressed());
        out[48..144].copy_from_slice(&self.b.to_compressed());
        out[144..].copy_from_slice(&self.c.to_compressed());
        out
    }

    /// Decode exactly one proof. Its points are on the curve, in the subgroup and not at infinity, as in bellman.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("Groth16 proof", "A", bytes);
        let a = g1(&mut reader)?;
        reader.section = "B";
        let b = g2(&mut reader)?;
        reader.section = "C";
        let c = g1(&mut reader)?;
        reader.section = "end";
        reader.end()?;
        Ok(Self { a, b, c })
    }
}

fn g1(reader: &mut Reader) -> Result<G1Affine, DecodeError> {
    let bytes: [u8; 48] = reader.array()?;
    let mut point = blst_p1_affine::default();
    // SAFETY: the input is the 48 bytes of a compressed point of G1; the output is a plain value.
    let code = unsafe { blst::blst_p1_uncompress(&mut point, bytes.as_ptr()) };
    Ok(checked(reader, code, G1Point::from(point))?.into())
}

fn g2(reader: &mut Reader) -> Result<G2Affine, DecodeError> {
    let bytes: [u8; 96] = reader.array()?;
    let mut point = blst_p2_affine::default();
    // SAFETY: the input is the 96 bytes of a compressed point of G2; the output is a plain value.
    let code = unsafe { blst::blst_p2_uncompress(&mut point, bytes.as_ptr()) };
    Ok(checked(reader, code, G2Point::from(point))?.into())
}

fn checked<P: Point>(reader: &Reader, code: BLST_ERROR, point: P) -> Result<P, DecodeError> {
    let problem = match code {
        BLST_ERROR::BLST_SUCCESS if point.is_infinity() => PointError::Infinity,
        BLST_ERROR::BLST_SUCCESS if !point.is_in_subgroup() => PointError::NotInSubgroup,
        BLST_ERROR::BLST_SUCCESS => return Ok(point),
        error => error.into(),
    };
    Err(reader.error(None, Problem::Point(problem)))
}
