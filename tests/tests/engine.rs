//! Components as jobs of the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use zkhost_engine::arena::{Arena, Ordinary, slabs_on_every_node};
use zkhost_engine::budget::Pool;
use zkhost_engine::component::ComponentJob;
use zkhost_engine::device::ProverDevice;
use zkhost_engine::failure::Outcome;
use zkhost_engine::ids::{JobId, PROOF_BYTES, Priority};
use zkhost_engine::scheduler::{Config, DeviceSpec, Role};
use zkhost_engine::synthesis::Circuit;
use zkhost_engine::{Engine, EngineConfig, JobRequest};
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{CpuProver, HBasis, Prover};
use zkhost_runtime::{Compiler, Export, Input, Level, Limits, Observer, Place, Runtime};
use zkhost_tests::component;

/// Each a line in the log, written by the circuit when its input is opened.
const PARAMS: &[u8] = br#"{"act": "log-controls", "at": "open", "partitions": 6, "segments": 3}"#;
const INPUT: &[u8] = br#"{"left": 6, "right": 7}"#;

/// Counts how often an input is opened.
#[derive(Default)]
struct Opens(AtomicU32);

impl Observer for Opens {
    fn wants_logs(&self) -> bool {
        true
    }

    fn log(&self, place: Place, _level: Level, _line: &str) {
        assert_eq!(place.export, Export::Open);
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Prove the job with so many threads for guests: its proofs are all there, and its input was opened so often at most.
fn check(workers: usize, opens_max: u32) {
    let runtime = Runtime::new(Compiler::InProcess, None).unwrap();
    // An instance more than there are threads would be refused.
    let limits = Limits { instances: workers as u32, ..Limits::default() };
    let guest = runtime.load("hostile", &component("hostile"), limits).unwrap();
    let layout = guest.plan(PARAMS).unwrap();
    let shape = Arc::new(guest.record_shape(PARAMS, false).unwrap());
    let key = setup(&shape, &ToxicWaste::random(), HBasis::QuotientPoints).unwrap();
    let prover = Arc::new(CpuProver::new(Arc::new(key), shape.clone()).unwrap());
    let circuit = Circuit::of(prover.bound());
    let unbounded = Pool { capacity_bytes: u64::MAX, head_room_bytes: 0 };
    let cpu = ProverDevice::new("CPU", DeviceSpec { slots: 1, role: Role::Primary, node: 0 }, unbounded);
    cpu.add(circuit.id, 0, prover);
    let arena = Arena::new(&slabs_on_every_node(16 << 20), Arc::new(Ordinary)).unwrap();
    let scheduler = Config { synthesis_workers: workers, credits_per_slot: 1, ..Config::default() };
    let config = EngineConfig { scheduler, host: unbounded, pinned_head_room_bytes: 0 };
    let engine = Engine::start(config, vec![Arc::new(cpu)], arena).unwrap();

    let opens = Arc::new(Opens::default());
    let input = Input::from(INPUT.to_vec());
    let synthesis = ComponentJob::new(&guest, PARAMS, &input, (&layout, &shape), opens.clone()).unwrap();
    let request = JobRequest {
        id: JobId { owner: "test".into(), name: "job".into() },
        body: [0; 32],
        circuit,
        priority: Priority::Normal,
        time_limit: None,
        synthesis: Arc::new(synthesis),
    };
    let outcome = engine.submit(request).unwrap().wait().unwrap();
    let Outcome::Proved(proved) = &*outcome else { panic!("{outcome:?}") };
    assert_eq!(proved.proofs.len(), 6 * PROOF_BYTES);
    let opens = opens.0.load(Ordering::Relaxed);
    assert!((1..=opens_max).contains(&opens), "{workers} threads opened the input {opens} times");
    assert_eq!(engine.usage().unwrap().0.host_bytes, 0);
}

#[test]
fn an_input_is_opened_once_a_thread_whatever_its_partitions() {
    check(1, 1);
    check(2, 2);
    check(4, 4);
}
