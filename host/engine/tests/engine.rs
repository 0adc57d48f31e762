//! The engine with threads, on simulated devices: outcomes, faults, cancelling, memory.

mod common;

use common::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zkhost_engine::device::Device;
use zkhost_engine::engine::SubmitError;
use zkhost_engine::failure::Outcome;
use zkhost_engine::ids::{CircuitId, DeviceId};
use zkhost_engine::scheduler::{JobStatus, PartitionState, Refusal, Role};
use zkhost_engine::simulated::{Fault, Script};
use zkhost_engine::timeline::Category;
use zkhost_engine::{Engine, JobHandle};

const MEBIBYTE: u64 = 1 << 20;

/// One job on one device that does this at these calls (call 0 is the load), with a last resort beside it or not.
fn check(toy: Toy, faults: &[(u64, Fault)], last_resort: bool) -> Outcome {
    let arena = arena(4 * MEBIBYTE);
    let mut devices = vec![faulty_device(2, faults)];
    if last_resort {
        devices.push(device(Script { spec: spec(1, Role::LastResort), ..script(1, 0, 1) }));
    }
    let engine = engine(&devices, &arena);
    let outcome = engine.submit(request(toy)).unwrap().wait().unwrap();
    // A good job beside it is not affected.
    let good = Toy::new(91, 2, 2, 128);
    let expected = good.expected();
    assert_eq!(*engine.submit(request(good)).unwrap().wait().unwrap(), expected);
    let usage = engine.usage().unwrap().0;
    drop(engine);
    assert_eq!(usage.host_bytes, 0);
    wait_until(Duration::from_secs(1), || {
        arena.reclaim();
        arena.used_bytes() == 0
    });
    assert_eq!(arena.dirty_free_bytes(), 0);
    (*outcome).clone()
}

fn wait_until(limit: Duration, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < limit, "it did not happen within {limit:?}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn toy(act: Act) -> Toy {
    Toy { act, ..Toy::new(7, 3, 2, 192) }
}

#[test]
fn a_job_of_several_partitions_and_segments_gives_its_proofs_in_order() {
    let toy = Toy::new(7, 9, 3, 192);
    let expected = toy.expected();
    assert_eq!(check(toy, &[], false), expected);
}

#[test]
fn a_guest_that_fails_is_named_and_not_retried() {
    let place = "job test/job-7 failed in synthesis of partition 2, segment 1: ";
    for (act, cause) in [
        (Act::Traps, "the circuit failed: unreachable executed"),
        (Act::WritesTooLittle, "the circuit failed: its segment is not complete: only 2 of the segment's 3 groups"),
        (Act::Panics, "a thread of the host panicked, which is a bug; other jobs are not affected"),
    ] {
        let sentence = failure(&check(toy(act), &[], true));
        assert!(sentence.starts_with(&format!("{place}{cause}")), "{act:?}: {sentence}");
    }
}

#[test]
fn an_assignment_that_breaks_a_constraint_is_blamed_on_its_circuit() {
    let cheat = Toy { act: Act::Cheats, ..Toy::new(7, 3, 1, 192) };
    assert_eq!(
        failure(&check(cheat, &[], true)),
        "job test/job-7 failed in verification of partition 2: the circuit's assignment does not satisfy its constraints: \
         constraint 5 (/toy/sum) is not satisfied"
    );
}

#[test]
fn a_judge_that_panics_costs_its_job_only() {
    let sentence = failure(&check(Toy { act: Act::Baffles, ..Toy::new(7, 3, 1, 192) }, &[], true));
    assert!(sentence.contains("failed in verification of partition 2: a thread of the host panicked"), "{sentence}");
}

#[test]
fn icicle_snark_i18_a_fault_at_any_call_is_made_up_for_elsewhere() {
    let lost = Fault::Lost { reading: Duration::from_millis(20) };
    for fault in [Fault::Failed, Fault::Faulty, Fault::Panics, lost] {
        for call in 0..4 {
            let toy = toy(Act::Nothing);
            let expected = toy.expected();
            assert_eq!(check(toy, &[(call, fault)], true), expected, "{fault:?} at {call}");
        }
    }
}

#[test]
fn a_device_that_proves_nothing_right_fails_the_job_with_its_last_words() {
    let always: Vec<_> = (1..4).map(|call| (call, Fault::Faulty)).collect();
    let sentence = failure(&check(Toy::new(7, 1, 1, 64), &always, false));
    assert!(
        sentence.starts_with("job test/job-7 failed in verification of partition 0: no device is left for it after 3")
            && sentence.ends_with("the proof does not verify although the constraints hold"),
        "{sentence}"
    );
}

#[test]
fn a_lost_device_that_reads_on_keeps_the_lease() {
    let arena = arena(MEBIBYTE);
    let reading = Duration::from_millis(150);
    let device = faulty_device(1, &[(1, Fault::Lost { reading })]);
    let engine = engine(&[device], &arena);
    let began = Instant::now();
    let outcome = engine.submit(request(Toy::new(7, 1, 1, 64))).unwrap().wait().unwrap();
    assert_eq!(proofs(&outcome), 1, "the device came back");
    assert!(began.elapsed() < reading, "nobody waited for the lease");
    assert_eq!(arena.quarantined(), 1);
    wait_until(2 * reading, || {
        arena.reclaim();
        arena.used_bytes() == 0
    });
    assert_eq!(arena.dirty_free_bytes(), 0);
}

/// A job that would never end by itself, begun.
fn endless(engine: &Engine) -> JobHandle {
    let looping = Toy { act: Act::Loops, ..Toy::new(7, 2, 2, 192) };
    let job = engine.submit(request(looping)).unwrap();
    wait_until(Duration::from_secs(5), || {
        let Some(JobStatus::Running { partitions, .. }) = engine.status(job.key()).unwrap() else { return false };
        partitions[1] == PartitionState::Synthesising
    });
    job
}

#[test]
fn zeko_i231_a_cancelled_job_frees_everything_within_100_ms_and_its_name() {
    let arena = arena(4 * MEBIBYTE);
    let engine = engine(&[device(script(2, 0, 400))], &arena);
    let job = endless(&engine);
    let began = Instant::now();
    assert!(job.cancel().unwrap());
    assert!(!job.cancel().unwrap(), "once is enough");
    let again = engine.submit(request(Toy::new(7, 1, 1, 64))).unwrap();
    assert_ne!(again.key(), job.key());
    assert_eq!(*job.wait().unwrap(), Outcome::Cancelled);
    let took = began.elapsed();
    assert!(took < Duration::from_millis(100), "cancelling took {took:?}");
    assert_eq!(proofs(&again.wait().unwrap()), 1);
}

#[test]
fn a_deadline_ends_a_job() {
    let engine = engine(&[device(script(1, 0, 1))], &arena(4 * MEBIBYTE));
    let looping = Toy { act: Act::Loops, ..Toy::new(7, 1, 1, 192) };
    let request = zkhost_engine::JobRequest { time_limit: Some(Duration::from_millis(60)), ..request(looping) };
    let began = Instant::now();
    let outcome = engine.submit(request).unwrap().wait().unwrap();
    assert!(failure(&outcome).starts_with("job test/job-7 failed in synthesis of partition 0: its deadline passed"));
    assert!((60..160).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[test]
fn a_duplicate_joins_the_running_and_the_finished_job() {
    let device = device(script(1, 0, 20));
    let engine = engine(std::slice::from_ref(&device), &arena(4 * MEBIBYTE));
    let submit = || engine.submit(request(Toy::new(7, 2, 1, 64))).unwrap();
    let (first, second) = (submit(), submit());
    assert_eq!(first.key(), second.key());
    assert_eq!(first.wait().unwrap(), second.wait().unwrap());
    assert_eq!(proofs(&submit().wait().unwrap()), 2);
    assert_eq!(device.calls(), 3, "one load and two proofs");
    let other = zkhost_engine::JobRequest { body: [1; 32], ..request(Toy::new(7, 2, 1, 64)) };
    assert!(matches!(engine.submit(other), Err(SubmitError::Refused(Refusal::OtherBody(_)))));
}

#[test]
fn draining_finishes_what_runs_and_takes_nothing_new() {
    let engine = engine(&[device(script(1, 0, 20))], &arena(4 * MEBIBYTE));
    let job = engine.submit(request(Toy::new(7, 4, 1, 64))).unwrap();
    engine.drain().unwrap();
    assert_eq!(proofs(&job.wait_for(Duration::ZERO).unwrap().expect("drained means ended")), 4);
    let late = engine.submit(request(Toy::new(8, 1, 1, 64)));
    assert!(matches!(late, Err(SubmitError::Refused(Refusal::Draining))));
}

#[test]
fn snarkjs_i152_no_thread_is_left_behind_by_an_engine() {
    let device = device(script(2, 0, 1));
    let arena = arena(4 * MEBIBYTE);
    let engine = engine(std::slice::from_ref(&device), &arena);
    let job = endless(&engine);
    drop(engine);
    assert_eq!(*job.wait().unwrap(), Outcome::Cancelled, "its owner is told");
    assert_eq!(Arc::strong_count(&device), 1, "no thread has the device any more");
    assert_eq!((arena.used_bytes(), arena.dirty_free_bytes()), (0, 0));
}

#[test]
fn one_thread_of_each_kind_serves_more_jobs_than_threads() {
    let arena = arena(4 * MEBIBYTE);
    let device: Arc<dyn Device> = device(script(1, 0, 0));
    let engine = Engine::start(config(1), vec![device], arena).unwrap();
    let jobs: Vec<_> = (1..40).map(|number| engine.submit(request(Toy::new(number, 2, 2, 64))).unwrap()).collect();
    for (number, job) in (1..).zip(jobs) {
        assert_eq!(*job.wait().unwrap(), Toy::new(number, 2, 2, 64).expected());
    }
}

#[test]
fn copies_of_one_slot_hide_behind_kernels_of_the_other() {
    let engine = engine(&[device(script(2, 10, 30))], &arena(4 * MEBIBYTE));
    engine.submit(request(Toy::new(3, 12, 1, 64))).unwrap().wait().unwrap();
    let timeline = engine.timeline().unwrap();
    let summary = timeline.summary();
    let device = &summary.devices[0];
    let share = |part, whole| 100 * part / whole;
    assert!(share(device.busy_nanos, device.wall_nanos) >= 85, "{summary}");
    assert!(share(device.hidden_copy_nanos, device.copy_nanos) >= 80, "{summary}");
    for category in Category::ALL.into_iter() {
        assert!(timeline.spans().any(|span| span.category == category), "{} is on the timeline", category.name());
    }
}

#[test]
fn a_key_is_loaded_ahead_and_evicted_when_idle() {
    let device = device(script(1, 0, 0));
    let engine = engine(std::slice::from_ref(&device), &arena(4 * MEBIBYTE));
    let circuit = circuit(1).id;
    assert_eq!(engine.preload(circuit).unwrap(), [DeviceId(0)]);
    wait_until(Duration::from_secs(5), || device.resident_bytes() == 1000);
    assert_eq!(engine.usage().unwrap().0.device_bytes, [1000]);
    wait_until(Duration::from_secs(5), || engine.evict(circuit).unwrap());
    wait_until(Duration::from_secs(5), || device.resident_bytes() == 0);
    assert_eq!(engine.preload(CircuitId([99; 32])).unwrap(), [], "no device knows it");
    let mark = engine.timeline().unwrap().mark();
    engine.submit(request(Toy::new(1, 1, 1, 64))).unwrap().wait().unwrap();
    let new = engine.timeline_since(mark).unwrap();
    let count = new.spans().count() as u64;
    assert!(count > 0 && count == new.mark() - mark, "{count} spans after mark {mark}, up to {}", new.mark());
}
