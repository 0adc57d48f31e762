//! ZoKrates, the `groth16` crate and Ethereum's virtual machine as they run: what they make verifies here, what is made here
//! verifies there.

use bls12_381::{Bls12, Scalar as OtherScalar};
use reference_groth16 as groth16;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use zkhost_groth16::formats::{eip2537, read_r1cs, read_wtns, read_zkey, snarkjs, solidity, write_vk, zokrates};
use zkhost_groth16::key::VerifierKey;
use zkhost_groth16::scalar::{MODULUS, to_canonical};
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{Assignment, CpuProver, HBasis, PreparedVerifyingKey, Proof, Prover, R1cs, Scalar, VerifyingKey};
use zkhost_tests::fixture;

/// Circuits of tests/zokrates, and their public inputs and outputs.
const ZOKRATES_CIRCUITS: [(&str, usize, usize); 3] = [("power", 1, 1), ("words", 1, 2), ("path", 1, 1)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// An empty folder for a test to meet a peer in.
fn meeting_place(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Have a peer do its work in all of these folders.
fn run_peer(script: &str, arguments: &[&str], folders: &[PathBuf]) {
    let script = root().join("tests/circom").join(script);
    let output = Command::new("node").arg(&script).args(arguments).args(folders).output();
    let output = output.expect("node runs; `make circom-peers` installs it");
    assert!(output.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&output.stderr));
}

/// Whether the `groth16` crate takes a key and a proof as encoded for it.
fn groth16_accepts(vk: &VerifyingKey, proof: &Proof, publics: &[Scalar]) -> bool {
    let mut bytes = vec![];
    write_vk(vk, &mut bytes).unwrap();
    let vk = groth16::VerifyingKey::<Bls12>::read(&bytes[..]).unwrap();
    let proof = groth16::Proof::read(&proof.to_bytes()[..]).unwrap();
    let publics: Vec<_> = publics.iter().map(|x| OtherScalar::from_raw(to_canonical(x))).collect();
    groth16::verify_proof(&groth16::prepare_verifying_key(&vk), &proof, &publics).is_ok()
}

/// A proof under a key of our own, which the `groth16` crate takes as well.
fn prove(r1cs: &Arc<R1cs>, assignment: &Assignment) -> (VerifyingKey, Proof) {
    let key = setup(r1cs, &ToxicWaste::random(), HBasis::OddCoset).unwrap();
    let vk = key.vk.clone();
    let proof = CpuProver::new(Arc::new(key), r1cs.clone()).unwrap().prove(assignment).unwrap();
    assert!(groth16_accepts(&vk, &proof, assignment.publics()));
    (vk, proof)
}

#[test]
fn circuits_of_zokrates_are_proved_here_for_zokrates_and_there_for_us() {
    let folders = ZOKRATES_CIRCUITS.map(|(name, ..)| {
        let folder = meeting_place(&format!("zokrates-{name}"));
        for (extension, file) in [("zok", "circuit.zok"), ("json", "input.json")] {
            let from = root().join("tests/zokrates").join(name).with_extension(extension);
            std::fs::copy(from, folder.join(file)).unwrap();
        }
        folder
    });
    run_peer("zokrates.mjs", &["make"], &folders);
    for ((name, inputs, outputs), folder) in ZOKRATES_CIRCUITS.iter().zip(&folders) {
        let read = |file: &str| std::fs::read(folder.join(file)).unwrap();
        let write = |file: &str, text: String| std::fs::write(folder.join(file), text).unwrap();
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();

        // Theirs, and that it is written as it was read.
        let their_vk = zokrates::read_vk(&read("vk.json")).unwrap();
        let (their_proof, mut values) = zokrates::read_proof(&read("proof.json")).unwrap();
        assert_eq!(values.len(), inputs + outputs, "{name}");
        PreparedVerifyingKey::from(&their_vk).verify(&their_proof, &values).unwrap();
        assert_eq!(json(zokrates::write_vk(&their_vk).as_bytes()), json(&read("vk.json")), "{name}");
        assert_eq!(json(zokrates::write_proof(&their_proof, &values).as_bytes()), json(&read("proof.json")), "{name}");

        // Their constraint system and witness, our key and proof. In the former the outputs come first, as circom has them.
        values.rotate_left(*inputs);
        let r1cs = Arc::new(read_r1cs(&read("circuit.r1cs")).unwrap().r1cs);
        let z = read_wtns(&read("witness.wtns")).unwrap();
        let (ours, aux) = z[1..].split_at(r1cs.public_count as usize);
        assert_eq!(ours, values, "{name}: the public values differ");
        let (vk, proof) = prove(&r1cs, &Assignment::from_values(ours, aux));
        write("our-vk.json", zokrates::write_vk(&(&vk).into()));
        write("our-proof.json", zokrates::write_proof(&proof, &values));
    }
    run_peer("zokrates.mjs", &["verify"], &folders);
    for folder in &folders {
        // Accepted under our key, and under no other.
        let verdict = std::fs::read_to_string(folder.join("verdict.json")).unwrap();
        assert_eq!(verdict, "[true,false]", "{}", folder.display());
    }
}

#[test]
fn keys_and_proofs_of_snarkjs_are_accepted_by_the_groth16_crate_once_encoded_for_it() {
    for name in ["edge_noconstraint", "edge_nopublic", "edge_pow2", "edge_range", "mul2"] {
        let file = |file: &str| fixture(&format!("circom/{name}/{file}"));
        let vk = read_zkey(&file("circuit.zkey")).unwrap().vk;
        let proof = snarkjs::read_proof(&file("proof.json")).unwrap();
        let mut publics = snarkjs::read_publics(&file("public.json")).unwrap();
        assert!(groth16_accepts(&vk, &proof, &publics), "{name}");
        if let Some(first) = publics.first_mut() {
            *first += Scalar::from(1);
            assert!(!groth16_accepts(&vk, &proof, &publics), "{name}: another statement");
        }
    }
}

/// Calldata of a call with its word at `byte` replaced.
fn with_word(calldata: &[u8], byte: usize, word: [u8; 32]) -> Vec<u8> {
    let mut changed = calldata.to_vec();
    changed[byte..byte + 32].copy_from_slice(&word);
    changed
}

/// A folder with the contract for a key, a call with a statement that it has to accept, and calls that it has to refuse.
fn contract(name: &str, vk: &VerifierKey, proof: &Proof, publics: &[Scalar]) -> PathBuf {
    let folder = meeting_place(&format!("evm-{name}"));
    let write = |file: &str, bytes: &[u8]| std::fs::write(folder.join(file), bytes).unwrap();
    write("Verifier.sol", solidity::write_verifier(vk).unwrap().as_bytes());
    let good = eip2537::write_calldata(proof, publics);
    write("good.calldata", &good);
    let negated = Proof { a: -proof.a, ..proof.clone() };
    write("bad-other-a.calldata", &eip2537::write_calldata(&negated, publics));
    write("bad-input-missing.calldata", &eip2537::write_calldata(proof, &publics[1..]));
    write("bad-input-more.calldata", &eip2537::write_calldata(proof, &[publics, &publics[..1]].concat()));
    let other = publics.iter().map(|x| *x + Scalar::from(1)).collect::<Vec<_>>();
    write("bad-other-inputs.calldata", &eip2537::write_calldata(proof, &other));
    // The same input with r added, which fits its word.
    let last = good.len() - 32;
    let aliased = aliased(&good[last..]);
    write("bad-aliased-input.calldata", &with_word(&good, last, aliased));
    // The first coordinate of A, whose 64 bytes begin behind selector, two offsets and a length, not below p.
    write("bad-coordinate.calldata", &with_word(&good, 4 + 3 * 32, [0xff; 32]));
    folder
}

/// A big-endian word and r, summed.
fn aliased(word: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    let mut carry = 0;
    for (i, byte) in word.iter().rev().enumerate() {
        carry += u16::from(*byte) + (MODULUS[i / 8] >> (8 * (i % 8)) & 0xff) as u16;
        sum[31 - i] = carry as u8;
        carry >>= 8;
    }
    assert_eq!(carry, 0, "the largest values have no alias");
    sum
}

#[test]
fn contracts_for_keys_compile_deploy_and_accept_their_proofs_and_no_others_by_eip_2537() {
    let statement = |name: &str| {
        let file = |file: &str| fixture(&format!("circom/{name}/{file}"));
        let vk = snarkjs::read_vk(&file("vkey.json")).unwrap();
        let proof = snarkjs::read_proof(&file("proof.json")).unwrap();
        (vk, proof, snarkjs::read_publics(&file("public.json")).unwrap())
    };
    let statements = ["mul2", "edge_pow2", "edge_range"].map(|name| (name, statement(name)));
    let folders = statements.map(|(name, (vk, proof, publics))| contract(name, &vk, &proof, &publics));
    let (vk, ..) = statement("mul2");
    let largest = meeting_place("evm-largest");
    let vk = VerifierKey { ic: vec![vk.ic[0]; solidity::PUBLICS_MAX + 1], ..vk };
    std::fs::write(largest.join("Verifier.sol"), solidity::write_verifier(&vk).unwrap()).unwrap();
    run_peer("evm.mjs", &[], &[&folders[..], &[largest]].concat());
    for folder in &folders {
        let verdict: Value = serde_json::from_slice(&std::fs::read(folder.join("verdict.json")).unwrap()).unwrap();
        let calls = verdict["calls"].as_object().unwrap();
        assert_eq!(calls.len(), 7);
        for (file, call) in calls {
            assert_eq!(call["accepted"], file == "good.calldata", "{}: {file}", folder.display());
        }
    }
}
