//! Jobs end to end, over real sockets: accepted, proved, rejoined, cancelled, refused, restarted.

mod common;

use common::{code, input, start, start_in, upload};
use std::time::Duration;
use zkhost_client::types::{JobPriority, JobState, VerifyRequest};
use zkhost_client::{Client, Submission};

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
