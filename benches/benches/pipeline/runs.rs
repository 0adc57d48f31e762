//! Engines over GPUs, jobs on them, and what their timelines say.

use super::circuits::{Keys, Material, Ready};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use zkhost_engine::arena::Arena;
use zkhost_engine::budget::Pool;
use zkhost_engine::cuda::{CudaConfig, CudaDevice, KeyStore};
use zkhost_engine::device::{Call, Device, ProveFault, ProverDevice};
use zkhost_engine::failure::Outcome;
use zkhost_engine::ids::{CircuitId, DeviceId, JobId, JobKey, PROOF_BYTES, Priority};
use zkhost_engine::scheduler::{Config, Counters, DeviceFault, DeviceSpec, JobStatus, PartitionState, Role};
use zkhost_engine::synthesis::Synthesis;
use zkhost_engine::timeline::{Category, Intervals, Span, Timeline};
use zkhost_engine::{Engine, EngineConfig, JobHandle, JobRequest};
use zkhost_groth16::{Assignment, CpuProver, Proof, Prover};

/// GPUs and an engine over them, with the CPU as the last resort.
pub struct Setting {
    pub gpus: Vec<Arc<CudaDevice>>,
    pub engine: Engine,
}

impl Setting {
    pub fn new(
        gpus: &[Arc<zkhost_cuda::Device>],
        config: CudaConfig,
        material: &Material,
        arena: &Arena,
        scheduler: Config,
        wrap: impl Fn(usize, Arc<CudaDevice>) -> Arc<dyn Device>,
    ) -> Self {
        let store = KeyStore::new(Keys::of(&[material]));
        let open = |gpu: &Arc<zkhost_cuda::Device>| {
            Arc::new(CudaDevice::new(gpu.clone(), config, store.clone()).expect("the GPU has memory for its slots"))
        };
        let gpus: Vec<_> = gpus.iter().map(open).collect();
        let unbounded = Pool { capacity_bytes: u64::MAX, head_room_bytes: 0 };
        let cpu = ProverDevice::new("CPU", DeviceSpec { slots: 1, role: Role::LastResort, node: 0 }, unbounded);
        let prover = CpuProver::new(material.key.clone(), material.r1cs.clone()).expect("the key is the circuit's");
        cpu.add(material.circuit.id, 0, Arc::new(prover) as Arc<dyn Prover>);
        let mut devices: Vec<Arc<dyn Device>> =
            gpus.iter().enumerate().map(|(number, gpu)| wrap(number, gpu.clone())).collect();
        devices.push(Arc::new(cpu));
        let config = EngineConfig { scheduler, host: unbounded, pinned_head_room_bytes: 0 };
        let engine = Engine::start(config, devices, arena.clone()).expect("the system has threads");
        Self { gpus, engine }
    }

    /// Have every GPU load the key, and prove some partitions more than there are slots.
    pub fn warm_up(&self, material: &Material) {
        let takes = |gpu: &Arc<CudaDevice>| gpu.plan(material.circuit.id).is_some();
        assert!(self.gpus.iter().all(takes), "a GPU has no room for proofs of this circuit");
        // A device that has no key yet is only given one when the others have all they can take.
        self.engine.preload(material.circuit.id).expect("the engine runs");
        let loaded = |span: &&Span| span.category == Category::KeyLoad;
        while self.engine.timeline().expect("the engine runs").spans().filter(loaded).count() < self.gpus.len() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let partitions = 8 * self.gpus.len() as u32;
        self.run("warm-up", material, Arc::new(Ready::new(material, partitions)));
    }

    /// Run a job to its end. The engine has verified its proofs; there must be as many as partitions.
    pub fn run(&self, name: &str, material: &Material, synthesis: Arc<dyn Synthesis>) -> Run {
        self.run_all(name, material, vec![synthesis])
    }

    /// The same of several jobs, submitted one after the other.
    pub fn run_all(&self, name: &str, material: &Material, jobs: Vec<Arc<dyn Synthesis>>) -> Run {
        let mark = self.engine.timeline().expect("the engine runs").mark();
        let partitions: Vec<_> = jobs.iter().map(|job| job.partitions() as usize).collect();
        let began = Instant::now();
        let submit = |(number, job)| {
            self.engine.submit(request(&format!("{name} {number}"), material, job)).expect("the engine takes it")
        };
        let jobs: Vec<_> = jobs.into_iter().enumerate().map(submit).collect();
        let keys: Vec<_> = jobs.iter().map(JobHandle::key).collect();
        for (job, partitions) in jobs.into_iter().zip(partitions) {
            let outcome = job.wait().expect("the engine runs");
            let Outcome::Proved(proved) = &*outcome else { panic!("{outcome:?}") };
            assert_eq!(proved.proofs.len(), PROOF_BYTES * partitions);
        }
        let wall = began.elapsed();
        let timeline = of_jobs(&self.engine.timeline_since(mark).expect("the engine runs"), &keys);
        Run { wall, timeline, counters: self.engine.usage().expect("the engine runs").1 }
    }
}

impl Setting {
    /// How long it takes from cancelling a job, some time after it began, until all of it is free.
    pub fn cancel(&self, name: &str, material: &Material, after: Duration) -> Duration {
        let job = self
            .engine
            .submit(request(name, material, Arc::new(Ready::new(material, 1))))
            .expect("the engine takes it");
        while !self.is_proving(job.key()) {
            std::thread::yield_now();
        }
        std::thread::sleep(after);
        let began = Instant::now();
        job.cancel().expect("the engine runs");
        let outcome = job.wait().expect("the engine runs");
        let time = began.elapsed();
        assert!(matches!(*outcome, Outcome::Cancelled | Outcome::Proved(_)), "{outcome:?}");
        assert_eq!(self.engine.usage().expect("the engine runs").0.pinned_bytes, 0, "its memory is free");
        time
    }

    fn is_proving(&self, key: JobKey) -> bool {
        match self.engine.status(key).expect("the engine runs") {
            Some(JobStatus::Running { partitions, .. }) => matches!(partitions[0], PartitionState::Proving(_)),
            _ => true,
        }
    }
}

fn request(name: &str, material: &Material, synthesis: Arc<dyn Synthesis>) -> JobRequest {
    JobRequest {
        id: JobId { owner: "bench".into(), name: name.into() },
        body: [0; 32],
        circuit: material.circuit.clone(),
        priority: Priority::Normal,
        time_limit: None,
        synthesis,
    }
}

/// The spans of some jobs.
fn of_jobs(timeline: &Timeline, jobs: &[JobKey]) -> Timeline {
    let mut of_jobs = Timeline::default();
    let spans = timeline.spans().filter(|span| span.partition.is_some_and(|partition| jobs.contains(&partition.job)));
    spans.cloned().for_each(|span| of_jobs.push(span));
    of_jobs
}

/// A GPU that is lost, as one that fell off the bus, when it is asked for its proof of this number.
pub struct Failing {
    pub gpu: Arc<CudaDevice>,
    pub proofs: AtomicU32,
    pub fails_at: u32,
}

impl Device for Failing {
    fn describe(&self) -> String {
        self.gpu.describe()
    }

    fn spec(&self) -> DeviceSpec {
        self.gpu.spec()
    }

    fn memory(&self) -> Pool {
        self.gpu.memory()
    }

    fn circuit_bytes(&self, circuit: CircuitId) -> Option<u64> {
        self.gpu.circuit_bytes(circuit)
    }

    fn load(&self, circuit: CircuitId) -> Result<(), DeviceFault> {
        self.gpu.load(circuit)
    }

    fn evict(&self, circuit: CircuitId) {
        self.gpu.evict(circuit);
    }

    fn restart(&self) -> Result<(), DeviceFault> {
        self.gpu.restart()
    }

    fn prove(&self, slot: u16, circuit: CircuitId, assignment: &Assignment, call: &Call) -> Result<Proof, ProveFault> {
        if self.proofs.fetch_add(1, Ordering::Relaxed) >= self.fails_at {
            return Err(DeviceFault::Lost("it fell off the bus".into()).into());
        }
        self.gpu.prove(slot, circuit, assignment, call)
    }
}

/// A job that has ended.
pub struct Run {
    pub wall: Duration,
    pub timeline: Timeline,
    pub counters: Counters,
}

impl Run {
    /// The share of a GPU's time from the job's first work on it to its last in which its kernels ran, in percent.
    pub fn kernel_busy(&self, device: DeviceId) -> f64 {
        let here = |category| {
            self.timeline.intervals(move |span| span.track.device() == Some(device) && span.category == category)
        };
        let (slots, kernels) = (here(Category::Proving), here(Category::Kernel));
        let (first, last) = (slots.iter().next().expect("it worked").0, slots.iter().last().expect("it worked").1);
        let wall: Intervals = [(first, last)].into_iter().collect();
        100.0 * kernels.intersect(&wall).nanos() as f64 / wall.nanos() as f64
    }

    /// From the first phase on the GPU to the end of the last, by its events, in milliseconds.
    pub fn device_ms(&self) -> f64 {
        let phases = self.timeline.intervals(|span| matches!(span.category, Category::Kernel | Category::Copy));
        let (first, last) = (phases.iter().next().expect("it worked").0, phases.iter().last().expect("it worked").1);
        (last - first) as f64 / 1e6
    }

    /// Keep trace and picture, if `ZKHOST_BENCH_TRACES` names a folder, and print the summary.
    pub fn keep(&self, name: &str) {
        println!("{name}: {:.1} ms wall\n{}", self.wall.as_secs_f64() * 1e3, self.timeline.summary());
        let Some(folder) = env::var_os("ZKHOST_BENCH_TRACES").map(PathBuf::from) else { return };
        let mut trace = vec![];
        self.timeline.write_trace(&mut trace).expect("memory takes it");
        let kept = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join(format!("{name}.json")), trace))
            .and_then(|()| fs::write(folder.join(format!("{name}.svg")), self.timeline.waterfall_svg()));
        kept.expect("the folder can be written to");
    }
}
