//! gnark's proofs: A, B, C compressed, u32 big-endian count of commitments, the commitments, and their proof of knowledge.
//!
//! Circuits without commitments have none of them and the point at infinity for the last: 244 bytes. Plain Groth16 cannot
//! verify the others. Source: gnark's `backend/groth16/bls12-381/marshal.go`.

use super::{DecodeError, Problem, Reader};
use crate::Proof;
use crate::points::{G1Point, Point};

const PROOF: &str = "gnark proof";

/// Read a proof of a circuit without commitments. Its points are on the curve, in the subgroup and not at infinity.
pub fn read_proof(bytes: &[u8]) -> Result<Proof, DecodeError> {
    let mut reader = Reader::new(PROOF, "A, B and C", bytes);
    let proof = Proof::from_bytes(reader.take(Proof::BYTES as u64)?)?;
    reader.section = "commitments";
    let commitments = reader.u32_be()?;
    reader.expect("the number of commitments, which plain Groth16 does not have,", 0, commitments)?;
    reader.section = "proof of knowledge";
    let knowledge = reader.take(G1Point::COMPRESSED_BYTES as u64)?;
    if knowledge != infinity() {
        let (expected, found) = ("the point at infinity".into(), "another".into());
        return Err(reader.error(None, Problem::Unexpected { what: "the point", expected, found }));
    }
    reader.section = "end";
    reader.end()?;
    Ok(proof)
}

/// Write a proof as that of a circuit without commitments.
pub fn write_proof(proof: &Proof) -> Vec<u8> {
    [&proof.to_bytes()[..], &0u32.to_be_bytes(), &infinity()].concat()
}

fn infinity() -> Vec<u8> {
    let mut out = vec![];
    G1Point::INFINITY.encode_compressed(&mut out);
    out
}
