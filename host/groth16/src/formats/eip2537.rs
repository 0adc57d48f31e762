//! Proofs and public inputs in the encoding of Ethereum's precompiles, EIP-2537.
//!
//! Coordinates are big-endian and padded to 64 bytes by 16 zero bytes in front, in G2 c0 before c1. A proof is A, B, C: 512
//! bytes. Public inputs are words of 32 bytes, big-endian. Calldata for the contract of [`super::solidity`] is the
//! selector of `verify(bytes,uint256[])` and its arguments by the contract ABI.

use super::{DecodeError, Problem, Reader};
use crate::Proof;
use crate::points::{G1Point, G2Point, Point};
use crate::scalar::{Scalar, from_canonical, limbs_from_le_bytes, limbs_to_le_bytes, to_canonical};
use blstrs::{G1Affine, G2Affine};

const PROOF: &str = "EIP-2537 proof";
const CALLDATA: &str = "calldata of verify(bytes,uint256[])";
const FP_BYTES: usize = 48;
const PADDING_BYTES: usize = 16;
const WORD_BYTES: usize = 32;
/// Bytes of a proof: G1, G2, G1.
pub const PROOF_BYTES: usize = 128 + 256 + 128;
/// The first four bytes of the Keccak-256 hash of `verify(bytes,uint256[])`.
pub const SELECTOR: [u8; 4] = [0x96, 0x49, 0xda, 0xae];

/// Read a proof. Its points are on the curve, in the subgroup and not at infinity.
pub fn read_proof(bytes: &[u8]) -> Result<Proof, DecodeError> {
    let mut reader = Reader::new(PROOF, "A", bytes);
    let proof = read_points(&mut reader)?;
    reader.section = "end";
    reader.end()?;
    Ok(proof)
}

fn read_points(reader: &mut Reader) -> Result<Proof, DecodeError> {
    reader.section = "A";
    let a = g1(reader)?;
    reader.section = "B";
    let b = g2(reader)?;
    reader.section = "C";
    Ok(Proof { a, b, c: g1(reader)? })
}

/// Write a proof.
pub fn write_proof(proof: &Proof) -> Vec<u8> {
    [write_g1(&proof.a), write_g2(&proof.b), write_g1(&proof.c)].concat()
}

/// Read public inputs, each below r.
pub fn read_publics(bytes: &[u8]) -> Result<Vec<Scalar>, DecodeError> {
    let reader = Reader::new("EIP-2537 public inputs", "words", bytes);
    let (words, rest) = bytes.as_chunks::<WORD_BYTES>();
    if !rest.is_empty() {
        return Err(reader.error(None, Problem::PartialEntry));
    }
    let decode = |(index, word): (u64, &[u8; WORD_BYTES])| {
        let mut word = *word;
        word.reverse();
        from_canonical(&limbs_from_le_bytes(&word)).ok_or_else(|| reader.error(Some(index), Problem::Unreduced))
    };
    (0..).zip(words).map(decode).collect()
}

/// Write public inputs.
pub fn write_publics(publics: &[Scalar]) -> Vec<u8> {
    let word = |scalar: &Scalar| {
        let mut word = limbs_to_le_bytes(&to_canonical(scalar));
        word.reverse();
        word
    };
    publics.iter().flat_map(word).collect()
}

/// Read calldata: a proof and its public inputs.
pub fn read_calldata(bytes: &[u8]) -> Result<(Proof, Vec<Scalar>), DecodeError> {
    let mut reader = Reader::new(CALLDATA, "selector", bytes);
    let found: [u8; 4] = reader.array()?;
    reader.expect("the selector", hex::encode(SELECTOR), hex::encode(found))?;
    reader.section = "arguments";
    // Offsets of the arguments, from the first offset on.
    expect_word(&mut reader, "the offset of the proof", 2 * WORD_BYTES)?;
    expect_word(&mut reader, "the offset of the inputs", 3 * WORD_BYTES + PROOF_BYTES)?;
    expect_word(&mut reader, "the proof's length in bytes", PROOF_BYTES)?;
    let proof = read_points(&mut reader)?;
    reader.section = "inputs";
    let words = reader.rest().len().saturating_sub(WORD_BYTES) / WORD_BYTES;
    expect_word(&mut reader, "the number of inputs", words)?;
    let publics =
        read_publics(reader.rest()).map_err(|error| DecodeError { format: CALLDATA, section: "inputs", ..error })?;
    Ok((proof, publics))
}

/// Write calldata.
pub fn write_calldata(proof: &Proof, publics: &[Scalar]) -> Vec<u8> {
    let head = [2 * WORD_BYTES, 3 * WORD_BYTES + PROOF_BYTES, PROOF_BYTES].map(word).concat();
    [&SELECTOR[..], &head, &write_proof(proof), &word(publics.len()), &write_publics(publics)].concat()
}

fn word(value: usize) -> [u8; WORD_BYTES] {
    let mut word = [0; WORD_BYTES];
    word[WORD_BYTES - 8..].copy_from_slice(&(value as u64).to_be_bytes());
    word
}

fn expect_word(reader: &mut Reader, what: &'static str, value: usize) -> Result<(), DecodeError> {
    let found: [u8; WORD_BYTES] = reader.array()?;
    reader.expect(what, hex::encode(word(value)), hex::encode(found))
}

/// A coordinate without its padding.
fn coordinate<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let padding: [u8; PADDING_BYTES] = reader.array()?;
    reader.expect("the padding of a coordinate", hex::encode([0; PADDING_BYTES]), hex::encode(padding))?;
    let bytes = reader.take(FP_BYTES as u64)?;
    // The three bits above the modulus are flags in another encoding; here no coordinate may reach them.
    if bytes[0] >> 5 != 0 {
        return Err(reader.error(None, crate::points::PointError::Encoding));
    }
    Ok(bytes)
}

fn g1(reader: &mut Reader) -> Result<G1Affine, DecodeError> {
    let bytes = [coordinate(reader)?, coordinate(reader)?].concat();
    reader.checked(None, decode::<G1Point>(&bytes)).map(G1Affine::from)
}

fn g2(reader: &mut Reader) -> Result<G2Affine, DecodeError> {
    let [x0, x1, y0, y1] = [coordinate(reader)?, coordinate(reader)?, coordinate(reader)?, coordinate(reader)?];
    reader.checked(None, decode::<G2Point>(&[x1, x0, y1, y0].concat())).map(G2Affine::from)
}

/// Here zeros are the point at infinity, which no proof may have.
fn decode<P: Point>(bytes: &[u8]) -> Result<P, crate::points::PointError> {
    if bytes.iter().all(|&byte| byte == 0) { Ok(P::zeroed()) } else { P::decode(bytes) }
}

/// A point of G1, 128 bytes.
pub fn write_g1(point: &G1Affine) -> Vec<u8> {
    pad(&point.to_uncompressed(), &[0, 1])
}

/// A point of G2, 256 bytes.
pub fn write_g2(point: &G2Affine) -> Vec<u8> {
    pad(&point.to_uncompressed(), &[1, 0, 3, 2])
}

fn pad(coordinates: &[u8], order: &[usize]) -> Vec<u8> {
    // The flag of infinity, which EIP-2537 writes as zeros, is the only one that an uncompressed point may have.
    let mut coordinates = coordinates.to_vec();
    coordinates[0] &= 0x1f;
    let padded = |&i: &usize| [&[0; PADDING_BYTES], &coordinates[FP_BYTES * i..][..FP_BYTES]].concat();
    order.iter().flat_map(padded).collect()
}
