//! What the engine itself costs: a partition's way through it, and cancelling. On a simulated device, so that nothing but
//! the engine takes time.

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zkhost_benches::Measurement;
use zkhost_engine::arena::{Arena, Ordinary, SlabSpec};
use zkhost_engine::budget::Pool;
use zkhost_engine::device::{Device, Stop};
use zkhost_engine::failure::Outcome;
use zkhost_engine::ids::{CircuitId, JobId, PROOF_BYTES, Priority, ProofBytes};
use zkhost_engine::scheduler::{Config, DeviceSpec, Role, SynthesisFault};
use zkhost_engine::simulated::{Script, SimulatedDevice};
use zkhost_engine::synthesis::{Circuit, Judge, Synthesis};
use zkhost_engine::timeline::{Category, Span};
use zkhost_engine::{Engine, EngineConfig, JobRequest};
use zkhost_groth16::assignment::{SegmentLimits, SegmentSink, SegmentWriter};
use zkhost_groth16::r1cs::CheckError;
use zkhost_groth16::{Assignment, Encoding, Proof, Scalar};

const CIRCUIT: CircuitId = CircuitId([1; 32]);
const PARTITIONS: u32 = 20_000;
const CANCELS: u32 = 50;

/// Accepts what it gets: verifying is the verifier's cost.
struct Credulous;

impl Judge for Credulous {
    fn verify(&self, _publics: &[Scalar], _proof: &ProofBytes) -> bool {
        true
    }

    fn check(&self, _assignment: &Assignment) -> Result<(), CheckError> {
        Ok(())
    }
}

/// Writes one group of booleans a partition, or waits until it is stopped.
struct Trivial {
    partitions: u32,
    endless: bool,
    begun: AtomicU64,
}

const SEGMENT: [SegmentLimits; 1] = [SegmentLimits { aux_count: 64, full_max: 0, public_count: 0 }];

impl Synthesis for Trivial {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn encoding(&self) -> Encoding {
        Encoding::Canonical
    }

    fn segments(&self) -> &[SegmentLimits] {
        &SEGMENT
    }

    fn guest_bytes(&self) -> u64 {
        1
    }

    fn assign(
        &self,
        partition: u32,
        _segment: u32,
        mut writer: SegmentWriter,
        stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        // The first partitions of an endless job go to the slots; the others stay with their guests.
        while self.endless && partition >= 2 && !stop.is_set() {
            std::thread::sleep(Duration::from_millis(1));
        }
        writer.write_groups(&[0, 5], &[]).map_err(|error| SynthesisFault::Guest(error.to_string()))?;
        Ok(writer)
    }
}

fn engine(kernels: Duration, credits_per_slot: u32, arena: &Arena) -> Engine {
    let (a, b) = (G1Affine::generator(), G2Affine::generator());
    let generators = Proof { a, b, c: a };
    let script = Script {
        spec: DeviceSpec { slots: if credits_per_slot == 1 { 1 } else { 2 }, role: Role::Primary, node: 0 },
        memory: Pool { capacity_bytes: 1, head_room_bytes: 0 },
        circuits: BTreeMap::from([(CIRCUIT, 1)]),
        load: Duration::ZERO,
        copy: Duration::ZERO,
        kernels,
        faults: BTreeMap::new(),
    };
    let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new(script, Box::new(move |_| generators.clone())));
    let config = EngineConfig {
        scheduler: Config { synthesis_workers: 2, credits_per_slot, ..Config::default() },
        host: Pool { capacity_bytes: 1 << 20, head_room_bytes: 0 },
        pinned_head_room_bytes: 0,
    };
    Engine::start(config, vec![device], arena.clone()).expect("the system has threads")
}

fn request(name: String, partitions: u32, endless: bool) -> (JobRequest, Arc<Trivial>) {
    let synthesis = Arc::new(Trivial { partitions, endless, begun: AtomicU64::new(0) });
    let request = JobRequest {
        id: JobId { owner: "bench".into(), name },
        body: [0; 32],
        circuit: Circuit { id: CIRCUIT, judge: Arc::new(Credulous) },
        priority: Priority::Normal,
        time_limit: None,
        synthesis: synthesis.clone(),
    };
    (request, synthesis)
}

fn arena() -> Arena {
    Arena::new(&[SlabSpec { node: 0, bytes: 4 << 20 }], Arc::new(Ordinary)).expect("four mebibytes")
}

/// Microseconds a partition: with many in flight, the wall time; one at a time, the wall time that no worker spent.
fn schedule_cost(credits_per_slot: u32) -> f64 {
    let engine = engine(Duration::ZERO, credits_per_slot, &arena());
    let (request, _) = request("cost".into(), PARTITIONS, false);
    let began = Instant::now();
    let outcome = engine.submit(request).and_then(|job| Ok(job.wait()?)).expect("the engine runs");
    let wall = began.elapsed();
    let Outcome::Proved(proved) = &*outcome else { panic!("{outcome:?}") };
    assert_eq!(proved.proofs.len(), PARTITIONS as usize * PROOF_BYTES);
    let timeline = engine.timeline().expect("the engine runs");
    let by_workers = |span: &&Span| !matches!(span.category, Category::Queue | Category::Assembly | Category::KeyLoad);
    let worked: u64 = timeline.spans().filter(by_workers).map(Span::nanos).sum();
    let cost = if credits_per_slot == 1 { wall - Duration::from_nanos(worked) } else { wall };
    cost.as_secs_f64() * 1e6 / f64::from(PARTITIONS)
}

/// Milliseconds from cancelling a job, with guests and slots at work, to its end, when all of it is free; the longest of
/// many.
fn cancel() -> f64 {
    let arena = arena();
    let engine = engine(Duration::from_secs(10), 3, &arena);
    let mut longest = Duration::ZERO;
    for number in 0..CANCELS {
        let (request, synthesis) = request(number.to_string(), 100, true);
        let job = engine.submit(request).expect("the engine runs");
        // Two partitions prove and two guests write.
        while synthesis.begun.load(Ordering::Relaxed) < 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let began = Instant::now();
        job.cancel().expect("the engine runs");
        assert_eq!(*job.wait().expect("the engine runs"), Outcome::Cancelled);
        longest = longest.max(began.elapsed());
        assert_eq!((arena.used_bytes(), arena.dirty_free_bytes()), (0, 0));
    }
    longest.as_secs_f64() * 1e3
}

fn main() -> std::io::Result<()> {
    let record = |bench, case, ours, unit| {
        Measurement { bench, case, ours, peer: None, peer_value: None, unit, checked: true }.record()
    };
    record("schedule_cost", "pipelined", schedule_cost(3), "us")?;
    record("schedule_cost", "one at a time", schedule_cost(1), "us")?;
    record("cancel", "guests and slots busy", cancel(), "ms")
}
