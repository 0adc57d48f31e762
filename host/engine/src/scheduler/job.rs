//! Jobs and partitions as the scheduler sees them: sizes, states and names, no data.

use super::{Refusal, ceil_u32};
use crate::budget::NeverFits;
use crate::failure::{Outcome, Proved, Stage};
use crate::ids::{CircuitId, DeviceId, JobId, JobKey, PartitionKey, PartitionProof, Priority, SlotId, Time};
use std::cmp::Reverse;
use std::sync::Arc;
use zkhost_groth16::assignment::SegmentLimits;

/// Partitions of one job at most: the contract with circuits says so too.
pub const PARTITIONS_MAX: u32 = 65_536;

/// Segments of one partition at most.
pub const SEGMENTS_MAX: usize = 1_024;

/// A job as it is submitted.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Its name.
    pub id: JobId,
    /// A digest of everything that the proof depends on: circuit, key, parameters and input. Two submissions of one name
    /// are the same job if this is equal.
    pub body: [u8; 32],
    /// The circuit with its key.
    pub circuit: CircuitId,
    /// Bytes of the circuit on each device; none where the device does not take it.
    pub circuit_bytes: Vec<Option<u64>>,
    /// How much it matters.
    pub priority: Priority,
    /// Number of partitions, each a proof of its own.
    pub partitions: u32,
    /// The segments of every partition.
    pub segments: Arc<[SegmentLimits]>,
    /// Memory of one guest that writes a segment, in bytes.
    pub guest_bytes: u64,
    /// When to give up.
    pub deadline: Option<Time>,
}

impl Submission {
    pub(super) fn validate(&self, devices: usize) -> Result<(), Refusal> {
        if !self.id.is_printable() {
            return Err(Refusal::Name);
        }
        if self.partitions == 0 || self.partitions > PARTITIONS_MAX {
            return Err(Refusal::Partitions { partitions: self.partitions });
        }
        if self.segments.is_empty() || self.segments.len() > SEGMENTS_MAX {
            return Err(Refusal::Segments { segments: self.segments.len() });
        }
        if self.circuit_bytes.len() != devices || self.circuit_bytes.iter().all(Option::is_none) {
            let needed = "no device knows it".to_owned();
            return Err(Refusal::NeverFits(NeverFits::Device { circuit: self.circuit, needed }));
        }
        Ok(())
    }

    /// Guests of a partition: as many as can run at once.
    pub(super) fn guests(&self, synthesis_workers: usize) -> u64 {
        self.segments.len().min(synthesis_workers) as u64
    }

    /// Host memory of a partition: that of its guests.
    pub(super) fn host_bytes(&self, synthesis_workers: usize) -> u64 {
        self.guests(synthesis_workers).saturating_mul(self.guest_bytes)
    }
}

/// Where a partition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// Nothing of it exists yet.
    Waiting,
    /// Guests write its segments, or wait for a thread to do so.
    Synthesising,
    /// Its assignment is there, and its device is not: it failed or is failing over.
    Homeless,
    /// Waiting for a slot.
    Ready,
    /// A slot has it.
    Proving(SlotId),
    /// Waiting for a thread that verifies.
    Proved,
    /// Being verified.
    Checking,
    /// Its memory is being zeroed.
    Releasing,
    /// Nothing of it exists any more, its proof apart.
    Closed,
}

impl PartitionState {
    /// What it waits for; none when there is nothing left to wait for.
    pub fn stage(self) -> Option<Stage> {
        match self {
            Self::Waiting => Some(Stage::Admission),
            Self::Synthesising => Some(Stage::Synthesis),
            Self::Homeless | Self::Ready | Self::Proving(_) => Some(Stage::Proving),
            Self::Proved | Self::Checking => Some(Stage::Verification),
            Self::Releasing | Self::Closed => None,
        }
    }
}

/// A place in the order of everything: priority first, then the older job, then the lower partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub priority: Reverse<Priority>,
    pub partition: PartitionKey,
}

pub(super) struct Partition {
    pub state: PartitionState,
    /// Segments that are written.
    pub segments_done: u32,
    /// Workers that have a part of it now.
    pub running: u32,
    /// The device whose credit and residency it has.
    pub home: Option<DeviceId>,
    /// Whether it still has host memory.
    pub has_host: bool,
    /// The slot that it was last given to.
    pub slot: Option<SlotId>,
    /// Attempts to prove it that failed.
    pub attempts: u32,
    /// Where they failed.
    pub tried: Vec<SlotId>,
    /// What the last of them said, or why it lost its device.
    pub last_error: Option<(Stage, String)>,
    /// Computed, and, once it is past [`PartitionState::Checking`], verified.
    pub proof: Option<PartitionProof>,
}

impl Partition {
    fn new() -> Self {
        Self {
            state: PartitionState::Waiting,
            segments_done: 0,
            running: 0,
            home: None,
            has_host: false,
            slot: None,
            attempts: 0,
            tried: vec![],
            last_error: None,
            proof: None,
        }
    }
}

pub(super) struct Job {
    pub submission: Submission,
    pub partitions: Vec<Partition>,
    /// Partitions that are not closed.
    pub open: u32,
    /// Partitions whose guests' memory it has: those that are being written, or one that guests keep in between.
    pub grants: u32,
    /// Set at the first failure or on cancelling: nothing new is begun, and this is how it will have ended.
    pub stopping: Option<Outcome>,
}

impl Job {
    pub fn new(submission: Submission) -> Self {
        let partitions: Vec<_> = (0..submission.partitions).map(|_| Partition::new()).collect();
        Self { open: ceil_u32(partitions.len()), grants: 0, partitions, submission, stopping: None }
    }

    pub fn turn(&self, partition: PartitionKey) -> Turn {
        Turn { priority: Reverse(self.submission.priority), partition }
    }

    /// How it ended, all partitions being closed.
    pub fn outcome(&self) -> Outcome {
        if let Some(outcome) = &self.stopping {
            return outcome.clone();
        }
        let mut proved = Proved::default();
        for partition in &self.partitions {
            let proof = partition.proof.as_ref().expect("a partition that closes has its proof");
            proved.proofs.extend(proof.bytes);
            proved.publics.push(proof.publics.clone());
        }
        Outcome::Proved(proved)
    }
}

/// A job that has ended and is remembered.
pub(super) struct Ended {
    pub key: JobKey,
    pub id: JobId,
    pub body: [u8; 32],
    pub outcome: Arc<Outcome>,
}

/// What a submission came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// A new run.
    Started(JobKey),
    /// A run of the same body exists; it goes on, or is done and kept.
    Joined(JobKey),
}

impl Submitted {
    /// The run.
    pub fn key(self) -> JobKey {
        let (Self::Started(key) | Self::Joined(key)) = self;
        key
    }
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// Not done.
    Running {
        /// Jobs that go first and are not done.
        ahead: usize,
        /// Whether it is being cancelled or has failed.
        stopping: bool,
        /// Where each partition stands.
        partitions: Vec<PartitionState>,
    },
    /// Done.
    Ended(Arc<Outcome>),
}
