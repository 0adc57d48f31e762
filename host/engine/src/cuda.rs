//! GPUs as devices of the engine: slots that are whole provers, keys that are loaded when they are needed, page-locking.

use crate::arena::PageLock;
use crate::budget::Pool;
use crate::device::{Call, Device, Phase, PhaseKind, ProveFault};
use crate::ids::CircuitId;
use crate::scheduler::{DeviceFault, DeviceSpec, Role};
use std::collections::HashMap;
use std::hash::Hash;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use zkhost_cuda::device::MemoryLimits;
use zkhost_cuda::{CudaError, CudaKey, HostKey, KeyDimensions, KeyPlan, LOG_DOMAIN_MIN, Proved, Slot, Work};
use zkhost_groth16::{Assignment, Proof, ProvingKey, R1cs};

/// Slots of a GPU unless told otherwise: while one copies, the other's kernels run.
pub const SLOTS: u16 = 2;

/// What all slots together get of a GPU's memory as scratch, unless told otherwise, in percent. Keys get the rest.
pub const SCRATCH_PERCENT: u64 = 30;

/// What one key may take of the memory for keys for the sake of speed alone, in percent; it takes all of it only where it
/// would have to be streamed otherwise.
const KEY_PERCENT: u64 = 50;

/// Device memory that is left to the driver and others, in bytes.
const SPARE_BYTES: u64 = 512 << 20;

/// Scratch memory for loading keys, in bytes: what the multiples of the largest piece of a key take.
const LOAD_SCRATCH_BYTES: usize = 256 << 20;

/// Where keys come from.
pub trait KeySource: Send + Sync {
    /// The numbers of a circuit's key; none if there is no such circuit. Asked at each submission, so it must not wait.
    fn dimensions(&self, circuit: CircuitId) -> Option<KeyDimensions>;
    /// The key, in whatever basis, and its constraint system; an error is a sentence.
    fn open(&self, circuit: CircuitId) -> Result<(Arc<ProvingKey>, Arc<R1cs>), String>;
}

/// Keys on the host, each in memory once however many GPUs it feeds, and only while one does.
pub struct KeyStore {
    source: Arc<dyn KeySource>,
    open: Shared<CircuitId, HostKey>,
}

impl KeyStore {
    /// A store of a source's keys.
    pub fn new(source: Arc<dyn KeySource>) -> Arc<Self> {
        Arc::new(Self { source, open: Shared::default() })
    }

    fn open(&self, circuit: CircuitId, device: &Arc<zkhost_cuda::Device>) -> Result<Arc<HostKey>, DeviceFault> {
        self.open.get_or_make(circuit, || {
            let (key, r1cs) = self.source.open(circuit).map_err(DeviceFault::Failed)?;
            HostKey::converted(device, key, r1cs).map_err(fault)
        })
    }
}

/// Values that are made once and shared by those who want them at a time.
struct Shared<K, V>(Mutex<HashMap<K, Arc<Mutex<Weak<V>>>>>);

impl<K, V> Default for Shared<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash, V> Shared<K, V> {
    fn get_or_make<E>(&self, name: K, make: impl FnOnce() -> Result<Arc<V>, E>) -> Result<Arc<V>, E> {
        let entry = {
            let mut entries = lock(&self.0);
            // Others hold those that are being made.
            entries.retain(|_, entry| Arc::strong_count(entry) > 1 || lock(entry).strong_count() > 0);
            entries.entry(name).or_default().clone()
        };
        // Held while the value is made, so that others who want this one wait for it; nobody else does.
        let mut held = lock(&entry);
        if let Some(value) = held.upgrade() {
            return Ok(value);
        }
        let value = make()?;
        *held = Arc::downgrade(&value);
        Ok(value)
    }
}

/// How a GPU is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaConfig {
    /// Proofs at a time.
    pub slots: u16,
    /// Scratch memory of all slots, of what is free, in percent; keys get the rest.
    pub scratch_percent: u64,
    /// Device memory that may be used, in bytes, if not all that is free.
    pub memory_bytes_max: Option<u64>,
    /// Whether domains that a CPU proves as fast are taken, too.
    pub small_domains: bool,
}

impl Default for CudaConfig {
    fn default() -> Self {
        Self { slots: SLOTS, scratch_percent: SCRATCH_PERCENT, memory_bytes_max: None, small_domains: false }
    }
}

/// A GPU.
///
/// Its memory is shared out when it is opened: scratch for each slot, memory for loading, and a pool for keys, which is the
/// budget's to give. A key's plan is made from its dimensions, so that its bytes are known before it is loaded.
pub struct CudaDevice {
    device: Arc<zkhost_cuda::Device>,
    keys: Arc<KeyStore>,
    config: CudaConfig,
    /// Taken out by who uses it: no lock is held while it works.
    slots: Vec<Mutex<Option<Slot>>>,
    scratch_bytes: usize,
    pool: Pool,
    load_scratch: Mutex<Option<zkhost_cuda::Buffer<u8>>>,
    plans: Mutex<HashMap<CircuitId, Option<KeyPlan>>>,
    resident: Mutex<HashMap<CircuitId, Arc<CudaKey>>>,
}

impl CudaDevice {
    /// Takes the memory for slots of a GPU that is open.
    pub fn new(device: Arc<zkhost_cuda::Device>, config: CudaConfig, keys: Arc<KeyStore>) -> Result<Self, CudaError> {
        if let Some(bytes) = config.memory_bytes_max {
            let bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
            device.set_memory_limits(MemoryLimits { bytes_max, ..MemoryLimits::default() });
        }
        let free_bytes = device.available_bytes()? as u64;
        let shared_bytes = free_bytes.saturating_sub(SPARE_BYTES + LOAD_SCRATCH_BYTES as u64);
        let scratch_bytes = shared_bytes / 100 * config.scratch_percent.min(100) / u64::from(config.slots.max(1));
        let load_scratch = device.allocate(LOAD_SCRATCH_BYTES)?;
        let slot = |_| Ok(Mutex::new(Some(Slot::new(&device, scratch_bytes as usize)?)));
        let slots = (0..config.slots).map(slot).collect::<Result<_, CudaError>>()?;
        let pool = Pool { capacity_bytes: shared_bytes - scratch_bytes * u64::from(config.slots), head_room_bytes: 0 };
        Ok(Self {
            slots,
            scratch_bytes: scratch_bytes as usize,
            pool,
            load_scratch: Mutex::new(Some(load_scratch)),
            plans: Mutex::default(),
            resident: Mutex::default(),
            device,
            keys,
            config,
        })
    }

    /// Page-locks the arena's memory, for this GPU and all others.
    pub fn page_lock(&self) -> Arc<dyn PageLock> {
        Arc::new(CudaPageLock(self.device.clone()))
    }

    /// How a circuit's key lies, or will lie, in memory; none if it is not taken.
    pub fn plan(&self, circuit: CircuitId) -> Option<KeyPlan> {
        if let Some(plan) = lock(&self.plans).get(&circuit) {
            return *plan;
        }
        let dimensions = self.keys.source.dimensions(circuit)?;
        let plan = self.make_plan(dimensions);
        if plan.is_none() {
            let (device, log2_domain) = (self.device.describe(), dimensions.log2_domain);
            tracing::info!(device, %circuit, log2_domain, "the device does not take the circuit");
        }
        lock(&self.plans).insert(circuit, plan);
        plan
    }

    fn make_plan(&self, key: KeyDimensions) -> Option<KeyPlan> {
        if key.log2_domain < LOG_DOMAIN_MIN && !self.config.small_domains {
            return None;
        }
        let capacity = self.pool.capacity_bytes;
        let within = |bytes: u64| KeyPlan::within(&self.device, key, bytes as usize, self.scratch_bytes).ok();
        let fits = |plan: &KeyPlan| plan.fill_bytes() <= LOAD_SCRATCH_BYTES && plan.key_bytes() as u64 <= capacity;
        within(capacity / 100 * KEY_PERCENT)
            .filter(KeyPlan::is_resident)
            .or_else(|| within(capacity))
            .or_else(|| KeyPlan::streamed(&self.device, key, self.scratch_bytes).ok())
            .filter(fits)
    }

    fn load_key(&self, circuit: CircuitId) -> Result<CudaKey, DeviceFault> {
        let Some(plan) = self.plan(circuit) else {
            return Err(DeviceFault::Failed(format!("{} does not take circuit {circuit}", self.device.describe())));
        };
        let host = self.keys.open(circuit, &self.device)?;
        // There is one loader for each device.
        let Some(scratch) = lock(&self.load_scratch).take() else {
            return Err(DeviceFault::Failed("another key is being loaded".into()));
        };
        let loaded = CudaKey::load(&self.device, host, &plan, &scratch);
        *lock(&self.load_scratch) = Some(scratch);
        loaded.map_err(fault)
    }
}

impl Device for CudaDevice {
    fn describe(&self) -> String {
        self.device.describe()
    }

    fn spec(&self) -> DeviceSpec {
        DeviceSpec { slots: self.config.slots, role: Role::Primary, node: self.device.numa_node() }
    }

    fn memory(&self) -> Pool {
        self.pool
    }

    fn circuit_bytes(&self, circuit: CircuitId) -> Option<u64> {
        self.plan(circuit).map(|plan| plan.key_bytes() as u64)
    }

    fn load(&self, circuit: CircuitId) -> Result<(), DeviceFault> {
        let key = self.load_key(circuit)?;
        lock(&self.resident).insert(circuit, Arc::new(key));
        Ok(())
    }

    fn evict(&self, circuit: CircuitId) {
        let evicted = lock(&self.resident).remove(&circuit);
        // Freeing waits for the device; the lock is free meanwhile.
        drop(evicted);
    }

    /// A context that is lost stays so until the process ends, and so do the slots in it: the device is retired.
    fn restart(&self) -> Result<(), DeviceFault> {
        Err(DeviceFault::Lost(format!(
            "the context of {} is lost; restart this process to use the device again",
            self.device.describe()
        )))
    }

    fn prove(&self, slot: u16, circuit: CircuitId, assignment: &Assignment, call: &Call) -> Result<Proof, ProveFault> {
        let Some(key) = lock(&self.resident).get(&circuit).cloned() else {
            return Err(DeviceFault::Failed(format!("circuit {circuit} is not on {}", self.device.describe())).into());
        };
        key.check_dimensions(assignment).map_err(|mismatch| DeviceFault::Rejected(mismatch.to_string()))?;
        let place = &self.slots[usize::from(slot)];
        let Some(taken) = lock(place).take() else {
            return Err(DeviceFault::Failed(format!("slot {slot} is lost, because its thread panicked")).into());
        };
        let mut taken = Taken { place, slot: Some(taken) };
        let slot = taken.slot.as_mut().expect("it was just put there");
        match slot.prove(&key, assignment, &|| call.stop().is_set()) {
            Ok(Proved { proof, began, phases }) => {
                let shift = began.saturating_duration_since(call.began());
                for phase in phases {
                    let kind = match phase.work {
                        Work::Copy => PhaseKind::Copy,
                        Work::Kernels => PhaseKind::Kernel,
                    };
                    let (start, end) = (shift + phase.start, shift + phase.end);
                    call.record(Phase { kind, name: phase.name, start, end, bytes: phase.bytes });
                }
                Ok(proof)
            }
            Err(CudaError::Stopped) => Err(DeviceFault::Cancelled.into()),
            // An error may be another's, whose kernel broke the context: then all of it is lost.
            Err(error) if slot.is_lost() => Err(DeviceFault::Lost(error.to_string()).into()),
            Err(error) => Err(fault(error).into()),
        }
    }
}

/// A slot out of its place, which goes back whatever happens.
struct Taken<'a> {
    place: &'a Mutex<Option<Slot>>,
    slot: Option<Slot>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // One that a panic left works: what is in its memory is cleared behind the next proof.
        *lock(self.place) = self.slot.take();
    }
}

/// Page-locking through a GPU's driver.
struct CudaPageLock(Arc<zkhost_cuda::Device>);

impl PageLock for CudaPageLock {
    fn lock(&self, memory: NonNull<u8>, bytes: usize) -> Result<(), String> {
        // SAFETY: the arena keeps a slab mapped until it has unlocked it.
        unsafe { zkhost_cuda::page_lock(&self.0, memory, bytes) }.map_err(|error| error.to_string())
    }

    fn unlock(&self, memory: NonNull<u8>, _bytes: usize) {
        // SAFETY: the arena unlocks what it locked, after all events of its leases have fired. An error means that the
        // context is lost, and with it the lock.
        let _ = unsafe { zkhost_cuda::page_unlock(&self.0, memory) };
    }
}

fn fault(error: CudaError) -> DeviceFault {
    if error.is_sticky() { DeviceFault::Lost(error.to_string()) } else { DeviceFault::Failed(error.to_string()) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
