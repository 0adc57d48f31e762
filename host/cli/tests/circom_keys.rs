//! Keys of circom circuits: made by `setup` for snarkjs, taken from snarkjs by `import-key`.

mod support;

use serde_json::json;
use std::process::Command;
use support::{Workplace, path};

const R1CS: &str = "--r1cs {circom:nested/circuit.r1cs}";
const ZKEY: &str = "{fixture:circom/edge_range/circuit.zkey}";
const FIXTURE: &str = "--r1cs {circom:fixture-edge_range/circuit.r1cs}";
const WTNS: &str = "--wtns {fixture:circom/edge_range/witness.wtns}";

/// The fixture's key with the bytes at `at` of one section overwritten.
fn damaged(section: u32, at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = std::fs::read(path(ZKEY)).unwrap();
    let mut start = 12;
    loop {
        let id = u32::from_le_bytes(bytes[start..start + 4].try_into().unwrap());
        let length = u64::from_le_bytes(bytes[start + 4..start + 12].try_into().unwrap()) as usize;
        start += 12;
        if id == section {
            bytes[start + at..start + at + new.len()].copy_from_slice(new);
            return bytes;
        }
        start += length;
    }
}

/// snarkjs itself proves by the key, verifies both proofs under it, and finds our public inputs.
#[test]
fn snarkjs_proves_and_verifies_by_a_key_of_our_setup() {
    let workplace = Workplace::new();
    let setup = workplace.json(&format!("setup {R1CS} --out c.zkimage --zkey-out circuit.zkey --vk-out c.vk"));
    assert_eq!(setup["zkey"], "circuit.zkey");
    std::fs::copy(path("{circom:nested/circuit.wasm}"), workplace.path("circuit.wasm")).unwrap();
    workplace.write("input.json", json!({"a": [[1, 2, 3], [4, 5, 6]], "b": 7}).to_string());
    // By the image, and by the .zkey: one key.
    for (key, proof) in [("c.zkimage", "by-image.json"), ("circuit.zkey", "proof.json")] {
        workplace.json(&format!(
            "prove {R1CS} --witness-wasm circuit.wasm --input input.json --key {key} --out {proof} --public-out public.json"
        ));
    }
    let peer = path("{tests:circom/peer.mjs}");
    let output = Command::new("node").arg(peer).arg(workplace.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(workplace.read("verdict.json"), b"true", "snarkjs refuses our proof");
    for proof in ["by-image.json", "snarkjs-proof.json"] {
        workplace.json(&format!("convert proof --from snarkjs --to bellman {proof} p"));
        workplace.json("convert public --from snarkjs --to bellman snarkjs-public.json publics");
        workplace.json("verify --vk c.vk --proof p --public publics");
    }
}

#[test]
fn a_key_of_snarkjs_becomes_an_image_that_proves_under_its_verifying_key() {
    let workplace = Workplace::new();
    let import = format!("import-key {FIXTURE} {ZKEY} --out c.zkimage --vk-out c.vk");
    let answer = workplace.json(&import);
    assert_eq!((&answer["proven"], &answer["trailer_bytes"]), (&json!(false), &json!(0)));
    let module =
        "--witness-wasm {circom:fixture-edge_range/circuit.wasm} --input {fixture:circom/edge_range/input.json}";
    for witness in [WTNS, module] {
        assert_eq!(workplace.json(&format!("{import} {witness} --force"))["proven"], true);
    }
    workplace.json(&format!("prove {FIXTURE} {WTNS} --key c.zkimage --out c.proof --public-out c.json"));
    workplace.json("verify --vk c.vk --proof c.proof --public c.json");
    workplace.json(&format!("convert vk --from zkey --to bellman {ZKEY} snarkjs.vk"));
    assert_eq!(workplace.read("c.vk"), workplace.read("snarkjs.vk"));
}

/// The whole file's digest is what a user can pin.
#[test]
fn a_pinned_digest_is_compared() {
    let workplace = Workplace::new();
    let import = format!("import-key {FIXTURE} {ZKEY} --out c.zkimage");
    let found = workplace.json(&import)["sha256"].as_str().unwrap().to_owned();
    workplace.json(&format!("{import} --sha256 {found} --force"));
    let other = "0".repeat(64);
    workplace.check_failure(&format!("{import} --sha256 {other} --force"), 3, &["circuit.zkey", &found, &other]);
}

/// supra_seal issue 32: what is wrong with a key has a place.
#[test]
fn supra_seal_i32_a_bad_point_is_named_by_section_and_index() {
    let workplace = Workplace::new();
    let import = format!("import-key {FIXTURE} bad.zkey --out c.zkimage");
    let queries = [
        (5, 96, 2, "A query"),
        (6, 96, 2, "B query in G1"),
        (7, 192, 2, "B query in G2"),
        (8, 96, 0, "C query"),
        (9, 96, 2, "H query"),
    ];
    for (id, bytes, entry, name) in queries {
        workplace.write("bad.zkey", damaged(id, entry * bytes, &[1]));
        workplace.check_failure(&import, 3, &["bad.zkey", name, &format!("entry {entry}")]);
    }
    assert!(!workplace.path("c.zkimage").exists());
}

/// zeto issue 186: keys without a phase-2 contribution were shipped.
#[test]
fn zeto_i186_import_refuses_a_key_without_phase_2_unless_tests_ask_for_it() {
    let workplace = Workplace::new();
    let import = "import-key --r1cs {circom:fixture-mul2/circuit.r1cs} {fixture:negative/no-phase2-contribution.zkey} --out c.zkimage";
    workplace.check_failure(import, 3, &["no-phase2-contribution.zkey", "no phase-2 contribution"]);
    workplace.json(&format!("{import} --insecure-test-key"));
}

#[test]
fn keys_and_witnesses_of_other_circuits_are_refused() {
    let workplace = Workplace::new();
    let import = format!("import-key {FIXTURE} {{fixture:circom/mul2/circuit.zkey}} --out c.zkimage");
    workplace.check_failure(&import, 3, &["mul2/circuit.zkey", "does not fit"]);
    let other = format!("import-key {FIXTURE} {ZKEY} --out c.zkimage --wtns {{fixture:circom/mul2/witness.wtns}}");
    workplace.check_failure(&other, 3, &["values", "wires", "different circuits"]);
    let broken = "import-key --r1cs {circom:fixture-edge_pow2/circuit.r1cs} {fixture:circom/edge_pow2/circuit.zkey} \
                  --out c.zkimage --wtns {fixture:negative/unsatisfied.wtns}";
    workplace.check_failure(broken, 1, &["constraint ", "of main.", "is not satisfied"]);
    assert!(!workplace.path("c.zkimage").exists());
}

#[test]
fn a_command_line_that_cannot_be_says_what_is_missing_or_too_much() {
    for (arguments, part) in [
        (format!("import-key {ZKEY} --out c.zkimage"), "<COMPONENT>"),
        (format!("setup {R1CS} --out a --zkey-out b --params-out c"), "--params-out"),
        (format!("setup {R1CS} --out a --params {{}}"), "--params"),
        (format!("setup --out a {WTNS}"), "--wtns"),
    ] {
        let run = Workplace::new().run(&arguments);
        assert_eq!(run.code, 2, "{arguments}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{arguments}: {}", run.stderr);
    }
}
