//! The configuration file. Every key has a default, and a key that is not known is refused.

use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zkhost_cuda::DeviceChoice;
use zkhost_groth16::key::Phase2;

/// One gibibyte.
const GIB: u64 = 1 << 30;

/// What keeps a configuration from being used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It is not what is expected.
    #[error("configuration {place}: {reason}")]
    Bad {
        /// The file, or the variable.
        place: String,
        /// Why.
        reason: String,
    },
}

/// The configuration. `OPERATING.md` has an example of every key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the host keeps its data: the job store, uploads, the code cache, the key of inputs at rest.
    pub data: Option<PathBuf>,
    /// Where it listens.
    pub listen: Listen,
    /// Who may use it.
    pub tokens: Vec<Token>,
    /// Circuits.
    pub circuits: Circuits,
    /// Jobs.
    pub jobs: Jobs,
    /// What the engine may use.
    pub engine: Engine,
}

/// Where the host listens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// A Unix socket. Whoever may open it may do everything. Default: `zkhost.sock` in the data folder; empty for none.
    pub unix: Option<PathBuf>,
    /// An address and port. Beyond loopback it needs `tls` and `tokens`.
    pub tcp: Option<SocketAddr>,
    /// Certificate and key of the TCP address.
    pub tls: Option<Tls>,
    /// Connections at once. Default 1024.
    pub connections_max: usize,
    /// Seconds for the head of a request, and between requests of a connection. Default 10.
    pub header_seconds: u64,
    /// Seconds that a request's body may pause. Default 10.
    pub body_idle_seconds: u64,
}

/// Certificate and key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate with its chain, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
}

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Submit jobs, see and cancel one's own, see circuits, verify.
    Submit,
    /// Everything.
    Operate,
}

/// A token. It is made by `zkhost token`; only its hash is here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Whose it is: the owner of the jobs submitted with it.
    pub name: String,
    /// BLAKE3 of the token.
    pub blake3: String,
    /// What it allows.
    pub role: Role,
    /// The last day on which it is valid, such as 2027-01-31, UTC.
    pub expires: Option<toml::value::Datetime>,
    /// Jobs that may be submitted with it in a minute.
    pub jobs_per_minute: Option<u32>,
    /// Bytes of one input.
    pub input_bytes_max: Option<u64>,
}

/// Circuits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Circuits {
    /// The watched folder: each folder in it that has a `manifest.toml` is a circuit. Default: `circuits` in the data folder.
    pub folder: Option<PathBuf>,
    /// Seconds between looks at it. Default 5.
    pub scan_seconds: u64,
    /// Circuits at most. Default 1000.
    pub loaded_max: usize,
    /// Bytes of all uploaded files together. Default 256 GiB.
    pub uploads_bytes_max: u64,
    /// OCI registries that circuits may be pulled from. Default: none.
    pub registries: Vec<RegistryAllowed>,
    /// Seconds that one of them may pause. Default 30.
    pub pull_idle_seconds: u64,
    /// Seconds after its last use for which a key stays in memory. Default 600.
    pub key_idle_seconds: u64,
    /// Take keys without a second phase, by which anyone can forge proofs: for tests only.
    pub insecure_without_phase2: bool,
}

/// An OCI registry that circuits may be pulled from, as anybody and by digest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryAllowed {
    /// Its host, with its port if that is not the scheme's own.
    pub host: String,
    /// Certificates of authority to trust, PEM. Default: the system's bundle, as Debian has it.
    #[serde(default = "system_authorities")]
    pub authorities: PathBuf,
    /// Speak to it without TLS: what is pulled is checked by its digest all the same. Default false.
    #[serde(default)]
    pub plain_http: bool,
}

fn system_authorities() -> PathBuf {
    "/etc/ssl/certs/ca-certificates.crt".into()
}

/// How inputs are kept until their job ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inputs {
    /// In the job store, encrypted.
    #[default]
    Sealed,
    /// In memory only: a crash fails the job with `input-lost`.
    Memory,
}

/// Jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jobs {
    /// How inputs are kept. Default `sealed`.
    pub inputs: Inputs,
    /// The key of sealed inputs. Default: `input.key` in the data folder; made if it is missing.
    pub input_key: Option<PathBuf>,
    /// Bytes of one input. Default 64 MiB.
    pub input_bytes_max: u64,
    /// Bytes of all inputs in memory: 64 KiB at most of each that is received, or, with `inputs = "memory"`, all of it until its job
    /// begins. Default 4 GiB.
    pub inputs_memory_bytes_max: u64,
    /// Bytes of all inputs beyond 64 KiB that wait on disk. Default 256 GiB.
    pub inputs_disk_bytes_max: u64,
    /// Jobs that wait at most. Default 100,000.
    pub queued_max: usize,
    /// Jobs that are with the engine at once. Default 8.
    pub running_max: usize,
    /// Threads that take urgent jobs only, beyond `running_max`. Default 2.
    pub running_urgent_max: usize,
    /// Hours for which ended jobs and their proofs are kept. Default 168, a week.
    pub keep_hours: u64,
    /// Ended jobs at most. Default 1,000,000.
    pub kept_max: u64,
    /// Seconds to drain after SIGTERM, after which what runs is left to the next start. Default 600.
    pub drain_seconds: u64,
}

/// What the engine may use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Engine {
    /// What proves: `auto` (the first GPU that works, else the CPU), `cpu`, `cuda:N`, or `cuda` (all GPUs). Default `auto`. With a
    /// GPU the CPU proves what that does not take or fails at.
    #[serde(deserialize_with = "device_choice")]
    pub devices: DeviceChoice,
    /// Slots of each GPU: while one copies, the others' kernels run. Default 2.
    pub gpu_slots: u16,
    /// Bytes of each GPU's memory that may be used. Default: all that is free at the start.
    pub gpu_memory_bytes_max: Option<u64>,
    /// Slots of the CPU: proofs that are computed at once there. Default 1.
    pub cpu_slots: u16,
    /// Threads that run guests. Default: the number of processors.
    pub synthesis_workers: Option<usize>,
    /// Bytes of host memory for guests. Default 16 GiB.
    pub guest_bytes_max: u64,
    /// Bytes of the arena of assignments. Default 4 GiB.
    pub arena_bytes: u64,
    /// Bytes of keys and constraint systems that are open at once for the CPU. Default 64 GiB; keys are mapped files.
    pub cpu_key_bytes_max: u64,
}

impl Default for Listen {
    fn default() -> Self {
        Self { unix: None, tcp: None, tls: None, connections_max: 1024, header_seconds: 10, body_idle_seconds: 10 }
    }
}

impl Default for Circuits {
    fn default() -> Self {
        Self {
            folder: None,
            scan_seconds: 5,
            loaded_max: 1000,
            uploads_bytes_max: 256 * GIB,
            registries: vec![],
            pull_idle_seconds: 30,
            key_idle_seconds: 600,
            insecure_without_phase2: false,
        }
    }
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            inputs: Inputs::Sealed,
            input_key: None,
            input_bytes_max: 64 << 20,
            inputs_memory_bytes_max: 4 * GIB,
            inputs_disk_bytes_max: 256 * GIB,
            queued_max: 100_000,
            running_max: 8,
            running_urgent_max: 2,
            keep_hours: 168,
            kept_max: 1_000_000,
            drain_seconds: 600,
        }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            devices: DeviceChoice::default(),
            gpu_slots: zkhost_engine::cuda::SLOTS,
            gpu_memory_bytes_max: None,
            cpu_slots: 1,
            synthesis_workers: None,
            guest_bytes_max: 16 * GIB,
            arena_bytes: 4 * GIB,
            cpu_key_bytes_max: 64 * GIB,
        }
    }
}

fn device_choice<'de, D: Deserializer<'de>>(value: D) -> Result<DeviceChoice, D::Error> {
    String::deserialize(value)?.parse().map_err(serde::de::Error::custom)
}

impl Config {
    /// Read a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|cause| ConfigError::Read { path: path.into(), cause })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Parse a text; `place` is what errors call it.
    pub fn parse(text: &str, place: &str) -> Result<Self, ConfigError> {
        let bad = |reason: String| ConfigError::Bad { place: place.to_owned(), reason };
        let config: Self = toml::from_str(text).map_err(|error| bad(error.to_string().trim_end().to_owned()))?;
        config.check().map_err(bad)?;
        Ok(config)
    }

    /// Let variables of the environment named `ZKHOST_SECTION__KEY` set keys; the value is TOML, or text.
    pub fn with_environment(file: &str, place: &str, variables: &[(String, String)]) -> Result<Self, ConfigError> {
        let bad = |place: &str, reason: String| ConfigError::Bad { place: place.to_owned(), reason };
        let mut table: toml::Table = toml::from_str(file).map_err(|error| bad(place, error.to_string()))?;
        // The file by itself first, so that its mistakes are told with their lines.
        let mut config = Self::parse(file, place)?;
        for (variable, text) in variables {
            let Some((section, key)) = variable.strip_prefix("ZKHOST_").and_then(|name| name.split_once("__")) else {
                continue;
            };
            let (section, key) = (section.to_lowercase(), key.to_lowercase());
            let parsed = toml::from_str::<toml::Table>(&format!("value = {text}"));
            let value = parsed.ok().and_then(|mut table| table.remove("value"));
            let value = value.unwrap_or_else(|| toml::Value::String(text.clone()));
            let entry = table.entry(section).or_insert_with(|| toml::Table::new().into());
            let Some(entry) = entry.as_table_mut() else {
                return Err(bad(&format!("variable {variable}"), "there is no such section".into()));
            };
            entry.insert(key, value);
            let changed = toml::Value::Table(table.clone()).try_into::<Self>();
            config = changed.map_err(|error| bad(&format!("variable {variable}"), error.to_string()))?;
        }
        config.check().map_err(|reason| bad(place, reason))?;
        Ok(config)
    }

    /// What no single key can say.
    pub fn check(&self) -> Result<(), String> {
        for (index, token) in self.tokens.iter().enumerate() {
            token
                .blake3
                .parse::<crate::Digest>()
                .map_err(|error| format!("token `{}`: blake3: {error}", token.name))?;
            let printable =
                !token.name.is_empty() && token.name.len() <= 64 && !token.name.chars().any(char::is_control);
            if !printable || token.name == crate::access::LOCAL_OWNER {
                let reserved = crate::access::LOCAL_OWNER;
                return Err(format!("token {index}: names have 1 to 64 printable characters and are not `{reserved}`"));
            }
            if self.tokens[..index].iter().any(|other| other.blake3 == token.blake3) {
                return Err(format!("token `{}` is there twice", token.name));
            }
        }
        if let Some(address) = self.listen.tcp
            && !address.ip().is_loopback()
        {
            if self.listen.tls.is_none() {
                return Err(format!("listen.tcp {address} is no loopback address, so listen.tls is needed"));
            }
            if self.tokens.is_empty() {
                return Err(format!(
                    "listen.tcp {address} is no loopback address, so tokens are needed (`zkhost token`)"
                ));
            }
        }
        for RegistryAllowed { host, .. } in &self.circuits.registries {
            if host.is_empty() || host.contains(['/', '@', ' ']) {
                return Err(format!("circuits.registries: `{host}` is no host; leave scheme and path out"));
            }
        }
        let positive = [
            ("listen.connections_max", self.listen.connections_max as u64),
            ("listen.header_seconds", self.listen.header_seconds),
            ("listen.body_idle_seconds", self.listen.body_idle_seconds),
            ("circuits.scan_seconds", self.circuits.scan_seconds),
            ("circuits.pull_idle_seconds", self.circuits.pull_idle_seconds),
            ("jobs.running_max", self.jobs.running_max as u64),
            ("jobs.queued_max", self.jobs.queued_max as u64),
            ("engine.cpu_slots", self.engine.cpu_slots.into()),
            ("engine.gpu_slots", self.engine.gpu_slots.into()),
        ];
        match positive.iter().find(|(_, value)| *value == 0) {
            Some((key, _)) => Err(format!("{key} is 0; it is 1 at least")),
            None => Ok(()),
        }
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from("zkhost-data"))
    }

    /// The Unix socket; none if it is turned off.
    pub fn unix_socket(&self) -> Option<PathBuf> {
        match &self.listen.unix {
            None => Some(self.data().join("zkhost.sock")),
            Some(path) if path.as_os_str().is_empty() => None,
            Some(path) => Some(path.clone()),
        }
    }

    /// The watched folder.
    pub fn circuits_folder(&self) -> PathBuf {
        self.circuits.folder.clone().unwrap_or_else(|| self.data().join("circuits"))
    }

    /// Whether keys without a second phase are taken.
    pub fn phase2(&self) -> Phase2 {
        match self.circuits.insecure_without_phase2 {
            true => Phase2::MayBeMissingForTests,
            false => Phase2::Required,
        }
    }

    /// How long ended jobs are kept.
    pub fn keep(&self) -> Duration {
        Duration::from_secs(self.jobs.keep_hours.saturating_mul(3600))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a configuration is refused with.
    fn check_refused(text: &str, parts: &[&str]) {
        let error = Config::parse(text, "zkhost.toml").unwrap_err().to_string();
        assert!(error.contains("zkhost.toml"), "{error}");
        parts.iter().for_each(|part| assert!(error.contains(part), "`{part}` is not in: {error}"));
    }

    #[test]
    fn mistakes_get_a_sentence() {
        check_refused("[jobs]\nrunning = 3", &["unknown field `running`", "running_max"]);
        check_refused("[jbos]\nrunning = 3", &["unknown field `jbos`"]);
        check_refused("[jobs]\nrunning_max = \"3\"", &["running_max", "invalid type"]);
        check_refused("[engine]\ndevices = \"gpu\"", &["line 2", "gpu", "cuda:"]);
        check_refused("[jobs]\nrunning_max = 0", &["jobs.running_max is 0"]);
        check_refused("[listen]\ntcp = \"0.0.0.0:1\"", &["0.0.0.0:1 is no loopback address", "listen.tls"]);
        let registry = "[circuits]\nregistries = [{ host = \"https://registry.example\" }]";
        check_refused(registry, &["`https://registry.example` is no host", "leave scheme and path out"]);
        let tls = "[listen]\ntcp = \"[::]:1\"\ntls = { certificate = \"c\", key = \"k\" }";
        check_refused(tls, &["no loopback address", "tokens are needed"]);
        let token = "[[tokens]]\nname = \"a\"\nrole = \"admin\"\nblake3 = \"00\"";
        check_refused(token, &["unknown variant `admin`", "submit", "operate"]);
        check_refused("[[tokens]]\nname = \"a\"\nrole = \"submit\"\nblake3 = \"00\"", &["token `a`", "no digest"]);
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let variables = [
            variable("ZKHOST_JOBS__RUNNING_MAX", "5"),
            variable("ZKHOST_LISTEN__TCP", "127.0.0.1:7878"),
            variable("ZKHOST_CACHE", "/elsewhere"),
        ];
        let config = Config::with_environment("[jobs]\nrunning_max = 3", "zkhost.toml", &variables).unwrap();
        assert_eq!((config.jobs.running_max, config.listen.tcp.unwrap().port()), (5, 7878));
        let unknown = [variable("ZKHOST_JOBS__RUNNING", "5")];
        let error = Config::with_environment("", "zkhost.toml", &unknown).unwrap_err().to_string();
        assert!(error.contains("ZKHOST_JOBS__RUNNING") && error.contains("unknown field"), "{error}");
    }

    #[test]
    fn the_documented_example_has_every_key_and_is_read() {
        let document = include_str!("../../../OPERATING.md");
        let example = document.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let example: String =
            example.lines().map(|line| line.strip_prefix("#? ").unwrap_or(line).to_owned() + "\n").collect();
        Config::parse(&example, "OPERATING.md").unwrap();
        let keys = include_str!("config.rs").lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "));
        for (key, _) in keys.filter(|(key, _)| !key.contains("fn ")) {
            let mentioned = example.contains(&format!("{key} =")) || example.contains(&format!("[{key}]"));
            assert!(mentioned || example.contains(&format!("[[{key}]]")), "`{key}` is not in OPERATING.md's example");
        }
    }
}
