//! The Merkle circuit: satisfied by real paths only, the same however it is divided.

use generic_array::typenum::{U2, U4, U8};
use merkle_poseidon::MerklePoseidon;
use neptune::poseidon::PoseidonConstants;
use neptune::{Arity, Poseidon};
use reference_synthesis::Reference;
use serde_json::{Value, json};
use zkhost_guest::{Circuit, Error, Fr, Scope, native};

const EXAMPLE_PARAMS: &str = include_str!("../example-params.json");
const EXAMPLE: &str = include_str!("../example-input.json");

fn hex(element: Fr) -> String {
    element.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash<A: Arity<Fr>>(children: &[Fr]) -> Fr {
    Poseidon::<Fr, A>::new_with_preimage(children, &PoseidonConstants::new()).hash()
}

/// A path in a tree of that arity with siblings 1000, 1001, ... above leaf 42 + `index`, and its root.
fn path(arity: usize, depth: usize, index: u64) -> (Value, Fr) {
    let leaf = Fr::from(42 + index);
    let mut node = leaf;
    let mut levels = Vec::new();
    for level in 0..depth {
        let position = (level + index as usize) % arity;
        let siblings: Vec<Fr> = (1..arity).map(|i| Fr::from((1000 + arity * level + i) as u64)).collect();
        levels.push(json!({ "position": position, "siblings": siblings.iter().map(|s| hex(*s)).collect::<Vec<_>>() }));
        let mut children = siblings;
        children.insert(position, node);
        node = match arity {
            2 => hash::<U2>(&children),
            4 => hash::<U4>(&children),
            _ => hash::<U8>(&children),
        };
    }
    (json!({ "leaf": hex(leaf), "levels": levels, "root": hex(node) }), node)
}

fn run(params: &Value, input: &Value) -> Result<native::Run, Error> {
    native::run::<MerklePoseidon>(params.to_string().as_bytes(), input.to_string().as_bytes())
}

/// Two paths of this shape satisfy the constraints and have the roots of an independent computation; a wrong root does not.
fn check_tree(arity: usize, depth: usize) {
    let params = json!({ "arity": arity, "depth": depth, "paths": 2 });
    let ((first, first_root), (second, second_root)) = (path(arity, depth, 0), path(arity, depth, 1));
    let mut input = json!({ "paths": [first, second] });
    let honest = run(&params, &input).expect("a run");
    assert_eq!(honest.first_unsatisfied(), None, "arity {arity}, depth {depth}");
    assert_eq!(honest.assignments[0].publics, [first_root]);
    assert_eq!(honest.assignments[1].publics, [second_root]);

    input["paths"][1]["root"] = hex(first_root + Fr::ONE).into();
    let unsatisfied = run(&params, &input).expect("a run").first_unsatisfied().expect("a constraint that fails");
    assert_eq!((unsatisfied.partition, unsatisfied.name.as_str()), (1, "root"));
}

#[test]
fn real_paths_satisfy_and_wrong_roots_do_not() {
    check_tree(2, 1);
    check_tree(2, 5);
    check_tree(4, 3);
    check_tree(8, 2);
}

/// A tree of `depth` divided into `segments` has the shape and the values of the undivided one.
fn check_segments(depth: usize, segments: u32) {
    let input = json!({ "paths": [path(4, depth, 0).0] });
    let whole = run(&json!({ "arity": 4, "depth": depth }), &input).expect("a run");
    let divided = run(&json!({ "arity": 4, "depth": depth, "segments": segments }), &input).expect("a run");
    assert_eq!(divided.plan.segments.len(), segments as usize);
    assert!(whole.shape == divided.shape, "{segments} segments of {depth} levels");
    assert!(whole.assignments[0].aux == divided.assignments[0].aux, "{segments} segments of {depth} levels");
    assert!(whole.assignments[0].publics == divided.assignments[0].publics);
}

#[test]
fn segments_change_neither_shape_nor_values() {
    check_segments(3, 2);
    check_segments(3, 3);
    check_segments(7, 4);
}

#[test]
fn a_node_that_is_not_a_child_is_found_and_named() {
    let mut run = run(&json!({ "depth": 2 }), &json!({ "paths": [path(2, 2, 0).0] })).expect("a run");
    run.assignments[0].aux[0] += Fr::ONE;
    assert_eq!(
        run.first_unsatisfied().expect("a constraint that fails").name,
        "level 0/selected child 0 is the node below"
    );
}

#[test]
fn the_example_has_several_paths_and_is_satisfied() {
    let params: Value = serde_json::from_str(EXAMPLE_PARAMS).expect("JSON");
    let expected = json!({ "paths": [path(8, 3, 0).0, path(8, 3, 1).0, path(8, 3, 2).0] });
    assert_eq!(serde_json::from_str::<Value>(EXAMPLE).expect("JSON"), expected, "should be {expected}");
    let run = run(&params, &expected).expect("a run");
    assert_eq!(run.plan.partitions, 3);
    assert_eq!(run.first_unsatisfied(), None);
}

/// Shape and assignments of this tree, also when divided, are those of a plain synthesis of each path.
fn check_against_plain_synthesis(arity: usize, depth: usize, segments: u32) {
    let params = json!({ "arity": arity, "depth": depth, "paths": 2, "segments": segments });
    let input = json!({ "paths": [path(arity, depth, 0).0, path(arity, depth, 1).0] });
    let run = run(&params, &input).expect("a run");
    let params = serde_json::from_value(params).expect("parameters");
    let circuit = MerklePoseidon::open(&params, serde_json::from_value(input).expect("an input")).expect("a circuit");
    for partition in 0..2 {
        let mut reference = Reference::default();
        circuit.constrain(Scope { partition, segments: 0..segments }, &mut reference).expect("a synthesis");
        reference.assert_equals(&run.shape, &run.assignments[partition as usize]);
    }
}

#[test]
fn shape_and_assignment_are_those_of_a_plain_synthesis() {
    check_against_plain_synthesis(2, 5, 1);
    check_against_plain_synthesis(4, 3, 3);
    check_against_plain_synthesis(8, 3, 2);
}

#[test]
fn two_runs_give_identical_bytes() {
    let run = || native::run::<MerklePoseidon>(EXAMPLE_PARAMS.as_bytes(), EXAMPLE.as_bytes()).expect("a run");
    let (first, second) = (run(), run());
    assert!(first.shape == second.shape);
    assert!(first.assignments == second.assignments);
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let refusal = |params: Value| run(&params, &json!({ "paths": [] })).err().expect("a refusal");
    let expected = |text: &str| Error::BadParams(text.into());
    assert_eq!(refusal(json!({ "arity": 3 })), expected("field `arity`: 2, 4 or 8 was expected"));
    assert_eq!(refusal(json!({ "depth": 0 })), expected("field `depth`: a number from 1 to 4096 was expected"));
    assert_eq!(refusal(json!({ "paths": 0 })), expected("field `paths`: a number from 1 to 65536 was expected"));
    assert_eq!(
        refusal(json!({ "depth": 4, "segments": 5 })),
        expected("field `segments`: a number from 1 to 1024 and not above the depth was expected")
    );
}

/// A change to the path of an input of depth 2 is refused with this sentence.
fn check_refused(change: impl FnOnce(&mut Value), sentence: &str) {
    let mut path = path(2, 2, 0).0;
    change(&mut path);
    let error = run(&json!({ "depth": 2 }), &json!({ "paths": [path] })).err().expect("a refusal");
    assert_eq!(error, Error::BadInput(sentence.into()));
}

#[test]
fn bad_inputs_are_refused_by_name() {
    check_refused(
        |path| path["levels"][1]["position"] = 2.into(),
        "field `paths[0].levels[1].position`: a number from 0 to 1 was expected",
    );
    check_refused(
        |path| path["levels"][0]["siblings"] = json!([]),
        "field `paths[0].levels[0].siblings`: a list of 1 was expected, not of 0",
    );
    check_refused(
        |path| path["leaf"] = "ff".repeat(32).into(),
        "field `paths[0].leaf`: a scalar of BLS12-381 below its modulus, little-endian, was expected",
    );
    check_refused(|path| path["levels"] = json!([]), "field `paths[0].levels`: a list of 2 was expected, not of 0");
}
