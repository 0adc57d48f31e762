//! Accepting and cancelling jobs.

use super::{Host, now_ms};
use crate::access::Identity;
use crate::circuits::HostedCircuit;
use crate::config::Inputs;
use crate::input::HeldInput;
use crate::queue::Live;
use crate::scalars;
use crate::store::{Accepted, NewJob, Outcome, ProvedBytes, StoreError, priority_code};
use std::sync::Arc;
use std::time::Duration;
use zkhost_client::types::{JobPriority, JobState};

/// Bytes of an idempotency key at most.
const KEY_BYTES_MAX: usize = 256;

/// A job to be accepted.
pub struct Submit {
    /// Who submits it.
    pub identity: Identity,
    /// Their idempotency key.
    pub key: Option<String>,
    /// The circuit.
    pub circuit: Arc<HostedCircuit>,
    /// How much it matters.
    pub priority: JobPriority,
    /// How long it may take.
    pub deadline: Option<Duration>,
    /// JSON.
    pub metadata: Option<String>,
    /// The public inputs it has to have.
    pub publics: Option<Vec<Vec<String>>>,
    /// Its input.
    pub input: HeldInput,
}

/// Why a job was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The host stops.
    #[error("the host is stopping and takes no new jobs; submit to another one, or after its restart")]
    Draining,
    /// The queue is full.
    #[error("busy: {queued} jobs wait, the most that this host takes (setting `jobs.queued_max`); try again later")]
    Busy {
        /// How many.
        queued: usize,
    },
    /// The key.
    #[error("the idempotency key has {0} bytes or control characters; it has 1 to {KEY_BYTES_MAX} printable ones")]
    Key(usize),
    /// The expectations.
    #[error("the public inputs that are expected: {0}")]
    Publics(String),
    /// The key is in use.
    #[error(
        "job {0} has the same idempotency key and another circuit, input or expectation; give this one its own key"
    )]
    OtherBody(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Host {
    /// Accept a job, or join the one that has its key and body. Returns its name. When this returns, the job is on disk.
    pub async fn submit(self: &Arc<Self>, submit: Submit) -> Result<String, SubmitError> {
        // On its own, so that it ends even if whoever asked is gone: what is on disk is in the queue as well.
        let host = self.clone();
        let accepting = tokio::spawn(async move { host.accept(submit).await });
        accepting.await.unwrap_or(Err(SubmitError::Store(StoreError::Stopped)))
    }

    async fn accept(self: Arc<Self>, submit: Submit) -> Result<String, SubmitError> {
        let pinned = submit.publics.as_ref().map(|publics| check_publics(publics, &submit.circuit)).transpose()?;
        let id = job_id(&submit.identity.owner, submit.key.as_deref())?;
        let queued = self.queue.waiting();
        if self.is_draining() {
            return Err(SubmitError::Draining);
        }
        if queued >= self.config.jobs.queued_max {
            return Err(SubmitError::Busy { queued });
        }
        let Submit { identity, key, circuit, priority, deadline, metadata, input, .. } = submit;
        let submitted_ms = now_ms();
        let deadline_ms =
            deadline.map(|deadline| submitted_ms.saturating_add(deadline.as_millis() as u64).min(i64::MAX as u64));
        let job = NewJob {
            id: id.clone(),
            owner: identity.owner.to_string(),
            key,
            body: body(self.vault.body_hasher(), &circuit, input.bytes(), pinned.as_deref()),
            circuit: circuit.digest(),
            priority,
            submitted_ms,
            deadline_ms,
            metadata,
            pinned_publics: pinned,
        };
        let (sealed, kept) = match self.config.jobs.inputs {
            Inputs::Sealed => (Some(self.vault.seal(&id, input.bytes())), None),
            Inputs::Memory => (None, Some(input)),
        };
        let answer = self.store.accept(job, sealed).await.map_err(|_| StoreError::Stopped)?;
        match answer? {
            Accepted::New(seq) => {
                let name = (seq, id.clone(), identity.owner.to_string());
                let times = (submitted_ms, deadline_ms);
                let live = Live::new(name, circuit.digest(), priority_code(priority), times, kept);
                self.queue.push(Arc::new(live));
                self.metrics.accepted();
                tracing::info!(job = %id, circuit = circuit.name(), "accepted");
                Ok(id)
            }
            Accepted::Joined => Ok(id),
            Accepted::OtherBody => Err(SubmitError::OtherBody(id)),
        }
    }

    /// Stop a job. One that waits ends at once; one that runs ends when all of it is freed. One that has ended stays as it is.
    pub fn cancel(&self, id: &str) {
        let Some(live) = self.queue.get(id) else { return };
        if let Some(live) = self.queue.withdraw(id) {
            return self.record(&live, JobState::Cancelled, None, None);
        }
        if let Some(key) = live.cancel()
            && let Err(error) = self.engine.cancel(key)
        {
            tracing::error!(job = id, %error, "cannot be cancelled");
        }
    }

    /// Record that a job failed, and tell those who wait.
    pub(super) fn record_failure(&self, live: &Live, code: &str, sentence: String) {
        self.record(live, JobState::Failed, Some((code.to_owned(), sentence)), None);
    }

    /// Record how a job without stages ended.
    fn record(&self, live: &Live, state: JobState, failure: Option<(String, String)>, proved: Option<ProvedBytes>) {
        let started_ms = live.started_ms();
        self.finish(live, || Outcome {
            state,
            started_ms,
            ended_ms: now_ms(),
            failure: failure.clone(),
            proved: proved.clone(),
            stages: None,
        });
    }

    /// Record an end until it is on disk, then tell those who wait. A full disk is waited for: the proof is not lost.
    pub(super) fn finish(&self, live: &Live, outcome: impl Fn() -> Outcome) {
        loop {
            let outcome = outcome();
            let (state, code) = (outcome.state, outcome.failure.as_ref().map(|(code, _)| code.clone()));
            match self.store.end(live.id.clone(), outcome).blocking_recv() {
                Ok(Ok(_)) => {
                    self.metrics.ended(state.name());
                    tracing::info!(job = %live.id, %state, code, "ended");
                    live.set_state(state);
                    self.queue.remove(&live.id);
                    return;
                }
                Ok(Err(error)) => tracing::error!(job = %live.id, %error, "an end is not recorded yet; trying again"),
                Err(_) => return,
            }
            if self.is_leaving() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// A job's name: that of its owner and key, so that a retry finds it; random without a key.
fn job_id(owner: &str, key: Option<&str>) -> Result<String, SubmitError> {
    let mut id = [0; 16];
    match key {
        Some(key) if key.is_empty() || key.len() > KEY_BYTES_MAX || key.chars().any(char::is_control) => {
            return Err(SubmitError::Key(key.len()));
        }
        Some(key) => {
            let mut hasher = blake3::Hasher::new_derive_key("zkhost 2026 job of an idempotency key");
            hasher.update(&(owner.len() as u64).to_le_bytes());
            hasher.update(owner.as_bytes());
            hasher.update(key.as_bytes());
            id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        }
        None => getrandom::fill(&mut id).expect("the system has randomness"),
    }
    Ok(hex::encode(id))
}

fn body(mut hasher: blake3::Hasher, circuit: &HostedCircuit, input: &[u8], pinned: Option<&str>) -> [u8; 32] {
    hasher.update(&circuit.digest().0);
    hasher.update(&(input.len() as u64).to_le_bytes());
    hasher.update(input);
    hasher.update(pinned.unwrap_or_default().as_bytes());
    hasher.finalize().into()
}

/// Pinned public inputs in the one form that is recorded and compared.
fn check_publics(publics: &[Vec<String>], circuit: &HostedCircuit) -> Result<String, SubmitError> {
    let (partitions, count) = (circuit.layout().partitions as usize, circuit.public_count());
    if publics.len() != partitions || publics.iter().any(|publics| publics.len() != count) {
        let expected = format!("{partitions} partitions of {count} were expected, as an array of arrays");
        return Err(SubmitError::Publics(expected));
    }
    let scalars = scalars::all_from_hex(publics).map_err(SubmitError::Publics)?;
    let texts: Vec<Vec<_>> = scalars.iter().map(|publics| publics.iter().map(scalars::to_hex).collect()).collect();
    Ok(serde_json::json!(texts).to_string())
}
