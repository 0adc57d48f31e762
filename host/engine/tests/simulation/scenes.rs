//! Scenes: small worlds, each for one property.

use crate::world::{Fault, MILLISECOND, Rates, Setup, Truth, World, submission};
use zkhost_engine::budget::{NeverFits, Pool};
use zkhost_engine::failure::{Cause, Outcome, Stage};
use zkhost_engine::ids::{Priority, Time};
use zkhost_engine::scheduler::{Config, DeviceSpec, JobStatus, Refusal, Role, Submission};

const PHASE_NANOS: u64 = 100 * MILLISECOND;

fn devices(primary_slots: &[u16], last_resort: bool) -> Vec<(DeviceSpec, Pool)> {
    let device = |slots, role| (DeviceSpec { slots, role, node: 0 }, Pool { capacity_bytes: 100, head_room_bytes: 0 });
    let primary = primary_slots.iter().map(|&slots| device(slots, Role::Primary));
    primary.chain(last_resort.then(|| device(1, Role::LastResort))).collect()
}

fn setup(devices: Vec<(DeviceSpec, Pool)>) -> Setup {
    Setup {
        config: Config { synthesis_workers: 4, ..Config::default() },
        devices,
        host: Pool { capacity_bytes: 2000, head_room_bytes: 400 },
        slab_bytes: vec![2 << 20],
        pinned_head_room_bytes: 256 << 10,
        synthesis_nanos: MILLISECOND..2 * MILLISECOND,
        prove_nanos: PHASE_NANOS - MILLISECOND..PHASE_NANOS,
        load_nanos: MILLISECOND..2 * MILLISECOND,
        faults: Rates::default(),
        fault_at: None,
    }
}

fn job(setup: &Setup, name: &str, circuit: u8, partitions: u32) -> Submission {
    let mut job = submission(name, circuit, partitions, &[1000]);
    job.circuit_bytes = vec![Some(40); setup.devices.len()];
    job
}

/// Run the jobs, submitted at these times in milliseconds, to the end.
fn check(setup: Setup, jobs: Vec<(u64, Submission, Truth)>) -> World {
    let mut world = World::new(1, setup);
    for (at, job, truth) in jobs {
        world.submit_at(at * MILLISECOND, job, truth);
    }
    world.run();
    world
}

fn outcome(world: &World, name: &str) -> Outcome {
    let run = world.runs.values().rfind(|run| run.submission.id.name == name).unwrap();
    (**run.outcome.as_ref().unwrap()).clone()
}

#[test]
fn bellperson_p63_urgent_jobs_overtake_a_long_one_a_hundred_times_and_it_finishes() {
    let setup = setup(devices(&[2], false));
    let mut jobs = vec![(0, job(&setup, "long", 1, 300), Truth::default())];
    for i in 0..100 {
        let mut urgent = job(&setup, &format!("urgent-{i}"), 1, 1);
        urgent.priority = Priority::Urgent;
        jobs.push((57 + 137 * i, urgent, Truth::default()));
    }
    let world = check(setup, jobs);
    for run in world.runs.values().filter(|run| run.submission.priority == Priority::Urgent) {
        let waited = run.proving_at[&0].0 - run.submitted_at.0;
        assert!(waited <= PHASE_NANOS + 3 * MILLISECOND, "{} waited {waited} ns", run.submission.id);
    }
    assert!(matches!(outcome(&world, "long"), Outcome::Proved(_)));
}

#[test]
fn older_jobs_and_lower_partitions_are_proved_first() {
    let setup = setup(devices(&[1], false));
    let jobs = (0..5).map(|i| (i, job(&setup, &format!("job-{i}"), 1, 4), Truth::default())).collect();
    let world = check(setup, jobs);
    let starts: Vec<_> = world.runs.values().flat_map(|run| run.proving_at.values().copied()).collect();
    assert!(starts.is_sorted(), "{starts:?}");
}

#[test]
fn a_bad_proof_is_repeated_elsewhere_and_then_on_the_last_resort() {
    let mut scene = setup(devices(&[2], true));
    scene.faults.faulty = 1000;
    let jobs = vec![(0, job(&scene, "bad-device", 1, 1), Truth::default())];
    let world = check(scene, jobs);
    let slots: Vec<_> = world.runs.values().flat_map(|run| run.slots.iter().map(|(_, slot)| *slot)).collect();
    assert_eq!(slots.len(), 3);
    assert_eq!((slots[0].device, slots[2].device.0), (slots[1].device, 1));
    assert_ne!(slots[0].index, slots[1].index);
    assert_eq!(world.scheduler.counters().faulty_proofs, 3);
    let Outcome::Failed(failure) = outcome(&world, "bad-device") else { panic!("it cannot be proved") };
    assert_eq!(failure.stage, Stage::Verification);
    assert!(
        failure.to_string().starts_with("job test/bad-device failed in verification of partition 0: "),
        "{failure}"
    );
}

#[test]
fn risc0_i3798_one_bad_proof_costs_one_partition_one_retry() {
    let mut scene = setup(devices(&[2], false));
    // Call 0 is the load.
    scene.fault_at = Some((3, Fault::Faulty));
    let jobs = vec![(0, job(&scene, "job", 1, 6), Truth::default())];
    let world = check(scene, jobs);
    assert!(matches!(outcome(&world, "job"), Outcome::Proved(_)));
    let counters = world.scheduler.counters();
    assert_eq!((counters.faulty_proofs, counters.retries, world.device_calls), (1, 1, 8));
}

#[test]
fn an_unsatisfied_witness_is_its_circuits_fault_and_not_retried() {
    let scene = setup(devices(&[2], true));
    let truth = Truth { unsatisfied: Some(2), guest_fault: None };
    let jobs = vec![(0, job(&scene, "bad", 1, 4), truth), (0, job(&scene, "good", 1, 4), Truth::default())];
    let world = check(scene, jobs);
    let Outcome::Failed(failure) = outcome(&world, "bad") else { panic!("it does not satisfy its constraints") };
    assert_eq!((failure.place.partition, failure.stage), (Some(2), Stage::Verification));
    assert!(matches!(failure.cause, Cause::Unsatisfied(_)));
    assert_eq!(world.scheduler.counters().retries, 0);
    assert!(matches!(outcome(&world, "good"), Outcome::Proved(_)));
}

#[test]
fn a_lost_device_moves_its_partitions_and_comes_back() {
    let mut scene = setup(devices(&[2, 2], false));
    scene.fault_at = Some((5, Fault::Lost));
    let jobs = vec![(0, job(&scene, "job", 1, 20), Truth::default())];
    let world = check(scene, jobs);
    assert!(matches!(outcome(&world, "job"), Outcome::Proved(_)));
    assert_eq!(world.scheduler.counters().device_losses, 1);
    assert!(world.order.iter().any(|action| action.starts_with("restart")));
}

#[test]
fn a_device_that_never_comes_back_is_given_up_for_the_last_resort() {
    let mut scene = setup(devices(&[2], true));
    scene.faults = Rates { lost: 1000, restart: 1000, ..Rates::default() };
    scene.devices[1].0.role = Role::LastResort;
    let jobs = vec![(0, job(&scene, "job", 1, 2), Truth::default())];
    let world = check(scene, jobs);
    // The last resort is as bad here, so the job ends with a sentence instead of waiting for ever.
    let Outcome::Failed(failure) = outcome(&world, "job") else { panic!("nothing can prove it") };
    assert!(matches!(failure.cause, Cause::Device { .. }), "{failure}");
}

#[test]
fn the_same_name_joins_another_body_is_refused_and_a_cancelled_name_is_free() {
    let scene = setup(devices(&[1], false));
    let first = job(&scene, "job", 1, 3);
    let mut other = job(&scene, "job", 1, 3);
    other.body = [9; 32];
    let mut world = World::new(1, scene);
    world.submit_at(0, first.clone(), Truth::default());
    world.submit_at(MILLISECOND, first.clone(), Truth::default());
    world.submit_at(MILLISECOND, other.clone(), Truth::default());
    world.cancel_at(50 * MILLISECOND, first.id.clone());
    world.submit_at(51 * MILLISECOND, other.clone(), Truth::default());
    world.run();
    assert_eq!(world.runs.len(), 2);
    assert!(matches!(world.refusals[..], [(_, Refusal::OtherBody(_))]));
    assert!(matches!(outcome(&world, "job"), Outcome::Proved(_)));
    world.submit_at(world.now.0, other, Truth::default());
    world.run();
    assert_eq!(world.runs.len(), 2, "a finished job is joined, not repeated");
}

#[test]
fn what_never_fits_is_refused_and_what_fits_later_waits() {
    let scene = setup(devices(&[1], false));
    let mut world = World::new(1, scene.clone());
    let mut huge = job(&scene, "pinned", 1, 1);
    huge.segments = submission("", 1, 1, &[200_000]).segments;
    let mut guests = job(&scene, "host", 1, 1);
    guests.guest_bytes = 1601;
    let mut key = job(&scene, "device", 1, 1);
    key.circuit_bytes = vec![Some(101)];
    for never in [huge, guests, key] {
        world.submit_at(0, never, Truth::default());
    }
    // Each takes more than half of the arena, or of the device.
    for (i, circuit) in [1, 2, 3].into_iter().enumerate() {
        let mut large = job(&scene, &format!("large-{i}"), circuit, 2);
        large.segments = submission("", 1, 1, &[60_000]).segments;
        large.circuit_bytes = vec![Some(60)];
        world.submit_at(0, large, Truth::default());
    }
    world.run();
    let refused: Vec<_> = world.refusals.iter().map(|(_, refusal)| refusal).collect();
    assert!(
        matches!(
            refused[..],
            [
                Refusal::NeverFits(NeverFits::Pinned { .. }),
                Refusal::NeverFits(NeverFits::Host { .. }),
                Refusal::NeverFits(NeverFits::Device { .. })
            ]
        ),
        "{refused:?}"
    );
    assert!((0..3).all(|i| matches!(outcome(&world, &format!("large-{i}")), Outcome::Proved(_))));
    assert_eq!(world.scheduler.counters().evictions, 2);
}

#[test]
fn the_least_recently_used_circuit_makes_room() {
    let scene = setup(devices(&[1], false));
    // 40 bytes each of 100: circuit 1 is used again after 2, so 3 evicts 2.
    let order = [1, 2, 1, 3, 1].into_iter().zip((0..).step_by(1000));
    let jobs =
        order.map(|(circuit, at)| (at, job(&scene, &format!("at-{at}"), circuit, 1), Truth::default())).collect();
    let world = check(scene, jobs);
    let counters = world.scheduler.counters();
    assert_eq!((counters.loads, counters.evictions), (3, 1));
    assert!(world.order.iter().any(|action| action.starts_with("evict") && action.ends_with("0202020202020202")));
}

#[test]
fn a_deadline_ends_a_job_and_says_what_it_waited_for() {
    let scene = setup(devices(&[1], false));
    let mut late = job(&scene, "late", 1, 5);
    late.deadline = Some(Time(250 * MILLISECOND));
    let world = check(scene, vec![(0, late, Truth::default())]);
    let Outcome::Failed(failure) = outcome(&world, "late") else { panic!("five phases take longer") };
    assert_eq!((failure.stage, failure.cause), (Stage::Proving, Cause::Deadline));
    assert!(world.now.0 <= 350 * MILLISECOND);
}

#[test]
fn aztec_p24562_draining_finishes_what_runs_and_refuses_the_rest() {
    let scene = setup(devices(&[1], false));
    let mut world = World::new(1, scene.clone());
    world.submit_at(0, job(&scene, "running", 1, 3), Truth::default());
    world.drain_at(50 * MILLISECOND);
    world.submit_at(60 * MILLISECOND, job(&scene, "late", 1, 1), Truth::default());
    world.run();
    assert!(world.drained);
    assert!(matches!(outcome(&world, "running"), Outcome::Proved(_)));
    assert!(matches!(world.refusals[..], [(_, Refusal::Draining)]));
}

#[test]
fn a_job_that_cannot_be_is_refused_with_a_sentence() {
    let scene = setup(devices(&[1], false));
    let mut world = World::new(1, scene.clone());
    let mut check = |change: &dyn Fn(&mut Submission), expected: &str| {
        let mut submission = job(&scene, "job", 1, 1);
        change(&mut submission);
        let refusal = world.scheduler.submit(Time(0), submission).unwrap_err().to_string();
        assert!(refusal.starts_with(expected), "{refusal}");
    };
    check(&|job| job.id.name = "two\nlines".into(), "a job and its owner have names of 1 to 256 bytes");
    check(&|job| job.id.owner = String::new(), "a job and its owner have names of 1 to 256 bytes");
    check(&|job| job.id.name = "x".repeat(257), "a job and its owner have names of 1 to 256 bytes");
    check(&|job| job.partitions = 0, "the job has 0 partitions; there are from 1 to 65536");
    check(&|job| job.partitions = 65_537, "the job has 65537 partitions; there are from 1 to 65536");
    check(&|job| job.segments = [].into(), "each partition has 0 segments; there are from 1 to 1024");
    check(&|job| job.circuit_bytes = vec![None], "it never fits: no device can hold circuit 0101010101010101");
    check(&|job| job.circuit_bytes = vec![Some(101)], "it never fits: no device can hold circuit 0101010101010101");
}

#[test]
fn rapidsnark_i18_the_queue_is_bounded_and_tells_positions() {
    let mut scene = setup(devices(&[1], false));
    scene.config.jobs_max = 3;
    let mut world = World::new(1, scene.clone());
    let keys: Vec<_> = (0..3)
        .map(|i| world.scheduler.submit(Time(0), job(&scene, &format!("job-{i}"), 1, 2)).unwrap().key())
        .collect();
    let refused = world.scheduler.submit(Time(0), job(&scene, "one-more", 1, 2));
    assert_eq!(refused, Err(Refusal::Busy { jobs: 3 }));
    for (position, key) in keys.into_iter().enumerate() {
        let Some(JobStatus::Running { ahead, .. }) = world.scheduler.status(key) else { panic!("it waits") };
        assert_eq!(ahead, position);
    }
}

#[test]
fn one_synthesis_worker_serves_more_jobs_than_threads() {
    let mut scene = setup(devices(&[3], false));
    scene.config = Config { synthesis_workers: 1, check_workers: 1, ..scene.config };
    let jobs = (0..40).map(|i| (0, job(&scene, &format!("job-{i}"), 1 + i as u8 % 3, 2), Truth::default())).collect();
    let world = check(scene, jobs);
    assert!(world.runs.values().all(|run| matches!(run.outcome.as_deref(), Some(Outcome::Proved(_)))));
}

#[test]
fn guests_stay_from_partition_to_partition_and_make_room_for_another_jobs() {
    let mut scene = setup(devices(&[1], false));
    scene.config.credits_per_slot = 1;
    // Room for the guests of one partition: a proof takes long, so none is being written most of the time.
    scene.host = Pool { capacity_bytes: 100, head_room_bytes: 0 };
    let opened = |world: &World| world.runs.values().map(|run| run.guests.opened).collect::<Vec<_>>();
    let world = check(scene.clone(), vec![(0, job(&scene, "alone", 1, 10), Truth::default())]);
    assert_eq!(opened(&world), [1], "the input is opened once");

    let mut urgent = job(&scene, "urgent", 1, 1);
    urgent.priority = Priority::Urgent;
    let jobs = vec![(0, job(&scene, "long", 1, 10), Truth::default()), (350, urgent, Truth::default())];
    let world = check(scene, jobs);
    assert_eq!(opened(&world), [2, 1], "resting guests gave up their memory, once");
    assert!(matches!(outcome(&world, "urgent"), Outcome::Proved(_)));
    assert!(matches!(outcome(&world, "long"), Outcome::Proved(_)));
}

#[test]
fn a_circuit_is_loaded_ahead_of_its_jobs_and_evicted_unless_it_is_in_use() {
    let scene = setup(devices(&[1, 1], true));
    let mut world = World::new(1, scene.clone());
    let circuit = job(&scene, "job", 1, 4).circuit;
    world.preload_at(0, circuit, 40);
    world.evict_at(150 * MILLISECOND, circuit);
    world.submit_at(100 * MILLISECOND, job(&scene, "job", 1, 4), Truth::default());
    world.run();
    assert_eq!(world.order.iter().filter(|action| action.starts_with("load")).count(), 2, "once on each GPU");
    assert!(
        world.order.iter().position(|action| action.starts_with("load"))
            < world.order.iter().position(|action| action.starts_with("admit"))
    );
    assert_eq!(world.scheduler.counters().evictions, 0, "both are in use");
    world.evict_at(world.now.0, circuit);
    world.run();
    assert_eq!((world.scheduler.counters().evictions, world.usage().device_bytes), (2, vec![0, 0, 0]));
}

#[test]
fn a_job_spreads_over_devices_that_have_room_and_evicts_nothing_for_it() {
    let scene = setup(devices(&[2, 2], false));
    let loads = |world: &World| world.order.iter().filter(|action| action.starts_with("load")).count();
    let spread = check(scene.clone(), vec![(0, job(&scene, "job", 1, 4), Truth::default())]);
    assert_eq!(loads(&spread), 2, "four partitions on four slots");
    let small = check(scene.clone(), vec![(0, job(&scene, "job", 1, 2), Truth::default())]);
    assert_eq!(loads(&small), 1, "two partitions need one device");

    // 60 bytes of 100 each: the other device has another circuit, which is idle by then.
    let large = |name, circuit, partitions| {
        let mut job = job(&scene, name, circuit, partitions);
        job.circuit_bytes = vec![Some(60), Some(60)];
        job
    };
    let jobs = vec![(0, large("a", 1, 1), Truth::default()), (1, large("b", 2, 1), Truth::default())];
    let jobs = jobs.into_iter().chain([(500, large("again", 1, 6), Truth::default())]).collect();
    let kept = check(scene.clone(), jobs);
    assert_eq!((loads(&kept), kept.scheduler.counters().evictions), (2, 0));
}
