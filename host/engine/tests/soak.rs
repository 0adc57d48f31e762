//! Many jobs in one process. A file of its own, so that nothing else in the process uses memory.

mod common;
#[path = "common/squares.rs"]
mod squares;

use common::{arena, config, spec};
use squares::{Squares, SquaresJob};
use std::sync::Arc;
use zkhost_engine::Engine;
use zkhost_engine::budget::Pool;
use zkhost_engine::device::ProverDevice;
use zkhost_engine::failure::Outcome;
use zkhost_engine::scheduler::Role;

/// Jobs that are submitted before the first of them is waited for.
const JOBS_AT_ONCE: u64 = 8;

/// What may grow: results and spans, which are kept up to a limit, are less than 4 KiB a job.
const GROWTH_KIB_MAX: u64 = 4 * 1000;

/// Squarings of the three circuits that take turns, and of the one that comes now and then.
const SIZES: [u64; 4] = [7, 15, 31, 1000];

/// The same at full size (`make soak`): domains of 2^7, 2^8, 2^10 and 2^15.
const FULL_SIZES: [u64; 4] = [120, 250, 1000, 32_000];

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn boundless_i1648_a_thousand_jobs_in_one_process_are_proved_and_leave_memory_flat() {
    let sizes = if std::env::var_os("ZKHOST_SOAK").is_some() { FULL_SIZES } else { SIZES };
    let circuits = sizes.map(Squares::new);
    let arena = arena(16 << 20);
    let device = ProverDevice::new("CPU", spec(1, Role::Primary), Pool { capacity_bytes: 2500, head_room_bytes: 0 });
    circuits.iter().for_each(|circuit| circuit.add_to(&device));
    let engine = Engine::start(config(2), vec![Arc::new(device)], arena.clone()).unwrap();
    let mut after_warm_up = 0;
    for batch in 0..1000 / JOBS_AT_ONCE {
        let jobs = (batch * JOBS_AT_ONCE..).take(JOBS_AT_ONCE as usize).map(|number| {
            // The large circuit now and then: it takes as long as fifty of the others.
            let circuit = if number % 50 == 0 { 3 } else { number as usize % 3 };
            let synthesis = SquaresJob::new(circuits[circuit].squarings, 2 + number, 1);
            (number, circuit, engine.submit(circuits[circuit].request(synthesis)).unwrap())
        });
        for (number, circuit, job) in jobs.collect::<Vec<_>>() {
            let outcome = job.wait().unwrap();
            let Outcome::Proved(proved) = &*outcome else { panic!("job {number}: {outcome:?}") };
            assert!(circuits[circuit].accepts(2 + number, proved), "job {number}");
        }
        if batch == 25 {
            after_warm_up = resident_kib();
        }
    }
    let at_end = resident_kib();
    assert!(at_end < after_warm_up + GROWTH_KIB_MAX, "{after_warm_up} KiB grew to {at_end} KiB");
    assert_eq!((arena.used_bytes(), arena.page_lock_calls(), arena.dirty_free_bytes()), (0, 1, 0));
    let (usage, counters) = engine.usage().unwrap();
    assert_eq!((usage.host_bytes, counters.retries, counters.faulty_proofs), (0, 0, 0));
    assert!(usage.device_bytes[0] <= 2500 && counters.evictions > 0, "circuits took turns on the device");
}
