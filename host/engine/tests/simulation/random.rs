//! Worlds drawn from a seed: devices, memory, circuits, jobs, faults, cancelling, deadlines.

use crate::world::{Fault, MILLISECOND, Rates, Setup, Truth, World, submission};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use zkhost_engine::budget::Pool;
use zkhost_engine::failure::{Cause, Outcome};
use zkhost_engine::ids::{Priority, Time};
use zkhost_engine::scheduler::{Config, DeviceSpec, Refusal, Role, Submission};

const SEEDS: u64 = 3000;

struct Dice(ChaCha8Rng);

impl Dice {
    fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }
}

fn setup(dice: &mut Dice, faults: Rates) -> Setup {
    let primaries = dice.from(0, 3);
    let with_cpu = primaries == 0 || dice.from(0, 2) > 0;
    let mut devices = vec![];
    for i in 0..primaries {
        let spec = DeviceSpec { slots: dice.from(1, 3) as u16, role: Role::Primary, node: i as u32 % 2 };
        devices.push((spec, Pool { capacity_bytes: dice.from(60, 200), head_room_bytes: dice.from(0, 20) }));
    }
    if with_cpu {
        let role = if primaries == 0 { Role::Primary } else { Role::LastResort };
        let spec = DeviceSpec { slots: 1, role, node: 0 };
        devices.push((spec, Pool { capacity_bytes: 300, head_room_bytes: 0 }));
    }
    let config = Config {
        synthesis_workers: dice.from(1, 4) as usize,
        check_workers: dice.from(1, 2) as usize,
        credits_per_slot: dice.from(1, 4) as u32,
        urgent_credits_per_slot: dice.from(0, 2) as u32,
        jobs_max: dice.from(3, 20) as usize,
        ended_jobs_max: dice.from(1, 8) as usize,
    };
    Setup {
        config,
        devices,
        host: Pool { capacity_bytes: dice.from(300, 1500), head_room_bytes: dice.from(0, 100) },
        slab_bytes: (0..dice.from(1, 2)).map(|_| dice.from(8, 20) << 16).collect(),
        pinned_head_room_bytes: dice.from(0, 2) << 16,
        synthesis_nanos: 0..dice.from(1, 300) * MILLISECOND,
        prove_nanos: 0..dice.from(1, 300) * MILLISECOND,
        load_nanos: 0..dice.from(1, 2000) * MILLISECOND,
        faults,
        fault_at: None,
    }
}

fn job(dice: &mut Dice, setup: &Setup, index: u64) -> (Submission, Truth) {
    let circuit = dice.from(1, 4);
    // Sizes belong to circuits: one of them fits no small device.
    let bytes = [20, 45, 70, 150][circuit as usize - 1];
    let segments: Vec<_> = (0..dice.from(1, 4)).map(|_| dice.from(0, 12_000)).collect();
    let partitions = dice.from(1, 6) as u32;
    let mut submission = submission(&format!("job-{}", index % 12), circuit as u8, partitions, &segments);
    submission.body[1] = partitions as u8;
    submission.circuit_bytes = setup.devices.iter().map(|_| Some(bytes)).collect();
    submission.priority =
        [Priority::Background, Priority::Normal, Priority::Normal, Priority::Urgent][dice.from(0, 3) as usize];
    if dice.from(0, 9) == 0 {
        submission.deadline = Some(Time(dice.from(0, 4000) * MILLISECOND));
    }
    let truth = match dice.from(0, 15) {
        0 => Truth { unsatisfied: Some(dice.from(0, u64::from(partitions) - 1) as u32), guest_fault: None },
        1 => Truth {
            unsatisfied: None,
            guest_fault: Some((
                dice.from(0, u64::from(partitions) - 1) as u32,
                dice.from(0, segments.len() as u64 - 1) as u32,
            )),
        },
        _ => Truth::default(),
    };
    (submission, truth)
}

/// Build the world of a seed, run it to its end with all the world's checks, and give it back.
fn check(seed: u64, faults: Rates) -> World {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed ^ 0x5eed));
    let setup = setup(&mut dice, faults);
    let mut world = World::new(seed, setup.clone());
    for index in 0..dice.from(2, 16) {
        let (submission, truth) = job(&mut dice, &setup, index);
        let at = dice.from(0, 2000) * MILLISECOND;
        if dice.from(0, 5) == 0 {
            world.cancel_at(at + dice.from(0, 1000) * MILLISECOND, submission.id.clone());
        }
        if dice.from(0, 7) == 0 {
            let bytes = submission.circuit_bytes[0].unwrap();
            world.preload_at(dice.from(0, 2000) * MILLISECOND, submission.circuit, bytes);
            world.evict_at(dice.from(0, 4000) * MILLISECOND, submission.circuit);
        }
        world.submit_at(at, submission, truth);
    }
    let result = catch_unwind(AssertUnwindSafe(|| world.run()));
    if let Err(panic) = result {
        eprintln!("seed {seed} fails");
        std::panic::resume_unwind(panic);
    }
    world
}

const RATES: Rates = Rates { failed: 40, lost: 15, faulty: 40, load: 30, restart: 200, panic: 5 };

#[test]
fn thousands_of_seeds_lose_double_swap_or_block_no_job() {
    let mut ends = [0; 3];
    for seed in 0..SEEDS {
        let world = check(seed, RATES);
        for run in world.runs.values() {
            match run.outcome.as_deref() {
                Some(Outcome::Proved(_)) => ends[0] += 1,
                Some(Outcome::Failed(_)) => ends[1] += 1,
                _ => ends[2] += 1,
            }
        }
    }
    assert!(ends.iter().all(|&count| count > SEEDS / 10), "the seeds reach every end: {ends:?}");
}

#[test]
fn without_faults_every_good_job_is_proved_and_every_bad_one_blamed() {
    for seed in 0..SEEDS / 3 {
        let world = check(seed, Rates::default());
        for run in world.runs.values().filter(|run| run.cancelled_at.is_none() && run.submission.deadline.is_none()) {
            let cause = match run.outcome.as_deref().unwrap() {
                Outcome::Failed(failure) => Some(&failure.cause),
                _ => None,
            };
            match (run.truth.unsatisfied, run.truth.guest_fault) {
                (Some(_), _) => assert!(matches!(cause, Some(Cause::Unsatisfied(_))), "seed {seed}: {cause:?}"),
                (_, Some(_)) => assert!(matches!(cause, Some(Cause::Guest(_))), "seed {seed}: {cause:?}"),
                _ => assert_eq!(cause, None, "seed {seed}"),
            }
        }
        assert_eq!(world.scheduler.counters().retries, 0, "seed {seed}: a bad witness is not retried");
        let known =
            |refusal: &Refusal| matches!(refusal, Refusal::Busy { .. } | Refusal::OtherBody(_) | Refusal::NeverFits(_));
        assert!(world.refusals.iter().all(|(_, refusal)| known(refusal)), "seed {seed}");
    }
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    for seed in 0..50 {
        assert_eq!(check(seed, RATES).order, check(seed, RATES).order, "seed {seed}");
    }
}

#[test]
fn one_fault_at_any_device_call_costs_no_job_when_there_is_a_cpu() {
    for fault in [Fault::Failed, Fault::Lost, Fault::Faulty, Fault::Panicked] {
        let mut call = 0;
        loop {
            let device =
                |role, slots| (DeviceSpec { slots, role, node: 0 }, Pool { capacity_bytes: 100, head_room_bytes: 0 });
            let setup = Setup {
                config: Config { synthesis_workers: 2, ..Config::default() },
                devices: vec![device(Role::Primary, 2), device(Role::LastResort, 1)],
                host: Pool { capacity_bytes: 1000, head_room_bytes: 0 },
                slab_bytes: vec![1 << 20],
                pinned_head_room_bytes: 0,
                synthesis_nanos: 1..5 * MILLISECOND,
                prove_nanos: 1..9 * MILLISECOND,
                load_nanos: 1..20 * MILLISECOND,
                faults: Rates::default(),
                fault_at: Some((call, fault)),
            };
            let mut world = World::new(call, setup);
            for (i, circuit) in [1u8, 2, 3].into_iter().enumerate() {
                let mut job = submission(&format!("job-{i}"), circuit, 4, &[3000, 2000]);
                job.circuit_bytes = vec![Some(60), Some(60)];
                world.submit_at(0, job, Truth::default());
            }
            world.run();
            for run in world.runs.values() {
                assert!(
                    matches!(run.outcome.as_deref(), Some(Outcome::Proved(_))),
                    "{fault:?} at {call}: {:?}",
                    run.outcome
                );
            }
            call += 1;
            if world.device_calls <= call {
                break;
            }
        }
        assert!(call > 12, "every call was reached");
    }
}
