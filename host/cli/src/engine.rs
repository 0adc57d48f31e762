//! Proving by the engine: one job on the CPU, whose guests write while others are proved.

use crate::circuit::{Job, Loaded};
use crate::error::{Code, Failure};
use crate::progress::Stages;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::time::Duration;
use zkhost_engine::arena::{Arena, LeaseLayout, Ordinary, SlabSpec, class_bytes};
use zkhost_engine::budget::Pool;
use zkhost_engine::component::ComponentJob;
use zkhost_engine::device::ProverDevice;
use zkhost_engine::failure::{Cause, Outcome, Proved, Stage};
use zkhost_engine::ids::{JobId, Priority};
use zkhost_engine::scheduler::{Config, DeviceSpec, JobStatus, PartitionState, Role};
use zkhost_engine::synthesis::{Circuit, Synthesis};
use zkhost_engine::timeline::{Category, Timeline};
use zkhost_engine::{Engine, EngineConfig, JobRequest};
use zkhost_groth16::Prover;
use zkhost_groth16::assignment::SegmentLimits;
use zkhost_runtime::Silent;

/// How often the progress bar asks.
const POLL: Duration = Duration::from_millis(50);

/// Memory of which nothing is known but that the system has it.
const UNBOUNDED: Pool = Pool { capacity_bytes: u64::MAX, head_room_bytes: 0 };

/// Prove all partitions of a job. The proofs are verified.
pub fn prove(
    loaded: &Loaded,
    job: &Job<'_>,
    prover: Arc<dyn Prover>,
    stages: &mut Stages,
) -> Result<(Proved, Timeline)> {
    let circuit = Circuit::of(prover.bound());
    let sources = (job.layout, job.shape);
    let synthesis = Arc::new(ComponentJob::new(&loaded.circuit, &loaded.params, job.input, sources, Arc::new(Silent))?);
    let cpu = ProverDevice::new(prover.describe(), DeviceSpec { slots: 1, role: Role::Primary, node: 0 }, UNBOUNDED);
    cpu.add(circuit.id, 0, prover);
    let threads = rayon::current_num_threads();
    let scheduler = Config { synthesis_workers: threads, ..Config::default() };
    let in_flight = job.layout.partitions.min(scheduler.credits_per_slot);
    let arena = arena(synthesis.segments(), in_flight)?;
    let config = EngineConfig { scheduler, host: UNBOUNDED, pinned_head_room_bytes: 0 };
    let engine = Engine::start(config, vec![Arc::new(cpu)], arena).context("cannot start the threads that prove")?;
    let request = JobRequest {
        id: JobId { owner: "zkhost".into(), name: "prove".into() },
        body: [0; 32],
        circuit,
        priority: Priority::Normal,
        time_limit: None,
        synthesis: synthesis.clone(),
    };
    let outcome = stages.watch("prove", u64::from(job.layout.partitions), |bar| -> Result<_> {
        let handle = engine.submit(request)?;
        loop {
            if let Some(outcome) = handle.wait_for(POLL)? {
                return Ok(outcome);
            }
            if let Some(JobStatus::Running { partitions, .. }) = engine.status(handle.key())? {
                bar.set_position(partitions.iter().filter(|&&state| state == PartitionState::Closed).count() as u64);
            }
        }
    })?;
    let timeline = engine.timeline()?;
    add_stages(stages, &timeline);
    match &*outcome {
        Outcome::Proved(proved) => Ok((proved.clone(), timeline)),
        Outcome::Failed(failure) => Err(error(loaded, &synthesis, failure)),
        Outcome::Cancelled => Err(Failure::new(Code::Busy, "the job was cancelled").into()),
    }
}

/// Memory for the assignments of so many partitions.
fn arena(segments: &[SegmentLimits], partitions: u32) -> Result<Arena> {
    let bytes =
        segments.iter().try_fold(0u64, |sum, segment| sum.checked_add(class_bytes(LeaseLayout::of(segment)?.bytes())?));
    let bytes = bytes.and_then(|bytes| bytes.checked_mul(u64::from(partitions)));
    let message = "the assignment is larger than any memory; use a circuit of smaller partitions";
    let bytes = bytes.ok_or_else(|| Failure::new(Code::Guest, message))?;
    Ok(Arena::new(&[SlabSpec { node: 0, bytes }], Arc::new(Ordinary))?)
}

/// Note where the time went. Stages overlap; each moment counts once, so that their sum is the whole.
fn add_stages(stages: &mut Stages, timeline: &Timeline) {
    let times = |category| timeline.intervals(|span| span.category == category);
    let prove = times(Category::Proving);
    let assign = times(Category::Synthesis).minus(&prove);
    let verify = times(Category::Verification).minus(&prove).minus(&assign);
    for (name, times) in [("assign", assign), ("prove", prove), ("verify", verify)] {
        stages.add(name, Duration::from_nanos(times.nanos()));
    }
}

/// The failure with the exit code that it has outside an engine, too.
fn error(loaded: &Loaded, synthesis: &ComponentJob, failure: &zkhost_engine::failure::Failure) -> anyhow::Error {
    let partition = failure.place.partition.unwrap_or_default();
    let code = match (&failure.cause, failure.stage) {
        (Cause::Guest(_), _) => match synthesis.take_error() {
            Some(error) => return error.into(),
            None => Code::Guest,
        },
        (Cause::Unsatisfied(broken), _) => return loaded.name_constraint(partition, broken.clone()).into(),
        (Cause::Device { .. }, Stage::Verification) => Code::False,
        (Cause::Rejected(_), _) => Code::Guest,
        (Cause::Deadline, _) => Code::Busy,
        _ => Code::Device,
    };
    Failure::new(code, failure.to_string()).into()
}
