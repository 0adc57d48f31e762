//! The Spend circuit: its dimensions, its public inputs, and what it refuses.

use bellman::Circuit as _;
use bls12_381::Scalar;
use group::{Curve, GroupEncoding};
use incrementalmerkletree::Position;
use reference_synthesis::Reference;
use sapling_crypto::circuit::{Spend, ValueCommitmentOpening};
use sapling_crypto::keys::ExpandedSpendingKey;
use sapling_crypto::value::{NoteValue, ValueCommitTrapdoor, ValueCommitment};
use sapling_crypto::{Diversifier, MerklePath, Node, Note, PaymentAddress, ProofGenerationKey, Rseed};
use sapling_spend::SaplingSpend;
use serde_json::{Value, json};
use zkhost_guest::{Error, Fr, native};

const EXAMPLE: &str = include_str!("../example-input.json");

const VALUE: u64 = 1_234_567_890;
const RCM: u64 = 424_242;
const RCV: u64 = 99_991;
const ALPHA: u64 = 31_337;
const POSITION: u64 = 0xa5a5;

fn key() -> ProofGenerationKey {
    ExpandedSpendingKey::from_spending_key(&[7; 32]).expect("32 bytes").proof_generation_key()
}

fn address() -> PaymentAddress {
    let viewing_key = key().to_viewing_key();
    (0..=255).find_map(|i| viewing_key.to_payment_address(Diversifier([i; 11]))).expect("a valid diversifier")
}

fn note() -> Note {
    Note::from_parts(address(), NoteValue::from_raw(VALUE), Rseed::BeforeZip212(jubjub::Fr::from(RCM)))
}

/// A path of siblings 1000, 1001, ... .
fn path() -> MerklePath {
    let siblings = (0..32).map(|level| Node::from_scalar(Scalar::from(1000 + level))).collect();
    MerklePath::from_parts(siblings, Position::from(POSITION)).expect("32 siblings")
}

fn anchor() -> Scalar {
    path().root(Node::from_cmu(&note().cmu())).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fr(scalar: Scalar) -> Fr {
    Fr::from_le_bytes(&scalar.to_bytes()).expect("the same field")
}

/// u and v of a point given by its encoding.
fn coordinates(encoding: [u8; 32]) -> [Fr; 2] {
    let point = jubjub::ExtendedPoint::from_bytes(&encoding).expect("a point").to_affine();
    [fr(point.get_u()), fr(point.get_v())]
}

/// The public inputs, computed without the circuit.
fn expected_publics() -> Vec<Fr> {
    let viewing_key = key().to_viewing_key();
    let rcv = ValueCommitTrapdoor::from_bytes(jubjub::Fr::from(RCV).to_bytes()).expect("a scalar");
    let mut publics = coordinates(<[u8; 32]>::from(viewing_key.rk(jubjub::Fr::from(ALPHA)))).to_vec();
    publics.extend(coordinates(ValueCommitment::derive(NoteValue::from_raw(VALUE), rcv).to_bytes()));
    publics.push(fr(anchor()));
    // The nullifier's 256 bits in pieces of 254.
    let mut nullifier = note().nf(viewing_key.nk(), POSITION).0;
    let top = nullifier[31] >> 6;
    nullifier[31] &= 0x3f;
    publics.push(Fr::from_le_bytes(&nullifier).expect("254 bits"));
    publics.push(Fr::from(u64::from(top)));
    publics
}

fn expected_example() -> Value {
    let scalar = |value: u64| hex(&jubjub::Fr::from(value).to_bytes());
    let path = path();
    let elements = path.path_elems().iter().enumerate().map(|(level, node)| {
        json!({ "sibling": hex(&Scalar::from(*node).to_bytes()), "sibling_is_left": POSITION >> level & 1 == 1 })
    });
    json!({
        "value": VALUE,
        "rcv": scalar(RCV),
        "ak": hex(&key().ak().to_bytes()),
        "nsk": hex(&key().nsk().to_bytes()),
        "address": hex(&address().to_bytes()),
        "rcm": scalar(RCM),
        "alpha": scalar(ALPHA),
        "path": elements.collect::<Vec<_>>(),
        "anchor": hex(&anchor().to_bytes()),
    })
}

#[test]
fn example_input_is_a_note_of_the_golden_key() {
    let expected = expected_example();
    assert_eq!(serde_json::from_str::<Value>(EXAMPLE).expect("JSON"), expected, "should be {expected}");
}

#[test]
fn has_the_dimensions_of_the_ceremony_key_and_is_satisfied() {
    let run = native::run::<SaplingSpend>(b"", EXAMPLE.as_bytes()).expect("a run");
    assert_eq!(run.shape.counts.constraints, 98_777);
    assert_eq!(run.shape.counts.publics + 1, 8);
    assert_eq!(run.shape.counts.aux, 98_638);
    assert_eq!(run.first_unsatisfied(), None);
}

#[test]
fn public_inputs_are_those_of_the_protocol() {
    let run = native::run::<SaplingSpend>(b"", EXAMPLE.as_bytes()).expect("a run");
    assert_eq!(run.assignments[0].publics, expected_publics());
}

#[test]
fn most_variables_travel_as_bits() {
    let run = native::run::<SaplingSpend>(b"", EXAMPLE.as_bytes()).expect("a run");
    assert_eq!(run.assignments[0].masks.len(), 2 * 98_638_usize.div_ceil(64));
    assert_eq!(run.assignments[0].elements.len(), 4 * 27_841);
}

#[test]
fn shape_and_assignment_are_those_of_a_plain_synthesis() {
    let siblings = path().path_elems().iter().map(|node| Scalar::from(*node)).collect::<Vec<_>>();
    let is_left = |level: usize| POSITION >> level & 1 == 1;
    let spend = Spend {
        value_commitment_opening: Some(ValueCommitmentOpening {
            value: NoteValue::from_raw(VALUE),
            randomness: jubjub::Fr::from(RCV),
        }),
        proof_generation_key: Some(key()),
        payment_address: Some(address()),
        commitment_randomness: Some(jubjub::Fr::from(RCM)),
        ar: Some(jubjub::Fr::from(ALPHA)),
        auth_path: siblings.iter().enumerate().map(|(level, sibling)| Some((*sibling, is_left(level)))).collect(),
        anchor: Some(anchor()),
    };
    let mut cs = Reference::<Scalar>::default();
    spend.synthesize(&mut cs).expect("a synthesis");
    let run = native::run::<SaplingSpend>(b"", EXAMPLE.as_bytes()).expect("a run");
    cs.assert_equals(&run.shape, &run.assignments[0]);
}

#[test]
fn two_runs_give_identical_bytes() {
    let run = || native::run::<SaplingSpend>(b"", EXAMPLE.as_bytes()).expect("a run");
    let (first, second) = (run(), run());
    assert!(first.shape == second.shape);
    assert!(first.assignments == second.assignments);
}

#[test]
fn a_note_outside_the_tree_is_unsatisfied_at_the_anchor() {
    let mut input = expected_example();
    input["anchor"] = Value::from("01".to_string() + &"00".repeat(31));
    let run = native::run::<SaplingSpend>(b"", input.to_string().as_bytes()).expect("a run");
    let unsatisfied = run.first_unsatisfied().expect("a constraint that fails");
    assert_eq!(unsatisfied.name, "conditionally enforce correct root");
}

/// The example with one field replaced is refused with a sentence that starts like this.
fn check_refused(field: &str, value: Value, sentence: &str) {
    let mut input = expected_example();
    input[field] = value;
    let Err(error) = native::run::<SaplingSpend>(b"", input.to_string().as_bytes()) else {
        panic!("{field} was accepted")
    };
    let Error::BadInput(found) = error else { panic!("{error}") };
    assert!(found.starts_with(sentence), "{found}");
}

#[test]
fn bad_fields_are_refused_by_name() {
    check_refused("path", json!([]), "field `path`: a list of 32 was expected, not of 0");
    check_refused("path", json!([{ "sibling": "" }]), "field `path[0].sibling`: 32 bytes as 64 hexadecimal digits");
    check_refused("ak", "00".repeat(32).into(), "field `ak`: a point of the prime-order subgroup");
    check_refused("anchor", "ff".repeat(32).into(), "field `anchor`: a scalar of BLS12-381 below its modulus");
    check_refused("nsk", "ff".repeat(32).into(), "field `nsk`: a scalar of Jubjub below its modulus");
    check_refused("value", json!(1.5), "field `value`: invalid type, expected u64");
}
