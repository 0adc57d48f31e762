//! What the engine schedules on: a device with slots, whatever it is.

use crate::arena::DeviceEvent;
use crate::budget::Pool;
use crate::ids::CircuitId;
use crate::scheduler::{DeviceFault, DeviceSpec};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use zkhost_groth16::{Assignment, Proof, ProveError, Prover};

/// Set once a job is to stop. Whoever works for it looks often enough to answer within 50 ms.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ask for it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a device did in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseKind {
    /// It copied.
    Copy,
    /// It ran kernels, with no wait of the host between them.
    Kernel,
}

/// A phase of one proof, on the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it was.
    pub kind: PhaseKind,
    /// Its name, such as "transform".
    pub name: &'static str,
    /// When it began, since the beginning of the call.
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
    /// Bytes copied.
    pub bytes: u64,
}

/// One call to prove: how to stop, and where to say what happened when.
pub struct Call {
    stop: Stop,
    began: Instant,
    phases: Mutex<Vec<Phase>>,
}

impl Call {
    /// A call that begins now.
    pub fn new(stop: Stop) -> Self {
        Self { stop, began: Instant::now(), phases: Mutex::default() }
    }

    /// Whether to stop.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// When it began: devices whose events have a clock of their own add the difference.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Report a phase.
    pub fn record(&self, phase: Phase) {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner).push(phase);
    }

    /// The phases that were reported.
    pub fn into_phases(self) -> Vec<Phase> {
        self.phases.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A proof that a device did not make.
pub struct ProveFault {
    /// Why.
    pub fault: DeviceFault,
    /// Work that is enqueued and may still read the assignment, which is kept until the event has fired.
    pub reading: Option<Arc<dyn DeviceEvent>>,
}

impl From<DeviceFault> for ProveFault {
    fn from(fault: DeviceFault) -> Self {
        Self { fault, reading: None }
    }
}

/// A device. The engine has a thread for each slot and one for loading, so calls may wait; no two calls use one slot at once.
pub trait Device: Send + Sync {
    /// What it is, for people.
    fn describe(&self) -> String;
    /// Its slots and when it is used.
    fn spec(&self) -> DeviceSpec;
    /// Its memory for keys and matrices, beside the scratch of its slots.
    fn memory(&self) -> Pool;
    /// Bytes of a circuit's key and matrices; none if the device does not take the circuit: it does not know it, or another
    /// device is faster at its size.
    fn circuit_bytes(&self, circuit: CircuitId) -> Option<u64>;
    /// Make a circuit resident.
    fn load(&self, circuit: CircuitId) -> Result<(), DeviceFault>;
    /// Free a circuit's memory. No slot uses it.
    fn evict(&self, circuit: CircuitId);
    /// Come back after a loss, with nothing resident. No slot is at work.
    fn restart(&self) -> Result<(), DeviceFault>;
    /// Compute a proof on a slot. It need not be verified: the engine does that, on another thread.
    fn prove(&self, slot: u16, circuit: CircuitId, assignment: &Assignment, call: &Call) -> Result<Proof, ProveFault>;
}

/// A device made of [`Prover`]s, one a circuit, whose keys stay where they are: the CPU.
pub struct ProverDevice {
    name: String,
    spec: DeviceSpec,
    memory: Pool,
    provers: RwLock<HashMap<CircuitId, KnownCircuit>>,
}

/// A circuit that a [`ProverDevice`] proves.
#[derive(Clone)]
struct KnownCircuit {
    bytes: u64,
    prover: Arc<dyn Prover>,
}

impl ProverDevice {
    /// A device that knows no circuit yet. `memory` bounds the keys of circuits that are in use at once.
    pub fn new(name: impl Into<String>, spec: DeviceSpec, memory: Pool) -> Self {
        Self { name: name.into(), spec, memory, provers: RwLock::default() }
    }

    /// Have a circuit proved by this prover; `circuit_bytes` is the memory of its key and matrices.
    pub fn add(&self, circuit: CircuitId, circuit_bytes: u64, prover: Arc<dyn Prover>) {
        let mut provers = self.provers.write().unwrap_or_else(PoisonError::into_inner);
        provers.insert(circuit, KnownCircuit { bytes: circuit_bytes, prover });
    }

    fn known(&self, circuit: CircuitId) -> Option<KnownCircuit> {
        self.provers.read().unwrap_or_else(PoisonError::into_inner).get(&circuit).cloned()
    }
}

impl Device for ProverDevice {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn spec(&self) -> DeviceSpec {
        self.spec
    }

    fn memory(&self) -> Pool {
        self.memory
    }

    fn circuit_bytes(&self, circuit: CircuitId) -> Option<u64> {
        self.known(circuit).map(|known| known.bytes)
    }

    fn load(&self, _circuit: CircuitId) -> Result<(), DeviceFault> {
        Ok(())
    }

    fn evict(&self, _circuit: CircuitId) {}

    fn restart(&self) -> Result<(), DeviceFault> {
        Ok(())
    }

    fn prove(&self, _slot: u16, circuit: CircuitId, assignment: &Assignment, call: &Call) -> Result<Proof, ProveFault> {
        if call.stop().is_set() {
            return Err(DeviceFault::Cancelled.into());
        }
        let Some(KnownCircuit { prover, .. }) = self.known(circuit) else {
            return Err(DeviceFault::Rejected(format!("{} has no prover for circuit {circuit}", self.name)).into());
        };
        prover.prove_unverified(assignment).map_err(|error| {
            let sentence = error.to_string();
            match error {
                ProveError::Mismatch(_) => DeviceFault::Rejected(sentence).into(),
                _ => DeviceFault::Failed(sentence).into(),
            }
        })
    }
}
