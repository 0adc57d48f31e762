//! The CPU as a device of the engine: keys are opened when the engine brings a circuit to it, and given up when it evicts.

use crate::circuits::Registry;
use std::sync::Arc;
use zkhost_engine::budget::Pool;
use zkhost_engine::device::{Call, Device, ProveFault};
use zkhost_engine::ids::CircuitId;
use zkhost_engine::scheduler::{DeviceFault, DeviceSpec};
use zkhost_groth16::{Assignment, Proof, ProveError, Prover};

/// Proves on this machine's processors with the keys of the registry.
pub struct CpuDevice {
    registry: Arc<Registry>,
    spec: DeviceSpec,
    memory: Pool,
}

impl CpuDevice {
    /// `memory` bounds keys and constraint systems that are open at once.
    pub fn new(registry: Arc<Registry>, spec: DeviceSpec, memory: Pool) -> Self {
        Self { registry, spec, memory }
    }
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
