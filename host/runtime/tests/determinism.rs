//! Two runs of a guest give identical bytes, however they are spread over threads.

mod support;

use support::*;
use zkhost_groth16::Assignment;
use zkhost_runtime::{Input, Limits, Synthesis};

/// Partitions whose values depend on their number, in two segments.
fn partitioned() -> Guest {
    let mut guest = Guest { plan: plan_of(5, &[(0, 1, 0), (1, 1, 0)]), ..Guest::default() };
    // Segment 0 holds 2 and the public input 2 (p + 3); segment 1 holds p + 3.
    guest.assign = format!(
        "(i64.store (i32.const {MASKS}) (i64.const 1))
         (i64.store (i32.const {PUBLICS}) (i64.extend_i32_u (i32.shl (i32.add (local.get $partition) (i32.const 3)) (i32.const 1))))
         (if (i32.eqz (local.get $segment))
           (then (i64.store (i32.const {ELEMENTS}) (i64.const 2)) {})
           (else (i64.store (i32.const {ELEMENTS}) (i64.extend_i32_u (i32.add (local.get $partition) (i32.const 3))))))
         {}",
        write_public(4),
        write_groups(2, 4)
    );
    guest
}

/// Everything an assignment holds.
fn bytes(assignments: &[Assignment]) -> Vec<(Vec<u64>, Vec<[u64; 4]>)> {
    let segments = assignments.iter().flat_map(|assignment| assignment.segments());
    segments.map(|segment| (segment.masks().to_vec(), segment.elements().to_vec())).collect()
}

/// One thread and several, a first run and a second: all the same.
fn check(circuit: &zkhost_runtime::Circuit, input: Vec<u8>) {
    let first = run(circuit, b"", &input).unwrap();
    let second = run(circuit, b"", &input).unwrap();
    assert!(first.layout == second.layout && first.shape == second.shape);
    assert!(bytes(&first.assignments) == bytes(&second.assignments));
    let input = Input::from(input);
    let job = Synthesis { params: b"", input: &input, layout: &first.layout, shape: &first.shape };
    for threads in [2, 4, 100] {
        let spread = circuit.synthesise(job, 0..first.layout.partitions, threads).unwrap();
        assert!(bytes(&spread) == bytes(&first.assignments), "{threads} threads");
        for (assignment, other) in spread.iter().zip(&first.assignments) {
            assert_eq!(assignment.publics(), other.publics());
            first.shape.check(assignment).unwrap();
        }
    }
}

#[test]
fn partitions_and_segments_come_in_order_on_any_number_of_threads() {
    check(&partitioned().load(Limits::default()), vec![]);
    // Fewer instances than threads: those there are do the work.
    check(&partitioned().load(Limits { instances: 1, ..Limits::default() }), vec![]);
}

#[test]
fn a_range_of_partitions_is_that_part_of_the_whole() {
    let circuit = partitioned().load(Limits::default());
    let ran = run(&circuit, b"", b"").unwrap();
    let input = Input::from(vec![]);
    let job = Synthesis { params: b"", input: &input, layout: &ran.layout, shape: &ran.shape };
    let part = circuit.synthesise(job, 1..4, 2).unwrap();
    assert!(bytes(&part) == bytes(&ran.assignments[1..4]));
    assert!(circuit.synthesise(job, 2..2, 2).unwrap().is_empty());
    let error = circuit.synthesise(job, 4..6, 2).err().expect("there are five");
    check_says(&error.to_string(), &["partition 5 was asked for; the plan has 5"]);
}

#[test]
fn of_several_failures_the_first_segments_is_told() {
    let mut guest = partitioned();
    guest.assign = format!("(if (i32.ge_u (local.get $partition) (i32.const 2)) (then unreachable)) {}", guest.assign);
    let circuit = guest.load(Limits::default());
    for threads in [1, 3] {
        let input = Input::from(vec![]);
        let (layout, shape) = (circuit.plan(b"").unwrap(), circuit.record_shape(b"", false).unwrap());
        let job = Synthesis { params: b"", input: &input, layout: &layout, shape: &shape };
        let error = circuit.synthesise(job, 0..5, threads).err().expect("partition 2 traps");
        check_says(&error.to_string(), &["partition 2, segment 0"]);
    }
}

#[test]
fn a_sapling_circuit_gives_identical_bytes_twice() {
    let circuit = RUNTIME.load("sapling-output", &built_guest("sapling-output"), Limits::default()).unwrap();
    let input = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-circuits/sapling-output/example-input.json");
    check(&circuit, std::fs::read(input).expect("the guest has an example input"));
}
