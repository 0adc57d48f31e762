//! Circuits pulled from an OCI registry by digest: a registry over a real socket, which can also misbehave.

mod common;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use common::{Running, code, component, input, key, start, start_in};
use futures_util::stream;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zkhost_client::types::JobState;
use zkhost_client::{Client, Submission};

/// How the registry answers for files.
#[derive(Clone, Copy, Default, PartialEq)]
enum Manner {
    #[default]
    Honest,
    /// One bit of a file is another.
    WrongBytes,
    /// More bytes than its manifest says.
    Oversized,
    /// The connection ends halfway through.
    Truncated,
    /// An answer that is over too soon, and says so itself.
    Short,
    /// A piece, and then nothing.
    Slow,
    /// No answer at all.
    Silent,
    /// To another address of the same registry, as those do that keep files elsewhere.
    Redirects,
    /// To itself, for ever.
    Loops,
    /// To an address of another scheme.
    RedirectsAway,
    /// It wants a token, which anybody may have.
    Tokens,
    /// It wants one that nobody gets.
    Credentials,
}

#[derive(Default)]
struct Oci {
    files: Mutex<HashMap<String, Vec<u8>>>,
    manner: Mutex<Manner>,
    address: Mutex<Option<SocketAddr>>,
}

type Shared = State<Arc<Oci>>;

fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(digest(&SHA256, bytes)))
}

impl Oci {
    async fn serve() -> (Arc<Self>, String) {
        let oci = Arc::new(Self::default());
        let router = Router::new()
            .route("/v2/team/circuits/{kind}/{digest}", get(give))
            .route("/elsewhere/{digest}", get(elsewhere))
            .route("/token", get(token))
            .with_state(oci.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        *oci.address.lock().unwrap() = Some(address);
        tokio::spawn(async move { axum::serve(listener, router).await });
        (oci, address.to_string())
    }

    fn put(&self, bytes: Vec<u8>) -> Value {
        let (digest, size) = (sha256(&bytes), bytes.len());
        self.files.lock().unwrap().insert(digest.clone(), bytes);
        json!({ "mediaType": "application/octet-stream", "digest": digest, "size": size })
    }

    /// What `oras push` makes of files; each is a layer with its name as title. Returns the artifact's digest.
    fn push(&self, files: &[(&str, Vec<u8>)], change: impl Fn(&mut Value)) -> String {
        let mut layers = vec![];
        for (name, bytes) in files {
            let mut layer = self.put(bytes.clone());
            layer["annotations"] = json!({ "org.opencontainers.image.title": name });
            layers.push(layer);
        }
        let config = self.put(b"{}".to_vec());
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "artifactType": "application/vnd.unknown.artifact.v1",
            "config": config,
            "layers": layers,
        });
        change(&mut manifest);
        self.put(manifest.to_string().into_bytes())["digest"].as_str().unwrap().to_owned()
    }

    fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }
}

async fn give(State(oci): Shared, Path((kind, digest)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let manner = *oci.manner.lock().unwrap();
    let address = oci.address.lock().unwrap().unwrap();
    let Some(bytes) = oci.files.lock().unwrap().get(&digest).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let has_token = headers.get(header::AUTHORIZATION).is_some_and(|value| value == "Bearer for-anybody");
    if manner == Manner::Tokens && !has_token {
        let realm =
            format!("Bearer realm=\"http://{address}/token\",service=\"registry.example\",scope=\"what it says\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, realm)]).into_response();
    }
    if manner == Manner::Credentials {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic realm=\"x\"")]).into_response();
    }
    // Small files are given as they are, so that it comes to the large ones.
    if kind == "manifests" || bytes.len() < 10_000 {
        return bytes.into_response();
    }
    let half = bytes[..bytes.len() / 2].to_vec();
    match manner {
        Manner::WrongBytes => {
            let mut bytes = bytes;
            bytes[0] ^= 1;
            bytes.into_response()
        }
        Manner::Oversized => [bytes, vec![0; 1 << 20]].concat().into_response(),
        Manner::Truncated => ([(header::CONTENT_LENGTH, bytes.len())], Body::from_stream(once(half))).into_response(),
        Manner::Short => half.into_response(),
        Manner::Slow => {
            let stream = stream::unfold(Some(half), |piece| async {
                match piece {
                    Some(piece) => Some((Ok::<_, Infallible>(piece), None)),
                    None => std::future::pending().await,
                }
            });
            Body::from_stream(stream).into_response()
        }
        Manner::Silent => std::future::pending().await,
        Manner::Redirects => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, format!("/elsewhere/{digest}"))]).into_response()
        }
        Manner::Loops => {
            let own = format!("http://{address}/v2/team/circuits/{kind}/{digest}");
            (StatusCode::FOUND, [(header::LOCATION, own)]).into_response()
        }
        Manner::RedirectsAway => (StatusCode::FOUND, [(header::LOCATION, "file:///etc/passwd")]).into_response(),
        _ => bytes.into_response(),
    }
}

/// A piece, and an error a little later, which ends the connection.
fn once(piece: Vec<u8>) -> impl futures_util::Stream<Item = Result<Vec<u8>, std::io::Error>> {
    stream::unfold(Some(piece), |piece| async {
        match piece {
            Some(piece) => Some((Ok(piece), None)),
            None => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some((Err(std::io::Error::other("gone")), None))
            }
        }
    })
}

/// Where a registry keeps its files. It is not told the token.
async fn elsewhere(State(oci): Shared, Path(digest): Path<String>) -> Response {
    oci.files.lock().unwrap().get(&digest).cloned().map_or(StatusCode::NOT_FOUND.into_response(), Vec::into_response)
}

async fn token(uri: axum::http::Uri) -> Response {
    match uri.query() {
        Some("service=registry.example&scope=repository:team/circuits:pull") => {
            axum::Json(json!({ "token": "for-anybody" })).into_response()
        }
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

fn files(name: &str) -> Vec<(&'static str, Vec<u8>)> {
    let manifest = format!(
        "name = \"{name}\"\ncomponent = {{ file = \"output.wasm\" }}\n[[keys]]\nname = \"a\"\nfile = \"output.zkimage\"\n\
         [limits]\nassign_time = 30\n"
    );
    vec![("manifest.toml", manifest.into_bytes()), ("output.wasm", component()), ("output.zkimage", key())]
}

async fn start_allowing(registry: &str, more: &str) -> Running {
    let config = format!(
        "[circuits]\nregistries = [{{ host = \"{registry}\", plain_http = true }}]\npull_idle_seconds = 1\n{more}"
    );
    start(&config).await
}

fn blobs(host: &Running) -> usize {
    std::fs::read_dir(host.folder.path().join("data/blobs")).unwrap().count()
}

/// What a pull is refused with: the code and parts of the sentence. Nothing of it stays.
async fn check_refused(host: &Running, reference: &str, expected: &str, parts: &[&str]) {
    let before = blobs(host);
    match host.client().pull(reference).await {
        Err(zkhost_client::Error::Problem(problem)) => {
            assert_eq!(problem.code, expected, "{reference}: {problem:?}");
            parts
                .iter()
                .for_each(|part| assert!(problem.detail.contains(part), "`{part}` is not in: {}", problem.detail));
        }
        other => panic!("{reference}: a problem was expected: {other:?}"),
    }
    assert_eq!(host.client().circuits().await.unwrap().circuits.len(), 0, "{reference}");
    assert_eq!(blobs(host), before, "{reference}");
}

async fn check_proves(client: &Client, circuit: &str) {
    let submission =
        Submission { circuit: circuit.into(), wait: Some(Duration::from_secs(60)), ..Submission::default() };
    assert_eq!(client.submit(&submission, input().into()).await.unwrap().state, JobState::Proved);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circuit_is_pulled_by_digest_proves_and_is_there_after_a_restart() {
    let (oci, registry) = Oci::serve().await;
    let host = start_allowing(&registry, "").await;
    for manner in [Manner::Honest, Manner::Redirects, Manner::Tokens] {
        oci.behave(manner);
        let digest = oci.push(&files("output"), |_| {});
        let circuit = host.client().pull(&format!("{registry}/team/circuits@{digest}")).await.unwrap();
        assert_eq!((circuit.name.as_str(), circuit.key.as_str(), circuit.limits["assign_time"]), ("output", "a", 30));
        assert_eq!(blobs(&host), 2, "the component and the key, each once");
        if manner != Manner::Tokens {
            host.client().unload("output").await.unwrap();
            assert_eq!(blobs(&host), 0);
        }
    }
    check_proves(&host.client(), "output:a").await;
    let host = start_in(host.stop().await, "").await;
    check_proves(&host.client(), "output").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registries_that_misbehave_are_refused_and_leave_nothing() {
    let (oci, registry) = Oci::serve().await;
    let host = start_allowing(&registry, "").await;
    let digest = oci.push(&files("output"), |_| {});
    let reference = format!("{registry}/team/circuits@{digest}");
    for (manner, code, parts) in [
        (Manner::WrongBytes, "pull-content", ["`output.wasm`", "it has SHA-256"]),
        (Manner::Oversized, "pull-content", ["`output.wasm`", "it has more than"]),
        (Manner::Truncated, "pull-failed", ["/blobs/sha256:", "broke off"]),
        (Manner::Short, "pull-content", ["`output.wasm`", "it ended after"]),
        (Manner::Slow, "pull-failed", ["/blobs/sha256:", "paused for more than 1 s"]),
        (Manner::Silent, "pull-failed", ["no answer within 1 s", "pull_idle_seconds"]),
        (Manner::Loops, "pull-failed", ["/blobs/sha256:", "302"]),
        (Manner::RedirectsAway, "pull-failed", ["/blobs/sha256:", "points to"]),
        (Manner::Credentials, "pull-failed", ["/manifests/sha256:", "credentials"]),
    ] {
        oci.behave(manner);
        check_refused(&host, &reference, code, &parts).await;
    }
    oci.behave(Manner::Honest);
    // A manifest that is not the one that was asked for, one that is too long, and one that is missing.
    let other = oci.push(&files("other"), |_| {});
    let bytes = oci.files.lock().unwrap()[&other].clone();
    oci.files.lock().unwrap().insert(digest.clone(), bytes);
    check_refused(&host, &reference, "pull-content", &["the artifact's manifest", "was expected"]).await;
    let long = oci.push(&files("output"), |manifest| manifest["annotations"] = json!({ "x": "x".repeat(2 << 20) }));
    let reference = |digest: &str| format!("{registry}/team/circuits@{digest}");
    check_refused(&host, &reference(&long), "pull-content", &["it has more than 1048576 bytes"]).await;
    check_refused(&host, &reference(&sha256(b"")), "pull-failed", &["404"]).await;
    check_refused(&host, &format!("127.0.0.1:1/a@{digest}"), "registry-not-allowed", &["`127.0.0.1:1`", &registry])
        .await;
    check_refused(&host, &format!("{registry}/team/circuits:v1"), "bad-reference", &["a tag may be moved"]).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_that_hold_no_circuit_are_refused_with_their_sentence() {
    let (oci, registry) = Oci::serve().await;
    let host = start_allowing(&registry, "uploads_bytes_max = 10000000").await;
    let check = async |digest: String, code: &str, parts: &[&str]| {
        check_refused(&host, &format!("{registry}/team/circuits@{digest}"), code, parts).await;
    };
    let without = |name: &str| files("output").into_iter().filter(|(file, _)| *file != name).collect::<Vec<_>>();
    check(oci.push(&without("manifest.toml"), |_| {}), "circuit-refused", &["titled `manifest.toml`", "output.wasm"])
        .await;
    check(oci.push(&without("output.zkimage"), |_| {}), "circuit-refused", &["titled `output.zkimage`"]).await;
    check(oci.put(b"[1]".to_vec())["digest"].as_str().unwrap().into(), "circuit-refused", &["its manifest"]).await;
    let many = vec![("x", vec![]); 65];
    check(oci.push(&many, |_| {}), "circuit-refused", &["65 layers; the limit is 64"]).await;
    let misspelt = vec![("manifest.toml", b"nmae = 1".to_vec())];
    check(oci.push(&misspelt, |_| {}), "circuit-refused", &["manifest.toml: ", "unknown field `nmae`"]).await;
    let sha512 = |manifest: &mut Value| manifest["layers"][0]["digest"] = json!("sha512:00");
    check(oci.push(&files("output"), sha512), "circuit-refused", &["the digest of `manifest.toml`"]).await;
    let huge = |manifest: &mut Value| manifest["layers"][1]["size"] = json!(10_000_001);
    check(oci.push(&files("output"), huge), "uploads-full", &["10000000 bytes"]).await;
    let mut outside = files("output");
    outside[0].1 = String::from_utf8(outside[0].1.clone()).unwrap().replace("output.wasm", "../x").into_bytes();
    check(oci.push(&outside, |_| {}), "circuit-refused", &["no plain file name"]).await;
    // A file that came before the bad one, or before the whole was refused, goes with it.
    let mut keyless = files("output");
    keyless[2].1.truncate(1000);
    check(oci.push(&keyless, |_| {}), "circuit-refused", &["key"]).await;
    let lost = oci.push(&files("output"), |_| {});
    oci.files.lock().unwrap().remove(&sha256(&key()));
    check(lost, "pull-failed", &["404"]).await;
    let digest = oci.push(&files("output"), |_| {});
    assert_eq!(code(host.client().pull(&digest).await), "bad-reference");
    host.stop().await;
}
