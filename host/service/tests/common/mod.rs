//! A host over real sockets, and circuits for it.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod raw;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use tempfile::TempDir;
use zkhost_client::{Address, Client};
use zkhost_groth16::HBasis;
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_runtime::{Compiler, Limits, Runtime};
use zkhost_service::{Config, HostParts, Server};

/// A file that `make guests` or git provides.
pub fn guest(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-circuits").join(path);
    assert!(path.exists(), "{} is missing: run `make guests sapling-keys`", path.display());
    path
}

pub fn component() -> Vec<u8> {
    std::fs::read(guest("target/components/sapling-output.wasm")).unwrap()
}

pub fn input() -> Vec<u8> {
    std::fs::read(guest("sapling-output/example-input.json")).unwrap()
}

/// A development key for Sapling Output, made once a run.
static KEY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let runtime = Runtime::new(Compiler::InProcess, None).unwrap();
    let circuit = runtime.load("sapling-output", &component(), Limits::default()).unwrap();
    let shape = circuit.record_shape(b"", false).unwrap();
    let waste = ToxicWaste::insecure_from_seed(7);
    let key = setup(&shape, &waste, HBasis::QuotientPoints).unwrap();
    let mut image = vec![];
    zkhost_groth16::image::write_image(&key, &mut image).unwrap();
    image
});

pub fn key() -> Vec<u8> {
    KEY.clone()
}

/// A host with a data folder of its own.
pub struct Running {
    pub server: Server,
    pub folder: TempDir,
}

/// Start a host with this configuration beside its data folder and Unix socket.
pub async fn start(config: &str) -> Running {
    start_in(tempfile::tempdir().unwrap(), config).await
}

pub async fn start_in(folder: TempDir, config: &str) -> Running {
    let mut config = Config::parse(config, "test").unwrap();
    config.data = Some(folder.path().join("data"));
    config.engine.arena_bytes = 256 << 20;
    let version = zkhost_client::types::Version { zkhost: "0".into(), api: vec!["v1".into()], libraries: [].into() };
    let server = Server::start(HostParts { config, compiler: Compiler::InProcess, version }).await.unwrap();
    while !server.host().has_scanned() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Running { server, folder }
}

impl Running {
    /// A client by the Unix socket.
    pub fn client(&self) -> Client {
        Client::new(Address::Unix(self.folder.path().join("data/zkhost.sock")))
    }

    /// A client by TCP.
    pub fn tcp(&self) -> Client {
        Client::new(Address::Http(self.server.tcp().unwrap().to_string()))
    }

    /// Stop, letting jobs end that run; the folder stays.
    pub async fn stop(self) -> TempDir {
        self.server.stop(Duration::from_secs(60), std::future::pending()).await;
        self.folder
    }

    /// Stop at once.
    pub async fn leave(self) -> TempDir {
        self.server.stop(Duration::from_secs(60), std::future::ready(())).await;
        self.folder
    }
}

/// The manifest of uploaded files.
pub fn manifest(name: &str, component: &str, key: &str) -> String {
    format!("name = \"{name}\"\ncomponent = {{ blake3 = \"{component}\" }}\nkey = {{ blake3 = \"{key}\" }}\n")
}

/// Upload Sapling Output, as clients do. Returns its digest.
pub async fn upload(client: &Client) -> String {
    let component = client.upload(component().into()).await.unwrap().digest;
    let key = client.upload(key().into()).await.unwrap().digest;
    client.load(&manifest("sapling-output", &component, &key)).await.unwrap().digest
}

/// The code of the problem that an answer is.
pub fn code<T: std::fmt::Debug>(answer: Result<T, zkhost_client::Error>) -> String {
    match answer {
        Err(zkhost_client::Error::Problem(problem)) => problem.code,
        other => panic!("a problem was expected: {other:?}"),
    }
}
