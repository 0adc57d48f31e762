//! Rows of the store: jobs as they are recorded, read and listed.

use super::QueuedJob;
use crate::Digest;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use std::collections::BTreeSet;
use zkhost_client::types::{JobPriority, JobState};

/// Proofs, 192 bytes a partition, and public inputs, 32 bytes each, little-endian.
pub type ProvedBytes = (Vec<u8>, Vec<u8>);

/// A job to record.
pub struct NewJob {
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// The owner's idempotency key.
    pub key: Option<String>,
    /// A digest of circuit, input and expectations.
    pub body: [u8; 32],
    /// The circuit.
    pub circuit: Digest,
    /// How much it matters.
    pub priority: JobPriority,
    /// Now.
    pub submitted_ms: u64,
    /// When it is given up.
    pub deadline_ms: Option<u64>,
    /// JSON.
    pub metadata: Option<String>,
    /// The public inputs it has to have, JSON.
    pub pinned_publics: Option<String>,
}

/// An input at rest.
pub struct SealedInput {
    /// Salt, ciphertext and tag, or, of one that has a file, the salt.
    pub sealed: Vec<u8>,
    /// Its file in the spool, if it is large.
    pub file: Option<String>,
}

/// How a job ended.
pub struct Outcome {
    /// An end.
    pub state: JobState,
    /// When it was begun, if it was.
    pub started_ms: Option<u64>,
    /// Now.
    pub ended_ms: u64,
    /// Code and sentence, if it failed.
    pub failure: Option<(String, String)>,
    /// Proofs and public inputs, if it was proved.
    pub proved: Option<ProvedBytes>,
    /// Milliseconds of its stages, JSON.
    pub stages: Option<String>,
}

/// A job as it is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Its place in the order of acceptance.
    pub seq: u64,
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// The owner's idempotency key.
    pub key: Option<String>,
    /// The circuit.
    pub circuit: Digest,
    /// How much it matters.
    pub priority: JobPriority,
    /// Queued, or an end.
    pub state: JobState,
    /// When it was accepted.
    pub submitted_ms: u64,
    /// When it was begun.
    pub started_ms: Option<u64>,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// When it is given up.
    pub deadline_ms: Option<u64>,
    /// JSON.
    pub metadata: Option<String>,
    /// The public inputs it has to have, JSON.
    pub pinned_publics: Option<String>,
    /// Code and sentence.
    pub failure: Option<(String, String)>,
    /// JSON.
    pub stages: Option<String>,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this owner's.
    pub owner: Option<String>,
    /// Only in this state; running ones are recorded as queued.
    pub state: Option<JobState>,
    /// Only of this circuit.
    pub circuit: Option<Digest>,
    /// Only accepted before this one.
    pub before_seq: Option<u64>,
    /// So many at most.
    pub limit: u32,
}

const COLUMNS: &str = "seq, id, owner, key, circuit, priority, state, submitted_ms, started_ms, ended_ms, deadline_ms, \
                       metadata, pinned_publics, failure_code, failure, stages";

/// A state as it is recorded.
pub(super) fn state_code(state: JobState) -> u8 {
    match state {
        JobState::Queued | JobState::Running => 0,
        JobState::Proved => 1,
        JobState::Failed => 2,
        JobState::Cancelled => 3,
    }
}

fn state_of(code: u8) -> JobState {
    match code {
        1 => JobState::Proved,
        2 => JobState::Failed,
        3 => JobState::Cancelled,
        _ => JobState::Queued,
    }
}

/// A priority as it is recorded, in order.
pub fn priority_code(priority: JobPriority) -> u8 {
    match priority {
        JobPriority::Background => 0,
        JobPriority::Normal => 1,
        JobPriority::Urgent => 2,
    }
}

/// The priority of a code.
pub fn priority_of(code: u8) -> JobPriority {
    match code {
        0 => JobPriority::Background,
        2 => JobPriority::Urgent,
        _ => JobPriority::Normal,
    }
}

fn digest(row: &Row<'_>, column: &str) -> rusqlite::Result<Digest> {
    row.get::<_, [u8; 32]>(column).map(Digest)
}

fn read(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    let code: Option<String> = row.get("failure_code")?;
    let sentence: Option<String> = row.get("failure")?;
    Ok(JobRow {
        seq: row.get("seq")?,
        id: row.get("id")?,
        owner: row.get("owner")?,
        key: row.get("key")?,
        circuit: digest(row, "circuit")?,
        priority: priority_of(row.get("priority")?),
        state: state_of(row.get("state")?),
        submitted_ms: row.get("submitted_ms")?,
        started_ms: row.get("started_ms")?,
        ended_ms: row.get("ended_ms")?,
        deadline_ms: row.get("deadline_ms")?,
        metadata: row.get("metadata")?,
        pinned_publics: row.get("pinned_publics")?,
        failure: code.zip(sentence),
        stages: row.get("stages")?,
    })
}

pub(super) fn job(connection: &Connection, id: &str) -> rusqlite::Result<Option<JobRow>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1"))?;
    statement.query_row([id], read).optional()
}

pub(super) fn jobs(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<JobRow>> {
    let mut conditions = vec![];
    let mut values: Vec<Value> = vec![];
    let mut condition = |column: &str, value: Value| {
        values.push(value);
        conditions.push(format!("{column} ?{}", values.len()));
    };
    if let Some(owner) = &filter.owner {
        condition("owner =", owner.clone().into());
    }
    if let Some(state) = filter.state {
        condition("state =", i64::from(state_code(state)).into());
    }
    if let Some(circuit) = filter.circuit {
        condition("circuit =", circuit.0.to_vec().into());
    }
    if let Some(before) = filter.before_seq {
        condition("seq <", i64::try_from(before).unwrap_or(i64::MAX).into());
    }
    let filter_text = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
    let query = format!("SELECT {COLUMNS} FROM jobs {filter_text} ORDER BY seq DESC LIMIT {}", filter.limit);
    let mut statement = connection.prepare_cached(&query)?;
    statement.query_map(params_from_iter(values), read)?.collect()
}

pub(super) fn sealed_input(connection: &Connection, id: &str) -> rusqlite::Result<Option<SealedInput>> {
    let mut statement = connection.prepare_cached("SELECT sealed, file FROM inputs WHERE id = ?1")?;
    statement.query_row([id], |row| Ok(SealedInput { sealed: row.get(0)?, file: row.get(1)? })).optional()
}

/// The files of all inputs.
pub(super) fn input_files(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare("SELECT file FROM inputs WHERE file IS NOT NULL")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

pub(super) fn queued(connection: &Connection) -> rusqlite::Result<Vec<QueuedJob>> {
    let query = "SELECT jobs.seq, jobs.id, owner, circuit, priority, deadline_ms, submitted_ms, inputs.id IS NOT NULL \
                 AS has_input FROM jobs LEFT JOIN inputs ON inputs.id = jobs.id WHERE state = 0 ORDER BY seq";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| {
        Ok(QueuedJob {
            seq: row.get("seq")?,
            id: row.get("id")?,
            owner: row.get("owner")?,
            circuit: digest(row, "circuit")?,
            priority: row.get("priority")?,
            deadline_ms: row.get("deadline_ms")?,
            submitted_ms: row.get("submitted_ms")?,
            has_input: row.get("has_input")?,
        })
    })?;
    rows.collect()
}
