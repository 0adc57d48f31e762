//! Jobs end to end, over real sockets: accepted, proved, rejoined, cancelled, refused, restarted.

mod common;

use common::{code, guest, input, manifest, start, start_in, upload};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use zkhost_client::types::{JobPriority, JobState, VerifyRequest};
use zkhost_client::{Client, Submission};
use zkhost_groth16::ProvingKey;
use zkhost_groth16::formats::{Subgroup, Trailer, known_params, read_params};
use zkhost_groth16::image::write_image;
use zkhost_groth16::key::Phase2;
use zkhost_runtime::{Compiler, Limits, Runtime};

fn submission(key: &str) -> Submission {
    Submission { circuit: "sapling-output".into(), key: Some(key.into()), ..Submission::default() }
}

/// A job that was proved has a proof that verifies, for its own public inputs alone.
async fn check_proved(client: &Client, id: &str) {
    let job = client.wait(id).await.unwrap();
    assert_eq!(job.state, JobState::Proved, "{job:?}");
    assert!(job.stages_ms["engine"] > 0.0 && job.stages_ms["synthesis"] > 0.0);
    let result = client.result(id).await.unwrap();
    let mut question =
        VerifyRequest { circuit: result.circuit.clone(), proof: result.proof.clone(), publics: result.publics.clone() };
    assert!(client.verify(&question).await.unwrap().valid);
    question.publics[0][0] = "0x1".into();
    assert!(!client.verify(&question).await.unwrap().valid);
}

#[tokio::test(flavor = "multi_thread")]
async fn sapling_output_is_uploaded_to_a_running_host_and_proved() {
    let host = start("[listen]\ntcp = \"127.0.0.1:0\"").await;
    let client = host.tcp();
    upload(&client).await;
    let wait = Some(Duration::from_secs(60));
    let metadata = Some(serde_json::json!({"order": "Zoë"}));
    let job = client.submit(&Submission { wait, metadata, ..submission("a") }, input().into()).await.unwrap();
    assert_eq!(job.metadata.as_ref().unwrap()["order"], "Zoë");
    check_proved(&client, &job.id).await;
    // By the other socket as well, and not twice.
    let again = host.client().submit(&submission("a"), input().into()).await.unwrap();
    assert_eq!((again.id, again.state), (job.id, JobState::Proved));
    assert_eq!(client.jobs(&[]).await.unwrap().jobs.len(), 1);
    assert_eq!(client.jobs(&[("state", "failed".into())]).await.unwrap().jobs.len(), 0);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_is_proved_after_a_restart_and_what_was_proved_is_kept() {
    let host = start("").await;
    let client = host.client();
    upload(&client).await;
    let mut ids = vec![];
    for key in 0..6 {
        ids.push(client.submit(&submission(&key.to_string()), input().into()).await.unwrap().id);
    }
    check_proved(&client, &ids[0]).await;
    let host = start_in(host.leave().await, "").await;
    for id in &ids {
        check_proved(&host.client(), id).await;
    }
    host.stop().await;
}

/// Sapling Spend under Zcash's own key, a file of 48 MB that is streamed to disk.
#[tokio::test(flavor = "multi_thread")]
async fn sapling_spend_is_uploaded_with_its_ceremony_key_and_proved() {
    let component = std::fs::read(guest("target/components/sapling-spend.wasm")).unwrap();
    let params = std::fs::read(guest("../build/sapling/sapling-spend.params")).unwrap();
    let pinned = known_params(params.len() as u64).unwrap().sha256;
    let params = read_params(&params, Subgroup::CheckedBefore, Trailer::Pinned(pinned)).unwrap();
    let runtime = Runtime::new(Compiler::InProcess, None).unwrap();
    let circuit = runtime.load("sapling-spend", &component, Limits::default()).unwrap();
    let shape = circuit.record_shape(b"", false).unwrap();
    let mut image = vec![];
    write_image(&ProvingKey::import(params, &shape, Phase2::Required).unwrap(), &mut image).unwrap();
    let host = start("").await;
    let client = host.client();
    let files = [client.upload(component.into()).await.unwrap(), client.upload(image.into()).await.unwrap()];
    client.load(&manifest("sapling-spend", &files[0].digest, &files[1].digest)).await.unwrap();
    let submission = Submission { circuit: "sapling-spend".into(), ..submission("spend") };
    let input = std::fs::read(guest("sapling-spend/example-input.json")).unwrap();
    let job = client.submit(&submission, input.into()).await.unwrap();
    check_proved(&client, &job.id).await;
    host.stop().await;
}

/// An input of several sealed pieces: blanks after its JSON are allowed.
fn large_input() -> Vec<u8> {
    let mut large = input();
    large.resize(300_000, b' ');
    large
}

/// Names and bytes of the files of large inputs that wait.
fn waiting_files(data: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(data.join("inputs")).unwrap();
    entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn large_inputs_are_sealed_on_disk_while_they_come_and_survive_a_restart() {
    let host = start("[jobs]\nrunning_max = 1\nrunning_urgent_max = 0").await;
    upload(&host.client()).await;
    let mut ids = vec![];
    for key in 0..4 {
        ids.push(host.client().submit(&submission(&key.to_string()), large_input().into()).await.unwrap().id);
    }
    assert_eq!(code(host.client().submit(&submission("3"), input().into()).await), "other-body");
    let again = host.client().submit(&submission("3"), large_input().into()).await.unwrap();
    assert_eq!(again.id, ids[3]);
    let folder = host.leave().await;
    let files = waiting_files(&folder.path().join("data"));
    assert!((1..=4).contains(&files.len()), "one for each that waits, none for a retry: {}", files.len());
    let secret = &input()[40..80];
    for file in files {
        assert!(file.len() > 300_000 && !file.windows(40).any(|bytes| bytes == secret));
    }
    // What nobody waits for is removed, such as what was half received when a host died.
    std::fs::write(folder.path().join("data/inputs/half"), b"received").unwrap();
    let host = start_in(folder, "").await;
    for id in &ids {
        check_proved(&host.client(), id).await;
    }
    assert_eq!(waiting_files(&host.folder.path().join("data")).len(), 0);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_inputs_that_break_off_or_pass_the_limit_leave_nothing() {
    let host = start("[jobs]\ninputs_disk_bytes_max = 500_000").await;
    upload(&host.client()).await;
    let head = "POST /v1/jobs?circuit=sapling-output HTTP/1.1\r\nhost: localhost\r\ncontent-length: 300000\r\n\r\n";
    let mut stream = tokio::net::UnixStream::connect(host.folder.path().join("data/zkhost.sock")).await.unwrap();
    stream.write_all(&[head.as_bytes(), &large_input()[..200_000]].concat()).await.unwrap();
    let began = Instant::now();
    while waiting_files(&host.folder.path().join("data")).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stream);
    let mut larger = large_input();
    larger.resize(600_000, b' ');
    assert_eq!(code(host.client().submit(&submission("larger"), larger.into()).await), "inputs-full");
    while !waiting_files(&host.folder.path().join("data")).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let job = host.client().submit(&submission("large"), large_input().into()).await.unwrap();
    check_proved(&host.client(), &job.id).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_store_of_the_previous_schema_are_proved_by_this_version() {
    let host = start("[jobs]\nrunning_max = 1\nrunning_urgent_max = 0").await;
    upload(&host.client()).await;
    let mut ids = vec![];
    for key in 0..3 {
        ids.push(host.client().submit(&submission(&key.to_string()), input().into()).await.unwrap().id);
    }
    check_proved(&host.client(), &ids[0]).await;
    let before = host.client().result(&ids[0]).await.unwrap();
    let folder = host.leave().await;
    let store = rusqlite::Connection::open(folder.path().join("data/jobs.sqlite")).unwrap();
    let version = zkhost_service::store::VERSION - 1;
    store.execute_batch(&format!("ALTER TABLE inputs DROP COLUMN file; PRAGMA user_version = {version}")).unwrap();
    drop(store);
    std::fs::remove_dir(folder.path().join("data/inputs")).unwrap();
    let host = start_in(folder, "").await;
    assert_eq!(host.client().result(&ids[0]).await.unwrap(), before);
    for id in &ids {
        check_proved(&host.client(), id).await;
    }
    host.stop().await;
}

/// The engine remembers jobs that ended, and so does the store, longer or shorter: what the store forgot is new.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_comes_again_after_its_job_was_forgotten_proves_its_own_input() {
    let host = start("[jobs]\nkeep_hours = 0").await;
    upload(&host.client()).await;
    let prove = async |input: Vec<u8>| {
        let job = host.client().submit(&submission("again"), input.into()).await.unwrap();
        check_proved(&host.client(), &job.id).await;
        (job.id.clone(), host.client().result(&job.id).await.unwrap().publics)
    };
    let (first_id, first) = prove(input()).await;
    // Its end has to lie in the past.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let forgetting = host.server.host().clone();
    assert_eq!(tokio::task::spawn_blocking(move || forgetting.forget()).await.unwrap().unwrap(), 1);
    let other = String::from_utf8(input()).unwrap().replace("1234567890", "1234567891");
    let (second_id, second) = prove(other.into_bytes()).await;
    assert_eq!(first_id, second_id, "a key has one id");
    assert_ne!(first, second, "the public inputs are those of the second input");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_loses_inputs_that_are_kept_in_memory_and_says_so() {
    let config = "[jobs]\ninputs = \"memory\"\nrunning_max = 1\nrunning_urgent_max = 0";
    let host = start(config).await;
    upload(&host.client()).await;
    let mut ids = vec![];
    for key in 0..3 {
        ids.push(host.client().submit(&submission(&key.to_string()), input().into()).await.unwrap().id);
    }
    let host = start_in(host.leave().await, config).await;
    let job = host.client().job(&ids[2]).await.unwrap();
    assert_eq!((job.state, job.failure.unwrap().code.as_str()), (JobState::Failed, "input-lost"));
    host.stop().await;
}

/// zeko issue 231: a client that went away left its job in the way of its retry.
#[tokio::test(flavor = "multi_thread")]
async fn zeko_i231_a_client_that_is_gone_rejoins_its_job() {
    let host = start("").await;
    upload(&host.client()).await;
    let submit = || {
        let (client, wait) = (host.client(), Some(Duration::from_secs(60)));
        async move { client.submit(&Submission { wait, ..submission("gone") }, input().into()).await }
    };
    let gone = tokio::time::timeout(Duration::from_millis(30), submit()).await;
    let job = submit().await.unwrap();
    check_proved(&host.client(), &job.id).await;
    assert_eq!(host.client().jobs(&[]).await.unwrap().jobs.len(), 1, "{gone:?}");
    host.stop().await;
}

/// gnark pull request 57: cancel, list and forget were asked for.
#[tokio::test(flavor = "multi_thread")]
async fn gnark_p57_waiting_and_running_jobs_are_cancelled_and_their_key_is_spent() {
    let host = start("[jobs]\nrunning_max = 1\nrunning_urgent_max = 0").await;
    let client = host.client();
    upload(&client).await;
    let mut ids = vec![];
    for key in 0..4 {
        ids.push(client.submit(&submission(&key.to_string()), input().into()).await.unwrap().id);
    }
    assert_eq!(client.cancel(&ids[3]).await.unwrap().state, JobState::Cancelled);
    client.cancel(&ids[0]).await.unwrap();
    let ended = client.wait(&ids[0]).await.unwrap().state;
    assert!(matches!(ended, JobState::Cancelled | JobState::Proved));
    check_proved(&client, &ids[1]).await;
    assert_eq!(client.submit(&submission("3"), input().into()).await.unwrap().state, JobState::Cancelled);
    assert_eq!(code(client.result(&ids[3]).await), "no-proof");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_get_their_code() {
    let host = start("[jobs]\ninput_bytes_max = 10000").await;
    let client = host.client();
    let submit = async |submission: Submission, input: Vec<u8>| client.submit(&submission, input.into()).await;
    assert_eq!(code(submit(submission("a"), input()).await), "no-circuit");
    upload(&client).await;
    assert_eq!(code(submit(submission(&"k".repeat(300)), input()).await), "bad-key");
    assert_eq!(code(submit(submission("long"), vec![b' '; 10_001]).await), "too-large");
    let publics = Some(vec![vec!["0x1".to_owned()]]);
    assert_eq!(code(submit(Submission { publics, ..submission("a") }, input()).await), "bad-publics");
    let first = submit(submission("same"), input()).await.unwrap();
    assert_eq!(code(submit(submission("same"), b"{}".to_vec()).await), "other-body");
    let failed = async |submission: Submission, input: Vec<u8>| {
        let job = client.submit(&submission, input.into()).await.unwrap();
        client.wait(&job.id).await.unwrap().failure.unwrap()
    };
    assert_eq!(failed(submission("malformed"), b"{}".to_vec()).await.code, "bad-input");
    let deadline = Some(Duration::from_millis(1));
    assert_eq!(failed(Submission { deadline, ..submission("late") }, input()).await.code, "deadline");
    check_proved(&client, &first.id).await;
    let mut publics = client.result(&first.id).await.unwrap().publics;
    let pinned =
        |publics: &Vec<Vec<String>>| Submission { publics: Some(publics.clone()), ..submission(&publics[0][1]) };
    let job = submit(pinned(&publics), input()).await.unwrap();
    check_proved(&client, &job.id).await;
    publics[0][1] = "0x5".into();
    let failure = failed(pinned(&publics), input()).await;
    assert_eq!(failure.code, "publics-differ");
    assert!(failure.message.contains("public input 1 of partition 0"), "{failure:?}");
    assert_eq!(code(client.job("nothing").await), "no-job");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_clients_at_once_are_each_served() {
    let host = start("[listen]\nconnections_max = 200").await;
    upload(&host.client()).await;
    let clients: Vec<_> = (0..500)
        .map(|key| {
            let client = host.client();
            tokio::spawn(async move {
                let priority = if key % 50 == 0 { JobPriority::Urgent } else { JobPriority::Background };
                let submission = Submission { priority, ..submission(&(key % 50).to_string()) };
                client.submit(&submission, input().into()).await.map(|job| job.id)
            })
        })
        .collect();
    let mut ids = std::collections::BTreeSet::new();
    for client in clients {
        ids.extend(match client.await.unwrap() {
            Ok(id) => Some(id),
            // A second submission of another priority is the same job, so nothing is refused.
            Err(error) => panic!("{error}"),
        });
    }
    assert_eq!(ids.len(), 50);
    for id in ids.iter().take(3) {
        check_proved(&host.client(), id).await;
    }
    host.leave().await;
}
