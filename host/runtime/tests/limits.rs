//! Whoever passes a limit is told its name, its value and the setting; time limits hold to within 100 ms.

mod support;

use std::time::{Duration, Instant};
use support::*;
use zkhost_runtime::{Fault, Input, Limits};

const LOOP: &str = "(loop $again (br $again))";

/// A guest passes a limit: the fault is of the right kind and names the setting.
fn check(guest: Guest, limits: Limits, expected_setting: &str, expected: &[&str]) {
    let fault = check_fails(&guest.load(limits), &[expected, &[expected_setting]].concat());
    let Fault::Limit { setting, .. } = fault else { panic!("not a limit: {fault:?}") };
    assert_eq!(setting, expected_setting);
}

/// What `late` measures is below 100 ms. It has three tries, since a busy machine may keep any thread waiting that long.
fn check_prompt(what: &str, mut late: impl FnMut() -> Duration) {
    let late = [late(), late(), late()].into_iter().min();
    assert!(late < Some(Duration::from_millis(100)), "{what} was stopped {late:?} late");
}

fn limits() -> Limits {
    let time = Duration::from_secs(20);
    Limits { plan_time: time, record_shape_time: time, open_time: time, assign_time: time, ..Limits::default() }
}

#[test]
fn wasmtime_i8846_a_guest_that_wants_more_memory_than_its_limit_is_told_the_setting() {
    let grow = "(loop $more (drop (memory.grow (i32.const 16))) (br $more))";
    check(
        Guest { assign: grow.into(), ..Guest::default() },
        Limits { memory_bytes: 8 << 20, ..limits() },
        "memory_bytes",
        &["partition 0, segment 0, `job.assign`", "bytes of memory", "the limit is 8,388,608 bytes"],
    );
    // Growing once by more than there can ever be is the same.
    let at_once = "(drop (memory.grow (i32.const 65000)))";
    check(Guest { open: at_once.into(), ..Guest::default() }, limits(), "memory_bytes", &["`job.open`"]);
}

#[test]
fn a_memory_that_starts_beyond_the_limit_is_refused_before_it_is_compiled() {
    let guest = Guest { pages: 100, ..Guest::default() };
    let error = RUNTIME.load("large", &guest.component(), Limits { memory_bytes: 1 << 20, ..limits() }).err().unwrap();
    check_says(&error.to_string(), &["6,553,600 bytes of memory", "`memory_bytes`"]);
}

#[test]
fn a_guest_that_wants_a_larger_table_than_its_limit_is_told_the_setting() {
    let grow = "(loop $more (drop (table.grow $table (ref.null func) (i32.const 1000))) (br $more))";
    check(Guest { open: grow.into(), ..Guest::default() }, limits(), "table_elements", &["the limit is 100,000"]);
}

#[test]
fn bounty_challenge_i5459_an_endless_loop_ends_at_the_limit_of_its_export() {
    let short = Duration::from_millis(150);
    let cases: [(Guest, Limits, &str, &str); 5] = [
        (
            Guest { start: LOOP.into(), ..Guest::default() },
            Limits { plan_time: short, ..limits() },
            "plan_time",
            "instantiation",
        ),
        (
            Guest { plan: LOOP.into(), ..Guest::default() },
            Limits { plan_time: short, ..limits() },
            "plan_time",
            "`plan`",
        ),
        (
            Guest { record_shape: LOOP.into(), ..Guest::default() },
            Limits { record_shape_time: short, ..limits() },
            "record_shape_time",
            "`record-shape`",
        ),
        (
            Guest { open: LOOP.into(), ..Guest::default() },
            Limits { open_time: short, ..limits() },
            "open_time",
            "`job.open`",
        ),
        (
            Guest { assign: LOOP.into(), ..Guest::default() },
            Limits { assign_time: short, ..limits() },
            "assign_time",
            "`job.assign`",
        ),
    ];
    for (guest, limits, setting, place) in cases {
        let circuit = guest.load(limits);
        check_prompt(place, || {
            let started = Instant::now();
            let fault = check_fails(&circuit, &["circuit `tiny`", place, "did not return in time", "150ms", setting]);
            assert!(matches!(fault, Fault::Limit { .. }), "{fault:?}");
            started.elapsed().checked_sub(short).expect("it had its time")
        });
    }
}

#[test]
fn a_guest_that_keeps_calling_the_host_is_stopped_as_well() {
    let calls = "(loop $again (drop (call $progress (i64.const 1))) (br $again))";
    let guest = Guest { assign: calls.into(), ..Guest::default() };
    check(guest, Limits { assign_time: Duration::from_millis(100), ..limits() }, "assign_time", &["`job.assign`"]);
}

#[test]
fn a_cancelled_guest_stops_within_100_ms() {
    let circuit = Guest { assign: LOOP.into(), ..Guest::default() }.load(limits());
    check_prompt("a cancelled guest", || {
        let (circuit, observer) = observed(&circuit);
        std::thread::scope(|scope| {
            let run = scope.spawn(|| run(&circuit, b"", b"").map(|_| ()).unwrap_err());
            std::thread::sleep(Duration::from_millis(50));
            observer.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
            let asked = Instant::now();
            let error = run.join().unwrap();
            assert_eq!(error.fault, Fault::Cancelled);
            asked.elapsed()
        })
    });
}

#[test]
fn wasmtime_i6628_busy_and_never_fits_are_different() {
    let circuit = Guest::default().load(Limits { instances: 2, ..limits() });
    let input = Input::from(vec![]);
    let jobs = [circuit.open(b"", &input).unwrap(), circuit.open(b"", &input).unwrap()];
    let error = circuit.open(b"", &input).err().expect("there is no third instance");
    assert_eq!(error.fault, Fault::Busy { instances: 2 });
    check_says(&error.to_string(), &["busy", "all 2 instances", "try again", "`instances`"]);
    drop(jobs);
    circuit.open(b"", &input).unwrap();

    let never = Guest { open: "(drop (memory.grow (i32.const 65000)))".into(), ..Guest::default() }.load(limits());
    let error = never.open(b"", &input).err().unwrap();
    assert!(matches!(error.fault, Fault::Limit { setting: "memory_bytes", .. }), "{error}");
}

#[test]
fn a_failed_instance_leaves_its_place_to_others() {
    let circuit = Guest { start: "unreachable".into(), ..Guest::default() }.load(Limits { instances: 1, ..limits() });
    for _ in 0..3 {
        let error = circuit.describe().unwrap_err();
        assert!(matches!(error.fault, Fault::Trap(_)), "{error}");
    }
}

#[test]
fn parameters_and_inputs_have_limits() {
    let circuit = Guest::default().load(Limits { params_bytes: 10, input_bytes: 20, ..limits() });
    let error = circuit.plan(&[0; 11]).unwrap_err();
    check_says(&error.to_string(), &["`plan`", "the parameters have 11 bytes", "10 bytes", "`params_bytes`"]);
    circuit.plan(&[0; 10]).unwrap();
    let error = circuit.open(b"", &Input::from(vec![0; 21])).err().unwrap();
    check_says(&error.to_string(), &["`job.open`", "the input has 21 bytes", "20 bytes", "`input_bytes`"]);
    circuit.open(b"", &Input::from(vec![0; 20])).unwrap();
}

/// A plan that is refused, and why.
fn check_plan(plan: (u32, &[(u64, u64, u64)]), expected: &[&str]) {
    let guest = Guest { plan: plan_of(plan.0, plan.1), ..Guest::default() };
    let error = match guest.load(limits()).plan(b"") {
        Ok(layout) => panic!("accepted: {layout:?}"),
        Err(error) => error,
    };
    check_says(&error.to_string(), &[&["circuit `tiny`, `plan`"], expected].concat());
}

#[test]
fn gnark_i611_plans_that_overflow_or_do_not_tile_are_refused() {
    let many: Vec<_> = (0..1_025).map(|i| (i, 1, 0)).collect();
    check_plan((0, &[(0, 0, 0)]), &["0 partitions"]);
    check_plan((65_537, &[(0, 0, 0)]), &["65537 partitions", "65536"]);
    check_plan((1, &[]), &["0 segments"]);
    check_plan((1, &many), &["1025 segments", "1024"]);
    check_plan((1, &[(1, 5, 0)]), &["segment 0 starts at aux variable 1", "end at 0"]);
    check_plan((1, &[(0, 5, 0), (6, 5, 0)]), &["segment 1 starts at aux variable 6", "end at 5"]);
    check_plan((1, &[(0, 5, 0), (4, 5, 0)]), &["segment 1 starts at aux variable 4", "end at 5"]);
    check_plan((1, &[(0, 5, 0), (5, 0, 0)]), &["segment 1 has no aux variables"]);
    check_plan((1, &[(0, 5, 6)]), &["segment 0 has 5 aux variables but max-full 6"]);
    check_plan((1, &[(0, u64::MAX, 1)]), &["134,217,728", "`aux`"]);
    check_plan((1, &[(0, 1 << 27, 0), (1 << 27, u64::MAX, 1)]), &["segment 1", "`aux`"]);
    check_plan((1, &[(0, 0, u64::MAX)]), &["`assignment_bytes`"]);
    let small = Limits { assignment_bytes: 1 << 20, ..limits() };
    let guest = Guest { plan: plan_of(1, &[(0, 1 << 20, 0)]), ..Guest::default() };
    let error = guest.load(small).plan(b"").unwrap_err();
    check_says(&error.to_string(), &["33,816,576 bytes", "the limit is 1,048,576 bytes", "`assignment_bytes`"]);
}

#[test]
fn segments_that_do_not_cover_the_shape_are_refused() {
    let guest = Guest { plan: plan_of(1, &[(0, 1, 0), (1, 2, 0)]), ..Guest::default() };
    check_fails(&guest.load(limits()), &["`plan`", "cover 3 aux variables", "the recorded shape has 2"]);
}

/// Recording the tiny circuit's shape passes this limit.
fn check_shape(limits: Limits, expected_setting: &str) {
    let error = Guest::default().load(limits).record_shape(b"", false).unwrap_err();
    check_says(
        &error.to_string(),
        &["circuit `tiny`, `record-shape`", "the limit is", &format!("`{expected_setting}`")],
    );
    let Fault::Limit { setting, .. } = error.fault else { panic!("not a limit: {error}") };
    assert_eq!(setting, expected_setting);
}

#[test]
fn a_shape_has_limits() {
    check_shape(Limits { terms: 2, ..limits() }, "terms");
    check_shape(Limits { constraints: 0, ..limits() }, "constraints");
    check_shape(Limits { coefficients: 0, ..limits() }, "coefficients");
    check_shape(Limits { aux: 1, ..limits() }, "aux");
    check_shape(Limits { publics: 0, ..limits() }, "publics");
}

#[test]
fn logs_are_off_unless_asked_for_then_stripped_and_limited() {
    let line = "(call $log (i32.const 1) (i32.const 30000) (i32.const 12))";
    let guest = Guest {
        data: Guest::default().data + "(data (i32.const 30000) \"red\\1b[31m\\0a\\07\\00\\7f\")",
        open: line.repeat(5),
        ..Guest::default()
    };
    let circuit = guest.load(Limits { log_lines: 3, ..limits() });
    run(&circuit, b"", b"").unwrap();
    let (circuit, observer) = observed(&circuit);
    circuit.open(b"", &Input::from(vec![])).unwrap();
    let lines = observer.lines.lock().unwrap();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines.iter().all(|(_, line)| !line.contains(char::is_control)), "{lines:?}");
    check_says(&lines[0].1, &["red [31m"]);
    check_says(&lines[3].1, &["3 lines", "dropped", "`log_lines`"]);
    drop(lines);

    let circuit = guest.load(Limits { log_bytes: 30, ..limits() });
    let (circuit, observer) = observed(&circuit);
    circuit.open(b"", &Input::from(vec![])).unwrap();
    let lines = observer.lines.lock().unwrap();
    assert_eq!(lines.len(), 3, "two lines of 12 bytes and the notice: {lines:?}");
}

#[test]
fn progress_reaches_the_observer() {
    let assign = "(drop (call $progress (i64.const 1)))(drop (call $progress (i64.const 2)))".to_owned();
    let guest = Guest { assign: assign + &Guest::default().assign, ..Guest::default() };
    let (circuit, observer) = observed(&guest.load(limits()));
    run(&circuit, b"", b"").unwrap();
    assert_eq!(*observer.progress.lock().unwrap(), [1, 2]);
}

#[test]
fn one_call_carries_a_limited_number_of_bytes() {
    let huge = |bytes: u32| format!("(call $log (i32.const 1) (i32.const 0) (i32.const {bytes}))");
    let grown = "(drop (memory.grow (i32.const 1200)))".to_owned();
    let guest = Guest { open: grown.clone() + &huge((64 << 20) + 1), ..Guest::default() };
    check_fails(&guest.load(limits()), &["`job.open`", "more than 67108864 bytes"]);
    let words = (4 << 20) / 8 + 1;
    let guest = Guest { assign: grown + &write_groups(0, words), ..Guest::default() };
    check_fails(&guest.load(limits()), &["`write-groups` was given 4194312 bytes", "at most 4194304"]);
}
