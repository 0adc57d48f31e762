//! Many jobs in one process. A file of its own, so that nothing else in the process uses memory.

mod common;

use common::*;
use zkhost_engine::failure::Outcome;

#[test]
fn boundless_i1648_a_thousand_jobs_in_one_process_leave_memory_flat() {
    let arena = arena(4 * MEBIBYTE);
    let device = device(script(2, 0, 0));
    let engine = engine(&[device.clone()], &arena);
    let resident_after = |jobs: std::ops::Range<u64>| {
        for number in jobs {
            let expected = Toy::new(number, 2, 2, 128).expected();
            let outcome = engine.submit(request(Toy::new(number, 2, 2, 128))).unwrap().wait().unwrap();
            assert_eq!(*outcome, Outcome::Proved(expected));
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let early_kib = resident_after(1..200);
    let late_kib = resident_after(200..1001);
    // Results and spans are kept up to a limit; they are what may grow, by about a kilobyte and a half a job.
    assert!(late_kib < early_kib + 8 * 1024, "{early_kib} KiB grew to {late_kib} KiB");
    assert_eq!((arena.used_bytes(), arena.page_lock_calls(), arena.dirty_free_bytes()), (0, 1, 0));
    assert!(device.resident_bytes() <= 2000);
    let (_, counters) = engine.usage().unwrap();
    assert_eq!((counters.retries, counters.faulty_proofs, counters.device_losses), (0, 0, 0));
}
