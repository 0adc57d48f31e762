//! A Groth16 proof: three points, 192 bytes.

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
