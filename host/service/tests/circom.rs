//! circom circuits in the registry, and manifests with several keys, over real sockets.

mod common;

use common::{code, component, input, key, start, start_in};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use zkhost_client::types::{Circuit, JobState, VerifyRequest};
use zkhost_client::{Client, Submission};
use zkhost_groth16::HBasis;
use zkhost_groth16::formats::{read_r1cs, write_zkey};
use zkhost_groth16::setup::{ToxicWaste, setup};

/// A file of the fixture `edge_range`, which has 100 public bits: as circom and snarkjs wrote it.
fn fixture(file: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = match file {
        "circuit.wasm" => root.join("build/circom/fixture-edge_range").join(file),
        _ => root.join("tests/fixtures/circom/edge_range").join(file),
    };
    assert!(path.exists(), "{} is missing: run `make circom-peers`", path.display());
    path
}

fn bytes(file: &str) -> Vec<u8> {
    std::fs::read(fixture(file)).unwrap()
}

/// Another key for the same circuit, as snarkjs would write it.
fn other_zkey() -> Vec<u8> {
    let shape = read_r1cs(&bytes("circuit.r1cs")).unwrap().r1cs;
    let key = setup(&shape, &ToxicWaste::insecure_from_seed(11), HBasis::OddCoset).unwrap();
    let mut zkey = vec![];
    write_zkey(&key, &shape, &mut zkey).unwrap();
    zkey
}

/// Files of a circuit in the watched folder, put there whole.
fn drop_in(data: &Path, name: &str, manifest: &str, files: &[(&str, Vec<u8>)]) {
    let draft = data.join("draft");
    std::fs::create_dir_all(&draft).unwrap();
    std::fs::write(draft.join("manifest.toml"), manifest).unwrap();
    files.iter().for_each(|(file, bytes)| std::fs::write(draft.join(file), bytes).unwrap());
    std::fs::create_dir_all(data.join("circuits")).unwrap();
    std::fs::rename(draft, data.join("circuits").join(name)).unwrap();
}

/// A circuit of a name, or the sentence that its folder is refused with.
async fn loaded(client: &Client, name: &str, folder: &str) -> Result<Circuit, String> {
    let began = Instant::now();
    loop {
        let list = client.circuits().await.unwrap();
        if let Some((_, sentence)) = list.refused.iter().find(|(path, _)| path.ends_with(folder)) {
            return Err(sentence.clone());
        }
        if let Ok(circuit) = client.circuit(name).await {
            return Ok(circuit);
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{list:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn submission(circuit: &str) -> Submission {
    Submission { circuit: circuit.into(), wait: Some(Duration::from_secs(60)), ..Submission::default() }
}

/// The circuit proves the fixture's input for the public inputs that snarkjs found, and the proof verifies by its key alone.
async fn check_proves(client: &Client, circuit: &str, others: &[&str]) {
    let job = client.submit(&submission(circuit), bytes("input.json").into()).await.unwrap();
    assert_eq!((job.state, &job.failure), (JobState::Proved, &None));
    let result = client.result(&job.id).await.unwrap();
    let expected: Vec<String> = serde_json::from_slice(&bytes("public.json")).unwrap();
    let expected: Vec<_> = expected.iter().map(|bit| format!("0x{bit:0>64}")).collect();
    assert_eq!(result.publics, [expected], "bits, so the same digits in decimal and hexadecimal");
    for (key, valid) in [(circuit, true)].into_iter().chain(others.iter().map(|other| (*other, false))) {
        let (proof, publics) = (result.proof.clone(), result.publics.clone());
        let answer = client.verify(&VerifyRequest { circuit: key.into(), proof, publics }).await.unwrap();
        assert_eq!(answer.valid, valid, "{key}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_what_circom_and_snarkjs_wrote_is_a_circuit() {
    let host = start("[circuits]\nscan_seconds = 1\nkey_idle_seconds = 0").await;
    let (client, data) = (host.client(), host.folder.path().join("data"));
    let manifest = "name = \"range\"\nkey = { file = \"circuit.zkey\" }\n\
                    circom = { r1cs = { file = \"circuit.r1cs\" }, wasm = { file = \"circuit.wasm\" }, sym = { file = \"circuit.sym\" } }\n";
    let files = || ["circuit.r1cs", "circuit.wasm", "circuit.sym", "circuit.zkey"].map(|file| (file, bytes(file)));
    drop_in(&data, "range", manifest, &files());
    let circuit = loaded(&client, "range", "range").await.unwrap();
    assert_eq!((circuit.kind.as_str(), circuit.publics, circuit.partitions), ("circom", 100, 1));
    assert!(circuit.input_help.contains("the signals are v"), "{}", circuit.input_help);
    check_proves(&client, "range", &[]).await;
    // The key was idle and is opened anew, from the image that was made of it.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(std::fs::read_dir(data.join("images")).unwrap().count(), 1);
    check_proves(&client, "range", &[]).await;
    for (input, code, part) in [
        ("{\"v\": \"1267650600228229401496703205376\"}", "unsatisfied", "range"),
        ("{\"v\": [1, 2]}", "bad-input", "signal `v`"),
        ("{\"no\": [1]}", "bad-input", "no input signal `no`"),
        ("[", "bad-input", "an object with a member for each input signal was expected"),
    ] {
        let job = client.submit(&submission("range"), input.as_bytes().into()).await.unwrap();
        let failure = job.failure.unwrap();
        assert_eq!((job.state, failure.code.as_str()), (JobState::Failed, code), "{input}: {failure:?}");
        assert!(failure.message.contains(part), "{input}: {failure:?}");
    }
    // Files of different circuits.
    let mut mixed = files();
    mixed[0].1 = std::fs::read(fixture("circuit.r1cs").with_file_name("../mul2/circuit.r1cs")).unwrap();
    drop_in(&data, "mixed", &manifest.replace("range", "mixed"), &mixed);
    let sentence = loaded(&client, "mixed", "mixed").await.unwrap_err();
    assert!(sentence.contains("circuit `mixed`") && sentence.contains("circuit.zkey"), "{sentence}");
    drop_in(&data, "small", &format!("{}[limits]\nconstraints = 3\n", manifest.replace("range", "small")), &files());
    let sentence = loaded(&client, "small", "small").await.unwrap_err();
    assert!(sentence.contains("constraints; the limit `constraints` is 3"), "{sentence}");
    std::fs::remove_dir_all(data.join("circuits/range")).unwrap();
    while client.circuit("range").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let host = start_in(host.stop().await, "").await;
    assert_eq!(std::fs::read_dir(data.join("images")).unwrap().count(), 0, "no circuit has that key any more");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_with_several_keys_prove_by_the_first_unless_another_is_named() {
    let host = start("").await;
    let client = host.client();
    let digest = async |bytes: Vec<u8>| client.upload(bytes.into()).await.unwrap().digest;
    let [r1cs, wasm, zkey, other] = [
        digest(bytes("circuit.r1cs")).await,
        digest(bytes("circuit.wasm")).await,
        digest(bytes("circuit.zkey")).await,
        digest(other_zkey()).await,
    ];
    let manifest = format!(
        "name = \"range\"\ncircom = {{ r1cs = {{ blake3 = \"{r1cs}\" }}, wasm = {{ blake3 = \"{wasm}\" }} }}\n\
         [[keys]]\nname = \"2026\"\nblake3 = \"{zkey}\"\n[[keys]]\nname = \"2025\"\nblake3 = \"{other}\"\n"
    );
    let first = client.load(&manifest).await.unwrap();
    assert_eq!((first.key.as_str(), client.circuits().await.unwrap().circuits.len()), ("2026", 2));
    let second = client.circuit("range:2025").await.unwrap();
    assert_eq!((&first.component, &first.shape), (&second.component, &second.shape));
    assert_ne!(first.digest, second.digest);
    assert_eq!(client.circuit("range").await.unwrap().digest, first.digest);
    assert_eq!(code(client.circuit("range:2024").await), "no-circuit");
    check_proves(&client, "range", &["range:2025"]).await;
    check_proves(&client, "range:2025", &["range:2026"]).await;
    check_proves(&client, &second.digest, &[&first.digest]).await;
    // A pin makes the name stand for the other key, and all of it is there after a restart.
    client.circuit_action("range:2025", "pin").await.unwrap();
    let host = start_in(host.stop().await, "").await;
    let client = host.client();
    check_proves(&client, "range", &["range:2026"]).await;
    client.unload("range:2026").await.unwrap();
    assert!(client.circuits().await.unwrap().circuits.is_empty(), "a manifest is unloaded as a whole");
    assert_eq!(std::fs::read_dir(host.folder.path().join("data/blobs")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(host.folder.path().join("data/images")).unwrap().count(), 0);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_has_several_keys_too_and_all_have_to_be_its_own() {
    let host = start("[circuits]\nscan_seconds = 1").await;
    let (client, data) = (host.client(), host.folder.path().join("data"));
    let manifest = "name = \"output\"\ncomponent = { file = \"c.wasm\" }\n\
                    [[keys]]\nname = \"a\"\nfile = \"a.zkimage\"\n[[keys]]\nname = \"b\"\nfile = \"b\"\n";
    let files = |second| [("c.wasm", component()), ("a.zkimage", key()), ("b", second)];
    drop_in(&data, "foreign", &manifest.replace("output", "foreign"), &files(bytes("circuit.zkey")));
    let sentence = loaded(&client, "foreign", "foreign").await.unwrap_err();
    assert!(sentence.contains("circuit `foreign`: key") && sentence.contains("/b"), "{sentence}");
    drop_in(&data, "output", manifest, &files(key()));
    let circuit = loaded(&client, "output:b", "output").await.unwrap();
    assert_eq!((circuit.kind.as_str(), circuit.key.as_str()), ("component", "b"));
    let job = client.submit(&submission("output:b"), input().into()).await.unwrap();
    assert_eq!((job.circuit, job.state), (circuit.digest, JobState::Proved));
    let listed: Value = serde_json::to_value(client.circuits().await.unwrap()).unwrap();
    assert_eq!(listed["circuits"].as_array().unwrap().len(), 2);
    host.stop().await;
}
