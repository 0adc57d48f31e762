//! A device that is none: latency, memory and faults as a test or a bench programs them, in real time.

use crate::arena::DeviceEvent;
use crate::budget::Pool;
use crate::device::{Call, Device, Phase, PhaseKind, ProveFault};
use crate::ids::CircuitId;
use crate::scheduler::{DeviceFault, DeviceSpec};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zkhost_groth16::{Assignment, Proof};

/// A device notices that it is to stop after this time at most, as one whose launches are no longer.
const LAUNCH_MAX: Duration = Duration::from_millis(5);

/// What a simulated device does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails.
    Failed,
    /// The device is lost; all calls fail until it is restarted. Its last copy goes on for the time given.
    Lost {
        /// How long the device reads on.
        reading: Duration,
    },
    /// The proof is wrong.
    Faulty,
    /// The calling thread panics.
    Panics,
}

/// How a simulated device behaves.
pub struct Script {
    /// Slots and role.
    pub spec: DeviceSpec,
    /// Memory for circuits.
    pub memory: Pool,
    /// Circuits it takes, with their bytes.
    pub circuits: BTreeMap<CircuitId, u64>,
    /// How long a load takes.
    pub load: Duration,
    /// How long a slot copies; copies of different slots exclude each other, as on one link.
    pub copy: Duration,
    /// How long its kernels run; kernels of different slots exclude each other.
    pub kernels: Duration,
    /// Faults by number of the call, loads and proofs counted together from 0.
    pub faults: BTreeMap<u64, Fault>,
}

/// Makes the proof that a correct device would, for circuits that tests know how to prove.
pub type Oracle = Box<dyn Fn(&Assignment) -> Proof + Send + Sync>;

/// The device.
pub struct SimulatedDevice {
    script: Script,
    oracle: Oracle,
    calls: AtomicU64,
    lost: AtomicBool,
    resident: Mutex<BTreeMap<CircuitId, u64>>,
    link: Mutex<()>,
    processors: Mutex<()>,
}

/// Work that goes on for some time.
struct Until(Instant);

impl DeviceEvent for Until {
    fn has_fired(&self) -> bool {
        Instant::now() >= self.0
    }
}

impl SimulatedDevice {
    /// A device that follows a script and gets its proofs from an oracle.
    pub fn new(script: Script, oracle: Oracle) -> Self {
        Self {
            script,
            oracle,
            calls: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            resident: Mutex::default(),
            link: Mutex::default(),
            processors: Mutex::default(),
        }
    }

    /// Loads and proofs that were asked of it.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Bytes of what is resident.
    pub fn resident_bytes(&self) -> u64 {
        self.resident().values().sum()
    }

    fn resident(&self) -> MutexGuard<'_, BTreeMap<CircuitId, u64>> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of this call, if the script has one.
    fn begin_call(&self) -> Result<Option<Fault>, ProveFault> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.lost.load(Ordering::Relaxed) {
            return Err(DeviceFault::Lost("the simulated device is lost".into()).into());
        }
        match self.script.faults.get(&call).copied() {
            Some(Fault::Failed) => Err(DeviceFault::Failed("the script has this call fail".into()).into()),
            Some(Fault::Lost { reading }) => {
                self.lost.store(true, Ordering::Relaxed);
                let event: Arc<dyn DeviceEvent> = Arc::new(Until(Instant::now() + reading));
                let fault = DeviceFault::Lost("the script has the device lost".into());
                Err(ProveFault { fault, reading: Some(event) })
            }
            Some(Fault::Panics) => panic!("the script has this call panic"),
            fault => Ok(fault),
        }
    }

    /// Take a unit of the device for some time, in launches.
    fn occupy(&self, unit: &Mutex<()>, time: Duration, call: &Call, name: &'static str, kind: PhaseKind, bytes: u64) {
        if time.is_zero() {
            return;
        }
        let unit = unit.lock().unwrap_or_else(PoisonError::into_inner);
        let start = call.began().elapsed();
        let mut left = time;
        while !left.is_zero() && !call.stop().is_set() {
            let launch = left.min(LAUNCH_MAX);
            std::thread::sleep(launch);
            left -= launch;
        }
        drop(unit);
        call.record(Phase { kind, name, start, end: call.began().elapsed(), bytes });
    }
}

impl Device for SimulatedDevice {
    fn describe(&self) -> String {
        format!("simulated device with {} slots", self.script.spec.slots)
    }

    fn spec(&self) -> DeviceSpec {
        self.script.spec
    }

    fn memory(&self) -> Pool {
        self.script.memory
    }

    fn circuit_bytes(&self, circuit: CircuitId) -> Option<u64> {
        self.script.circuits.get(&circuit).copied()
    }

    fn load(&self, circuit: CircuitId) -> Result<(), DeviceFault> {
        self.begin_call().map_err(|fault| fault.fault)?;
        std::thread::sleep(self.script.load);
        let Some(bytes) = self.circuit_bytes(circuit) else {
            return Err(DeviceFault::Rejected(format!("circuit {circuit} is unknown")));
        };
        let mut resident = self.resident();
        if resident.values().sum::<u64>() + bytes > self.script.memory.capacity_bytes {
            return Err(DeviceFault::Failed(format!("out of memory for circuit {circuit}")));
        }
        resident.insert(circuit, bytes);
        Ok(())
    }

    fn evict(&self, circuit: CircuitId) {
        self.resident().remove(&circuit);
    }

    fn restart(&self) -> Result<(), DeviceFault> {
        self.resident().clear();
        self.lost.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn prove(&self, _slot: u16, circuit: CircuitId, assignment: &Assignment, call: &Call) -> Result<Proof, ProveFault> {
        let fault = self.begin_call()?;
        if !self.resident().contains_key(&circuit) {
            return Err(DeviceFault::Failed(format!("circuit {circuit} is not resident")).into());
        }
        let segments = assignment.segments().iter();
        let bytes: usize = segments.map(|s| size_of_val(s.masks()) + size_of_val(s.elements())).sum();
        self.occupy(&self.link, self.script.copy, call, "witness", PhaseKind::Copy, bytes as u64);
        self.occupy(&self.processors, self.script.kernels, call, "kernels", PhaseKind::Kernel, 0);
        if call.stop().is_set() {
            return Err(DeviceFault::Cancelled.into());
        }
        let proof = (self.oracle)(assignment);
        match fault {
            Some(Fault::Faulty) => Ok(Proof { c: -proof.c, ..proof }),
            _ => Ok(proof),
        }
    }
}
