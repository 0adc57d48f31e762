//! A toy circuit, its judge and a device for it: proofs that are cheap, and still say whose they are.
#![allow(dead_code, reason = "each test file uses a part of it")]

use group::prime::PrimeCurveAffine;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use zkhost_engine::arena::{Arena, Ordinary, SlabSpec};
use zkhost_engine::budget::Pool;
use zkhost_engine::device::{Device, Stop};
use zkhost_engine::failure::{Outcome, Proved};
use zkhost_engine::ids::{CircuitId, JobId, PROOF_BYTES, Priority, ProofBytes};
use zkhost_engine::scheduler::{Config, DeviceSpec, Role, SynthesisFault};
use zkhost_engine::simulated::{Fault, Script, SimulatedDevice};
use zkhost_engine::synthesis::{Circuit, Judge, Synthesis};
use zkhost_engine::{Engine, EngineConfig, JobRequest};
use zkhost_groth16::assignment::{SegmentLimits, SegmentSink, SegmentWriter};
use zkhost_groth16::r1cs::{CheckError, Unsatisfied};
use zkhost_groth16::{Assignment, Encoding, Proof, Scalar};

/// What a toy guest does in the last segment of its last partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    Traps,
    Panics,
    WritesTooLittle,
    /// Until it is stopped.
    Loops,
    /// Writes an assignment that its judge finds fault with.
    Cheats,
    /// Writes an assignment that makes its judge panic.
    Baffles,
}

pub struct Toy {
    pub number: u64,
    pub partitions: u32,
    pub segments: Vec<SegmentLimits>,
    pub act: Act,
}

const CHEAT: u64 = 1 << 40;
const BAFFLE: u64 = 1 << 41;

impl Toy {
    pub fn new(number: u64, partitions: u32, segments: u64, aux_count: u64) -> Self {
        let limits = |i| SegmentLimits { aux_count, full_max: aux_count, public_count: if i == 0 { 2 } else { 0 } };
        Self { number, partitions, segments: (0..segments).map(limits).collect(), act: Act::Nothing }
    }

    /// How a correct run ends.
    pub fn expected(&self) -> Outcome {
        let publics = |partition| vec![Scalar::from(self.number), Scalar::from(u64::from(partition) + 1)];
        let publics: Vec<_> = (0..self.partitions).map(publics).collect();
        let proofs = publics.iter().flat_map(|publics| toy_proof(publics).to_bytes()).collect();
        Outcome::Proved(Proved { proofs, publics })
    }
}

impl Synthesis for Toy {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn encoding(&self) -> Encoding {
        Encoding::Canonical
    }

    fn segments(&self) -> &[SegmentLimits] {
        &self.segments
    }

    fn guest_bytes(&self) -> u64 {
        1 << 20
    }

    fn assign(
        &self,
        partition: u32,
        segment: u32,
        mut writer: SegmentWriter,
        stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault> {
        let last = partition + 1 == self.partitions && segment as usize + 1 == self.segments.len();
        let act = if last { self.act } else { Act::Nothing };
        let limits = self.segments[segment as usize];
        let refused = |error: zkhost_groth16::assignment::SinkError| SynthesisFault::Guest(error.to_string());
        if limits.public_count > 0 {
            let second = u64::from(partition) + 1;
            let second = match act {
                Act::Cheats => CHEAT,
                Act::Baffles => BAFFLE,
                _ => second,
            };
            writer.write_public(&[self.number, 0, 0, 0, second, 0, 0, 0]).map_err(refused)?;
        }
        match act {
            Act::Traps => return Err(SynthesisFault::Guest("unreachable executed".into())),
            Act::Panics => panic!("a host function has a bug"),
            Act::Loops => {
                while !stop.is_set() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                return Err(SynthesisFault::Cancelled);
            }
            _ => {}
        }
        let groups = limits.aux_count / 64 - u64::from(act == Act::WritesTooLittle);
        for _ in 0..groups {
            writer
                .write_groups(&[u64::MAX, 0], &[3; 256].map(|limb| limb * self.number % 1_000_003))
                .map_err(refused)?;
        }
        Ok(writer)
    }
}

/// The proof of these public inputs.
pub fn toy_proof(publics: &[Scalar]) -> Proof {
    let (g1, g2) = (blstrs::G1Affine::generator(), blstrs::G2Affine::generator());
    Proof { a: (g1 * publics[0]).into(), b: g2, c: (g1 * publics[1]).into() }
}

pub struct ToyJudge;

impl Judge for ToyJudge {
    fn verify(&self, publics: &[Scalar], proof: &ProofBytes) -> bool {
        let bad = [Scalar::from(CHEAT), Scalar::from(BAFFLE)].contains(&publics[1]);
        !bad && toy_proof(publics).to_bytes() == *proof
    }

    fn check(&self, assignment: &Assignment) -> Result<(), CheckError> {
        let second = assignment.publics()[1];
        assert!(second != Scalar::from(BAFFLE), "a judge has a bug");
        if second == Scalar::from(CHEAT) {
            return Err(Unsatisfied { index: 5, name: Some("/toy/sum".into()) }.into());
        }
        Ok(())
    }
}

/// A circuit with a number.
pub fn circuit(number: u8) -> Circuit {
    Circuit { id: CircuitId([number; 32]), judge: Arc::new(ToyJudge) }
}

pub fn spec(slots: u16, role: Role) -> DeviceSpec {
    DeviceSpec { slots, role, node: 0 }
}

/// A device with room for two of circuits 0 to 3.
pub fn script(slots: u16, copy_ms: u64, kernel_ms: u64) -> Script {
    Script {
        spec: spec(slots, Role::Primary),
        memory: Pool { capacity_bytes: 2000, head_room_bytes: 0 },
        circuits: (0..4).map(|number| (CircuitId([number; 32]), 1000)).collect(),
        load: Duration::ZERO,
        copy: Duration::from_millis(copy_ms),
        kernels: Duration::from_millis(kernel_ms),
        faults: BTreeMap::new(),
    }
}

pub fn device(script: Script) -> Arc<SimulatedDevice> {
    Arc::new(SimulatedDevice::new(script, Box::new(|assignment| toy_proof(assignment.publics()))))
}

pub fn faulty_device(slots: u16, faults: &[(u64, Fault)]) -> Arc<SimulatedDevice> {
    device(Script { faults: faults.iter().copied().collect(), ..script(slots, 0, 1) })
}

pub fn arena(bytes: u64) -> Arena {
    Arena::new(&[SlabSpec { node: 0, bytes }], Arc::new(Ordinary)).unwrap()
}

pub fn config(synthesis_workers: usize) -> EngineConfig {
    EngineConfig {
        scheduler: Config { synthesis_workers, ..Config::default() },
        host: Pool { capacity_bytes: 64 << 20, head_room_bytes: 0 },
        pinned_head_room_bytes: 0,
    }
}

pub fn engine(devices: &[Arc<SimulatedDevice>], arena: &Arena) -> Engine {
    let devices = devices.iter().map(|device| device.clone() as Arc<dyn Device>).collect();
    Engine::start(config(2), devices, arena.clone()).unwrap()
}

/// A job of a toy, named after its number.
pub fn request(toy: Toy) -> JobRequest {
    JobRequest {
        id: JobId { owner: "test".into(), name: format!("job-{}", toy.number) },
        body: [toy.number as u8; 32],
        circuit: circuit((toy.number % 3) as u8),
        priority: Priority::Normal,
        time_limit: None,
        synthesis: Arc::new(toy),
    }
}

/// The sentence of a failure.
pub fn failure(outcome: &Outcome) -> String {
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?} is no failure") };
    failure.to_string()
}

/// How many partitions' proofs there are.
pub fn proofs(outcome: &Outcome) -> usize {
    let Outcome::Proved(proved) = outcome else { panic!("{outcome:?} is no proof") };
    proved.proofs.len() / PROOF_BYTES
}
