//! A circuit from its bytes to its assignment.

mod support;

use support::*;
use zkhost_groth16::scalar::Scalar;
use zkhost_runtime::Limits;

#[test]
fn a_small_circuit_runs_from_bytes_to_a_satisfying_assignment() {
    let circuit = Guest::default().load(Limits::default());
    assert_eq!(circuit.describe().unwrap().name, "tiny");
    let ran = run(&circuit, b"", b"").unwrap();
    assert_eq!((ran.shape.public_count, ran.shape.aux_count), (1, 2));
    assert_eq!(ran.assignments.len(), 1);
    let [one, x, a, b] = ran.assignments[0].z()[..] else { panic!("z has the one, a public and two aux") };
    assert_eq!([one, x, a, b], [1, 6, 2, 3].map(Scalar::from));
    ran.shape.check(&ran.assignments[0]).unwrap();
}

/// An SDK circuit: counts as the crate it wraps has them, and every constraint satisfied by the example input.
fn check_built(name: &str, publics: u32, constraints: usize) {
    let circuit = RUNTIME.load(name, &built_guest(name), Limits::default()).unwrap();
    let folder = format!("{}/../../guest-circuits/{name}", env!("CARGO_MANIFEST_DIR"));
    let input = std::fs::read(format!("{folder}/example-input.json")).expect("the guest has an example input");
    let ran = run(&circuit, b"", &input).unwrap();
    assert_eq!(ran.shape.public_count, publics);
    assert_eq!(ran.shape.matrices[0].rows(), constraints);
    for assignment in &ran.assignments {
        ran.shape.check(assignment).unwrap();
    }
}

#[test]
fn sapling_output_satisfies_its_constraints() {
    check_built("sapling-output", 5, 7_827);
}

#[test]
fn sapling_spend_satisfies_its_constraints() {
    check_built("sapling-spend", 7, 98_777);
}
