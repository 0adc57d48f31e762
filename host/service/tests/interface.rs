//! The interface itself: its description, hostile requests, tokens, TLS, slow clients.

mod common;

use common::raw::{Answer, exchange, request};
use common::{Running, code, start, start_in, upload};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use zkhost_client::{Address, Client};
use zkhost_engine::timeline::Category;
use zkhost_service::access::new_token;

fn description() -> Value {
    serde_json::from_str(zkhost_service::api::OPENAPI).unwrap()
}

/// What the host answers to a request by the Unix socket.
async fn ask(host: &Running, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
    let socket = host.folder.path().join("data/zkhost.sock");
    exchange(socket, &request(method, path, headers, body)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_and_the_router_have_the_same_paths_and_methods() {
    let host = start("").await;
    for (path, methods) in description()["paths"].as_object().unwrap() {
        let real = path.replace("{id}", "x").replace("{circuit}", "x").replace("{action}", "pin");
        for method in ["get", "post", "delete", "put", "patch"] {
            let answer = ask(&host, &method.to_uppercase(), &real, "", b"").await;
            let known = methods.get(method).is_some();
            assert_eq!(answer.status != 405, known, "{method} {path}: {}", answer.status);
            assert!(answer.status != 404 || answer.code() != "no-route", "{method} {path}");
        }
    }
    let source = include_str!("../src/api/mod.rs");
    let routes = source.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")?.split_once('"'));
    let routes: Vec<_> = routes.map(|(path, _)| path).collect();
    assert_eq!(routes.len(), description()["paths"].as_object().unwrap().len());
    routes.iter().for_each(|path| assert!(description()["paths"].get(path).is_some(), "{path}"));
    assert_eq!(ask(&host, "GET", "/nothing", "", b"").await.code(), "no-route");
    host.stop().await;
}

/// Every answer of a kind that the description promises, whatever is asked.
fn check_promised(operation: &Value, answer: &Answer, asked: &str) {
    let responses = operation["responses"].as_object().unwrap();
    if responses.contains_key(&answer.status.to_string()) {
        return;
    }
    assert!((400..500).contains(&answer.status), "{asked}: {} {}", answer.status, answer.head);
    answer.code();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_made_from_the_description_with_any_values_are_answered_as_it_says() {
    let host = start("[listen]\nbody_idle_seconds = 1").await;
    upload(&host.client()).await;
    let odd = [
        "",
        "0",
        "-1",
        "sapling-output",
        "99999999999999999999",
        "%00",
        "%ff",
        "..%2f..",
        "a%20b",
        "%F0%9F%98%80",
        "json",
    ];
    let bodies: [&[u8]; 6] = [
        b"",
        b"{}",
        b"[",
        b"\xff\xfe",
        b"{\"circuit\":\"sapling-output\",\"proof\":\"00\",\"publics\":[[]]}",
        b"name = 1",
    ];
    let mut turn = 0usize;
    for (path, methods) in description()["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for value in odd {
                let mut real = path.clone();
                let (mut query, mut headers) = (vec![], String::new());
                for parameter in operation["parameters"].as_array().unwrap() {
                    let name = parameter["name"].as_str().unwrap();
                    // Each at its turn left out or another value than its neighbours.
                    turn = turn.wrapping_mul(31).wrapping_add(7);
                    let other = odd[turn % odd.len()];
                    let chosen = if turn.is_multiple_of(3) { other } else { value };
                    match parameter["in"].as_str().unwrap() {
                        "path" => {
                            real = real.replace(&format!("{{{name}}}"), if chosen.is_empty() { "x" } else { chosen })
                        }
                        "query" if name != "wait" => query.push(format!("{name}={chosen}")),
                        "header" => headers.push_str(&format!("{name}: {chosen}\r\n")),
                        _ => {}
                    }
                }
                let real = format!("{real}?{}", query.join("&"));
                let body = bodies[turn % bodies.len()];
                let answer = ask(&host, &method.to_uppercase(), &real, &headers, body).await;
                check_promised(operation, &answer, &format!("{method} {real}"));
            }
        }
    }
    // One of the requests unloads the circuit, as it should.
    assert!(host.client().health().await.unwrap().ready);
    host.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_and_oversized_heads_are_refused_and_the_host_goes_on() {
    let host = start("").await;
    let socket = || host.folder.path().join("data/zkhost.sock");
    let huge = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "a".repeat(200_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5000));
    for bytes in [
        huge.as_bytes(),
        many.as_bytes(),
        b"\0\0\0\0\r\n\r\n",
        b"GET  HTTP/9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        if let Some(answer) = exchange(socket(), bytes).await {
            assert!((400..500).contains(&answer.status), "{}", answer.head);
        }
    }
    assert!(host.client().health().await.is_ok());
    host.stop().await;
}

/// How long the host keeps a connection on which this was sent and nothing follows.
async fn check_slow(host: &Running, sent: &str) {
    let mut stream = UnixStream::connect(host.folder.path().join("data/zkhost.sock")).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let began = Instant::now();
    let mut answer = vec![];
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "kept for {:?} after {sent:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_let_go_of_and_others_are_served_meanwhile() {
    let host = start("[listen]\nheader_seconds = 1\nbody_idle_seconds = 1\nconnections_max = 20").await;
    upload(&host.client()).await;
    check_slow(&host, "GET / HTTP/1.1\r\nhost: loca").await;
    check_slow(&host, "").await;
    let post = "POST /v1/jobs?circuit=sapling-output HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{";
    check_slow(&host, post).await;
    let mut slow = vec![];
    for _ in 0..20 {
        slow.push(UnixStream::connect(host.folder.path().join("data/zkhost.sock")).await.unwrap());
    }
    assert!(host.client().health().await.is_ok(), "places become free");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_expired_and_weak_tokens_are_refused() {
    let entry = |name: &str, role: &str, hash: &str, more: &str| {
        format!("[[tokens]]\nname = \"{name}\"\nrole = \"{role}\"\nblake3 = \"{hash}\"\n{more}\n")
    };
    let [(submit, a), (other, b), (operate, c), (old, d)] = std::array::from_fn(|_| new_token().unwrap());
    let tokens = [
        entry("alice", "submit", &a, "jobs_per_minute = 2\ninput_bytes_max = 5000"),
        entry("bob", "submit", &b, ""),
        entry("root", "operate", &c, ""),
        entry("past", "operate", &d, "expires = 2020-01-01"),
    ];
    let host = start(&format!("[listen]\ntcp = \"127.0.0.1:0\"\n{}", tokens.concat())).await;
    assert_eq!(code(host.tcp().circuits().await), "no-token");
    assert_eq!(code(host.tcp().with_token("zkh_0").circuits().await), "no-token");
    assert_eq!(code(host.tcp().with_token(&old).circuits().await), "token-expired");
    let (alice, bob, root) =
        (host.tcp().with_token(&submit), host.tcp().with_token(&other), host.tcp().with_token(&operate));
    assert_eq!(code(alice.upload(b"x".as_slice().into()).await), "role");
    upload(&root).await;
    let submission = zkhost_client::Submission { circuit: "sapling-output".into(), ..Default::default() };
    assert_eq!(code(alice.submit(&submission, vec![b' '; 5001].into()).await), "too-large");
    let job = alice.submit(&submission, common::input().into()).await.unwrap();
    assert_eq!(code(alice.submit(&submission, common::input().into()).await), "rate");
    assert_eq!((job.owner.as_str(), code(bob.job(&job.id).await).as_str()), ("alice", "no-job"));
    assert_eq!(code(bob.cancel(&job.id).await), "no-job");
    assert_eq!((bob.jobs(&[]).await.unwrap().jobs.len(), root.jobs(&[]).await.unwrap().jobs.len()), (0, 1));
    assert!(root.wait(&job.id).await.is_ok() && alice.result(&job.id).await.is_ok());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tokens_pages_of_other_sites_are_refused() {
    let host = start("[listen]\ntcp = \"127.0.0.1:0\"").await;
    let address = host.server.tcp().unwrap();
    for (headers, status) in [
        (format!("host: {address}\r\n"), 200),
        (format!("host: localhost:{}\r\norigin: http://localhost:{}\r\n", address.port(), address.port()), 200),
        ("host: attacker.example\r\n".into(), 403),
        (format!("host: {address}\r\norigin: https://attacker.example\r\n"), 403),
        (format!("host: {address}\r\norigin: null\r\n"), 403),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET /v1/circuits HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers}: {answer}");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_serves_those_who_trust_its_certificate_and_nobody_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = format!("tls = {{ certificate = {certificate:?}, key = {key:?} }}");
    let host = start_in(folder, &format!("[listen]\ntcp = \"127.0.0.1:0\"\n{tls}")).await;
    let port = host.server.tcp().unwrap().port();
    let secure = Client::new(Address::Https(format!("localhost:{port}")));
    let trusting = secure.clone().with_authority(&certificate).unwrap();
    assert!(trusting.circuits().await.is_ok());
    assert!(host.tcp().circuits().await.is_err(), "plain HTTP is not served");
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = host.folder.path().join("other.pem");
    std::fs::write(&other, stranger.cert.pem()).unwrap();
    assert!(secure.with_authority(&other).unwrap().circuits().await.is_err());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_and_the_dashboard_tell_what_happened() {
    let host = start("").await;
    upload(&host.client()).await;
    let wait = Some(Duration::from_secs(60));
    let submission = zkhost_client::Submission { circuit: "sapling-output".into(), wait, ..Default::default() };
    host.client().submit(&submission, common::input().into()).await.unwrap();
    assert_eq!(ask(&host, "GET", "/v1/jobs/x", "", b"").await.code(), "no-job");
    let text = String::from_utf8(ask(&host, "GET", "/metrics", "", b"").await.body).unwrap();
    for line in [
        "zkhost_jobs_accepted_total 1",
        "zkhost_jobs_ended_total{kind=\"proved\"} 1",
        "zkhost_refusals_total{kind=\"no-job\"} 1",
        "zkhost_stage_seconds_count{kind=\"engine\"} 1",
        "zkhost_now{kind=\"circuits\"} 1",
        "zkhost_bytes{kind=\"pinned_limit\"} 268435456",
        "zkhost_bytes{kind=\"device_0_limit\"} 68719476736",
        "zkhost_slots{kind=\"device_0\"} 1",
        "zkhost_partitions{kind=\"proving\"} 0",
    ] {
        assert!(text.contains(line), "`{line}` is not in\n{text}");
    }
    let page = ask(&host, "GET", "/", "", b"").await;
    assert!(page.status == 200 && page.head.contains("default-src 'none'"));
    let overview: Value = serde_json::from_slice(&ask(&host, "GET", "/v1/overview", "", b"").await.body).unwrap();
    assert_eq!(overview["jobs"][0]["state"], "proved");
    assert!(!overview["spans"].as_array().unwrap().is_empty());
    let id = overview["jobs"][0]["id"].as_str().unwrap();
    let events = String::from_utf8(ask(&host, "GET", &format!("/v1/jobs/{id}/events"), "", b"").await.body).unwrap();
    assert!(events.contains("event: proved") && events.contains(id), "{events}");
    let trace = host.client().trace(id).await.unwrap();
    let trace = zkhost_engine::timeline::Timeline::read_trace(&trace).unwrap();
    for category in [Category::Synthesis, Category::Proving, Category::Verification] {
        assert!(trace.spans().any(|span| span.category == category), "{category:?} is not in the trace");
    }
    assert_eq!(code(host.client().trace("x").await), "no-job");
    for (format, bytes) in [("hex", 384), ("bytes", 192)] {
        assert_eq!(ask(&host, "GET", &format!("/v1/jobs/{id}/proof?format={format}"), "", b"").await.body.len(), bytes);
    }
    host.stop().await;
}
