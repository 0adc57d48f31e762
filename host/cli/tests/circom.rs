//! `zkhost prove` of circom circuits, from the files that circom and snarkjs write.

mod support;

use serde_json::{Value, json};
use std::fs::{File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use support::Workplace;

const CIRCUIT: &str = "--r1cs {circom:fixture-edge_range/circuit.r1cs} --key {fixture:circom/edge_range/circuit.zkey}";
const MODULE: &str = "--witness-wasm {circom:fixture-edge_range/circuit.wasm}";

/// The proof in a workplace verifies under the key that came with it, for its own public inputs and no others.
fn check_proof(workplace: &Workplace) {
    workplace.json("verify --vk c.vk --proof c.proof --public c.json");
    let mut publics: Vec<Value> = serde_json::from_slice(&workplace.read("c.json")).unwrap();
    publics[0] = json!("2");
    workplace.write("wrong.json", json!(publics).to_string());
    workplace.check_failure("verify --vk c.vk --proof c.proof --public wrong.json", 1, &["not valid"]);
}

#[test]
fn a_circuit_is_proved_from_its_module_and_input_or_from_its_witness() {
    for witness in [
        format!("{MODULE} --input {{fixture:circom/edge_range/input.json}}"),
        "--wtns {fixture:circom/edge_range/witness.wtns}".to_owned(),
    ] {
        let workplace = Workplace::new();
        let answer = workplace
            .json(&format!("prove {CIRCUIT} {witness} --device cpu --out c.proof --public-out c.json --vk-out c.vk"));
        assert_eq!(answer["bytes"], 192);
        let public: Value = serde_json::from_slice(&workplace.read("c.json")).unwrap();
        let expected = std::fs::read(support::path("{fixture:circom/edge_range/public.json}")).unwrap();
        assert_eq!(public, serde_json::from_slice::<Value>(&expected).unwrap(), "as snarkjs writes them");
        check_proof(&workplace);
    }
}

/// The points of a `.zkey` are checked once: its image is kept in the cache, and made again when it is damaged.
#[test]
fn a_zkey_is_imported_once() {
    let workplace = Workplace::new();
    let prove = format!(
        "prove {CIRCUIT} --cache cache --wtns {{fixture:circom/edge_range/witness.wtns}} --device cpu --out c.proof --public-out c.json \
         --vk-out c.vk --force"
    );
    let imported = |workplace: &Workplace| {
        let answer = workplace.json(&prove);
        check_proof(workplace);
        answer["stages"].as_array().unwrap().iter().any(|stage| stage["name"] == "read key")
    };
    assert!(imported(&workplace), "the first time");
    assert!(!imported(&workplace), "the second time");
    // The image is the file's, whichever circuit asks for it.
    let other = "prove --r1cs {circom:fixture-edge_pow2/circuit.r1cs} --key {fixture:circom/edge_range/circuit.zkey} --cache cache \
                 --wtns {fixture:circom/edge_pow2/witness.wtns}";
    workplace.check_failure(other, 3, &["circuit.zkey", "use the key made for this circuit"]);
    let image = std::fs::read_dir(workplace.path("cache/key-images")).unwrap().next().unwrap().unwrap().path();
    let file = File::options().write(true).open(&image).unwrap();
    file.write_all_at(b"damage", 10_000).unwrap();
    assert!(imported(&workplace), "with a damaged image");
    assert!(!imported(&workplace), "with the image mended");
}

#[test]
fn a_proof_in_a_json_file_has_the_form_of_snarkjs() {
    let workplace = Workplace::new();
    workplace.json(&format!("prove {CIRCUIT} --wtns {{fixture:circom/edge_range/witness.wtns}} --out proof.json"));
    let proof: Value = serde_json::from_slice(&workplace.read("proof.json")).unwrap();
    assert_eq!((&proof["protocol"], &proof["curve"]), (&json!("groth16"), &json!("bls12381")));
    assert_eq!(proof["pi_b"][2], json!(["1", "0"]));
}

/// snarkjs proves an unsatisfied witness without a word.
#[test]
fn snarkjs_o3_an_unsatisfied_witness_is_refused_with_its_row_and_signals() {
    let prove = "prove --r1cs {fixture:circom/edge_pow2/circuit.r1cs} --key {fixture:circom/edge_pow2/circuit.zkey} \
                 --wtns {fixture:negative/unsatisfied.wtns}";
    Workplace::new().check_failure(prove, 1, &["circuit.r1cs", "constraint ", "of main.", "is not satisfied"]);
}

/// snarkjs takes witness values above the modulus.
#[test]
fn snarkjs_o5_a_witness_value_above_the_modulus_is_refused() {
    let prove = "prove --r1cs {fixture:circom/edge_pow2/circuit.r1cs} --key {fixture:circom/edge_pow2/circuit.zkey} \
                 --wtns {fixture:negative/noncanonical-scalar.wtns}";
    Workplace::new().check_failure(prove, 3, &["noncanonical-scalar.wtns", "entry ", "not below the modulus"]);
}

/// zeto issue 186: keys without a phase-2 contribution were shipped.
#[test]
fn zeto_i186_a_key_without_phase_2_is_refused_unless_tests_ask_for_it() {
    let prove = "prove --r1cs {fixture:circom/mul2/circuit.r1cs} --key {fixture:negative/no-phase2-contribution.zkey} \
                 --wtns {fixture:circom/mul2/witness.wtns}";
    let workplace = Workplace::new();
    let check_refused = || {
        let prove = format!("{prove} --cache cache");
        workplace.check_failure(&prove, 3, &["no-phase2-contribution.zkey", "no phase-2 contribution"]);
    };
    check_refused();
    workplace.json(&format!("{prove} --cache cache --insecure-test-key"));
    // Its image is kept now.
    assert_eq!(std::fs::read_dir(workplace.path("cache/key-images")).unwrap().count(), 1);
    check_refused();
}

/// The cache saves time; a proof does not need it.
#[test]
fn a_proof_by_a_zkey_needs_no_cache() {
    let workplace = Workplace::new();
    std::fs::create_dir(workplace.path("open")).unwrap();
    std::fs::create_dir(workplace.path("open/key-images")).unwrap();
    std::fs::set_permissions(workplace.path("open/key-images"), Permissions::from_mode(0o755)).unwrap();
    let witness = "--wtns {fixture:circom/edge_range/witness.wtns}";
    let run = workplace
        .run(&format!("prove {CIRCUIT} {witness} --cache open --out c.proof --public-out c.json --vk-out c.vk"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("image is not kept") && run.stderr.contains("chmod 700"), "{}", run.stderr);
    check_proof(&workplace);
}

#[test]
fn wrong_files_and_inputs_are_named() {
    let workplace = Workplace::new();
    let module = |input: Value| {
        workplace.write("in.json", input.to_string());
        format!("prove {CIRCUIT} {MODULE} --input in.json")
    };
    let good: Value =
        serde_json::from_slice(&std::fs::read(support::path("{fixture:circom/edge_range/input.json}")).unwrap())
            .unwrap();
    let first = good.as_object().unwrap().keys().next().unwrap().clone();
    workplace.check_failure(&module(json!({})), 3, &["missing: ", &first]);
    let mut extra = good.clone();
    extra["surplus"] = json!(1);
    workplace.check_failure(&module(extra), 3, &["no input signal `surplus`", &first]);
    let wtns = "--wtns {fixture:circom/mul2/witness.wtns}";
    workplace.check_failure(&format!("prove {CIRCUIT} {wtns}"), 3, &["values", "wires", "different circuits"]);
    let key = "--key {fixture:circom/mul2/circuit.zkey}";
    let other = "--r1cs {circom:fixture-edge_range/circuit.r1cs} --wtns {fixture:circom/edge_range/witness.wtns}";
    workplace.check_failure(&format!("prove {other} {key}"), 3, &["mul2/circuit.zkey", "does not fit"]);
    workplace.check_failure(&format!("prove {CIRCUIT} --input in.json"), 2, &["--witness-wasm"]);
    let component = "--witness-wasm {component:sapling-output}";
    workplace.check_failure(&format!("prove {CIRCUIT} {component} --input in.json"), 4, &["no WebAssembly module"]);
}

/// A copy of a file of iden3's frame, sparse, in which one section comes first and is followed by zeros up to `bytes`.
fn with_large_section(workplace: &Workplace, from: &str, to: &str, large: u32, bytes: u64) {
    let source = std::fs::read(support::path(from)).unwrap();
    let mut sections: Vec<(u32, &[u8])> = vec![];
    let mut rest = &source[12..];
    while !rest.is_empty() {
        let id = u32::from_le_bytes(rest[..4].try_into().unwrap());
        let length = u64::from_le_bytes(rest[4..12].try_into().unwrap()) as usize;
        sections.push((id, &rest[12..12 + length]));
        rest = &rest[12 + length..];
    }
    // A section that the format does not have is as good as one that it has: nothing reads it.
    let first = sections.iter().find(|(id, _)| *id == large).map_or(&[][..], |(_, body)| body);
    sections.retain(|(id, _)| *id != large);
    let frame = |id: u32, length: u64| [&id.to_le_bytes()[..], &length.to_le_bytes()].concat();
    let mut file = File::create(workplace.path(to)).unwrap();
    file.write_all(&source[..8]).unwrap();
    file.write_all(&(1 + sections.len() as u32).to_le_bytes()).unwrap();
    file.write_all(&frame(large, bytes)).unwrap();
    file.write_all(first).unwrap();
    file.seek(SeekFrom::Start(24 + bytes)).unwrap();
    for (id, body) in sections {
        file.write_all(&[&frame(id, body.len() as u64), body].concat()).unwrap();
    }
}

/// Lengths have 64 bits, whatever reads them as fewer.
#[test]
fn files_with_sections_over_4_gib_are_proved() {
    const BYTES: u64 = (5 << 30) + 3;
    let workplace = Workplace::new();
    with_large_section(&workplace, "{circom:fixture-edge_range/circuit.r1cs}", "large.r1cs", 3, BYTES);
    with_large_section(&workplace, "{fixture:circom/edge_range/circuit.zkey}", "large.zkey", 10, BYTES);
    with_large_section(&workplace, "{fixture:circom/edge_range/witness.wtns}", "large.wtns", 9, BYTES);
    let prove = "prove --r1cs large.r1cs --key large.zkey --wtns large.wtns";
    workplace.json(&format!("{prove} --out c.proof --public-out c.json --vk-out c.vk"));
    check_proof(&workplace);
    // Cut within the large section; then a length of which only the lower half was written.
    let file = File::options().write(true).open(workplace.path("large.r1cs")).unwrap();
    file.set_len(BYTES - 1000).unwrap();
    workplace.check_failure(prove, 3, &["large.r1cs", "labels section", &BYTES.to_string(), "incomplete"]);
    file.write_all_at(&(BYTES & 0xffff_ffff).to_le_bytes(), 16).unwrap();
    workplace.check_failure(prove, 3, &["large.r1cs", "bytes follow where the file should end"]);
}

#[test]
fn what_was_done_when_is_written_as_a_trace() {
    let workplace = Workplace::new();
    let input = "--input {fixture:circom/edge_range/input.json}";
    workplace.json(&format!("prove {CIRCUIT} {MODULE} {input} --out c.proof --trace c.trace"));
    let trace: Value = serde_json::from_slice(&workplace.read("c.trace")).unwrap();
    let names: Vec<_> =
        trace["traceEvents"].as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert!(["segment", "verify"].iter().all(|name| names.contains(name)), "{names:?}");
}
