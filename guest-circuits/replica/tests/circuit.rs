//! The replica circuit: true of a real labelling only, the same for every segment, and like a plain synthesis.

#[path = "../examples/labelling/graph.rs"]
mod graph;

use graph::Labelling;
use reference_synthesis::Reference;
use replica::{Params, Replica};
use serde_json::{Value, json};
use zkhost_guest::input::{ReadInput, Text};
use zkhost_guest::{Circuit, Error, Fr, Scope, native};

const EXAMPLE_PARAMS: &str = include_str!("../example-params.json");
const EXAMPLE: &str = include_str!("../example-input.json");

fn run(params: &Params, input: &Value) -> Result<native::Run, Error> {
    native::run::<Replica>(&serde_json::to_vec(params).expect("JSON"), input.to_string().as_bytes())
}

/// A job of these sizes is satisfied by a labelling, and its shape and assignments are those of a plain synthesis by the
/// published gadgets.
fn check(params: &Params) {
    let input = Labelling::new(params, 3).input();
    let run = run(params, &input).expect("a run");
    assert_eq!(run.first_unsatisfied(), None, "{params:?}");
    let input = input.to_string();
    let text = Text::read(input.as_bytes(), input.len() as u64).expect("a text");
    let circuit = Replica::open(params, text).expect("a circuit");
    for partition in 0..params.partitions {
        let mut reference = Reference::default();
        circuit.constrain(Scope { partition, segments: 0..params.challenges }, &mut reference).expect("a synthesis");
        reference.assert_equals(&run.shape, &run.assignments[partition as usize]);
    }
}

#[test]
fn real_labellings_satisfy_and_are_assigned_as_by_plain_synthesis() {
    check(&Params::default());
    check(&Params { partitions: 2, challenges: 1, layers: 4, base_parents: 2, depth: 2, ..Params::default() });
    check(&Params { challenges: 3, layers: 2, expander_parents: 3, hashed_labels: 1, ..Params::default() });
}

#[test]
fn the_example_is_a_labelling() {
    let params: Params = serde_json::from_str(EXAMPLE_PARAMS).expect("JSON");
    let expected = Labelling::new(&params, 1).input();
    assert_eq!(serde_json::from_str::<Value>(EXAMPLE).expect("JSON"), expected);
    assert_eq!(run(&params, &expected).expect("a run").first_unsatisfied(), None);
}

/// A change to the input of a challenge breaks a constraint of this name.
fn check_broken(change: impl FnOnce(&mut Value), name: &str) {
    let params = Params::default();
    let mut input = Labelling::new(&params, 3).input();
    change(&mut input);
    let broken = run(&params, &input).expect("a run").first_unsatisfied().expect("a constraint that fails");
    assert_eq!(broken.name, name);
}

#[test]
fn a_false_label_datum_name_or_root_is_found_and_named() {
    let other = "0100000000000000000000000000000000000000000000000000000000000000";
    check_broken(
        |input| input["partitions"][0][1]["parents"][1]["labels"][0] = other.into(),
        "challenge 1/parent 1/column path/root",
    );
    check_broken(|input| input["partitions"][0][1]["data"] = other.into(), "challenge 1/replica path/root");
    check_broken(|input| input["replica_id"] = other.into(), "challenge 0/column path/root");
    check_broken(|input| input["column_root"] = other.into(), "challenge 0/parent 0/column path/root");
    check_broken(
        |input| {
            let path = &mut input["partitions"][0][0]["column_path"];
            path[0] = format!("{other}{}", &path[0].as_str().expect("a level")[64..]).into();
        },
        "challenge 0/column path/root",
    );
}

#[test]
fn a_place_that_is_not_the_public_node_is_found() {
    let params = Params::default();
    let mut run = run(&params, &Labelling::new(&params, 3).input()).expect("a run");
    // The public inputs are the commitment, the name, and the nodes of the first challenge.
    run.assignments[0].publics[3] += Fr::ONE;
    let broken = run.first_unsatisfied().expect("a constraint that fails");
    assert_eq!(broken.name, "challenge 0/parent 0/column path/place in the tree");
}

/// These parameters are refused with this sentence.
fn check_params(params: Params, sentence: &str) {
    let error = Replica::plan(&params).expect_err("a refusal");
    assert_eq!(error, Error::BadParams(sentence.into()));
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let defaults = Params::default;
    check_params(Params { layers: 3, ..defaults() }, "field `layers`: 2, 4, 8 or 11 was expected");
    check_params(Params { depth: 11, ..defaults() }, "field `depth`: a number from 1 to 10 was expected");
    for challenges in [0, 1025, u32::MAX] {
        let expected = "field `challenges`: a number from 1 to 1024 was expected";
        check_params(Params { challenges, ..defaults() }, expected);
    }
}

/// A change to an input is refused with this sentence.
fn check_refused(change: impl FnOnce(&mut Value), sentence: &str) {
    let params = Params::default();
    let mut input = Labelling::new(&params, 3).input();
    change(&mut input);
    assert_eq!(run(&params, &input).err(), Some(Error::BadInput(sentence.into())));
}

#[test]
fn bad_inputs_are_refused_by_name() {
    check_refused(|input| input["partitions"] = json!([]), "field `partitions`: a list of 1 was expected, not of 0");
    check_refused(
        |input| input["partitions"][0][1]["node"] = 8.into(),
        "field `partitions[0][1].node`: a number from 0 to 7 was expected",
    );
    check_refused(
        |input| input["partitions"][0][0]["parents"][0]["labels"][1] = "f".repeat(64).into(),
        "field `partitions[0][0].parents[0].labels[1]`: a number below 2^254, little-endian, was expected",
    );
    check_refused(
        |input| input["partitions"][0][0]["replica_path"][0] = format!("{:0384}{}", 0, "f".repeat(64)).into(),
        "field `partitions[0][0].replica_path[0][6]`: a scalar of BLS12-381 below its modulus, little-endian, was expected",
    );
    check_refused(
        |input| input["partitions"][0][1]["parents"][1]["node"] = json!("3"),
        "field `partitions[0][1].parents[1].node`: invalid type, expected u64",
    );
    check_refused(
        |input| input["partitions"][0][1]["parents"][1]["more"] = json!(3),
        "field `partitions[0][1].parents[1].more`: unknown field `more`, expected one of `node`, `labels`, `column_path`",
    );
    check_refused(
        |input| input["partitions"][0][0] = json!([]),
        "field `partitions[0][0]`: invalid length 0, expected struct Nodes with 2 elements",
    );
}
