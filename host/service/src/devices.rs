//! What proves: GPUs, whose keys come from the registry, and the CPU, alone or for what GPUs do not take or fail at.

use crate::circuits::Registry;
use crate::config;
use std::sync::Arc;
use zkhost_cuda::{DeviceChoice, KeyDimensions};
use zkhost_engine::arena::{Ordinary, PageLock};
use zkhost_engine::budget::Pool;
use zkhost_engine::cuda::{CudaConfig, CudaDevice, KeySource, KeyStore};
use zkhost_engine::device::{Call, Device, ProveFault};
use zkhost_engine::ids::CircuitId;
use zkhost_engine::scheduler::{DeviceFault, DeviceSpec, Role};
use zkhost_groth16::{Assignment, Proof, ProveError, Prover, ProvingKey, R1cs};

/// The devices of a configuration.
pub struct Devices {
    /// All of them, the CPU last.
    pub all: Vec<Arc<dyn Device>>,
    /// Page-locks the arena's memory, if there is a GPU.
    pub page_lock: Arc<dyn PageLock>,
}

impl Devices {
    /// Open what is configured. A GPU that cannot be used is told in the log and left out.
    pub fn open(config: &config::Engine, registry: &Arc<Registry>) -> Self {
        let (gpus, remarks) = config.devices.open_all();
        for remark in remarks {
            match config.devices {
                DeviceChoice::Auto => tracing::info!("{remark}"),
                asked => tracing::warn!(devices = %asked, "{remark}"),
            }
        }
        let keys = KeyStore::new(Arc::new(RegistryKeys(registry.clone())));
        let settings = CudaConfig {
            slots: config.gpu_slots,
            memory_bytes_max: config.gpu_memory_bytes_max,
            ..CudaConfig::default()
        };
        let mut used = vec![];
        for gpu in gpus {
            let name = gpu.describe();
            match CudaDevice::new(gpu, settings, keys.clone()) {
                Ok(gpu) => used.push(gpu),
                Err(error) => tracing::warn!(device = name, %error, "a GPU is not used"),
            }
        }
        let page_lock = used.first().map_or_else(|| Arc::new(Ordinary) as Arc<dyn PageLock>, CudaDevice::page_lock);
        let role = if used.is_empty() { Role::Primary } else { Role::LastResort };
        let spec = DeviceSpec { slots: config.cpu_slots, role, node: 0 };
        let memory = Pool { capacity_bytes: config.cpu_key_bytes_max, head_room_bytes: 0 };
        let mut all: Vec<Arc<dyn Device>> = used.into_iter().map(|gpu| Arc::new(gpu) as Arc<dyn Device>).collect();
        all.push(Arc::new(CpuDevice { registry: registry.clone(), spec, memory }));
        for device in &all {
            tracing::info!(device = device.describe(), slots = device.spec().slots, "proves");
        }
        Self { all, page_lock }
    }

    /// Slots that work at a time, those of last resort not counted.
    pub fn slots(&self) -> usize {
        let specs = self.all.iter().map(|device| device.spec());
        specs.filter(|spec| spec.role == Role::Primary).map(|spec| usize::from(spec.slots)).sum()
    }
}

/// The registry's keys, for GPUs.
struct RegistryKeys(Arc<Registry>);

impl KeySource for RegistryKeys {
    fn dimensions(&self, circuit: CircuitId) -> Option<KeyDimensions> {
        self.0.of_engine(circuit).map(|circuit| circuit.key_dimensions())
    }

    fn open(&self, circuit: CircuitId) -> Result<(Arc<ProvingKey>, Arc<R1cs>), String> {
        let circuit = self.0.of_engine(circuit).ok_or_else(|| format!("circuit {circuit} was unloaded"))?;
        let resident = circuit.resident().map_err(|error| error.to_string())?;
        Ok((resident.prover.bound().key.clone(), resident.guest.r1cs().clone()))
    }
}

/// Proves on this machine's processors with the keys of the registry: they are opened when the engine brings a circuit to it,
/// and given up when it evicts.
struct CpuDevice {
    registry: Arc<Registry>,
    spec: DeviceSpec,
    /// Bounds keys and constraint systems that are open at once.
    memory: Pool,
}

impl Device for CpuDevice {
    fn describe(&self) -> String {
        "CPU".into()
    }

    fn spec(&self) -> DeviceSpec {
        self.spec
    }

    fn memory(&self) -> Pool {
        self.memory
    }

    fn circuit_bytes(&self, circuit: CircuitId) -> Option<u64> {
        self.registry.of_engine(circuit).map(|circuit| circuit.resident_bytes())
    }

    fn load(&self, circuit: CircuitId) -> Result<(), DeviceFault> {
        let Some(circuit) = self.registry.of_engine(circuit) else {
            return Err(DeviceFault::Rejected(format!("circuit {circuit} was unloaded")));
        };
        circuit.resident().map(drop).map_err(|error| DeviceFault::Failed(error.to_string()))
    }

    fn evict(&self, circuit: CircuitId) {
        if let Some(circuit) = self.registry.of_engine(circuit) {
            circuit.evict();
        }
    }

    fn restart(&self) -> Result<(), DeviceFault> {
        Ok(())
    }

    fn prove(&self, _slot: u16, circuit: CircuitId, assignment: &Assignment, call: &Call) -> Result<Proof, ProveFault> {
        if call.stop().is_set() {
            return Err(DeviceFault::Cancelled.into());
        }
        let Some(circuit) = self.registry.of_engine(circuit) else {
            return Err(DeviceFault::Rejected(format!("circuit {circuit} was unloaded")).into());
        };
        let resident = circuit.resident().map_err(|error| DeviceFault::Failed(error.to_string()))?;
        resident.prover.prove_unverified(assignment).map_err(|error| match error {
            ProveError::Mismatch(_) => DeviceFault::Rejected(error.to_string()).into(),
            _ => DeviceFault::Failed(error.to_string()).into(),
        })
    }
}
