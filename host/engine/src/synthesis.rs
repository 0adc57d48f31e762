//! What the engine needs of circuits: their assignments, and a judgement of their proofs.

use crate::device::Stop;
use crate::ids::{CircuitId, ProofBytes};
use crate::scheduler::SynthesisFault;
use std::sync::Arc;
use zkhost_groth16::assignment::{SegmentLimits, SegmentWriter};
use zkhost_groth16::r1cs::CheckError;
use zkhost_groth16::{Assignment, BoundKey, Encoding, PreparedVerifyingKey, Proof, R1cs, Scalar};

/// One job's input, ready to be assigned: a guest in its sandbox, or anything else that writes segments.
///
/// Segments are written by several threads at once, in any order, each once.
pub trait Synthesis: Send + Sync {
    /// Partitions, each a proof of its own.
    fn partitions(&self) -> u32;
    /// The encoding of every element.
    fn encoding(&self) -> Encoding;
    /// The segments of each partition, in order; they tile its aux variables.
    fn segments(&self) -> &[SegmentLimits];
    /// Memory, in bytes, that writing one segment takes beside the segment itself.
    fn guest_bytes(&self) -> u64;
    /// Write one segment, and give the writer back. Whether it is complete is checked afterwards.
    fn assign(
        &self,
        partition: u32,
        segment: u32,
        writer: SegmentWriter,
        stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault>;
    /// Close guests that were kept for the next segments, until no more than so many are left with those that write. The
    /// engine has memory for that many.
    fn keep_guests(&self, _count: u64) {}
}

/// What tells a good proof from a bad one. Not part of a device: no device judges itself.
pub trait Judge: Send + Sync {
    /// Whether these bytes, the very ones that are returned, are a valid proof for these public inputs, the constant one
    /// excluded.
    fn verify(&self, publics: &[Scalar], proof: &ProofBytes) -> bool;
    /// Whether the assignment satisfies the circuit's constraints; if not, the first that it breaks.
    fn check(&self, assignment: &Assignment) -> Result<(), CheckError>;
}

/// A circuit that jobs may name.
#[derive(Clone)]
pub struct Circuit {
    /// Its name on devices.
    pub id: CircuitId,
    /// Its judge.
    pub judge: Arc<dyn Judge>,
}

impl Circuit {
    /// The circuit of a key, judged by its constraints and its verifying key, which make up its name.
    pub fn of(bound: &BoundKey) -> Self {
        let vk = &bound.key.vk;
        let mut hasher = blake3::Hasher::new_derive_key("zkhost 2026 circuit with verifying key");
        // Binding compared it with the constraint system's hash.
        hasher.update(&bound.key.shape.0);
        hasher.update(&vk.alpha_g1.to_uncompressed());
        for point in [&vk.beta_g2, &vk.gamma_g2, &vk.delta_g2] {
            hasher.update(&point.to_uncompressed());
        }
        for point in &vk.ic {
            hasher.update(&point.to_uncompressed());
        }
        let judge = KeyJudge { r1cs: bound.r1cs.clone(), verifier: bound.verifier.clone() };
        Self { id: CircuitId(hasher.finalize().into()), judge: Arc::new(judge) }
    }
}

/// A constraint system and a verifying key as a judge.
struct KeyJudge {
    r1cs: Arc<R1cs>,
    verifier: PreparedVerifyingKey,
}

impl Judge for KeyJudge {
    fn verify(&self, publics: &[Scalar], proof: &ProofBytes) -> bool {
        Proof::from_bytes(proof).is_ok_and(|proof| self.verifier.verify(&proof, publics).is_ok())
    }

    fn check(&self, assignment: &Assignment) -> Result<(), CheckError> {
        self.r1cs.check(assignment)
    }
}
