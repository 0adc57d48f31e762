//! What the service costs: on top of a proof, to accept jobs, to come back with a long queue, and to do nothing.
//!
//! `cargo bench --bench service`; everything runs in this process and talks over a Unix socket, but for `idle_memory`, whose
//! host has a process of its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use zkhost_benches::{Measurement, median, milliseconds};
use zkhost_client::types::{JobState, Version};
use zkhost_client::{Address, Client, Submission};
use zkhost_groth16::HBasis;
use zkhost_groth16::image::write_image;
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_runtime::{Compiler, Limits, Runtime};
use zkhost_service::{Config, HostParts, Server};

const PROOFS: usize = 41;
const ACCEPTED: usize = 10_000;
const CLIENTS: usize = 64;
/// The argument by which this program starts itself as the host whose memory is measured.
const IDLE: &str = "--idle-memory-of";

fn guest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-circuits").join(path)
}

/// A circuit with a development key, as a folder of the watched folder.
fn add_circuit(data: &Path, name: &str) {
    let folder = data.join("circuits").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let component = std::fs::read(guest(&format!("target/components/{name}.wasm"))).expect("run `make guests`");
    let runtime = Runtime::new(Compiler::InProcess, None).unwrap();
    let circuit = runtime.load(name, &component, Limits::default()).unwrap();
    let shape = circuit.record_shape(b"", false).unwrap();
    let key = setup(&shape, &ToxicWaste::insecure_from_seed(7), HBasis::QuotientPoints).unwrap();
    write_image(&key, std::fs::File::create(folder.join("k.zkimage")).unwrap()).unwrap();
    std::fs::write(folder.join("c.wasm"), component).unwrap();
    let manifest =
        format!("name = \"{name}\"\ncomponent = {{ file = \"c.wasm\" }}\nkey = {{ file = \"k.zkimage\" }}\n");
    std::fs::write(folder.join("manifest.toml"), manifest).unwrap();
}

async fn start(data: &Path) -> Server {
    let mut config = Config { data: Some(data.to_owned()), ..Config::default() };
    config.engine.arena_bytes = 1 << 30;
    config.jobs.running_max = 1;
    let version = Version { zkhost: "bench".into(), api: vec![], libraries: [].into() };
    let server = Server::start(HostParts { config, compiler: Compiler::InProcess, version }).await.unwrap();
    while !server.host().has_scanned() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server
}

fn client(data: &Path) -> Client {
    Client::new(Address::Unix(data.join("zkhost.sock")))
}

fn submission(key: String) -> Submission {
    Submission { circuit: "sapling-output".into(), key: Some(key), ..Submission::default() }
}

fn input() -> Vec<u8> {
    std::fs::read(guest("sapling-output/example-input.json")).unwrap()
}

fn record(bench: &str, case: &str, ours: f64, unit: &str) {
    let measurement = Measurement { bench, case, ours, peer: None, peer_value: None, unit, checked: true };
    measurement.record().unwrap();
}

/// From submitting to the answer that says proved, without the engine's own time; flushed to disk twice on the way.
async fn api_overhead(data: &Path) {
    let server = start(data).await;
    let mut overheads = vec![];
    for proof in 0..PROOFS {
        let began = Instant::now();
        let wait = Some(Duration::from_secs(60));
        let submission = Submission { wait, ..submission(format!("overhead-{proof}")) };
        let job = client(data).submit(&submission, input().into()).await.unwrap();
        let time = began.elapsed();
        assert_eq!(job.state, JobState::Proved);
        overheads.push(time.saturating_sub(Duration::from_secs_f64(job.stages_ms["engine"] / 1e3)));
    }
    record("api_overhead", "Sapling Output, Unix socket, one call", milliseconds(median(overheads)), "ms");
    server.stop(Duration::from_secs(60), std::future::ready(())).await;
}

/// Jobs accepted a second by many clients while one job after the other is proved. Returns their names in order.
async fn accept_rate(data: &Path) -> Vec<String> {
    let server = start(data).await;
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|first| {
        let client = client(data);
        tokio::spawn(async move {
            let mut ids = vec![];
            for job in (first..ACCEPTED).step_by(CLIENTS) {
                let accepted = client.submit(&submission(format!("rate-{job}")), input().into()).await.unwrap();
                ids.push((accepted.submitted_ms, accepted.id));
            }
            ids
        })
    });
    let mut ids = vec![];
    for client in clients.collect::<Vec<_>>() {
        ids.extend(client.await.unwrap());
    }
    let time = began.elapsed();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), ACCEPTED);
    record(
        "accept_rate",
        "64 clients, a connection a job, sealed inputs",
        ACCEPTED as f64 / time.as_secs_f64(),
        "jobs/s",
    );
    server.stop(Duration::from_secs(60), std::future::ready(())).await;
    ids.into_iter().map(|(_, id)| id).collect()
}

/// From the start of a host with a long queue to its first proof, circuits and keys opened on the way.
async fn restart(data: &Path, ids: &[String]) {
    let began = Instant::now();
    let server = start(data).await;
    let before = server.host().health();
    assert!(before.queued + before.running + 200 > ACCEPTED as u64, "nearly all still wait: {before:?}");
    let mut first = None;
    while first.is_none() {
        let proved = client(data).jobs(&[("state", "proved".into()), ("limit", "1000".into())]).await.unwrap().jobs;
        let is_new =
            |ended: Option<u64>| ended.is_some_and(|ended| ended >= now_ms() - began.elapsed().as_millis() as u64);
        first = proved.into_iter().find(|job| is_new(job.ended_ms));
    }
    let time = began.elapsed();
    assert!(ids.contains(&first.unwrap().id));
    record("restart", "10,000 queued jobs of Sapling Output to the first proof", milliseconds(time), "ms");
    server.stop(Duration::from_secs(60), std::future::ready(())).await;
}

fn now_ms() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64
}

/// The resident bytes of a host that has loaded three circuits and does nothing, in a process of its own.
fn idle_memory() {
    let folder = tempfile::tempdir().unwrap();
    let circuits = ["sapling-output", "sha256", "merkle-poseidon"];
    circuits.iter().for_each(|name| add_circuit(folder.path(), name));
    let run = || {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.arg(IDLE).arg(folder.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().parse::<f64>().unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    // Once so that components are compiled, as on every start but the first.
    run();
    record("idle_memory", "three circuits loaded, no key open", run() / 1024.0, "MiB");
}

/// What the child prints: its resident KiB.
async fn print_idle_memory(data: &Path) {
    let server = start(data).await;
    let circuits = server.host().registry().all();
    assert!(circuits.len() == 3 && circuits.iter().all(|circuit| !circuit.is_resident()));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    println!("{}", resident.split_whitespace().next().unwrap());
    server.stop(Duration::from_secs(60), std::future::ready(())).await;
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let arguments: Vec<_> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == IDLE) {
        return runtime.block_on(print_idle_memory(Path::new(&arguments[at + 1])));
    }
    let folder = tempfile::tempdir().unwrap();
    add_circuit(folder.path(), "sapling-output");
    runtime.block_on(async {
        api_overhead(folder.path()).await;
        let ids = accept_rate(folder.path()).await;
        restart(folder.path(), &ids).await;
    });
    idle_memory();
}
