//! How long a job's stages take: its synthesis and its verification, watched from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use zkhost_engine::circom::{CircomError, CircomJob};
use zkhost_engine::component::ComponentJob;
use zkhost_engine::device::Stop;
use zkhost_engine::ids::ProofBytes;
use zkhost_engine::scheduler::SynthesisFault;
use zkhost_engine::synthesis::{Judge, Synthesis};
use zkhost_groth16::assignment::{SegmentLimits, SegmentWriter};
use zkhost_groth16::r1cs::CheckError;
use zkhost_groth16::{Assignment, Encoding, Scalar};
use zkhost_runtime::RunError;

/// Nanoseconds, summed over segments and partitions.
#[derive(Default)]
pub struct StageTimes {
    synthesis: AtomicU64,
    verification: AtomicU64,
}

impl StageTimes {
    /// Milliseconds of synthesis and of verification.
    pub fn milliseconds(&self) -> (f64, f64) {
        let of = |nanos: &AtomicU64| nanos.load(Ordering::Relaxed) as f64 / 1e6;
        (of(&self.synthesis), of(&self.verification))
    }
}

fn timed<T>(nanos: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    result
}

/// A job of either kind of guest.
pub enum GuestJob {
    /// A component's.
    Component(ComponentJob),
    /// A circom circuit's.
    Circom(CircomJob),
}

impl GuestJob {
    fn synthesis(&self) -> &dyn Synthesis {
        match self {
            Self::Component(job) => job,
            Self::Circom(job) => job,
        }
    }

    /// The first run of the guest that failed, if one did.
    pub fn take_error(&self) -> Option<RunError> {
        match self {
            Self::Component(job) => job.take_error(),
            // What else may go wrong, such as a constraint, the engine's failure tells.
            Self::Circom(job) => match job.take_error() {
                Some(CircomError::Run(error)) => Some(error),
                _ => None,
            },
        }
    }
}

/// A job, timed.
pub struct TimedJob {
    /// The job.
    pub job: GuestJob,
    /// Where its time is added.
    pub times: Arc<StageTimes>,
}

impl Synthesis for TimedJob {
    fn partitions(&self) -> u32 {
        self.job.synthesis().partitions()
    }

    fn encoding(&self) -> Encoding {
        self.job.synthesis().encoding()
    }

    fn segments(&self) -> &[SegmentLimits] {
        self.job.synthesis().segments()
    }

    fn guest_bytes(&self) -> u64 {
        self.job.synthesis().guest_bytes()
    }

    fn assign(
        &self,
        partition: u32,
        segment: u32,
        writer: SegmentWriter,
        stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault> {
        timed(&self.times.synthesis, || self.job.synthesis().assign(partition, segment, writer, stop))
    }

    fn keep_guests(&self, count: u64) {
        self.job.synthesis().keep_guests(count);
    }
}

/// A circuit's judge, timed.
pub struct TimedJudge {
    /// The judge.
    pub judge: Arc<dyn Judge>,
    /// Where its time is added.
    pub times: Arc<StageTimes>,
}

impl Judge for TimedJudge {
    fn verify(&self, publics: &[Scalar], proof: &ProofBytes) -> bool {
        timed(&self.times.verification, || self.judge.verify(publics, proof))
    }

    fn check(&self, assignment: &Assignment) -> Result<(), CheckError> {
        timed(&self.times.verification, || self.judge.check(assignment))
    }
}
