//! Circuits come and go while the host runs: folders, uploads, versions, refusals.

mod common;

use common::{code, component, input, key, manifest, start, start_in, upload};
use std::path::Path;
use std::time::{Duration, Instant};
use zkhost_client::types::{CircuitList, JobState};
use zkhost_client::{Client, Submission};

/// Put a circuit into the watched folder, whole.
fn drop_in(data: &Path, name: &str, manifest: &str, key: &[u8]) {
    let (draft, folder) = (data.join("draft"), data.join("circuits").join(name));
    std::fs::create_dir_all(&draft).unwrap();
    std::fs::write(draft.join("c.wasm"), component()).unwrap();
    std::fs::write(draft.join("k.zkimage"), key).unwrap();
    std::fs::write(draft.join("manifest.toml"), manifest).unwrap();
    std::fs::create_dir_all(data.join("circuits")).unwrap();
    std::fs::rename(draft, folder).unwrap();
}

fn in_folder(name: &str) -> String {
    format!("name = \"{name}\"\ncomponent = {{ file = \"c.wasm\" }}\nkey = {{ file = \"k.zkimage\" }}\n")
}

/// Wait until the list of circuits is as a predicate wants it.
async fn wait_for(client: &Client, wanted: impl Fn(&CircuitList) -> bool) -> CircuitList {
    let began = Instant::now();
    loop {
        let list = client.circuits().await.unwrap();
        if wanted(&list) {
            return list;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{list:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn submission(circuit: &str) -> Submission {
    Submission { circuit: circuit.into(), wait: Some(Duration::from_secs(60)), ..Submission::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_loaded_refused_and_unloaded_as_they_come_and_go() {
    let host = start("[circuits]\nscan_seconds = 1").await;
    let (client, data) = (host.client(), host.folder.path().join("data"));
    drop_in(&data, "good", &in_folder("out"), &key());
    let mut damaged = key();
    damaged[5000] ^= 1;
    drop_in(&data, "damaged", &in_folder("damaged"), &damaged);
    drop_in(&data, "empty", &in_folder("empty"), b"");
    drop_in(&data, "misspelt", &format!("{}memory = 3", in_folder("misspelt")), &key());
    let digest = format!(
        "name = \"d\"\ncomponent = {{ file = \"c.wasm\", blake3 = \"{}\" }}\nkey = {{ file = \"k.zkimage\" }}",
        "0".repeat(64)
    );
    drop_in(&data, "digest", &digest, &key());
    let list = wait_for(&client, |list| list.circuits.len() == 1 && list.refused.len() == 4).await;
    for (folder, part) in [
        ("damaged", "k.zkimage"),
        ("empty", "a key image was expected"),
        ("misspelt", "unknown field `memory`"),
        ("digest", "replace the file or the digest"),
    ] {
        let sentence = &list.refused[&data.join("circuits").join(folder).display().to_string()];
        assert!(sentence.contains(part), "{folder}: {sentence}");
    }
    assert_eq!(client.submit(&submission("out"), input().into()).await.unwrap().state, JobState::Proved);
    assert_eq!(code(client.unload("out").await), "circuit-watched");
    // A folder that breaks keeps its circuit; one that is mended holds another one, and the old one is gone.
    let (first, text) = (list.circuits[0].digest.clone(), data.join("circuits/good/manifest.toml"));
    std::fs::write(&text, format!("{}memory = 3", in_folder("out"))).unwrap();
    let list = wait_for(&client, |list| list.refused.len() == 5).await;
    assert_eq!((list.circuits.len(), &list.circuits[0].digest), (1, &first));
    std::fs::write(&text, format!("{}[limits]\nassign_time = 30\n", in_folder("out"))).unwrap();
    let list = wait_for(&client, |list| list.refused.len() == 4).await;
    assert_eq!((list.circuits.len(), list.circuits[0].limits["assign_time"]), (1, 30));
    assert_ne!(list.circuits[0].digest, first);
    std::fs::remove_dir_all(data.join("circuits/good")).unwrap();
    wait_for(&client, |list| list.circuits.is_empty()).await;
    assert_eq!(code(client.submit(&submission("out"), input().into()).await), "no-circuit");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circuit_that_two_folders_and_an_upload_hold_stays_until_the_last_is_gone() {
    let host = start("[circuits]\nscan_seconds = 1").await;
    let (client, data) = (host.client(), host.folder.path().join("data"));
    for folder in ["a", "b"] {
        drop_in(&data, folder, &in_folder("out"), &key());
        wait_for(&client, |list| list.circuits.len() == 1).await;
    }
    let files = [client.upload(component().into()).await.unwrap(), client.upload(key().into()).await.unwrap()];
    let loaded = client.load(&manifest("out", &files[0].digest, &files[1].digest)).await.unwrap();
    let digest = loaded.digest;
    // By the file that the circuit was loaded from, or by the other one that then takes its place.
    for gone in ["a", "b"] {
        std::fs::remove_dir_all(data.join("circuits").join(gone)).unwrap();
        tokio::time::sleep(Duration::from_millis(2500)).await;
        let list = wait_for(&client, |list| list.circuits.len() == 1).await;
        assert_eq!(list.circuits[0].digest, digest);
        client.circuit_action(&digest, "evict").await.unwrap();
        assert_eq!(client.submit(&submission(&digest), input().into()).await.unwrap().state, JobState::Proved);
    }
    client.unload(&digest).await.unwrap();
    assert!(client.circuits().await.unwrap().circuits.is_empty());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_stand_side_by_side_and_a_pin_chooses_and_survives_a_restart() {
    let host = start("").await;
    let client = host.client();
    let first = upload(&client).await;
    let files = [client.upload(component().into()).await.unwrap(), client.upload(key().into()).await.unwrap()];
    let second =
        format!("{}[limits]\nassign_time = 30\n", manifest("sapling-output", &files[0].digest, &files[1].digest));
    let second = client.load(&second).await.unwrap();
    assert_eq!(second.limits["assign_time"], 30);
    assert_eq!(code(client.submit(&submission("sapling-output"), input().into()).await), "ambiguous-circuit");
    assert!(client.circuit_action(&second.digest[..12], "pin").await.unwrap().pinned);
    let job = client.submit(&submission("sapling-output"), input().into()).await.unwrap();
    assert_eq!((job.circuit, job.state), (second.digest.clone(), JobState::Proved));
    let job = client.submit(&submission(&first), input().into()).await.unwrap();
    assert_eq!((job.circuit, job.state), (first.clone(), JobState::Proved));
    assert!(client.circuit_action(&first, "preload").await.unwrap().resident);
    assert!(!client.circuit_action(&first, "evict").await.unwrap().resident);
    let host = start_in(host.stop().await, "").await;
    assert_eq!(host.client().circuit("sapling-output").await.unwrap().digest, second.digest);
    host.client().unload(&second.digest).await.unwrap();
    let job = host.client().submit(&submission(&first), input().into()).await.unwrap();
    assert_eq!(job.state, JobState::Proved, "files that another circuit names stay");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_wait_for_an_unloaded_circuit_are_proved_when_it_is_back() {
    let host = start("[jobs]\nrunning_max = 1\nrunning_urgent_max = 0").await;
    let client = host.client();
    let digest = upload(&client).await;
    let submission = Submission { wait: None, ..submission(&digest) };
    let mut ids = vec![];
    for _ in 0..4 {
        ids.push(client.submit(&submission, input().into()).await.unwrap().id);
    }
    client.unload(&digest).await.unwrap();
    let began = Instant::now();
    while client.job(&ids[3]).await.unwrap().waits_for.is_none() {
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(upload(&client).await, digest);
    for id in ids {
        assert_eq!(client.wait(&id).await.unwrap().state, JobState::Proved);
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_circuits_are_loaded_and_unloaded_while_jobs_run() {
    let host = start("").await;
    let client = host.client();
    let proved = upload(&client).await;
    let (component, key) =
        (client.upload(component().into()).await.unwrap(), client.upload(key().into()).await.unwrap());
    let load = {
        let (client, submission) = (client.clone(), submission(&proved));
        tokio::spawn(async move {
            for _ in 0..8 {
                let job = client.submit(&submission, input().into()).await.unwrap();
                assert_eq!(job.state, JobState::Proved);
            }
        })
    };
    let mut digests = vec![];
    for index in 0..200 {
        let manifest = manifest(&format!("copy-{index}"), &component.digest, &key.digest);
        digests.push(client.load(&manifest).await.unwrap().digest);
        if index % 2 == 1 {
            client.unload(&digests.swap_remove(index / 2)).await.unwrap();
        }
    }
    assert_eq!(client.circuits().await.unwrap().circuits.len(), 101);
    load.await.unwrap();
    for digest in digests {
        client.unload(&digest).await.unwrap();
    }
    assert_eq!(client.circuits().await.unwrap().circuits.len(), 1);
    assert_eq!(client.submit(&submission(&proved), input().into()).await.unwrap().state, JobState::Proved);
    host.stop().await;
}
