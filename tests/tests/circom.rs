//! circom circuits as they are, beside circom's own tools: witnesses equal snarkjs's, our proofs verify there, snarkjs's here.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use zkhost_groth16::formats::{read_r1cs, read_wtns, read_zkey, snarkjs, write_zkey};
use zkhost_groth16::key::Phase2;
use zkhost_groth16::scalar::SecretScalars;
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{Assignment, CpuProver, HBasis, PreparedVerifyingKey, Prover, ProvingKey, R1cs};
use zkhost_runtime::{Cache, Circom, Compiler, Fault, Input, Limits, Refusal, Runtime};
use zkhost_tests::fixture;

/// Circuits of circomlib, one with nested arrays, and one by a compiler before 2.0.7.
const CIRCUITS: [&str; 16] = [
    "babyadd",
    "binsum",
    "bitify",
    "comparators",
    "compconstant",
    "early",
    "eddsamux",
    "gates",
    "merkle",
    "mimc7",
    "mimcsponge",
    "multiplexer",
    "mux4",
    "nested",
    "poseidon",
    "sha256",
];
/// Fixtures that come with a key by snarkjs's own setup.
const FIXTURES: [&str; 5] = ["edge_noconstraint", "edge_nopublic", "edge_pow2", "edge_range", "mul2"];

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("circom-code");
    Runtime::new(Compiler::InProcess, Some(Cache::open(&cache).unwrap())).unwrap()
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file that circom's compiler wrote.
fn compiled(circuit: &str, file: &str) -> Vec<u8> {
    let path = root().join("build/circom").join(circuit).join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run `make circom-peers`", path.display()))
}

fn load(circuit: &str) -> Circom {
    RUNTIME.load_circom(circuit, &compiled(circuit, "circuit.wasm"), Limits::default()).unwrap()
}

fn input(circuit: &str) -> Vec<u8> {
    std::fs::read(root().join("tests/circom/circuits").join(circuit).with_extension("json")).unwrap()
}

fn assignment(r1cs: &R1cs, z: &SecretScalars) -> Assignment {
    let (publics, aux) = z[1..].split_at(r1cs.public_count as usize);
    Assignment::from_values(publics, aux)
}

/// A circuit that is proved, beside what snarkjs needs to judge it.
struct Proved {
    folder: PathBuf,
    z: SecretScalars,
    verifier: PreparedVerifyingKey,
}

/// Compute the witness, prove by `key`, and lay everything out for snarkjs.
fn prove(circuit: &str, input: &[u8], zkey: impl FnOnce(&R1cs) -> Vec<u8>) -> Proved {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("circom").join(circuit);
    std::fs::create_dir_all(&folder).unwrap();
    let r1cs = Arc::new(read_r1cs(&compiled(circuit, "circuit.r1cs")).unwrap().r1cs);
    let z = load(circuit).witness(&Input::from(input.to_vec()), &[]).unwrap();
    let assignment = assignment(&r1cs, &z);
    r1cs.check(&assignment).unwrap_or_else(|error| panic!("{circuit}: {error}"));

    let zkey = zkey(&r1cs);
    let key = ProvingKey::import_zkey(read_zkey(&zkey).unwrap(), &r1cs, Phase2::Required).unwrap();
    let verifier = PreparedVerifyingKey::from(&key.vk);
    let proof = CpuProver::new(Arc::new(key), r1cs).unwrap().prove(&assignment).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    write("circuit.wasm", &compiled(circuit, "circuit.wasm"));
    write("input.json", input);
    write("circuit.zkey", &zkey);
    write("proof.json", snarkjs::write_proof(&proof).as_bytes());
    write("public.json", snarkjs::write_publics(assignment.publics()).as_bytes());
    Proved { folder, z, verifier }
}

/// Have snarkjs compute, prove and verify, and compare.
fn check_with_snarkjs(proved: &[Proved]) {
    let output = Command::new("node")
        .arg(root().join("tests/circom/peer.mjs"))
        .args(proved.iter().map(|proved| &proved.folder))
        .output()
        .expect("node runs; `make circom-peers` installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for Proved { folder, z, verifier } in proved {
        let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
        assert!(read_wtns(&read("snarkjs.wtns")).unwrap()[..] == z[..], "{}: the witnesses differ", folder.display());
        assert_eq!(read("verdict.json"), b"true", "{}: snarkjs refuses our proof", folder.display());
        let publics = snarkjs::read_publics(&read("snarkjs-public.json")).unwrap();
        let proof = snarkjs::read_proof(&read("snarkjs-proof.json")).unwrap();
        verifier.verify(&proof, &publics).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
}

#[test]
fn circuits_of_circomlib_prove_under_our_keys_for_snarkjs_and_the_other_way() {
    let ours = |r1cs: &R1cs| {
        let key = setup(r1cs, &ToxicWaste::insecure_from_seed(5), HBasis::OddCoset).unwrap();
        let mut zkey = vec![];
        write_zkey(&key, r1cs, &mut zkey).unwrap();
        zkey
    };
    let proved: Vec<_> = CIRCUITS.iter().map(|circuit| prove(circuit, &input(circuit), ours)).collect();
    check_with_snarkjs(&proved);
}

#[test]
fn keys_by_snarkjs_prove_for_snarkjs_and_the_other_way() {
    let proved = FIXTURES.map(|name| {
        let zkey = fixture(&format!("circom/{name}/circuit.zkey"));
        let input = fixture(&format!("circom/{name}/input.json"));
        let proved = prove(&format!("fixture-{name}"), &input, |_| zkey);
        let theirs = read_wtns(&fixture(&format!("circom/{name}/witness.wtns"))).unwrap();
        assert!(theirs[..] == proved.z[..], "{name}: the fixture's witness differs");
        proved
    });
    check_with_snarkjs(&proved);
}

/// The fault of a witness for this input, which must be refused as `kind` with all these parts in the sentence.
fn check_refusal(circuit: &str, input: Value, kind: Refusal, parts: &[&str]) {
    let names = ["a", "b"].map(str::to_owned);
    let Err(error) = load(circuit).witness(&Input::from(input.to_string().into_bytes()), &names) else {
        panic!("{input} was taken");
    };
    let text = error.to_string();
    assert!(matches!(&error.fault, Fault::Refused { kind: found, .. } if *found == kind), "{input}: {text}");
    parts.iter().for_each(|part| assert!(text.contains(part), "{input}: `{part}` is not in: {text}"));
}

#[test]
fn an_assertion_names_the_template_and_line_that_circom_reports() {
    let input = json!({"a": [[1, 2, 3], [4, 5, 6]], "b": 1000});
    check_refusal(
        "nested",
        input,
        Refusal::Unsatisfied,
        &["circuit `nested`", "assertion", "template Product", "line: 15"],
    );
}

#[test]
fn so_it_does_by_the_interface_before_circom_2_0_7() {
    let parts = ["circuit `early`", "assertion", "template Early", "line: 14"];
    check_refusal("early", json!({"a": vec![1; 60], "b": 1000}), Refusal::Unsatisfied, &parts);
    check_refusal("early", json!({"a": vec![1; 60]}), Refusal::BadInput, &["60 of the circuit's 61 input values"]);
}

/// circom_runtime issue 7: missing inputs passed unnoticed.
#[test]
fn circom_runtime_i7_missing_extra_and_wrongly_sized_signals_are_named() {
    let bad = Refusal::BadInput;
    let a = json!([[1, 2, 3], [4, 5, 6]]);
    check_refusal("nested", json!({"a": a}), bad, &["6 of the circuit's 7 input values", "missing: b"]);
    check_refusal("nested", json!({}), bad, &["missing: a, b"]);
    check_refusal("nested", json!({"a": a, "b": 1, "c": 2}), bad, &["no input signal `c`", "are a, b"]);
    check_refusal("nested", json!({"a": [1, 2], "b": 1}), bad, &["`a` has 6 elements", "2 for it"]);
    check_refusal("nested", json!({"a": a, "b": [1, 2]}), bad, &["`b` has 1 elements", "2 for it"]);
    check_refusal("nested", json!({"a": a, "b": []}), bad, &["`b` has 1 elements", "0 for it"]);
    check_refusal("nested", json!({"a": a, "b": -1}), bad, &["signal `b`"]);
}

#[test]
fn two_witnesses_of_one_module_are_equal_and_runs_do_not_meet() {
    let circuit = load("nested");
    let witness = |json: Value| circuit.witness(&Input::from(json.to_string().into_bytes()), &[]);
    let good = json!({"a": [1, 2, 3, 4, 5, 6], "b": 7});
    let first = witness(good.clone()).unwrap();
    assert!(witness(json!({"a": [0, 0, 0, 0, 0, 0], "b": 5000})).is_err());
    assert!(witness(good).unwrap()[..] == first[..]);
}
