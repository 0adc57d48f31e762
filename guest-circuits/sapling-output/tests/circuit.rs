//! The Output circuit: its dimensions, its public inputs, and what it refuses.

use bellman::Circuit as _;
use bls12_381::Scalar;
use group::{Curve, GroupEncoding};
use reference_synthesis::Reference;
use sapling_crypto::circuit::{Output, ValueCommitmentOpening};
use sapling_crypto::keys::ExpandedSpendingKey;
use sapling_crypto::value::{NoteValue, ValueCommitTrapdoor, ValueCommitment};
use sapling_crypto::{Diversifier, Note, PaymentAddress, Rseed};
use sapling_output::SaplingOutput;
use zkhost_guest::{Error, Fr, native};

const EXAMPLE: &str = include_str!("../example-input.json");

/// The public inputs of a proof made by the `groth16` crate under the ceremony key from these values.
const GOLDEN_PUBLICS: [&str; 5] = [
    "9b8122108662713559b43da33366a02a904ff065b74b0bbcf94dd0b47b8d8e14",
    "9dad879fbedbc1ec26bdc7c1cf43b6349119203dac500d9713c5cbd5eea02f45",
    "2e241adf70c9634fa7e18b25f3a91d95a80eaf2c852d87a325330add56f9655a",
    "c5ba7493bfb2a0c4e778ab4a132bb5333b9b51e1f8510fa0b1539efe8721271d",
    "d2d706167aef75b31ae3125ab3b7d25860c6e203995e98b60ead4f0df516a359",
];

const VALUE: u64 = 1_234_567_890;
const RCM: u64 = 424_242;
const RCV: u64 = 99_991;
const ESK: u64 = 271_828;

/// The recipient: the first valid diversifier, counting from 0, of the key made from 32 bytes of 7.
fn recipient() -> PaymentAddress {
    let key = ExpandedSpendingKey::from_spending_key(&[7; 32]).expect("32 bytes");
    let viewing_key = key.proof_generation_key().to_viewing_key();
    (0..=255).find_map(|i| viewing_key.to_payment_address(Diversifier([i; 11]))).expect("a valid diversifier")
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
    let value = NoteValue::from_raw(VALUE);
    let rcv = ValueCommitTrapdoor::from_bytes(jubjub::Fr::from(RCV).to_bytes()).expect("a scalar");
    let address = recipient();
    let base = address.diversifier().g_d().expect("a valid diversifier");
    let note = Note::from_parts(address, value, Rseed::BeforeZip212(jubjub::Fr::from(RCM)));
    let mut publics = coordinates(ValueCommitment::derive(value, rcv).to_bytes()).to_vec();
    publics.extend(coordinates((base * jubjub::Fr::from(ESK)).to_bytes()));
    publics.push(Fr::from_le_bytes(&note.cmu().to_bytes()).expect("a canonical commitment"));
    publics
}

#[test]
fn example_input_is_the_one_of_the_golden_proof() {
    let scalar = |value: u64| hex(&jubjub::Fr::from(value).to_bytes());
    let expected = serde_json::json!({
        "value": VALUE, "rcv": scalar(RCV), "address": hex(&recipient().to_bytes()), "rcm": scalar(RCM), "esk": scalar(ESK),
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(EXAMPLE).expect("JSON"), expected, "should be {expected}");
}

#[test]
fn has_the_dimensions_of_the_ceremony_key_and_is_satisfied() {
    let run = native::run::<SaplingOutput>(b"", EXAMPLE.as_bytes()).expect("a run");
    assert_eq!(run.shape.counts.constraints, 7_827);
    assert_eq!(run.shape.counts.publics + 1, 6);
    assert_eq!(run.first_unsatisfied(), None);
}

#[test]
fn public_inputs_are_those_of_the_protocol() {
    let run = native::run::<SaplingOutput>(b"", EXAMPLE.as_bytes()).expect("a run");
    assert_eq!(run.assignments[0].publics, expected_publics());
    let publics: Vec<String> = run.assignments[0].publics.iter().map(|public| hex(&public.to_le_bytes())).collect();
    assert_eq!(publics, GOLDEN_PUBLICS);
}

#[test]
fn shape_and_assignment_are_those_of_a_plain_synthesis() {
    let output = Output {
        value_commitment_opening: Some(ValueCommitmentOpening {
            value: NoteValue::from_raw(VALUE),
            randomness: jubjub::Fr::from(RCV),
        }),
        payment_address: Some(recipient()),
        commitment_randomness: Some(jubjub::Fr::from(RCM)),
        esk: Some(jubjub::Fr::from(ESK)),
    };
    let mut cs = Reference::<Scalar>::default();
    output.synthesize(&mut cs).expect("a synthesis");
    let run = native::run::<SaplingOutput>(b"", EXAMPLE.as_bytes()).expect("a run");
    cs.assert_equals(&run.shape, &run.assignments[0]);
}

#[test]
fn two_runs_give_identical_bytes() {
    let run = || native::run::<SaplingOutput>(b"", EXAMPLE.as_bytes()).expect("a run");
    let (first, second) = (run(), run());
    assert!(first.shape == second.shape);
    assert!(first.assignments == second.assignments);
}

#[test]
fn a_changed_variable_is_found_and_named() {
    let mut run = native::run::<SaplingOutput>(b"", EXAMPLE.as_bytes()).expect("a run");
    run.assignments[0].aux[100] += Fr::ONE;
    let unsatisfied = run.first_unsatisfied().expect("a constraint that fails");
    assert!(unsatisfied.name.contains('/'), "a path: {}", unsatisfied.name);
}

/// The example with one field replaced is refused with a sentence that starts like this.
fn check_refused(field: &str, value: serde_json::Value, sentence: &str) {
    let mut input: serde_json::Value = serde_json::from_str(EXAMPLE).expect("JSON");
    input[field] = value;
    let Err(error) = native::run::<SaplingOutput>(b"", input.to_string().as_bytes()) else {
        panic!("{field} was accepted")
    };
    let Error::BadInput(found) = error else { panic!("{error}") };
    assert!(found.starts_with(sentence), "{found}");
}

#[test]
fn bad_fields_are_refused_by_name() {
    check_refused("value", (-1).into(), "field `value`: invalid value, expected u64");
    let hexadecimal = "32 bytes as 64 hexadecimal digits, without prefix, were expected";
    check_refused("rcv", "00".into(), &format!("field `rcv`: {hexadecimal}"));
    let scalar = "a scalar of Jubjub below its modulus was expected, little-endian";
    check_refused("esk", "ff".repeat(32).into(), &format!("field `esk`: {scalar}"));
    check_refused("address", "00".repeat(43).into(), "field `address`: a Sapling payment address was expected");
    check_refused(
        "extra",
        1.into(),
        "field `extra`: unknown field `extra`, expected one of `value`, `rcv`, `address`, `rcm`, `esk`",
    );
}
