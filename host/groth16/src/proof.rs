//! A Groth16 proof: three points, 192 bytes.

use crate::formats::{DecodeError, Reader};
use crate::points::{G1Point, G2Point};
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
        let a = reader.compressed::<G1Point>()?.into();
        reader.section = "B";
        let b = reader.compressed::<G2Point>()?.into();
        reader.section = "C";
        let c = reader.compressed::<G1Point>()?.into();
        reader.section = "end";
        reader.end()?;
        Ok(Self { a, b, c })
    }
}
