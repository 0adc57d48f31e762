//! A trap costs one instance and says where it happened; the next job works.

mod support;

use support::*;
use zkhost_groth16::assignment::{SegmentSink, SinkError};
use zkhost_runtime::{Export, Fault, Input, Limits, Refusal};

/// A body that writes an error of this case into the return area, its text being the 12 bytes at 30,000.
fn refuse(case: u32, at: u32) -> String {
    format!(
        "(i32.store8 (i32.const 0) (i32.const 1)) (i32.store8 (i32.const {at}) (i32.const {case})) \
         (i32.store (i32.const {}) (i32.const 30000)) (i32.store (i32.const {}) (i32.const 12))",
        at + 4,
        at + 8
    )
}

#[test]
fn a_trap_says_circuit_partition_segment_and_export() {
    let trap = "(call $inner)".to_owned();
    let functions = "(func $inner (call $innermost)) (func $innermost unreachable)".to_owned();
    let guest = Guest { functions, ..Guest::default() };
    let cases = [
        (Guest { plan: trap.clone(), ..guest.clone() }, "circuit `tiny`, `plan`: the guest trapped"),
        (Guest { record_shape: trap.clone(), ..guest.clone() }, "circuit `tiny`, `record-shape`: the guest trapped"),
        (Guest { open: trap.clone(), ..guest.clone() }, "circuit `tiny`, `job.open`: the guest trapped"),
        (Guest { assign: trap, ..guest }, "circuit `tiny`, partition 0, segment 0, `job.assign`: the guest trapped"),
    ];
    for (guest, expected) in cases {
        let error = run(&guest.load(Limits::default()), b"", b"").err().expect("it traps");
        check_says(&error.to_string(), &[expected, "unreachable"]);
        let backtrace = error.backtrace.expect("a trap has a backtrace");
        let [innermost, inner] = ["innermost", "inner\n"].map(|name| backtrace.find(name).expect(&backtrace));
        assert!(innermost < inner, "{backtrace}");
    }
}

#[test]
fn wasmtime_i10995_after_a_trap_the_next_job_of_the_circuit_works() {
    // Only the second partition traps.
    let assign = "(if (local.get $partition) (then unreachable))".to_owned() + &Guest::default().assign;
    let circuit = Guest { plan: plan_of(2, &[(0, 0, 0)]), assign, ..Guest::default() }.load(Limits::default());
    let input = Input::from(vec![]);
    let (layout, shape) = (circuit.plan(b"").unwrap(), circuit.record_shape(b"", false).unwrap());
    let limits = circuit.segment_limits(&layout, &shape).unwrap();
    let assign = |job: &mut zkhost_runtime::Job, partition| {
        let writer = zkhost_groth16::assignment::SegmentWriter::on_heap(layout.encoding, limits[0]).unwrap();
        job.assign(partition, 0, writer).map(|writer| writer.finish().unwrap())
    };
    for _ in 0..3 {
        let mut job = circuit.open(b"", &input).unwrap();
        assign(&mut job, 0).unwrap();
        let error = assign(&mut job, 1).err().expect("partition 1 traps");
        check_says(&error.to_string(), &["partition 1, segment 0"]);
        // The instance cannot be entered again, and says so.
        let error = assign(&mut job, 0).err().expect("a dead instance refuses");
        check_says(&error.to_string(), &["cannot be entered again", "open a new job"]);
    }
    assign(&mut circuit.open(b"", &input).unwrap(), 0).unwrap();
}

#[test]
fn the_circuits_own_refusals_keep_their_kind_and_lose_control_characters() {
    let data = Guest::default().data + "(data (i32.const 30000) \"bad\\1b[2J\\0d\\0ahey\")";
    let kinds = [
        (0, Refusal::BadParams),
        (1, Refusal::BadInput),
        (2, Refusal::Unsatisfied),
        (3, Refusal::Unsupported),
        (4, Refusal::Internal),
    ];
    for (case, kind) in kinds {
        let guest = Guest { data: data.clone(), ..Guest::default() };
        let guests = [
            (Guest { plan: refuse(case, 4), ..guest.clone() }, Export::Plan),
            (Guest { record_shape: refuse(case, 8), ..guest.clone() }, Export::RecordShape),
            (Guest { open: refuse(case, 4), ..guest.clone() }, Export::Open),
            (Guest { assign: refuse(case, 4), ..guest }, Export::Assign),
        ];
        for (guest, export) in guests {
            let error = run(&guest.load(Limits::default()), b"", b"").err().expect("it refuses");
            assert_eq!(error.place.export, export);
            assert_eq!(error.fault, Fault::Refused { kind, message: "bad [2J  hey".to_owned() });
        }
    }
    let guest = Guest { open: refuse(5, 4), data, ..Guest::default() };
    assert_eq!(run(&guest.load(Limits::default()), b"", b"").err().unwrap().fault, Fault::Cancelled);
}

#[test]
fn a_refusal_is_no_trap_and_the_instance_goes_on() {
    // Partition 0 is refused, partition 1 is not.
    let refuse = format!("(if (i32.eqz (local.get $partition)) (then {}))", refuse(1, 4));
    let assign = Guest::default().assign + &refuse;
    let circuit = Guest { plan: plan_of(2, &[(0, 0, 0)]), assign, ..Guest::default() }.load(Limits::default());
    let mut job = circuit.open(b"", &Input::from(vec![])).unwrap();
    assert!(job.assign(0, 0, Careless).is_err());
    job.assign(1, 0, Careless).unwrap();
}

/// A sink that takes everything.
struct Careless;

impl SegmentSink for Careless {
    fn write_groups(&mut self, _masks: &[u64], _elements: &[u64]) -> Result<(), SinkError> {
        Ok(())
    }
    fn write_public(&mut self, _elements: &[u64]) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A sink with a fault of its own.
struct Faulty;

impl SegmentSink for Faulty {
    fn write_groups(&mut self, _masks: &[u64], _elements: &[u64]) -> Result<(), SinkError> {
        panic!("the sink is out of order")
    }
    fn write_public(&mut self, _elements: &[u64]) -> Result<(), SinkError> {
        Ok(())
    }
}

#[test]
fn a_panic_of_the_host_costs_one_job() {
    let circuit = Guest::default().load(Limits::default());
    let input = Input::from(vec![]);
    let mut job = circuit.open(b"", &input).unwrap();
    let error = job.assign(0, 0, Faulty).err().expect("the sink panics");
    assert_eq!(error.fault, Fault::HostPanic("the sink is out of order".to_owned()));
    assert!(job.assign(0, 0, Careless).is_err(), "the instance was left in the middle of a call");
    circuit.open(b"", &input).unwrap().assign(0, 0, Careless).unwrap();
}

#[test]
fn deep_recursion_and_stray_pointers_are_explained() {
    let check = |open: &str, functions: &str, expected: &str| {
        let guest = Guest { open: open.into(), functions: functions.into(), ..Guest::default() };
        check_fails(&guest.load(Limits::default()), &["`job.open`", expected]);
    };
    check("(call $deep)", "(func $deep (call $deep))", "overflowed its stack");
    check("(drop (i32.load (i32.const 0x7fffffff)))", "", "memory out of bounds");
    check("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "", "divide by zero");
    check("(call_indirect (i32.const 0))", "", "uninitialized element");
}

#[test]
fn a_malformed_answer_is_a_fault_of_the_guest() {
    let check = |guest: Guest, expected: &[&str]| {
        let error = guest.load(Limits::default()).describe().unwrap_err();
        check_says(&error.to_string(), &[&["circuit `tiny`, `describe`"], expected].concat());
    };
    let name = |at: u32, len: u32| {
        format!("(i32.store (i32.const 0) (i32.const {at})) (i32.store (i32.const 4) (i32.const {len}))")
    };
    check(Guest { describe: name(0, 0), ..Guest::default() }, &["the circuit's name is \"\""]);
    check(Guest { describe: name(4096, 65), ..Guest::default() }, &["from 1 to 64"]);
    check(Guest { describe: name(0x7fff_ffff, 9), ..Guest::default() }, &["trapped"]);
    check(Guest { describe: name(70_000, 300_000), pages: 10, ..Guest::default() }, &["bytes", "the most"]);
    let not_utf8 = Guest::default().data + "(data (i32.const 30000) \"\\ff\\fe\")";
    check(Guest { describe: name(30000, 2), data: not_utf8, ..Guest::default() }, &["utf-8"]);
}
