//! The engine over a real GPU. Where there is none, these tests say so and pass: what is the engine's own is tested with the
//! simulated device.

mod common;
#[path = "common/squares.rs"]
mod squares;

use common::{config, failure, spec};
use squares::{Squares, SquaresJob};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zkhost_cuda::{DeviceChoice, KeyDimensions};
use zkhost_engine::Engine;
use zkhost_engine::arena::{Arena, SlabSpec};
use zkhost_engine::budget::Pool;
use zkhost_engine::cuda::{CudaConfig, CudaDevice, KeySource, KeyStore};
use zkhost_engine::device::{Device, ProverDevice};
use zkhost_engine::failure::Outcome;
use zkhost_engine::ids::CircuitId;
use zkhost_engine::scheduler::{Counters, Role};
use zkhost_groth16::{Prover, ProvingKey, R1cs};

struct Keys(HashMap<CircuitId, (Arc<ProvingKey>, Arc<R1cs>)>);

impl KeySource for Keys {
    fn dimensions(&self, circuit: CircuitId) -> Option<KeyDimensions> {
        self.0.get(&circuit).map(|(key, r1cs)| KeyDimensions::of(key, r1cs))
    }

    fn open(&self, circuit: CircuitId) -> Result<(Arc<ProvingKey>, Arc<R1cs>), String> {
        self.0.get(&circuit).cloned().ok_or_else(|| "no such circuit".into())
    }
}

fn store(circuits: &[Squares]) -> Arc<KeyStore> {
    let key = |circuit: &Squares| {
        let bound = circuit.prover.bound();
        (circuit.circuit.id, (bound.key.clone(), bound.r1cs.clone()))
    };
    KeyStore::new(Arc::new(Keys(circuits.iter().map(key).collect())))
}

/// The first GPU, for one test at a time, so that its memory can be counted.
fn gpu() -> Option<(Arc<zkhost_cuda::Device>, MutexGuard<'static, ()>)> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (device, why) = DeviceChoice::Auto.open();
    if device.is_none() {
        eprintln!("skipped: {}", why.unwrap_or_default());
    }
    device.map(|device| (device, alone))
}

/// Prove these jobs (circuit, first value, partitions) at once on a GPU; each proof has to be its own, the arena empty
/// afterwards, device memory within what was planned, and nothing page-locked after the start.
fn check(circuits: &[Squares], config_of_gpu: CudaConfig, jobs: &[(usize, u64, u32)]) -> Option<Counters> {
    let (device, _alone) = gpu()?;
    let base = device.used_bytes();
    let config_of_gpu = CudaConfig { small_domains: true, ..config_of_gpu };
    let cuda = Arc::new(CudaDevice::new(device.clone(), config_of_gpu, store(circuits)).unwrap());
    let arena = Arena::new(&[SlabSpec { node: 0, bytes: 16 << 20 }], cuda.page_lock()).unwrap();
    let opened = (device.used_bytes(), device.page_lock_calls());
    let cpu = ProverDevice::new("CPU", spec(1, Role::LastResort), Pool { capacity_bytes: 10_000, head_room_bytes: 0 });
    circuits.iter().for_each(|circuit| circuit.add_to(&cpu));
    let engine = Engine::start(config(2), vec![cuda.clone(), Arc::new(cpu)], arena.clone()).unwrap();
    let submit = |&(circuit, first, partitions): &(usize, u64, u32)| {
        let circuit = &circuits[circuit];
        engine.submit(circuit.request(SquaresJob::new(circuit.squarings, first, partitions))).unwrap()
    };
    let handles: Vec<_> = jobs.iter().map(submit).collect();
    for (handle, &(circuit, first, _)) in handles.into_iter().zip(jobs) {
        let outcome = handle.wait().unwrap();
        let Outcome::Proved(proved) = &*outcome else { panic!("{outcome:?}") };
        assert!(circuits[circuit].accepts(first, proved), "job {first} of circuit {circuit}");
        assert!(!circuits[circuit].accepts(first + 1, proved), "a proof is of its own input only");
        assert!((device.used_bytes() - opened.0) as u64 <= cuda.memory().capacity_bytes, "keys stay within their pool");
    }
    assert_eq!((arena.used_bytes(), arena.dirty_free_bytes()), (0, 0));
    assert_eq!(device.page_lock_calls(), opened.1, "nothing is page-locked after the start");
    let summary = engine.timeline().unwrap().summary();
    assert!(summary.devices.len() == 1 && summary.devices[0].by_device_events, "the GPU proved all: {summary}");
    let counters = engine.usage().unwrap().1;
    drop((engine, arena, cuda));
    assert_eq!(device.used_bytes(), base, "all device memory is free again");
    Some(counters)
}

#[test]
fn jobs_over_three_circuits_are_proved_on_any_number_of_slots() {
    let circuits = [7, 63, 1000].map(Squares::new);
    let jobs: Vec<_> = (0..8).map(|i| (i % 3, 2 + 10 * i as u64, 1 + i as u32 % 3)).collect();
    for slots in [1, 2, 5] {
        let Some(counters) = check(&circuits, CudaConfig { slots, ..CudaConfig::default() }, &jobs) else { return };
        assert_eq!((counters.retries, counters.loads), (0, 3));
    }
}

#[test]
fn keys_make_room_for_each_other_on_a_small_card() {
    let circuits = [900, 1000, 1100].map(Squares::new);
    let Some((device, alone)) = gpu() else { return };
    // Room for scratch, for loading, and for two of the keys, not for three.
    let small = |mebibytes: u64| CudaConfig {
        slots: 1,
        scratch_percent: 98,
        memory_bytes_max: Some(mebibytes << 20),
        small_domains: true,
    };
    let is_tight = |&mebibytes: &u64| {
        let cuda = CudaDevice::new(device.clone(), small(mebibytes), store(&circuits)).unwrap();
        let plans: Option<Vec<_>> = circuits.iter().map(|circuit| cuda.plan(circuit.circuit.id)).collect();
        plans.is_some_and(|plans| {
            let bytes: usize = plans.iter().map(|plan| plan.key_bytes()).sum();
            plans.iter().all(|plan| plan.is_resident()) && bytes as u64 > cuda.memory().capacity_bytes
        })
    };
    let tight = (40..100u64).map(|steps| 20 * steps).rfind(is_tight).expect("some card is small");
    drop(alone);
    let jobs: Vec<_> = (0..9).map(|i| (i % 3, 2 + 10 * i as u64, 2)).collect();
    let counters = check(&circuits, small(tight), &jobs).expect("there was a GPU");
    assert!(counters.evictions > 0, "{counters:?}");
}

#[test]
fn a_cancelled_job_leaves_the_slot_to_the_next_within_100_ms() {
    let circuits = [Squares::new(1000)];
    let Some((device, _alone)) = gpu() else { return };
    let config_of_gpu = CudaConfig { small_domains: true, ..CudaConfig::default() };
    let cuda = Arc::new(CudaDevice::new(device, config_of_gpu, store(&circuits)).unwrap());
    let arena = Arena::new(&[SlabSpec { node: 0, bytes: 16 << 20 }], cuda.page_lock()).unwrap();
    let engine = Engine::start(config(2), vec![cuda], arena.clone()).unwrap();
    let prove =
        |first, partitions| engine.submit(circuits[0].request(SquaresJob::new(1000, first, partitions))).unwrap();
    assert!(matches!(*prove(1, 2).wait().unwrap(), Outcome::Proved(_)), "the key is on the device");
    for first in 2..12 {
        let long = prove(10 * first, 500);
        std::thread::sleep(Duration::from_millis(5 * first));
        let began = Instant::now();
        long.cancel().unwrap();
        assert_eq!(*long.wait().unwrap(), Outcome::Cancelled);
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
        assert_eq!((arena.used_bytes(), arena.dirty_free_bytes()), (0, 0));
        let outcome = prove(10_000 * first, 2).wait().unwrap();
        let Outcome::Proved(proved) = &*outcome else { panic!("{outcome:?}") };
        assert!(circuits[0].accepts(10_000 * first, proved));
    }
}

#[test]
fn a_broken_witness_is_blamed_and_the_device_goes_on() {
    let circuits = [Squares::new(63)];
    let Some((device, _alone)) = gpu() else { return };
    let config_of_gpu = CudaConfig { small_domains: true, ..CudaConfig::default() };
    let cuda = Arc::new(CudaDevice::new(device, config_of_gpu, store(&circuits)).unwrap());
    let arena = Arena::new(&[SlabSpec { node: 0, bytes: 4 << 20 }], cuda.page_lock()).unwrap();
    let engine = Engine::start(config(2), vec![cuda], arena.clone()).unwrap();
    let broken = SquaresJob { broken: true, ..SquaresJob::new(63, 1000, 2) };
    let sentence = failure(&engine.submit(circuits[0].request(broken)).unwrap().wait().unwrap());
    assert!(sentence.contains("constraint 30 is not satisfied"), "{sentence}");
    let outcome = engine.submit(circuits[0].request(SquaresJob::new(63, 5, 3))).unwrap().wait().unwrap();
    let Outcome::Proved(proved) = &*outcome else { panic!("{outcome:?}") };
    assert!(circuits[0].accepts(5, proved));
    assert_eq!(engine.usage().unwrap().1.retries, 0);
}

#[test]
fn a_thread_that_never_used_the_device_may_ask_what_it_takes() {
    let circuits = [Squares::new(1000)];
    let Some((device, _alone)) = gpu() else { return };
    let cuda = Arc::new(CudaDevice::new(device, CudaConfig::default(), store(&circuits)).unwrap());
    let circuit = circuits[0].circuit.id;
    let bytes = std::thread::spawn(move || cuda.circuit_bytes(circuit)).join().unwrap();
    assert!(bytes.is_some_and(|bytes| bytes > 0), "the device takes the circuit");
}
