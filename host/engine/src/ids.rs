//! The names of things and the unit of time that the scheduler, its workers and its callers share.

use std::fmt;
use zkhost_groth16::Scalar;

/// Nanoseconds since the engine started. Virtual in simulations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// This many nanoseconds later.
    pub fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

/// An owner's or a job's name has so many bytes at most.
pub const NAME_BYTES_MAX: usize = 256;

/// How a caller names a job: unique per owner. Submitting the same name again joins the job instead of repeating it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// Whose job it is. Two owners may use the same name.
    pub owner: String,
    /// The owner's name for it.
    pub name: String,
}

impl JobId {
    /// Whether both parts have a length and no control characters: they appear in logs and errors.
    pub fn is_printable(&self) -> bool {
        let printable = |name: &str| (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
        printable(&self.owner) && printable(&self.name)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// One run of a job, in order of submission. Never used twice, so work of a cancelled run cannot reach a later run of
/// the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey(pub u64);

/// One partition of one run of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey {
    /// The run.
    pub job: JobKey,
    /// The partition's index in its proof.
    pub index: u32,
}

/// A circuit together with its proving key, as devices know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId(pub [u8; 32]);

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Index of a device in the engine's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

/// A slot: a whole prover on a device, with its own streams and scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId {
    /// The device.
    pub device: DeviceId,
    /// Index among the device's slots.
    pub index: u16,
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} of device {}", self.index, self.device.0)
    }
}

/// How much a job matters. Partitions of a higher priority go first everywhere: they wait for at most the one device
/// phase that already runs. It is strict: a lower one waits as long as higher ones keep all slots at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Runs when nothing else wants to.
    Background,
    /// The default.
    #[default]
    Normal,
    /// May use the head-room of the budget and the urgent credits of slots.
    Urgent,
}

/// The bytes of one partition's proof: A, B and C, compressed.
pub const PROOF_BYTES: usize = 192;

/// One partition's proof, encoded.
pub type ProofBytes = [u8; PROOF_BYTES];

/// One partition's proof with what it proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionProof {
    /// The proof.
    pub bytes: ProofBytes,
    /// Its public inputs, in order, the constant one excluded.
    pub publics: Vec<Scalar>,
}
