//! The SHA-256 circuit: its dimensions, its digest against another implementation, and what it refuses.

use bellpepper::gadgets::{multipack, sha256::sha256};
use bellpepper_core::ConstraintSystem;
use bellpepper_core::boolean::{AllocatedBit, Boolean};
use reference_synthesis::Reference;
use sha2::{Digest, Sha256};
use sha256::Sha256Preimage;
use zkhost_guest::{Error, Fr, native};

const EXAMPLE_PARAMS: &str = include_str!("../example-params.json");
const EXAMPLE: &str = include_str!("../example-input.json");

/// 256 digest bits, each byte from its most significant bit, packed little-endian into 254 and 2 bits.
fn packed(digest: &[u8]) -> Vec<Fr> {
    let bits: Vec<u64> = digest.iter().flat_map(|&byte| (0..8).rev().map(move |k| u64::from(byte >> k & 1))).collect();
    bits.chunks(254)
        .map(|bits| {
            let mut limbs = [0; 4];
            bits.iter().enumerate().for_each(|(i, bit)| limbs[i / 64] |= bit << (i % 64));
            Fr::from_canonical(limbs).expect("254 bits")
        })
        .collect()
}

/// A preimage of this length is proved to have the digest that another implementation computes.
fn check_length(length: usize) {
    let preimage: Vec<u8> = (0..length).map(|i| (i * 7 + 3) as u8).collect();
    let hex: String = preimage.iter().map(|byte| format!("{byte:02X}")).collect();
    let params = serde_json::json!({ "preimage_bytes": length }).to_string();
    let input = serde_json::json!({ "preimage": hex }).to_string();
    let run = native::run::<Sha256Preimage>(params.as_bytes(), input.as_bytes()).expect("a run");
    assert_eq!(run.first_unsatisfied(), None, "{length} bytes");
    assert_eq!(run.assignments[0].publics, packed(&Sha256::digest(&preimage)), "{length} bytes");
}

#[test]
fn digests_equal_those_of_another_implementation_around_the_block_size() {
    for length in [0, 1, 55, 56, 63, 65] {
        check_length(length);
    }
}

/// The gadget's count is that of bellpepper's own test; bits of the preimage and the two inputs come on top, there too.
#[test]
fn a_preimage_of_512_bits_has_44_874_constraints_in_the_gadget() {
    let run = native::run::<Sha256Preimage>(EXAMPLE_PARAMS.as_bytes(), EXAMPLE.as_bytes()).expect("a run");
    assert_eq!(run.shape.names.iter().filter(|name| name.starts_with("sha256/")).count(), 44_874);
    assert_eq!(run.shape.counts.constraints, 44_874 + 512 + 2);
    assert_eq!(run.first_unsatisfied(), None);
}

#[test]
fn shape_and_assignment_are_those_of_a_plain_synthesis() {
    let mut cs = Reference::<Fr>::default();
    let bits = (0..512).map(|i| {
        let bit = (i / 8) >> (7 - i % 8) & 1 == 1;
        let mut cs = cs.namespace(|| "preimage");
        Boolean::from(AllocatedBit::alloc(cs.namespace(|| format!("bit {i}")), Some(bit)).expect("a bit"))
    });
    let bits: Vec<Boolean> = bits.collect();
    let digest = sha256(cs.namespace(|| "sha256"), &bits).expect("a digest");
    multipack::pack_into_inputs(cs.namespace(|| "digest"), &digest).expect("inputs");
    let run = native::run::<Sha256Preimage>(b"", EXAMPLE.as_bytes()).expect("a run");
    cs.assert_equals(&run.shape, &run.assignments[0]);
}

#[test]
fn two_runs_give_identical_bytes() {
    let run = || native::run::<Sha256Preimage>(b"", EXAMPLE.as_bytes()).expect("a run");
    let (first, second) = (run(), run());
    assert!(first.shape == second.shape);
    assert!(first.assignments == second.assignments);
}

#[test]
fn bad_parameters_and_inputs_are_refused_by_name() {
    let refusal = |params: &str, input: &str| match native::run::<Sha256Preimage>(params.as_bytes(), input.as_bytes()) {
        Ok(_) => panic!("{params} {input} was accepted"),
        Err(error) => error,
    };
    assert_eq!(
        refusal(r#"{"preimage_bytes": 1000000}"#, EXAMPLE),
        Error::BadParams("field `preimage_bytes`: at most 16384 was expected".into())
    );
    assert_eq!(
        refusal("", r#"{"preimage": "00"}"#),
        Error::BadInput("field `preimage`: 64 bytes as 128 hexadecimal digits were expected".into())
    );
    let digits = "é".repeat(64);
    assert!(matches!(refusal("", &format!(r#"{{"preimage": "{digits}"}}"#)), Error::BadInput(_)));
    assert!(matches!(refusal(r#"{"preimage_bits": 1}"#, EXAMPLE), Error::BadParams(_)));
}
