//! What every backend does: an assignment in, a proof out.

use crate::{Assignment, Proof};

/// Why no proof was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The assignment does not fit the key.
    #[error("the assignment does not fit the proving key: {0}")]
    Mismatch(String),
    /// The proof that was computed does not verify.
    #[error("the proof that was computed does not verify: {0}")]
    DoesNotVerify(String),
    /// The backend failed.
    #[error("{0}")]
    Backend(String),
}

/// A backend bound to one proving key and constraint system: the CPU, a CUDA slot, a simulated device.
pub trait Prover: Send + Sync {
    /// What this backend is, such as "CPU, 16 threads".
    fn describe(&self) -> String;
    /// Prove with r = s = 0, re-randomise with fresh randomness of the host, verify, return.
    fn prove(&self, assignment: &Assignment) -> Result<Proof, ProveError>;
}
