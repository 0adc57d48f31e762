//! What is said and heard in JSON. Times are milliseconds since 1970, UTC; digests are hexadecimal.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Accepted and recorded; not begun.
    Queued,
    /// Being proved.
    Running,
    /// Proved; every partition's proof was verified.
    Proved,
    /// Ended without a proof.
    Failed,
    /// Stopped by its owner or an operator.
    Cancelled,
}

impl JobState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Proved, Self::Failed, Self::Cancelled];

    /// Whether nothing will change any more.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Proved | Self::Failed | Self::Cancelled)
    }

    /// Its name in JSON and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Proved => "proved",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for JobState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|state| state.name() == text);
        found.ok_or_else(|| format!("`{text}` is no state; there are queued, running, proved, failed and cancelled"))
    }
}

/// How much a job matters; strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobPriority {
    /// Runs when nothing else wants to.
    Background,
    /// The default.
    #[default]
    Normal,
    /// Goes first everywhere.
    Urgent,
}

impl JobPriority {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::Normal => "normal",
            Self::Urgent => "urgent",
        }
    }
}

impl FromStr for JobPriority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Background, Self::Normal, Self::Urgent];
        let found = all.into_iter().find(|priority| priority.name() == text);
        found.ok_or_else(|| format!("`{text}` is no priority; there are background, normal and urgent"))
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name on this host: 32 hexadecimal digits.
    pub id: String,
    /// The submitter's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whose it is.
    pub owner: String,
    /// Digest of the circuit.
    pub circuit: String,
    /// How much it matters.
    pub priority: JobPriority,
    /// Where it stands.
    pub state: JobState,
    /// When it was accepted.
    pub submitted_ms: u64,
    /// When it was last begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// When it is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// What its submitter attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Why it waits, beside for its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Where each partition stands, while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<JobFailure>,
    /// Milliseconds of its stages, summed over partitions, once it has ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stages_ms: BTreeMap<String, f64>,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFailure {
    /// A stable code.
    pub code: String,
    /// A sentence: stage, partition, cause, what to do.
    pub message: String,
}

/// A page of jobs, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Give this as `before` to get the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
}

/// What was proved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobResult {
    /// The job.
    pub id: String,
    /// Digest of the circuit.
    pub circuit: String,
    /// One proof of 192 bytes for each partition, in order, one after another, hexadecimal.
    pub proof: String,
    /// Public inputs of each partition, each `0x` and 64 digits, big-endian.
    pub publics: Vec<Vec<String>>,
}

/// A question whether proofs are valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyRequest {
    /// The circuit: a digest, or a name.
    pub circuit: String,
    /// Proofs, one after another, hexadecimal.
    pub proof: String,
    /// Public inputs of each proof.
    pub publics: Vec<Vec<String>>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyAnswer {
    /// Whether all are valid.
    pub valid: bool,
    /// Why not, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A circuit that is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circuit {
    /// Names it exactly: its manifest with all that the manifest names.
    pub digest: String,
    /// What its manifest calls it. Several circuits may have one name.
    pub name: String,
    /// What its manifest calls its key, if it has several: jobs may ask for `NAME:KEY`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// What writes its assignments: `component` or `circom`.
    pub kind: String,
    /// The circuit's own version.
    pub version: String,
    /// What it proves, in its own words.
    pub about: String,
    /// What an input holds, in its own words.
    pub input_help: String,
    /// BLAKE3 of the component, or of circom's witness module.
    pub component: String,
    /// BLAKE3 of the constraint system.
    pub shape: String,
    /// Public inputs of a partition.
    pub publics: u64,
    /// Private variables of a partition.
    pub aux: u64,
    /// Constraints of a partition.
    pub constraints: u64,
    /// Partitions of a job.
    pub partitions: u32,
    /// Bytes of the proving key.
    pub key_bytes: u64,
    /// Whether a proof by this key was seen to verify.
    pub proven: bool,
    /// Whether the key is in memory now.
    pub resident: bool,
    /// Whether its name stands for this one.
    pub pinned: bool,
    /// Where it came from: `folder` or `upload`.
    pub source: String,
    /// The circuit's limits; times in seconds.
    pub limits: BTreeMap<String, u64>,
}

/// All circuits, and what was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitList {
    /// Loaded.
    pub circuits: Vec<Circuit>,
    /// Folders that hold no circuit that could be loaded, each with its sentence.
    pub refused: BTreeMap<String, String>,
}

/// A circuit to be pulled from an OCI registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullRequest {
    /// Its artifact, by digest: `REGISTRY/NAME@sha256:DIGEST`.
    pub reference: String,
}

/// What a host keeps of a file that was uploaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// BLAKE3 of its bytes.
    pub digest: String,
    /// Its length.
    pub bytes: u64,
}

/// How the host is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Whether it takes jobs.
    pub ready: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Jobs that wait.
    pub queued: u64,
    /// Jobs that run.
    pub running: u64,
    /// Circuits that are loaded.
    pub circuits: u64,
}

/// The host's versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// This program's.
    pub zkhost: String,
    /// Those of this interface that it speaks.
    pub api: Vec<String>,
    /// Those of the libraries that a proof depends on.
    pub libraries: BTreeMap<String, String>,
}

/// An error, as RFC 9457 has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Stable; what programs look at.
    pub code: String,
    /// The HTTP status.
    pub status: u16,
    /// The kind, for people.
    pub title: String,
    /// A sentence: what, where, what was expected, what to do next.
    pub detail: String,
}
