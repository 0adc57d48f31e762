//! The thread that writes: many orders, one transaction, one flush.

use super::rows::{NewJob, Outcome, SealedInput, priority_code, state_code};
use super::schema::SchemaError;
use super::spool::{Spool, SpoolError};
use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Orders in one transaction at most.
const BATCH_MAX: usize = 512;

/// Orders that wait at most; senders wait beyond that.
const ORDERS_MAX: usize = 4096;

/// What the store cannot do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be opened.
    #[error("the job store {}: {cause}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: SchemaError,
    },
    /// The folder of large inputs cannot be used.
    #[error("the folder of large inputs {}: {cause}", path.display())]
    Spool {
        /// The folder.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Large inputs take all that they may.
    #[error("{0}")]
    InputsFull(String),
    /// The disk is full.
    #[error("the disk of the job store is full, so nothing was recorded; free some space and submit again")]
    Full,
    /// It failed.
    #[error("the job store failed, so nothing was recorded: {0}")]
    Failed(String),
    /// Its thread is gone.
    #[error("the job store has stopped")]
    Stopped,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if is_full(&error) { Self::Full } else { Self::Failed(error.to_string()) }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<SpoolError> for StoreError {
    fn from(error: SpoolError) -> Self {
        match error {
            SpoolError::Full { .. } => Self::InputsFull(error.to_string()),
            SpoolError::Io(error) => error.into(),
        }
    }
}

/// What recording a job came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is new, at this place in the order of acceptance.
    New(u64),
    /// It exists already.
    Joined,
    /// A job of its name with another body exists.
    OtherBody,
}

pub(super) enum Order {
    Accept { job: Box<NewJob>, input: Option<SealedInput>, reply: oneshot::Sender<Result<Accepted, StoreError>> },
    End { id: String, outcome: Box<Outcome>, reply: oneshot::Sender<Result<bool, StoreError>> },
    Forget { before_ms: u64, ended_max: u64, reply: oneshot::Sender<Result<usize, StoreError>> },
}

/// What an order came to, told once the transaction is on disk.
enum Done {
    Accepted(Accepted),
    /// Whether this was the first end, and the file of the input that is erased.
    Ended(bool, Option<String>),
    Forgotten(usize),
}

pub(super) struct Writer {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(connection: Connection, spool: Arc<Spool>) -> Result<Self, StoreError> {
        let (orders, inbox) = bounded(ORDERS_MAX);
        let builder = std::thread::Builder::new().name("zkhost-store".into());
        let thread = builder.spawn(move || run(connection, &inbox, &spool)).map_err(|_| StoreError::Stopped)?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    /// An order to a thread that is gone drops its reply, which tells who waits.
    pub fn send(&self, order: Order) {
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
    }
}

impl Drop for Writer {
    /// What was ordered is written before the thread ends.
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(mut connection: Connection, inbox: &Receiver<Order>, spool: &Spool) {
    while let Ok(first) = inbox.recv() {
        let mut orders = vec![first];
        orders.extend(inbox.try_iter().take(BATCH_MAX - 1));
        write(&mut connection, orders, spool);
    }
}

/// All orders in one transaction. If it fails, each is tried alone, so that one that cannot be written fails alone.
fn write(connection: &mut Connection, mut orders: Vec<Order>, spool: &Spool) {
    match (transact(connection, &orders), orders.len()) {
        (Ok(done), _) => orders.into_iter().zip(done).for_each(|(order, done)| answer(order, done, spool)),
        (Err(error), 1) => orders.drain(..).for_each(|order| refuse(order, &error)),
        (Err(_), _) => orders.into_iter().for_each(|order| write(connection, vec![order], spool)),
    }
}

fn transact(connection: &mut Connection, orders: &[Order]) -> rusqlite::Result<Vec<Done>> {
    let transaction = connection.transaction()?;
    let done = orders.iter().map(|order| apply(&transaction, order)).collect::<rusqlite::Result<_>>()?;
    transaction.commit()?;
    Ok(done)
}

fn apply(connection: &Connection, order: &Order) -> rusqlite::Result<Done> {
    match order {
        Order::Accept { job, input, .. } => accept(connection, job, input.as_ref()).map(Done::Accepted),
        Order::End { id, outcome, .. } => end(connection, id, outcome),
        Order::Forget { before_ms, ended_max, .. } => forget(connection, *before_ms, *ended_max).map(Done::Forgotten),
    }
}

fn accept(connection: &Connection, job: &NewJob, input: Option<&SealedInput>) -> rusqlite::Result<Accepted> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO jobs (id, owner, key, body, circuit, priority, submitted_ms, deadline_ms, metadata, pinned_publics, \
         state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0) ON CONFLICT (id) DO NOTHING",
    )?;
    let priority = priority_code(job.priority);
    let (submitted_ms, deadline_ms) = (job.submitted_ms, job.deadline_ms);
    let rows = insert.execute(params![
        job.id,
        job.owner,
        job.key,
        job.body,
        job.circuit.0,
        priority,
        submitted_ms,
        deadline_ms,
        job.metadata,
        job.pinned_publics
    ])?;
    if rows == 1 {
        let seq = connection.last_insert_rowid() as u64;
        if let Some(SealedInput { sealed, file }) = input {
            connection
                .prepare_cached("INSERT INTO inputs (id, sealed, file) VALUES (?1, ?2, ?3)")?
                .execute(params![job.id, sealed, file])?;
        }
        return Ok(Accepted::New(seq));
    }
    let mut select = connection.prepare_cached("SELECT body FROM jobs WHERE id = ?1")?;
    let body: Option<[u8; 32]> = select.query_row([&job.id], |row| row.get(0)).optional()?;
    Ok(if body == Some(job.body) { Accepted::Joined } else { Accepted::OtherBody })
}

fn end(connection: &Connection, id: &str, outcome: &Outcome) -> rusqlite::Result<Done> {
    let mut update = connection.prepare_cached(
        "UPDATE jobs SET state = ?2, started_ms = ?3, ended_ms = ?4, failure_code = ?5, failure = ?6, proof = ?7, \
         publics = ?8, stages = ?9 WHERE id = ?1 AND state = 0",
    )?;
    let (code, sentence) = outcome.failure.as_ref().map(|(code, sentence)| (code, sentence)).unzip();
    let (proof, publics) = outcome.proved.as_ref().map(|(proof, publics)| (proof, publics)).unzip();
    let state = state_code(outcome.state);
    let (started_ms, ended_ms) = (outcome.started_ms, outcome.ended_ms);
    let rows =
        update.execute(params![id, state, started_ms, ended_ms, code, sentence, proof, publics, outcome.stages])?;
    let mut erase = connection.prepare_cached("DELETE FROM inputs WHERE id = ?1 RETURNING file")?;
    let file: Option<Option<String>> = erase.query_row([id], |row| row.get(0)).optional()?;
    Ok(Done::Ended(rows == 1, file.flatten()))
}

fn forget(connection: &Connection, before_ms: u64, ended_max: u64) -> rusqlite::Result<usize> {
    let old = connection.execute("DELETE FROM jobs WHERE ended_ms < ?1", [before_ms])?;
    let beyond = connection.execute(
        "DELETE FROM jobs WHERE seq IN \
         (SELECT seq FROM jobs WHERE ended_ms IS NOT NULL ORDER BY ended_ms DESC LIMIT -1 OFFSET ?1)",
        [ended_max],
    )?;
    Ok(old + beyond)
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Tell who ordered it; one who is gone does not mind.
fn answer(order: Order, done: Done, spool: &Spool) {
    match (order, done) {
        (Order::Accept { reply, .. }, Done::Accepted(accepted)) => drop(reply.send(Ok(accepted))),
        (Order::End { reply, .. }, Done::Ended(first, file)) => {
            // The row is gone, so the file is nobody's, even if the process dies here.
            file.iter().for_each(|file| spool.remove(file));
            drop(reply.send(Ok(first)));
        }
        (Order::Forget { reply, .. }, Done::Forgotten(count)) => drop(reply.send(Ok(count))),
        _ => unreachable!("each order has the result of its own kind"),
    }
}

fn refuse(order: Order, error: &rusqlite::Error) {
    let error = if is_full(error) { StoreError::Full } else { StoreError::Failed(error.to_string()) };
    match order {
        Order::Accept { reply, .. } => drop(reply.send(Err(error))),
        Order::End { reply, .. } => drop(reply.send(Err(error))),
        Order::Forget { reply, .. } => drop(reply.send(Err(error))),
    }
}
