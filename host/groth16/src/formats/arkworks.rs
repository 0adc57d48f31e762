//! arkworks' serialised verifying keys and proofs, as Sui, IOTA and zkVerify take them.
//!
//! Points are in Zcash's encoding, compressed or not. A key is alpha G1, beta, gamma and delta G2, a u64 little-endian
//! count and the IC points. A compressed proof is that of [`Proof::to_bytes`]. Source: crate `ark-groth16` 0.6.

use super::{DecodeError, Problem, Reader};
use crate::Proof;
use crate::key::VerifierKey;
use crate::points::{G1Point, G2Point, Point};
use blstrs::G1Affine;

const PROOF: &str = "arkworks proof";
const VK: &str = "arkworks verifying key";

/// Whether points are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// One coordinate and a sign.
    Compressed,
    /// Both coordinates.
    Uncompressed,
}

impl Compression {
    fn read<P: Point>(self, reader: &mut Reader, section: &'static str) -> Result<P, DecodeError> {
        reader.section = section;
        match self {
            Self::Compressed => reader.compressed(),
            Self::Uncompressed => reader.uncompressed(),
        }
    }

    fn write<P: Point>(self, point: impl Into<P>, out: &mut Vec<u8>) {
        match self {
            Self::Compressed => point.into().encode_compressed(out),
            Self::Uncompressed => point.into().encode(out),
        }
    }

    fn bytes<P: Point>(self) -> usize {
        match self {
            Self::Compressed => P::COMPRESSED_BYTES,
            Self::Uncompressed => P::ENCODED_BYTES,
        }
    }
}

/// Read a proof. Its points are on the curve, in the subgroup and not at infinity.
pub fn read_proof(bytes: &[u8], compression: Compression) -> Result<Proof, DecodeError> {
    let mut reader = Reader::new(PROOF, "A", bytes);
    let a = compression.read::<G1Point>(&mut reader, "A")?.into();
    let b = compression.read::<G2Point>(&mut reader, "B")?.into();
    let c = compression.read::<G1Point>(&mut reader, "C")?.into();
    reader.section = "end";
    reader.end()?;
    Ok(Proof { a, b, c })
}

/// Write a proof.
pub fn write_proof(proof: &Proof, compression: Compression) -> Vec<u8> {
    let mut out = vec![];
    compression.write::<G1Point>(proof.a, &mut out);
    compression.write::<G2Point>(proof.b, &mut out);
    compression.write::<G1Point>(proof.c, &mut out);
    out
}

/// Read a verifying key. Its points are checked like a proof's.
pub fn read_vk(bytes: &[u8], compression: Compression) -> Result<VerifierKey, DecodeError> {
    let mut reader = Reader::new(VK, "alpha in G1", bytes);
    let alpha_g1 = compression.read::<G1Point>(&mut reader, "alpha in G1")?.into();
    let beta_g2 = compression.read::<G2Point>(&mut reader, "beta in G2")?.into();
    let gamma_g2 = compression.read::<G2Point>(&mut reader, "gamma in G2")?.into();
    let delta_g2 = compression.read::<G2Point>(&mut reader, "delta in G2")?.into();
    reader.section = "IC";
    let found = reader.u64_le()?;
    // What the file has room for bounds what is made room for.
    let expected = (reader.rest().len() / compression.bytes::<G1Point>()) as u64;
    if found != expected || found == 0 {
        let what = "the number of points";
        return Err(match found {
            0 => reader.error(None, Problem::no_ic()),
            _ => reader.error(None, Problem::Disagrees { what, expected, found, from: "the file's length" }),
        });
    }
    let mut ic: Vec<G1Affine> = vec![];
    for index in 0..found {
        let point = compression.read::<G1Point>(&mut reader, "IC");
        ic.push(point.map_err(|error| DecodeError { index: Some(index), ..error })?.into());
    }
    reader.section = "end";
    reader.end()?;
    Ok(VerifierKey { alpha_g1, beta_g2, gamma_g2, delta_g2, ic })
}

/// Write a verifying key.
pub fn write_vk(vk: &VerifierKey, compression: Compression) -> Vec<u8> {
    let mut out = vec![];
    compression.write::<G1Point>(vk.alpha_g1, &mut out);
    for point in [vk.beta_g2, vk.gamma_g2, vk.delta_g2] {
        compression.write::<G2Point>(point, &mut out);
    }
    out.extend((vk.ic.len() as u64).to_le_bytes());
    vk.ic.iter().for_each(|point| compression.write::<G1Point>(*point, &mut out));
    out
}
