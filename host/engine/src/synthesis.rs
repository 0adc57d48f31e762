//! What the engine needs of circuits: their assignments, and a judgement of their proofs.

use crate::device::Stop;
use crate::ids::{CircuitId, ProofBytes};
use crate::scheduler::SynthesisFault;
use std::sync::Arc;
use zkhost_groth16::assignment::{SegmentLimits, SegmentWriter};
use zkhost_groth16::r1cs::CheckError;
use zkhost_groth16::verify::PreparedVerifyingKey;
use zkhost_groth16::{Assignment, Encoding, Proof, R1cs, Scalar, VerifyingKey};

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
    /// The partition's last segment is written, or given up: free what was kept for it. May be called more than once.
    fn end_partition(&self, _partition: u32) {}
}

/// What tells a good proof from a bad one. Not part of a device: no device judges itself.
pub trait Judge: Send + Sync {
    /// Whether these bytes, the very ones that are returned, are a valid proof for these public inputs, the constant one
    /// excluded.
    fn verify(&self, publics: &[Scalar], proof: &ProofBytes) -> bool;
    /// Whether the assignment satisfies the circuit's constraints; if not, a sentence that names one and quotes no value.
    fn check(&self, assignment: &Assignment) -> Result<(), String>;
}

/// A circuit's constraint system and verifying key as its judge.
pub struct KeyJudge {
    r1cs: Arc<R1cs>,
    key: PreparedVerifyingKey,
}

impl KeyJudge {
    /// The judge of this circuit under this key.
    pub fn new(r1cs: Arc<R1cs>, key: &VerifyingKey) -> Self {
        Self { r1cs, key: key.into() }
    }
}

impl Judge for KeyJudge {
    fn verify(&self, publics: &[Scalar], proof: &ProofBytes) -> bool {
        Proof::from_bytes(proof).is_ok_and(|proof| self.key.verify(&proof, publics).is_ok())
    }

    fn check(&self, assignment: &Assignment) -> Result<(), String> {
        self.r1cs.check(assignment).map_err(|error: CheckError| error.to_string())
    }
}

/// A circuit that jobs may name.
#[derive(Clone)]
pub struct Circuit {
    /// Its name on devices.
    pub id: CircuitId,
    /// Its judge.
    pub judge: Arc<dyn Judge>,
}
