//! Why a job ended without a proof: always with the job, the stage and the cause.

use crate::ids::JobId;
use std::fmt;
use zkhost_groth16::Scalar;
use zkhost_groth16::r1cs::Unsatisfied;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Waiting for memory or a credit.
    Admission,
    /// Running the guest.
    Synthesis,
    /// Bringing the proving key to a device.
    KeyLoad,
    /// Computing the proof.
    Proving,
    /// Verifying the proof, or checking the constraints after that failed.
    Verification,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Admission => "admission",
            Self::Synthesis => "synthesis",
            Self::KeyLoad => "key load",
            Self::Proving => "proving",
            Self::Verification => "verification",
        })
    }
}

/// What went wrong. Texts come from libraries that keep witnesses out of their errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The circuit's own fault; repeating it would give the same.
    #[error("the circuit failed: {0}")]
    Guest(String),
    /// The assignment does not satisfy the constraints, which only its circuit or input can cause.
    #[error("the circuit's assignment does not satisfy its constraints: {0}")]
    Unsatisfied(Unsatisfied),
    /// A device failed, and so did every other place that the partition was tried on.
    #[error("no device is left for it after {attempts} attempts to prove it; the last one said: {last}")]
    Device {
        /// How often it was tried.
        attempts: u32,
        /// What the last one said.
        last: String,
    },
    /// Nothing is left that could prove it.
    #[error("no device is left that can hold the circuit; restart the engine or add a CPU device")]
    NoDevice,
    /// The assignment does not belong to the key.
    #[error("{0}")]
    Rejected(String),
    /// The job's deadline passed.
    #[error("its deadline passed; give it more time or a higher priority")]
    Deadline,
    /// A thread panicked. The message is not repeated here, for it may quote a witness.
    #[error("a thread of the host panicked, which is a bug; other jobs are not affected")]
    Panicked,
}

/// Where a job failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The partition, if it was one.
    pub partition: Option<u32>,
    /// The segment of the partition, if it was one.
    pub segment: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(partition) = self.partition {
            write!(f, " of partition {partition}")?;
        }
        if let Some(segment) = self.segment {
            write!(f, ", segment {segment}")?;
        }
        Ok(())
    }
}

/// A job's failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {job} failed in {stage}{place}: {cause}")]
pub struct Failure {
    /// The job.
    pub job: JobId,
    /// What was being done.
    pub stage: Stage,
    /// Where.
    pub place: Place,
    /// What went wrong.
    pub cause: Cause,
}

/// The proofs of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proved {
    /// One of 192 bytes for each partition, in order.
    pub proofs: Vec<u8>,
    /// The public inputs of each partition, in order, the constant one excluded.
    pub publics: Vec<Vec<Scalar>>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All partitions are proved and the proofs verified.
    Proved(Proved),
    /// It failed.
    Failed(Failure),
    /// Its owner cancelled it.
    Cancelled,
}

impl Outcome {
    /// Bytes of its proofs and their public inputs.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Proved(Proved { proofs, publics }) => {
                proofs.len() + publics.iter().map(|publics| size_of_val(publics.as_slice())).sum::<usize>()
            }
            Self::Failed(_) | Self::Cancelled => 0,
        }
    }
}
