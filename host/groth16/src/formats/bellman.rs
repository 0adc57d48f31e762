//! bellman's and Zcash's key files: `.params` (proving key) and `.vk` (verifying key).
//!
//! Big-endian, points uncompressed in Zcash's encoding: alpha G1, beta G1, beta G2, gamma G2, delta G1, delta G2, u32 count
//! and the IC points; `.params` goes on with the queries H, L, A, B in G1 and B in G2, each a u32 count and its points. The
//! point at infinity has no place in any list. Source: crate `groth16` 0.2, `Parameters::write`.

use super::points::{Progress, checked_points};
use super::{DecodeError, Problem, Reader};
use crate::key::{HBasis, ProvingKey, VerifyingKey};
use crate::points::{G1Point, G2Point, Point, PointError};
use crate::subgroup::Cofactored;
use blstrs::{G1Affine, G2Affine};
use std::io::{self, Write};

const PARAMS: &str = "bellman proving key (.params)";
const VK: &str = "bellman verifying key (.vk)";

/// A `.params` file in memory. It does not say which variable a point of A or B belongs to: the circuit does.
pub struct ParamsFile {
    /// The verifying key.
    pub vk: VerifyingKey,
    /// H query, monomial basis, n - 1 points.
    pub h: Vec<G1Point>,
    /// L query, one point per aux variable.
    pub l: Vec<G1Point>,
    /// A query, the variables in use only.
    pub a: Vec<G1Point>,
    /// B query in G1, the variables in use only.
    pub b_g1: Vec<G1Point>,
    /// B query in G2, the same variables.
    pub b_g2: Vec<G2Point>,
    /// Bytes that follow the key proper.
    pub trailer_bytes: u64,
}

/// Whether points are checked for the subgroup of order r. The curve's equation always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subgroup {
    /// Check them.
    Check,
    /// Do not, if the file is pinned to the digest of a key that [`known_params`] knows: the points of those were checked
    /// once and for all. Every other file is checked all the same.
    CheckedBefore,
}

/// Whether bytes may follow the key proper, as the transcript of a ceremony does in the Sapling keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailer {
    /// Nothing may follow.
    None,
    /// The whole file, whatever follows the key included, has this SHA-256.
    Pinned([u8; 32]),
}

/// A key file that is known by its digest.
#[derive(Clone, Copy, Debug)]
pub struct KnownParams {
    /// What it is called.
    pub name: &'static str,
    /// Bytes of the file.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
}

const OUTPUT_SHA256: [u8; 32] = [
    0x2f, 0x0e, 0xbb, 0xcb, 0xb9, 0xbb, 0x0b, 0xcf, 0xfe, 0x95, 0xa3, 0x97, 0xe7, 0xeb, 0xa8, 0x9c, 0x29, 0xeb, 0x4d,
    0xde, 0x61, 0x91, 0xc3, 0x39, 0xdb, 0x88, 0x57, 0x0e, 0x3f, 0x3f, 0xb0, 0xe4,
];
const SPEND_SHA256: [u8; 32] = [
    0x8e, 0x48, 0xff, 0xd2, 0x3a, 0xbb, 0x3a, 0x5f, 0xd9, 0xc5, 0x58, 0x92, 0x04, 0xf3, 0x2d, 0x9c, 0x31, 0x28, 0x5a,
    0x04, 0xb7, 0x80, 0x96, 0xba, 0x40, 0xa7, 0x9b, 0x75, 0x67, 0x7e, 0xfc, 0x13,
];

/// The files of Zcash's Sapling ceremony, whose transcript follows the key proper. Every point of theirs is in the subgroup,
/// as the test `sapling_o9_the_ceremony_keys_are_read_with_their_trailers` checks.
const KNOWN: [KnownParams; 2] = [
    KnownParams { name: "sapling-spend", bytes: 47_958_396, sha256: SPEND_SHA256 },
    KnownParams { name: "sapling-output", bytes: 3_592_860, sha256: OUTPUT_SHA256 },
];

/// The known key file of this length, if there is one: its digest is what to pin.
pub fn known_params(bytes: u64) -> Option<KnownParams> {
    KNOWN.into_iter().find(|known| known.bytes == bytes)
}

/// The SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    // SAFETY: the output takes 32 bytes; the input is a slice and its length.
    unsafe { blst::blst_sha256(digest.as_mut_ptr(), bytes.as_ptr(), bytes.len()) };
    digest
}

fn hex(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Read a proving key.
pub fn read_params(bytes: &[u8], subgroup: Subgroup, trailer: Trailer) -> Result<ParamsFile, DecodeError> {
    read_params_watched(bytes, subgroup, trailer, &|_| ())
}

/// As [`read_params`], telling how far it is: by the bytes of the queries.
pub fn read_params_watched(
    bytes: &[u8],
    subgroup: Subgroup,
    trailer: Trailer,
    progress: Progress,
) -> Result<ParamsFile, DecodeError> {
    let mut reader = Reader::new(PARAMS, "file", bytes);
    if let Trailer::Pinned(expected) = trailer {
        let found = sha256(bytes);
        if found != expected {
            return Err(reader.error(None, Problem::Digest { expected: hex(&expected), found: hex(&found) }));
        }
    }
    let known = matches!(trailer, Trailer::Pinned(digest) if KNOWN.iter().any(|known| known.sha256 == digest));
    let subgroup = if known { subgroup } else { Subgroup::Check };
    let vk = read_vk_points(&mut reader)?;
    let h = read_points(&mut reader, "H query", subgroup, progress)?;
    let l = read_points(&mut reader, "L query", subgroup, progress)?;
    let a = read_points(&mut reader, "A query", subgroup, progress)?;
    let b_g1 = read_points(&mut reader, "B query in G1", subgroup, progress)?;
    let b_g2 = read_points(&mut reader, "B query in G2", subgroup, progress)?;
    reader.section = "end";
    let trailer_bytes = reader.rest().len() as u64;
    if trailer == Trailer::None && trailer_bytes > 0 {
        let sha256 = hex(&sha256(bytes));
        return Err(reader.error(None, Problem::UnpinnedTrailer { bytes: trailer_bytes, sha256 }));
    }
    Ok(ParamsFile { vk, h, l, a, b_g1, b_g2, trailer_bytes })
}

/// Read a verifying key. All its points are checked.
pub fn read_vk(bytes: &[u8]) -> Result<VerifyingKey, DecodeError> {
    let mut reader = Reader::new(VK, "file", bytes);
    let vk = read_vk_points(&mut reader)?;
    reader.section = "end";
    reader.end()?;
    Ok(vk)
}

fn read_vk_points(reader: &mut Reader) -> Result<VerifyingKey, DecodeError> {
    let alpha_g1 = read_point::<G1Point>(reader, "alpha in G1")?.into();
    let beta_g1 = read_point::<G1Point>(reader, "beta in G1")?.into();
    let beta_g2 = read_point::<G2Point>(reader, "beta in G2")?.into();
    let gamma_g2 = read_point::<G2Point>(reader, "gamma in G2")?.into();
    let delta_g1 = read_point::<G1Point>(reader, "delta in G1")?.into();
    let delta_g2 = read_point::<G2Point>(reader, "delta in G2")?.into();
    let ic = read_points::<G1Point>(reader, "IC", Subgroup::Check, &|_| ())?;
    if ic.is_empty() {
        return Err(reader.error(None, Problem::no_ic()));
    }
    let ic = ic.into_iter().map(G1Affine::from).collect();
    Ok(VerifyingKey { alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, ic })
}

/// One point of a verifying key, checked in full.
fn read_point<P: Point>(reader: &mut Reader, section: &'static str) -> Result<P, DecodeError> {
    reader.section = section;
    reader.uncompressed()
}

/// A counted list of points, decoded in parallel.
fn read_points<P: Cofactored>(
    reader: &mut Reader,
    section: &'static str,
    subgroup: Subgroup,
    progress: Progress,
) -> Result<Vec<P>, DecodeError> {
    reader.section = section;
    let count = u64::from(reader.u32_be()?);
    let bytes = reader.take(count * P::ENCODED_BYTES as u64)?;
    checked_points(reader, (bytes, P::ENCODED_BYTES), decode_finite, subgroup, progress)
}

fn decode_finite<P: Point>(bytes: &[u8]) -> Result<P, PointError> {
    let point = P::decode(bytes)?;
    if point.is_infinity() { Err(PointError::Infinity) } else { Ok(point) }
}

/// Why a key has no `.params` form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The key's quotient query is in another basis.
    #[error("only a key with a monomial H query has a .params form; make one with `setup`, asking for .params")]
    HBasis,
    /// The key's root of unity is not bellman's.
    #[error("the key's root of unity is not bellman's, so bellman could not prove with it")]
    Root,
    /// A point at infinity, which the format does not have.
    #[error(
        "entry {index} of the key's {section} is the point at infinity, which .params cannot hold: the variable is in no \
         constraint, or its terms cancel; constrain or remove it, or use the key image"
    )]
    Infinity {
        /// Which query.
        section: &'static str,
        /// Which point.
        index: usize,
    },
    /// A query too long for the format's 32-bit counts.
    #[error("the key's {section} has more points than .params can count")]
    TooLong {
        /// Which query.
        section: &'static str,
    },
    /// The destination failed.
    #[error("cannot write the key")]
    Io(#[from] io::Error),
}

/// Write a proving key as `.params`.
pub fn write_params(key: &ProvingKey, mut out: impl Write) -> Result<(), ExportError> {
    if key.h_basis != HBasis::Monomial {
        return Err(ExportError::HBasis);
    }
    if key.root != crate::key::RootGenerator::Seven {
        return Err(ExportError::Root);
    }
    write_vk(&key.vk, &mut out)?;
    write_points("H query", &key.h, &mut out)?;
    write_points("L query", &key.l, &mut out)?;
    write_points("A query", &key.a, &mut out)?;
    write_points("B query in G1", &key.b_g1, &mut out)?;
    write_points("B query in G2", &key.b_g2, &mut out)
}

/// Write a verifying key as `.vk`.
pub fn write_vk(vk: &VerifyingKey, mut out: impl Write) -> Result<(), ExportError> {
    let g1 = |p: &G1Affine| p.to_uncompressed();
    let g2 = |p: &G2Affine| p.to_uncompressed();
    out.write_all(&g1(&vk.alpha_g1))?;
    out.write_all(&g1(&vk.beta_g1))?;
    out.write_all(&g2(&vk.beta_g2))?;
    out.write_all(&g2(&vk.gamma_g2))?;
    out.write_all(&g1(&vk.delta_g1))?;
    out.write_all(&g2(&vk.delta_g2))?;
    let ic: Vec<G1Point> = vk.ic.iter().map(|p| G1Point::from(*p)).collect();
    write_points("IC", &ic, &mut out)
}

fn write_points<P: Point>(section: &'static str, points: &[P], out: &mut impl Write) -> Result<(), ExportError> {
    const POINTS_PER_WRITE: usize = 1024;
    let count = u32::try_from(points.len()).map_err(|_| ExportError::TooLong { section })?;
    if let Some(index) = points.iter().position(P::is_infinity) {
        return Err(ExportError::Infinity { section, index });
    }
    out.write_all(&count.to_be_bytes())?;
    let mut bytes = Vec::with_capacity(POINTS_PER_WRITE * P::ENCODED_BYTES);
    for points in points.chunks(POINTS_PER_WRITE) {
        bytes.clear();
        points.iter().for_each(|point| point.encode(&mut bytes));
        out.write_all(&bytes)?;
    }
    Ok(())
}
