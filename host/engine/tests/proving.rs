//! The engine with the CPU prover: real constraint systems, real keys, real proofs.

mod common;
#[path = "common/squares.rs"]
mod squares;

use common::{arena, config, failure, spec};
use squares::{Squares, SquaresJob};
use std::sync::Arc;
use std::time::Duration;
use zkhost_engine::Engine;
use zkhost_engine::arena::Arena;
use zkhost_engine::budget::Pool;
use zkhost_engine::device::{Device, ProverDevice};
use zkhost_engine::failure::Outcome;
use zkhost_engine::scheduler::Role;
use zkhost_engine::simulated::{Fault, SimulatedDevice};

fn cpu(circuits: &[Squares], role: Role) -> Arc<dyn Device> {
    let device = ProverDevice::new("CPU", spec(1, role), Pool { capacity_bytes: 10_000, head_room_bytes: 0 });
    circuits.iter().for_each(|circuit| circuit.add_to(&device));
    Arc::new(device)
}

/// Run these jobs (circuit, first value, partitions) at once; every proof has to be its own.
fn check(engine: &Engine, arena: &Arena, circuits: &[Squares], jobs: &[(usize, u64, u32)]) {
    let submit = |&(circuit, first, partitions): &(usize, u64, u32)| {
        let circuit = &circuits[circuit];
        engine.submit(circuit.request(SquaresJob::new(circuit.squarings, first, partitions))).unwrap()
    };
    let handles: Vec<_> = jobs.iter().map(submit).collect();
    for (handle, &(circuit, first, partitions)) in handles.into_iter().zip(jobs) {
        let outcome = handle.wait().unwrap();
        let Outcome::Proved(proved) = &*outcome else { panic!("{outcome:?}") };
        assert_eq!(proved.proofs.len(), 192 * partitions as usize);
        assert!(circuits[circuit].accepts(first, proved), "job {first} of circuit {circuit}");
        assert!(!circuits[circuit].accepts(first + 1, proved), "a proof is of its own input only");
    }
    assert_eq!((arena.used_bytes(), arena.dirty_free_bytes()), (0, 0));
}

#[test]
fn eight_parallel_jobs_over_three_circuits_are_each_proved_right() {
    let circuits = [7, 63, 1000].map(Squares::new);
    let arena = arena(2 << 20);
    let engine = Engine::start(config(2), vec![cpu(&circuits, Role::Primary)], arena.clone()).unwrap();
    let jobs: Vec<_> = (0..8).map(|i| (i % 3, 2 + 10 * i as u64, 1 + i as u32 % 3)).collect();
    check(&engine, &arena, &circuits, &jobs);
    let summary = engine.timeline().unwrap().summary();
    assert!(!summary.devices[0].by_device_events);
}

#[test]
fn gnark_i1166_a_device_without_memory_or_right_proofs_falls_back_to_the_cpu() {
    let circuits = [7, 63].map(Squares::new);
    for fault in [Fault::Failed, Fault::Faulty, Fault::Lost { reading: Duration::from_millis(5) }] {
        let provers: Vec<_> = circuits.iter().map(|circuit| circuit.prover.clone()).collect();
        let script = zkhost_engine::simulated::Script {
            circuits: circuits.iter().map(|circuit| (circuit.circuit.id, 900)).collect(),
            faults: (1..).step_by(2).take(20).map(|call| (call, fault)).collect(),
            ..common::script(2, 0, 0)
        };
        let oracle = move |assignment: &zkhost_groth16::Assignment| {
            use zkhost_groth16::Prover;
            let fits = |prover: &&Arc<zkhost_groth16::CpuProver>| {
                u64::from(prover.bound().r1cs.aux_count) == assignment.aux_count()
            };
            provers.iter().find(fits).unwrap().prove_unverified(assignment).unwrap()
        };
        let gpu: Arc<dyn Device> = Arc::new(SimulatedDevice::new(script, Box::new(oracle)));
        let arena = arena(2 << 20);
        let engine = Engine::start(config(2), vec![gpu, cpu(&circuits, Role::LastResort)], arena.clone()).unwrap();
        let jobs: Vec<_> = (0..6).map(|i| (i % 2, 2 + 10 * i as u64, 2)).collect();
        check(&engine, &arena, &circuits, &jobs);
        let (_, counters) = engine.usage().unwrap();
        assert!(counters.retries + counters.device_losses > 0, "{fault:?} happened");
    }
}

#[test]
fn a_broken_witness_is_blamed_by_its_constraint_and_costs_no_other_job() {
    let circuits = [Squares::new(63)];
    let arena = arena(2 << 20);
    let engine = Engine::start(config(2), vec![cpu(&circuits, Role::Primary)], arena.clone()).unwrap();
    let broken = SquaresJob { broken: true, ..SquaresJob::new(63, 1000, 2) };
    let bad = engine.submit(circuits[0].request(broken)).unwrap();
    check(&engine, &arena, &circuits, &[(0, 5, 3)]);
    assert_eq!(
        failure(&bad.wait().unwrap()),
        "job test/63-1000 failed in verification of partition 1: the circuit's assignment does not satisfy its \
         constraints: constraint 30 is not satisfied"
    );
    assert_eq!(engine.usage().unwrap().1.retries, 0);
}
