//! The circuit that misbehaves on demand, `guest-circuits/hostile`: each act gets its sentence, and none a panic.

mod support;

use std::sync::LazyLock;
use std::time::Duration;
use support::*;
use zkhost_runtime::{Circuit, Fault, Input, Limits, Refusal};

/// Nobody but the circuit may learn these.
const SECRETS: [&str; 2] = ["3141592", "2718281"];
const INPUT: &[u8] = br#"{"left": 3141592, "right": 2718281}"#;

static HOSTILE: LazyLock<Circuit> = LazyLock::new(|| {
    let time = Duration::from_secs(1);
    let limits = Limits {
        memory_bytes: 96 << 20,
        plan_time: time,
        record_shape_time: time,
        open_time: time,
        assign_time: time,
        terms: 10_000,
        constraints: 10_000,
        coefficients: 10_000,
        name_bytes: 10_000,
        ..Limits::default()
    };
    RUNTIME.load("hostile", &built_guest("hostile"), limits).unwrap()
});

/// The whole run with these parameters fails; its error says these things and no secret.
fn check_params(params: &str, expected: &[&str]) -> Fault {
    let error = match run(&HOSTILE, params.as_bytes(), INPUT) {
        Ok(_) => panic!("{params} succeeded; expected an error with {expected:?}"),
        Err(error) => error,
    };
    let text = error.to_string();
    check_says(&text, &[&["circuit `hostile`"], expected].concat());
    assert!(!text.contains(char::is_control), "{text:?}");
    let told = format!("{text} {error:?} {}", error.backtrace.clone().unwrap_or_default());
    for secret in SECRETS {
        assert!(!told.contains(secret), "a secret is told: {told}");
    }
    error.fault
}

/// As [`check_params`], for an act in the export that it belongs to.
fn check(act: &str, expected: &[&str]) -> Fault {
    check_params(&format!(r#"{{"act": "{act}"}}"#), expected)
}

/// As [`check`], for an act that any export can do, in each of them.
fn check_everywhere(act: &str, expected: &[&str]) {
    for (at, export) in
        [("plan", "`plan`"), ("record-shape", "`record-shape`"), ("open", "`job.open`"), ("assign", "`job.assign`")]
    {
        check_params(&format!(r#"{{"act": "{act}", "at": "{at}"}}"#), &[&[export], expected].concat());
    }
}

#[test]
fn when_it_behaves_it_is_a_circuit() {
    for params in ["", r#"{"partitions": 3, "segments": 2}"#, r#"{"declare-counts": false}"#] {
        let ran = run(&HOSTILE, params.as_bytes(), INPUT).unwrap();
        for assignment in &ran.assignments {
            ran.shape.check(assignment).unwrap();
        }
    }
}

#[test]
fn traps_loops_and_greed_end_in_any_export() {
    check_everywhere("trap", &["the guest trapped", "unreachable"]);
    check_everywhere("panic", &["the guest trapped", "unreachable"]);
    check_everywhere("allocate", &["bytes of memory", "the limit is 100,663,296 bytes", "`memory_bytes`"]);
    check_everywhere("recurse", &["overflowed its stack"]);
    check_everywhere("loop", &["did not return in time", "1s"]);
    check_everywhere("log-flood", &["did not return in time"]);
    check_everywhere("progress-flood", &["did not return in time"]);
    check_everywhere("invert-unreduced", &["misused the host", "`invert-one`", "not below the modulus"]);
}

#[test]
fn a_panic_with_a_secret_tells_it_to_the_log_alone_and_only_if_asked() {
    check_params(r#"{"act": "panic", "at": "assign"}"#, &["unreachable"]);
    check_params(r#"{"act": "panic", "at": "open"}"#, &["unreachable"]);
}

#[test]
fn refusals_are_stripped_and_cut() {
    check_everywhere("refuse", &["unsupported parameters", "this circuit was asked to refuse"]);
    check_everywhere("error-controls", &["fault of its own", "first line second line"]);
    for at in ["plan", "open", "assign"] {
        let fault = check_params(&format!(r#"{{"act": "error-huge", "at": "{at}"}}"#), &[]);
        if let Fault::Refused { message, .. } = fault {
            assert!(message.len() < 5_000, "{} bytes", message.len());
        }
    }
    let fault = check_params("{", &["`plan`", "bad parameters"]);
    assert!(matches!(fault, Fault::Refused { kind: Refusal::BadParams, .. }));
}

#[test]
fn logs_are_stripped_and_a_huge_line_is_dropped() {
    let (circuit, observer) = observed(&HOSTILE);
    for act in ["log-controls", "log-huge"] {
        let params = format!(r#"{{"act": "{act}", "at": "open"}}"#);
        // The huge one may as well be refused for the bytes of one call.
        let _ = circuit.open(params.as_bytes(), &Input::from(INPUT.to_vec()));
    }
    let lines = observer.lines.lock().unwrap();
    check_says(&lines[0].1, &["first line second line"]);
    for (_, line) in lines.iter() {
        assert!(line.len() < 300_000 && !line.contains(char::is_control) && !line.contains('\u{202e}'), "{line:?}");
    }
}

#[test]
fn gnark_i611_plans_that_do_not_add_up_are_refused() {
    for (act, expected) in [
        ("no-partitions", "0 partitions"),
        ("many-partitions", "4294967295 partitions"),
        ("no-segments", "0 segments"),
        ("many-segments", "1025 segments"),
        ("segment-gap", "segment 1 starts at aux variable 65"),
        ("segment-overlap", "segment 1 starts at aux variable 63"),
        ("segment-overflow", "`aux`"),
        ("segment-huge", "`aux`"),
        ("max-full-huge", "max-full 18446744073709551615"),
        ("segments-undeclared", "segment 0 has no aux variables"),
    ] {
        check(act, &["`plan`", expected]);
    }
}

#[test]
fn shapes_that_contradict_themselves_are_refused() {
    for (act, expected) in [
        ("rows-differ", "matrix C has 128 rows"),
        ("bad-column", "aux variable 2147483647 is used"),
        ("bad-public-column", "public input 2 is used"),
        ("bad-coefficient-index", "coefficient 1 is not in the dictionary"),
        ("unreduced-coefficient", "coefficient 0 is not below the modulus"),
        ("partial-coefficient", "3 limbs"),
        ("bad-row-lengths", "the row lengths sum to"),
        ("fewer-coefficients", "coefficients came with them"),
        ("row-lengths-overflow", "the row lengths sum to"),
        ("name-unasked", "no names were asked for"),
        ("row-flood", "the limit is 10,000"),
        ("coefficient-flood", "`coefficients`"),
        ("lying-publics", "only 1 of 2 public inputs were written"),
        ("lying-aux", "`aux`"),
        ("lying-constraints", "but the circuit counts 130 constraints"),
    ] {
        check(act, &[expected]);
    }
}

#[test]
fn names_that_do_not_match_the_rows_are_refused() {
    for (act, expected) in [
        ("name-fewer", "128 rows were named"),
        ("name-more", "130 rows were named"),
        ("name-flood", "the limit is 10,000"),
    ] {
        let params = format!(r#"{{"act": "{act}"}}"#);
        let error = HOSTILE.record_shape(params.as_bytes(), true).unwrap_err();
        check_says(&error.to_string(), &["circuit `hostile`, `record-shape`", expected]);
    }
}

#[test]
fn assignments_that_break_the_rules_are_refused() {
    for (act, expected) in [
        ("more-groups", "more than the segment's 3 groups"),
        ("fewer-groups", "groups"),
        ("nothing", "groups"),
        ("group-flood", "more than the segment's 3 groups"),
        ("more-full", "more than 1 aux variables travel as full"),
        ("unreduced", "aux variable 0 of the segment is not below the modulus"),
        ("masks-overlap", "aux variable 0 of the segment is marked both full and one"),
        ("padding-full", "group 2 has bits set past aux variable 130"),
        ("padding-one", "group 2 has bits set past aux variable 130"),
        ("odd-masks", "`masks` has 7 words"),
        ("fewer-limbs", "limbs"),
        ("more-limbs", "limbs"),
        ("huge-call", "at most 4194304"),
        ("public-twice", "more than 1 public inputs"),
        ("public-missing", "public input"),
        ("public-unreduced", "public input 1 is not below the modulus"),
        ("public-partial", "3 limbs"),
    ] {
        check(act, &["partition 0, segment 0, `job.assign`", expected]);
    }
    check_params(
        r#"{"act": "public-from-later-segment", "segments": 3}"#,
        &["partition 0, segment", "`job.assign`", "public input"],
    );
}

#[test]
fn an_unsatisfied_assignment_is_named_by_its_constraint() {
    let ran = run(&HOSTILE, br#"{"act": "unsatisfied"}"#, INPUT).unwrap();
    let shape = HOSTILE.record_shape(b"", true).unwrap();
    let error = shape.check(&ran.assignments[0]).unwrap_err();
    check_says(&error.to_string(), &["0", "product"]);
}
