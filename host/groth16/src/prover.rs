//! What every backend does: an assignment in, a proof out.
//!
//! A backend computes the proof for r = s = 0, [`BaseProof`]; everything after that is the same for all of them and is done
//! here: re-randomise it with fresh randomness of the host, verify it, blame the right one if it is false.

mod base;
mod cpu;
mod quotient;
pub mod reference;

pub use base::BaseProof;
pub use cpu::CpuProver;

use crate::key::KeyError;
use crate::r1cs::{CheckError, Unsatisfied};
use crate::{Assignment, PreparedVerifyingKey, Proof, ProvingKey, R1cs, Scalar};
use blstrs::G1Projective;
use rand_core::OsRng;
use std::sync::Arc;

/// Why no proof was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The assignment is one of another circuit.
    #[error(transparent)]
    Mismatch(CheckError),
    /// The assignment breaks a constraint.
    #[error("the assignment is no witness, so there is nothing to prove: {0}")]
    Unsatisfied(#[from] Unsatisfied),
    /// The proof that was computed does not verify although the assignment satisfies the circuit.
    #[error(
        "the proof that {backend} computed does not verify, though the assignment satisfies the circuit: {suspect}"
    )]
    DoesNotVerify {
        /// What computed it.
        backend: String,
        /// Whom to suspect, and what to do.
        suspect: &'static str,
    },
    /// The backend failed.
    #[error("{0}")]
    Backend(String),
}

/// A proving key bound to its circuit, with what proofs by it are verified with.
pub struct BoundKey {
    /// The key.
    pub key: Arc<ProvingKey>,
    /// The circuit.
    pub r1cs: Arc<R1cs>,
    /// The verifying key, prepared.
    pub verifier: PreparedVerifyingKey,
}

impl BoundKey {
    /// Bind; the key must be the circuit's.
    pub fn new(key: Arc<ProvingKey>, r1cs: Arc<R1cs>) -> Result<Self, KeyError> {
        key.check_circuit(&r1cs)?;
        let verifier = PreparedVerifyingKey::from(&key.vk);
        Ok(Self { key, r1cs, verifier })
    }

    /// Verify a proof for an assignment's public inputs. If it is false, the assignment's constraints are checked first: a
    /// broken one is named, anything else is the key's or the backend's fault.
    pub fn verify(&self, backend: &str, proof: &Proof, assignment: &Assignment) -> Result<(), ProveError> {
        if self.verifier.verify(proof, assignment.publics()).is_ok() {
            return Ok(());
        }
        match self.r1cs.check(assignment) {
            Ok(()) => Err(ProveError::DoesNotVerify { backend: backend.into(), suspect: self.suspect() }),
            Err(CheckError::Unsatisfied(broken)) => Err(ProveError::Unsatisfied(broken)),
            Err(mismatch) => Err(ProveError::Mismatch(mismatch)),
        }
    }

    fn suspect(&self) -> &'static str {
        if self.key.proven {
            "the key is right, so the backend erred; prove again, on another device if there is one"
        } else {
            "no proof by this key ever verified, so it is probably one of another circuit; use the key made for this one"
        }
    }
}

/// A backend bound to one proving key and constraint system: the CPU, a CUDA slot, a simulated device.
pub trait Prover: Send + Sync {
    /// What this backend is, such as "CPU, 16 threads".
    fn describe(&self) -> String;

    /// What it is bound to.
    fn bound(&self) -> &BoundKey;

    /// The proof with r = s = 0 of an assignment that has the circuit's dimensions and need not satisfy it.
    fn base(&self, assignment: &Assignment) -> Result<BaseProof, ProveError>;

    /// B in G1 with s = 0: beta + sum of z_v B_v. Only a proof with given r and s needs it.
    fn base_b_g1(&self, assignment: &Assignment) -> Result<G1Projective, ProveError>;

    /// Prove with r = s = 0, re-randomise with fresh randomness of the host, verify, return.
    fn prove(&self, assignment: &Assignment) -> Result<Proof, ProveError> {
        let proof = self.prove_unverified(assignment)?;
        self.bound().verify(&self.describe(), &proof, assignment)?;
        Ok(proof)
    }

    /// [`Self::prove`] without its last step, for callers that verify elsewhere, before anyone sees the proof.
    fn prove_unverified(&self, assignment: &Assignment) -> Result<Proof, ProveError> {
        let bound = self.bound();
        bound.r1cs.check_dimensions(assignment).map_err(ProveError::Mismatch)?;
        let base = self.base(assignment)?;
        match base.randomise(&bound.key.vk, &mut OsRng) {
            Some(proof) => Ok(proof),
            None => Ok(base.randomise_identity(&bound.key.vk, &self.base_b_g1(assignment)?, &mut OsRng)),
        }
    }

    /// The proof by Groth16's own r and s, byte for byte that of every prover for the same key and witness. Not for use: a
    /// proof whose r and s are known, or used twice, gives its witness away.
    fn prove_with_fixed_blinding_for_tests(
        &self,
        assignment: &Assignment,
        r: Scalar,
        s: Scalar,
    ) -> Result<Proof, ProveError> {
        let bound = self.bound();
        bound.r1cs.check_dimensions(assignment).map_err(ProveError::Mismatch)?;
        let base = self.base(assignment)?;
        let proof = base.blind(&bound.key.vk, &self.base_b_g1(assignment)?, r, s);
        bound.verify(&self.describe(), &proof, assignment)?;
        Ok(proof)
    }
}
