//! What the scheduler orders, and what workers answer.

use crate::arena::Lease;
use crate::failure::Outcome;
use crate::ids::{CircuitId, DeviceId, JobKey, PartitionKey, PartitionProof, ProofBytes, SlotId};
use std::sync::Arc;
use zkhost_groth16::r1cs::Unsatisfied;

/// What workers are to do.
pub enum Action {
    /// Keep these leases for the segments of a partition, one each.
    Admit {
        /// The partition.
        partition: PartitionKey,
        /// The leases, in the order of segments.
        leases: Vec<Lease>,
    },
    /// Have a guest write one segment. Answered by [`Report::Synthesised`].
    Synthesise {
        /// The partition.
        partition: PartitionKey,
        /// The segment.
        segment: u32,
    },
    /// A job's guests that write nothing may stay as far as there are no more than these with those that write; close the
    /// others.
    KeepGuests {
        /// The job.
        job: JobKey,
        /// Guests that it has memory for.
        count: u64,
    },
    /// Free a circuit's memory on a device; loads ordered later come after it.
    Evict {
        /// The device.
        device: DeviceId,
        /// The circuit.
        circuit: CircuitId,
    },
    /// Bring a circuit to a device. Answered by [`Report::Loaded`].
    Load {
        /// The device.
        device: DeviceId,
        /// The circuit.
        circuit: CircuitId,
    },
    /// Compute a proof. Answered by [`Report::Proved`].
    Prove {
        /// Where.
        slot: SlotId,
        /// The partition, all of whose segments are written.
        partition: PartitionKey,
        /// Its circuit.
        circuit: CircuitId,
    },
    /// Verify a proof and, if it is not valid, check the constraints. Answered by [`Report::Checked`].
    Check {
        /// The partition.
        partition: PartitionKey,
        /// Its proof.
        proof: ProofBytes,
    },
    /// Tell all workers of a job to stop soon. They still answer.
    Abort {
        /// The job.
        job: JobKey,
    },
    /// Zero and free everything of a partition. Answered by [`Report::Released`].
    Release {
        /// The partition.
        partition: PartitionKey,
    },
    /// Bring a lost device back; none of its slots is at work. Answered by [`Report::Restarted`].
    Restart {
        /// The device.
        device: DeviceId,
    },
    /// A job has ended and nothing of it is left.
    End {
        /// The job.
        job: JobKey,
        /// How.
        outcome: Arc<Outcome>,
    },
    /// Draining is done: no job is left.
    Drained,
}

/// Why a segment was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SynthesisFault {
    /// The guest failed: what it did, in a sentence.
    Guest(String),
    /// The assignment breaks this constraint, as was seen while it was written.
    Unsatisfied(Unsatisfied),
    /// The job was told to stop.
    Cancelled,
    /// The worker panicked.
    Panicked,
}

/// Why a device did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceFault {
    /// This attempt failed; another may not.
    Failed(String),
    /// The device is lost, and everything on it, until it is restarted.
    Lost(String),
    /// The assignment does not belong to the key; no device would prove it.
    Rejected(String),
    /// The job was told to stop.
    Cancelled,
    /// The worker panicked.
    Panicked,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The proof is valid.
    Valid,
    /// The proof is not valid although the constraints hold: the prover is at fault.
    Faulty,
    /// The first constraint that does not hold: the circuit or its input is at fault.
    Unsatisfied(Unsatisfied),
    /// The assignment does not belong to the circuit.
    Rejected(String),
    /// The worker panicked.
    Panicked,
}

/// What a worker did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Answers [`Action::Synthesise`].
    Synthesised {
        /// The partition.
        partition: PartitionKey,
        /// The segment.
        segment: u32,
        /// Whether it is written.
        result: Result<(), SynthesisFault>,
    },
    /// Answers [`Action::Load`].
    Loaded {
        /// The device.
        device: DeviceId,
        /// The circuit.
        circuit: CircuitId,
        /// Whether it is there.
        result: Result<(), DeviceFault>,
    },
    /// Answers [`Action::Prove`].
    Proved {
        /// Where.
        slot: SlotId,
        /// The partition.
        partition: PartitionKey,
        /// The proof, not verified.
        result: Result<PartitionProof, DeviceFault>,
    },
    /// Answers [`Action::Check`].
    Checked {
        /// The partition.
        partition: PartitionKey,
        /// What was found.
        verdict: Verdict,
    },
    /// Answers [`Action::Release`].
    Released {
        /// The partition.
        partition: PartitionKey,
    },
    /// Answers [`Action::Restart`].
    Restarted {
        /// The device.
        device: DeviceId,
        /// Whether it works again.
        result: Result<(), DeviceFault>,
    },
}
