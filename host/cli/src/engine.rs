//! Proving by the engine: one job, whose guests write while others are proved, on GPUs or on the CPU.

use crate::circuit::{Job, Loaded};
use crate::error::{Code, Failure};
use crate::output::Output;
use crate::progress::Stages;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::time::Duration;
use zkhost_cuda::{DeviceChoice, KeyDimensions, LOG_DOMAIN_MIN};
use zkhost_engine::arena::{Arena, LeaseLayout, Ordinary, PageLock, SlabSpec, class_bytes};
use zkhost_engine::budget::Pool;
use zkhost_engine::circom::CircomJob;
use zkhost_engine::component::ComponentJob;
use zkhost_engine::cuda::{CudaConfig, CudaDevice, KeySource, KeyStore, SLOTS};
use zkhost_engine::device::{Device, ProverDevice};
use zkhost_engine::failure::{Cause, Failure as Failed, Outcome, Proved, Stage};
use zkhost_engine::ids::{CircuitId, JobId, Priority};
use zkhost_engine::scheduler::{Config, DeviceSpec, JobStatus, PartitionState, Role};
use zkhost_engine::synthesis::{Circuit, Synthesis};
use zkhost_engine::timeline::{Category, Timeline};
use zkhost_engine::{Engine, EngineConfig, JobRequest};
use zkhost_groth16::assignment::SegmentLimits;
use zkhost_groth16::{CpuProver, Prover, ProvingKey, R1cs};
use zkhost_runtime::Silent;

/// How often the progress bar asks.
const POLL: Duration = Duration::from_millis(50);

/// Memory of which nothing is known but that the system has it.
const UNBOUNDED: Pool = Pool { capacity_bytes: u64::MAX, head_room_bytes: 0 };

/// Memory for the assignments of partitions that wait for a slot, in bytes, beyond what keeps slots busy.
const LOOK_AHEAD_BYTES_MAX: u64 = 8 << 30;

/// Devices that prove one circuit.
pub struct Devices {
    circuit: Circuit,
    all: Vec<Arc<dyn Device>>,
    page_lock: Arc<dyn PageLock>,
    name: String,
}

impl Devices {
    /// The GPUs that were chosen, with as many slots as partitions keep busy, and the CPU, for what they do not take or fail
    /// at. The key must be the circuit's.
    pub fn open(
        choice: DeviceChoice,
        key: &Arc<ProvingKey>,
        shape: &Arc<R1cs>,
        partitions: u32,
        output: Output,
    ) -> Result<Self> {
        let cpu = CpuProver::new(Arc::clone(key), Arc::clone(shape))?;
        let circuit = Circuit::of(cpu.bound());
        let (gpus, remarks) = match choice {
            DeviceChoice::Auto if key.log2_domain < LOG_DOMAIN_MIN => Default::default(),
            _ => choice.open_all(),
        };
        remarks.iter().for_each(|remark| output.note(remark));
        let store = KeyStore::new(Arc::new(OneKey { id: circuit.id, key: key.clone(), shape: shape.clone() }));
        let slots = u16::try_from(partitions).unwrap_or(u16::MAX).clamp(1, SLOTS);
        let config = CudaConfig { slots, small_domains: true, ..CudaConfig::default() };
        let mut used = vec![];
        for gpu in gpus {
            let name = gpu.describe();
            match CudaDevice::new(gpu, config, store.clone()) {
                Ok(gpu) if gpu.plan(circuit.id).is_some() => used.push(gpu),
                Ok(_) => output.note(format_args!("{name} has too little memory for the key; it is not used")),
                Err(error) => output.note(format_args!("{name} is not used: {error}")),
            }
        }
        let page_lock = used.first().map_or_else(|| Arc::new(Ordinary) as Arc<dyn PageLock>, CudaDevice::page_lock);
        let names: Vec<_> = used.iter().map(Device::describe).collect();
        let name = if names.is_empty() { cpu.describe() } else { names.join(", ") };
        let role = if names.is_empty() { Role::Primary } else { Role::LastResort };
        let last = ProverDevice::new(cpu.describe(), DeviceSpec { slots: 1, role, node: 0 }, UNBOUNDED);
        last.add(circuit.id, 0, Arc::new(cpu));
        let mut all: Vec<Arc<dyn Device>> = used.into_iter().map(|gpu| Arc::new(gpu) as Arc<dyn Device>).collect();
        all.push(Arc::new(last));
        Ok(Self { circuit, all, page_lock, name })
    }

    /// What they are.
    pub fn describe(&self) -> &str {
        &self.name
    }

    /// Slots that work at a time.
    fn slots(&self) -> u32 {
        let spec = |device: &Arc<dyn Device>| device.spec();
        let primary = self.all.iter().map(spec).filter(|spec| spec.role == Role::Primary);
        primary.map(|spec| u32::from(spec.slots)).sum()
    }

    /// Memory for assignments, near the first device, and how many partitions may be in flight for each slot: guests mostly
    /// take longer than GPUs, so there as many work as there are threads, while memory allows.
    fn room(&self, segments: &[SegmentLimits], partitions: u32, threads: usize) -> Result<(Arena, u32)> {
        let add = |sum: u64, segment| sum.checked_add(class_bytes(LeaseLayout::of(segment)?.bytes())?);
        let message = "the assignment is larger than any memory; use a circuit of smaller partitions";
        let too_large = || Failure::new(Code::Guest, message);
        let partition_bytes = segments.iter().try_fold(0, add).ok_or_else(too_large)?.max(1);

        let default = Config::default().credits_per_slot;
        let at_a_time =
            (threads as u64).div_ceil(segments.len().max(1) as u64).min(LOOK_AHEAD_BYTES_MAX / partition_bytes);
        let wanted = at_a_time.div_ceil(u64::from(self.slots()));
        let on_gpus = self.all.len() > 1;
        let credits = if on_gpus { u32::try_from(wanted).unwrap_or(u32::MAX).max(default) } else { default };
        let in_flight = partitions.min(credits.saturating_mul(self.slots()));
        let bytes = partition_bytes.checked_mul(u64::from(in_flight)).ok_or_else(too_large)?;
        let slab = SlabSpec { node: self.all[0].spec().node, bytes };
        Ok((Arena::new(&[slab], self.page_lock.clone())?, credits))
    }
}

/// The key that the command opened.
struct OneKey {
    id: CircuitId,
    key: Arc<ProvingKey>,
    shape: Arc<R1cs>,
}

impl KeySource for OneKey {
    fn dimensions(&self, circuit: CircuitId) -> Option<KeyDimensions> {
        (circuit == self.id).then(|| KeyDimensions::of(&self.key, &self.shape))
    }

    fn open(&self, _circuit: CircuitId) -> Result<(Arc<ProvingKey>, Arc<R1cs>), String> {
        Ok((self.key.clone(), self.shape.clone()))
    }
}

/// Prove all partitions of a component's job. The proofs are verified.
pub fn prove(loaded: &Loaded, job: &Job<'_>, devices: &Devices, stages: &mut Stages) -> Result<(Proved, Timeline)> {
    let sources = (job.layout, job.shape);
    let synthesis = Arc::new(ComponentJob::new(&loaded.circuit, &loaded.params, job.input, sources, Arc::new(Silent))?);
    // One more would be refused as busy, and the job with it.
    let guests_max = loaded.circuit.limits().instances as usize;
    let (outcome, timeline) = run(synthesis.clone(), guests_max, devices, stages)?;
    let cause_of = |failure: &Failed| match &failure.cause {
        Cause::Guest(_) => synthesis.take_error().map(anyhow::Error::from),
        Cause::Unsatisfied(broken) => {
            let partition = failure.place.partition.unwrap_or_default();
            Some(loaded.name_constraint(partition, broken.clone()).into())
        }
        _ => None,
    };
    Ok((proved(&outcome, cause_of)?, timeline))
}

/// Prove a circom circuit's job. The proof is verified.
pub fn prove_circom(synthesis: Arc<CircomJob>, devices: &Devices, stages: &mut Stages) -> Result<(Proved, Timeline)> {
    let (outcome, timeline) = run(synthesis.clone(), 1, devices, stages)?;
    let proved = proved(&outcome, |_| synthesis.take_error().map(anyhow::Error::from))?;
    Ok((proved, timeline))
}

/// One job on an engine of its own, with so many guests at a time at most.
fn run(
    synthesis: Arc<dyn Synthesis>,
    guests_max: usize,
    devices: &Devices,
    stages: &mut Stages,
) -> Result<(Arc<Outcome>, Timeline)> {
    let partitions = synthesis.partitions();
    let threads = rayon::current_num_threads().min(guests_max).max(1);
    let (arena, credits_per_slot) = devices.room(synthesis.segments(), partitions, threads)?;
    let scheduler = Config { synthesis_workers: threads, credits_per_slot, ..Config::default() };
    let config = EngineConfig { scheduler, host: UNBOUNDED, pinned_head_room_bytes: 0 };
    let engine = Engine::start(config, devices.all.clone(), arena).context("cannot start the threads that prove")?;
    let request = JobRequest {
        id: JobId { owner: "zkhost".into(), name: "prove".into() },
        body: [0; 32],
        circuit: devices.circuit.clone(),
        priority: Priority::Normal,
        time_limit: None,
        synthesis,
    };
    let outcome = stages.watch("prove", u64::from(partitions), |bar| -> Result<_> {
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
    Ok((outcome, timeline))
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

/// The proofs, or the failure with the exit code that it has outside an engine, too; `cause_of` may know it in full.
fn proved(outcome: &Outcome, cause_of: impl FnOnce(&Failed) -> Option<anyhow::Error>) -> Result<Proved> {
    let failure = match outcome {
        Outcome::Proved(proved) => return Ok(proved.clone()),
        Outcome::Cancelled => return Err(Failure::new(Code::Busy, "the job was cancelled").into()),
        Outcome::Failed(failure) => failure,
    };
    let code = match (&failure.cause, failure.stage) {
        (Cause::Unsatisfied(_), _) | (Cause::Device { .. }, Stage::Verification) => Code::False,
        (Cause::Guest(_) | Cause::Rejected(_), _) => Code::Guest,
        (Cause::Deadline, _) => Code::Busy,
        _ => Code::Device,
    };
    Err(cause_of(failure).unwrap_or_else(|| Failure::new(code, failure.to_string()).into()))
}
