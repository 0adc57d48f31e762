//! The job store: SQLite with a write-ahead log, so that what was accepted and what was proved survives a crash.
//!
//! One thread writes. It takes all that waits, writes it in one transaction, and answers when that is on disk
//! (`synchronous=FULL`), so that a thousand jobs share a few flushes. Readers have connections of their own.

mod rows;
mod schema;
mod spool;
mod vault;
mod writer;

pub use rows::{Filter, JobRow, NewJob, Outcome, ProvedBytes, SealedInput, priority_code, priority_of};
pub use schema::{SchemaError, VERSION};
pub use spool::{PIECE_BYTES, SpoolError, SpoolWriter, Spooled};
pub use vault::{CannotOpen, Opened, Vault, VaultError};
pub use writer::{Accepted, StoreError};

use crate::Digest;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use spool::Spool;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use writer::{Order, Writer};

/// How long a connection waits for another one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// A job that is queued, as it is found at start-up.
pub struct QueuedJob {
    /// Its place in the order of acceptance.
    pub seq: u64,
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// Its circuit.
    pub circuit: Digest,
    /// As in the table.
    pub priority: u8,
    /// When it is given up.
    pub deadline_ms: Option<u64>,
    /// When it was accepted.
    pub submitted_ms: u64,
    /// Whether its input is at rest.
    pub has_input: bool,
}

/// The store.
pub struct Store {
    writer: Writer,
    reader: Mutex<Connection>,
    spool: Arc<Spool>,
}

impl Store {
    /// Open or make the store in a data folder; large inputs may take so many bytes there.
    pub fn open(data: &Path, inputs_bytes_max: u64) -> Result<Self, StoreError> {
        let path = data.join("jobs.sqlite");
        let located = |cause: SchemaError| StoreError::Open { path: path.clone(), cause };
        let mut connection = connect(&path, OpenFlags::default()).map_err(|error| located(error.into()))?;
        schema::migrate(&mut connection).map_err(located)?;
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = connect(&path, read_only).map_err(|error| located(error.into()))?;
        let (folder, named) = (data.join("inputs"), rows::input_files(&reader)?);
        let spool = Spool::open(&folder, inputs_bytes_max, &named);
        let spool = Arc::new(spool.map_err(|cause| StoreError::Spool { path: folder, cause })?);
        Ok(Self { writer: Writer::start(connection, spool.clone())?, reader: Mutex::new(reader), spool })
    }

    /// Where large inputs are written.
    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Record a job with its input, if that is kept at rest. The answer comes when it is on disk.
    pub fn accept(&self, job: NewJob, input: Option<SealedInput>) -> oneshot::Receiver<Result<Accepted, StoreError>> {
        let (reply, answer) = oneshot::channel();
        self.writer.send(Order::Accept { job: Box::new(job), input, reply });
        answer
    }

    /// Record how a job ended and erase its input. The answer comes when it is on disk; it says whether this was the first
    /// end to be recorded, and only that one counts.
    pub fn end(&self, id: String, outcome: Outcome) -> oneshot::Receiver<Result<bool, StoreError>> {
        let (reply, answer) = oneshot::channel();
        self.writer.send(Order::End { id, outcome: Box::new(outcome), reply });
        answer
    }

    /// Forget jobs that ended before a time, and the oldest beyond a number. Answers how many.
    pub fn forget(&self, before_ms: u64, ended_max: u64) -> oneshot::Receiver<Result<usize, StoreError>> {
        let (reply, answer) = oneshot::channel();
        self.writer.send(Order::Forget { before_ms, ended_max, reply });
        answer
    }

    /// The jobs that have not ended, in order of acceptance.
    pub fn queued(&self) -> Result<Vec<QueuedJob>, StoreError> {
        rows::queued(&self.reader()).map_err(StoreError::from)
    }

    /// One job.
    pub fn job(&self, id: &str) -> Result<Option<JobRow>, StoreError> {
        Ok(rows::job(&self.reader(), id)?)
    }

    /// A page of jobs, newest first.
    pub fn jobs(&self, filter: &Filter) -> Result<Vec<JobRow>, StoreError> {
        Ok(rows::jobs(&self.reader(), filter)?)
    }

    /// The input of a job that has not ended, opened, if it is at rest and opens.
    pub fn input(&self, vault: &Vault, id: &str) -> Result<Option<Opened>, StoreError> {
        let sealed = rows::sealed_input(&self.reader(), id)?;
        Ok(match sealed {
            None => None,
            Some(SealedInput { sealed, file: None }) => Some(vault.unseal(id, &sealed)),
            Some(SealedInput { sealed, file: Some(file) }) => match self.spool.read(vault, id, &file, &sealed) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                read => Some(read?),
            },
        })
    }

    /// Proofs and public inputs of a job that was proved.
    pub fn result(&self, id: &str) -> Result<Option<ProvedBytes>, StoreError> {
        let reader = self.reader();
        let mut statement =
            reader.prepare_cached("SELECT proof, publics FROM jobs WHERE id = ?1 AND proof IS NOT NULL")?;
        Ok(statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection with the settings that the promises rest on.
fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    if !flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        // Erased inputs leave nothing behind in the file, sealed though they were.
        connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
    }
    Ok(connection)
}
