//! The host: everything behind the interface.

mod jobs;
mod receive;
mod run;
mod status;
mod trace;

pub use jobs::{Submit, SubmitError};
pub use receive::{ReceiveError, Received, Receiving};

use crate::access::Access;
use crate::circuits::{Blobs, HostedCircuit, Registry, RegistryError, RegistrySettings};
use crate::config::Config;
use crate::devices::Devices;
use crate::input::InputMemory;
use crate::metrics::Metrics;
use crate::queue::{Live, Queue};
use crate::store::{Store, StoreError, Vault, VaultError};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trace::EndedRuns;
use zkhost_client::types::{Health, JobState, Version};
use zkhost_engine::arena::{Arena, ArenaError, slabs_on_every_node};
use zkhost_engine::budget::Pool;
use zkhost_engine::scheduler;
use zkhost_engine::{Engine, EngineConfig};
use zkhost_runtime::{Cache, CacheError, Compiler, Runtime};

/// How often the janitor looks for what is overdue.
const JANITOR_PERIOD: Duration = Duration::from_millis(500);

/// How often it forgets old jobs.
const FORGET_PERIOD: Duration = Duration::from_secs(60);

/// How often to look whether threads have ended.
const JOIN_PERIOD: Duration = Duration::from_millis(5);

/// How long jobs may take to end when the host stops at once: slots finish the step that they are at.
const LEAVE_TIME: Duration = Duration::from_secs(60);

/// The same of the thread that loads circuits, which may be minutes from its end.
const LOADER_LEAVE_TIME: Duration = Duration::from_secs(1);

/// The thread that loads circuits.
const LOADER: &str = "zkhost-circuits";

/// What a host is made of.
pub struct HostParts {
    /// The configuration, checked.
    pub config: Config,
    /// How components are compiled.
    pub compiler: Compiler,
    /// What the host says of itself.
    pub version: Version,
}

/// Why a host does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A folder or file.
    #[error("cannot use {}: {cause}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Another host has the data.
    #[error("{} is in use by another zkhost; stop it, or give this one a data folder of its own", .0.display())]
    InUse(PathBuf),
    /// The configuration.
    #[error("configuration: {0}")]
    Config(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key of inputs.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The cache of native code.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The WebAssembly engine.
    #[error(transparent)]
    Runtime(#[from] zkhost_runtime::StartError),
    /// Memory.
    #[error(transparent)]
    Arena(#[from] ArenaError),
    /// Threads.
    #[error("the system gives no more threads: {0}")]
    Threads(io::Error),
}

/// A host that runs.
pub struct Host {
    config: Config,
    version: Version,
    access: Access,
    registry: Arc<Registry>,
    store: Store,
    vault: Vault,
    queue: Queue,
    engine: Engine,
    metrics: Metrics,
    input_memory: InputMemory,
    ended_runs: EndedRuns,
    /// All circuits that were there at the start have been looked at.
    scanned: AtomicBool,
    draining: AtomicBool,
    /// What runs is left to the next start.
    leaving: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    _lock: File,
}

impl Host {
    /// Start: open the store, queue what had not ended, begin to load circuits and to prove.
    pub fn start(parts: HostParts) -> Result<Arc<Self>, StartError> {
        let HostParts { config, compiler, version } = parts;
        config.check().map_err(StartError::Config)?;
        let data = config.data();
        let io = |path: &Path, cause| StartError::Io { path: path.to_owned(), cause };
        DirBuilder::new().recursive(true).mode(0o700).create(&data).map_err(|cause| io(&data, cause))?;
        let lock = lock(&data)?;
        let folder = config.circuits_folder();
        std::fs::create_dir_all(&folder).map_err(|cause| io(&folder, cause))?;
        let blobs =
            Blobs::open(&data.join("blobs"), config.circuits.uploads_bytes_max).map_err(|cause| io(&data, cause))?;
        let phase2 = config.phase2();
        let loaded_max = config.circuits.loaded_max;
        let settings = RegistrySettings { folder: Some(folder), data: data.clone(), loaded_max, phase2 };
        let runtime = Runtime::new(compiler, Some(Cache::open(&data.join("code"))?))?;
        let shapes = Cache::open(&data.join("shapes"))?;
        let registry = Registry::new(runtime, shapes, blobs, settings).map_err(|cause| io(&data, cause))?;
        let registry = Arc::new(registry);
        let vault = Vault::open(&config.jobs.input_key.clone().unwrap_or_else(|| data.join("input.key")))?;
        let devices = Devices::open(&config.engine, &registry);
        let host = Arc::new(Self {
            access: Access::new(&config.tokens),
            engine: start_engine(&config, &devices)?,
            store: Store::open(&data, config.jobs.inputs_disk_bytes_max)?,
            input_memory: InputMemory::new(config.jobs.inputs_memory_bytes_max),
            registry,
            vault,
            config,
            version,
            queue: Queue::default(),
            metrics: Metrics::default(),
            ended_runs: EndedRuns::default(),
            scanned: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            threads: Mutex::default(),
            _lock: lock,
        });
        host.requeue()?;
        host.start_threads()?;
        Ok(host)
    }

    /// Queue what had not ended when the last process did.
    fn requeue(&self) -> Result<(), StartError> {
        let queued = self.store.queued()?;
        let count = queued.len();
        for job in queued {
            let name = (job.seq, job.id, job.owner);
            let live = Live::new(name, job.circuit, job.priority, (job.submitted_ms, job.deadline_ms), None);
            if job.has_input {
                self.queue.push(Arc::new(live));
            } else {
                let sentence =
                    "the host was restarted and keeps inputs in memory only (`jobs.inputs`); submit it again";
                self.record_failure(&live, "input-lost", sentence.into());
            }
        }
        if count > 0 {
            tracing::info!(count, "jobs of the last run are queued again");
        }
        Ok(())
    }

    fn start_threads(self: &Arc<Self>) -> Result<(), StartError> {
        let jobs = &self.config.jobs;
        let normal = (0..jobs.running_max).map(|_| 0);
        let urgent = (0..jobs.running_urgent_max).map(|_| 2);
        for (index, priority_min) in normal.chain(urgent).enumerate() {
            let host = self.clone();
            self.spawn(format!("zkhost-job-{index}"), move || host.take_jobs(priority_min))?;
        }
        let host = self.clone();
        self.spawn(LOADER.into(), move || host.watch_circuits())?;
        let host = self.clone();
        self.spawn("zkhost-janitor".into(), move || host.tidy())
    }

    fn spawn(&self, name: String, work: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        let thread = std::thread::Builder::new().name(name).spawn(work).map_err(StartError::Threads)?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Load uploaded circuits, then those of the folder, then whatever changes there.
    fn watch_circuits(&self) {
        if let Err(error) = self.registry.load_uploads() {
            tracing::error!(%error, "uploaded circuits cannot be read");
        }
        self.queue.unpark();
        let period = Duration::from_secs(self.config.circuits.scan_seconds);
        while !self.is_draining() {
            if self.registry.scan() {
                self.queue.unpark();
            }
            self.scanned.store(true, Ordering::Relaxed);
            self.sleep(period);
        }
    }

    /// End what is overdue, give up idle keys, forget old jobs.
    fn tidy(&self) {
        let mut forgotten = Instant::now();
        let idle = Duration::from_secs(self.config.circuits.key_idle_seconds);
        while !self.is_draining() {
            for live in self.queue.overdue(now_ms()) {
                if self.queue.withdraw(&live.id).is_some() {
                    self.record_failure(&live, "deadline", "its deadline passed while it waited".into());
                }
            }
            for circuit in self.registry.all() {
                if circuit.evict_if_idle(idle) {
                    self.evict(&circuit);
                    tracing::info!(circuit = circuit.name(), "an idle key was given up");
                }
            }
            if forgotten.elapsed() >= FORGET_PERIOD {
                forgotten = Instant::now();
                if let Err(error) = self.forget() {
                    tracing::error!(%error, "old jobs cannot be forgotten");
                }
            }
            self.sleep(JANITOR_PERIOD);
        }
    }

    /// Forget jobs that ended longer ago than they are kept, now rather than within a minute. Waits for the disk; says how many.
    pub fn forget(&self) -> Result<usize, StoreError> {
        let before = now_ms().saturating_sub(self.config.keep().as_millis() as u64);
        self.store.forget(before, self.config.jobs.kept_max).blocking_recv().unwrap_or(Err(StoreError::Stopped))
    }

    /// Sleep, unless the host is to stop.
    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_draining() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50).min(time));
        }
    }

    /// Take no new jobs; finish those that run. Jobs that wait are there at the next start.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.queue.close();
    }

    /// Whether the host stops.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Stop what runs; it is queued at the next start.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        self.drain();
        if let Err(error) = self.engine.cancel_all() {
            tracing::error!(%error, "jobs cannot be stopped");
        }
    }

    /// Whether what runs is left to the next start.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Wait until nothing runs any more, after [`Self::drain`] or [`Self::leave`]. After the latter a thread that loads circuits,
    /// which cannot be told to stop, is left behind, and so are others after a while: what they do is not lost or is done again.
    pub fn join(&self) {
        let mut threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let mut leaving_since = None;
        loop {
            // A panic of a job's thread was told when it happened.
            threads.retain(|thread| !thread.is_finished());
            if self.is_leaving() {
                let elapsed = leaving_since.get_or_insert_with(Instant::now).elapsed();
                let time = |loads: bool| if loads { LOADER_LEAVE_TIME } else { LEAVE_TIME };
                threads.retain(|thread| elapsed < time(thread.thread().name() == Some(LOADER)));
            }
            if threads.is_empty() {
                return;
            }
            std::thread::sleep(JOIN_PERIOD);
        }
    }

    /// Whether it takes jobs, and how many there are.
    pub fn health(&self) -> Health {
        let reason = match (self.is_draining(), self.has_scanned()) {
            (true, _) => Some("the host is stopping"),
            (false, false) => Some("circuits are being loaded"),
            (false, true) => None,
        };
        Health {
            ready: reason.is_none(),
            reason: reason.map(str::to_owned),
            queued: self.queue.waiting() as u64,
            running: self.queue.running().len() as u64,
            circuits: self.registry.all().len() as u64,
        }
    }

    /// Whether all circuits that were there at the start have been looked at.
    pub fn has_scanned(&self) -> bool {
        self.scanned.load(Ordering::Relaxed)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The host's versions.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Tokens.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Circuits.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Memory of inputs.
    pub(crate) fn input_memory(&self) -> &InputMemory {
        &self.input_memory
    }

    /// Open a circuit's key now, and begin to bring it to the devices that prove with it.
    pub fn preload(&self, circuit: &HostedCircuit) -> Result<(), RegistryError> {
        circuit.resident()?;
        match self.engine.preload(circuit.engine_id()) {
            Ok(devices) => tracing::info!(circuit = circuit.name(), devices = devices.len(), "its key was asked for"),
            Err(error) => tracing::error!(%error, "a key cannot be loaded"),
        }
        Ok(())
    }

    /// Give up a circuit's key, and take it off devices. Jobs that run keep it until they end.
    pub fn evict(&self, circuit: &HostedCircuit) {
        if let Err(error) = self.engine.evict(circuit.engine_id()) {
            tracing::error!(%error, "a key cannot be given up");
        }
        circuit.evict();
    }

    /// A circuit was loaded: jobs may have waited for it.
    pub fn circuit_loaded(&self) {
        self.queue.unpark();
    }

    /// Where a job stands now, beside what is recorded.
    pub(crate) fn live_state(&self, id: &str) -> Option<JobState> {
        self.queue.get(id).map(|live| live.state())
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}

/// One host a data folder.
fn lock(data: &Path) -> Result<File, StartError> {
    let path = data.join("lock");
    let file = File::create(&path).map_err(|cause| StartError::Io { path, cause })?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(StartError::InUse(data.to_owned())),
    }
}

fn start_engine(config: &Config, devices: &Devices) -> Result<Engine, StartError> {
    let engine = &config.engine;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let synthesis_workers = engine.synthesis_workers.unwrap_or(processors);
    let default = scheduler::Config::default();
    // Guests mostly take longer than GPUs: as many partitions may be in flight as there are threads to write them.
    let in_flight = u32::try_from(synthesis_workers.div_ceil(devices.slots().max(1))).unwrap_or(u32::MAX);
    let has_gpu = devices.all.len() > 1;
    let credits_per_slot = if has_gpu { default.credits_per_slot.max(in_flight) } else { default.credits_per_slot };
    let arena = Arena::new(&slabs_on_every_node(engine.arena_bytes), devices.page_lock.clone())?;
    let jobs_max = config.jobs.running_max + config.jobs.running_urgent_max;
    let config = EngineConfig {
        scheduler: scheduler::Config {
            synthesis_workers,
            credits_per_slot,
            jobs_max,
            ended_jobs_max: jobs_max,
            ..default
        },
        host: Pool { capacity_bytes: engine.guest_bytes_max, head_room_bytes: 0 },
        pinned_head_room_bytes: 0,
    };
    Engine::start(config, devices.all.clone(), arena).map_err(StartError::Threads)
}
