//! Accepting and cancelling jobs.

use super::receive::{At, KEY_BYTES_MAX, Received};
use super::{Host, now_ms};
use crate::access::Identity;
use crate::circuits::HostedCircuit;
use crate::queue::Live;
use crate::scalars;
use crate::store::{Accepted, NewJob, Outcome, SealedInput, StoreError, priority_code};
use std::sync::Arc;
use std::time::Duration;
use zkhost_client::types::{JobPriority, JobState};

/// A job to be accepted.
pub struct Submit {
    /// Who submits it.
    pub identity: Identity,
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
    /// Its input and its name.
    pub input: Received,
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
        self.check_open()?;
        let Submit { identity, circuit, priority, deadline, metadata, input, .. } = submit;
        let Received { id, key, hash, at } = input;
        let submitted_ms = now_ms();
        let deadline_ms =
            deadline.map(|deadline| submitted_ms.saturating_add(deadline.as_millis() as u64).min(i64::MAX as u64));
        let job = NewJob {
            id: id.clone(),
            owner: identity.owner.to_string(),
            key,
            body: body(self.vault.body_hasher(), &circuit, hash, pinned.as_deref()),
            circuit: circuit.digest(),
            priority,
            submitted_ms,
            deadline_ms,
            metadata,
            pinned_publics: pinned,
        };
        let (sealed, held, file) = match at {
            At::Memory(held) => (None, Some(held), None),
            At::Sealed(sealed) => (Some(sealed), None, None),
            At::File(spooled) => {
                let (name, salt) = spooled.row();
                let sealed = SealedInput { sealed: salt.to_vec(), file: Some(name.clone()) };
                // A host that stops before it has the answer may have recorded the job all the same; if not, the next start
                // removes the file.
                spooled.keep();
                (Some(sealed), None, Some(name))
            }
        };
        let answer = self.store.accept(job, sealed).await.map_err(|_| StoreError::Stopped)?;
        if !matches!(answer, Ok(Accepted::New(_))) {
            file.iter().for_each(|file| self.store.spool().remove(file));
        }
        match answer? {
            Accepted::New(seq) => {
                let name = (seq, id.clone(), identity.owner.to_string());
                let times = (submitted_ms, deadline_ms);
                let live = Live::new(name, circuit.digest(), priority_code(priority), times, held);
                self.queue.push(Arc::new(live));
                self.metrics.accepted();
                tracing::info!(job = %id, circuit = circuit.name(), "accepted");
                Ok(id)
            }
            Accepted::Joined => Ok(id),
            Accepted::OtherBody => Err(SubmitError::OtherBody(id)),
        }
    }

    /// Whether a job could be accepted now.
    pub(super) fn check_open(&self) -> Result<(), SubmitError> {
        let queued = self.queue.waiting();
        if self.is_draining() {
            return Err(SubmitError::Draining);
        }
        if queued >= self.config.jobs.queued_max {
            return Err(SubmitError::Busy { queued });
        }
        Ok(())
    }

    /// Stop a job. One that waits ends at once, or, if that cannot be recorded, waits on; one that runs ends when all of it is
    /// freed. One that has ended stays as it is.
    pub async fn cancel(self: &Arc<Self>, id: &str) -> Result<(), StoreError> {
        // On its own, so that a job that was taken out of the queue ends, or goes back, even if whoever asked is gone.
        let (host, id) = (self.clone(), id.to_owned());
        let cancelling = tokio::spawn(async move {
            let Some(live) = host.queue.withdraw(&id) else {
                host.cancel_running(&id);
                return Ok(());
            };
            let outcome = Outcome::without_run(JobState::Cancelled, None, &live);
            let recorded = host.store.end(id, outcome).await.unwrap_or(Err(StoreError::Stopped));
            match recorded {
                Ok(_) => host.tell_end(&live, JobState::Cancelled, None),
                Err(_) => host.queue.push(live),
            }
            recorded.map(drop)
        });
        cancelling.await.unwrap_or(Err(StoreError::Stopped))
    }

    fn cancel_running(&self, id: &str) {
        if let Some(key) = self.queue.get(id).and_then(|live| live.cancel())
            && let Err(error) = self.engine.cancel(key)
        {
            tracing::error!(job = id, %error, "cannot be cancelled");
        }
    }

    /// Record that a job failed before it ran, and tell those who wait.
    pub(super) fn record_failure(&self, live: &Live, code: &str, sentence: String) {
        let failure = Some((code.to_owned(), sentence));
        self.finish(live, || Outcome::without_run(JobState::Failed, failure.clone(), live));
    }

    /// Record an end until it is on disk, then tell those who wait. A full disk is waited for: the proof is not lost.
    pub(super) fn finish(&self, live: &Live, outcome: impl Fn() -> Outcome) {
        loop {
            let outcome = outcome();
            let (state, code) = (outcome.state, outcome.failure.as_ref().map(|(code, _)| code.clone()));
            match self.store.end(live.id.clone(), outcome).blocking_recv() {
                Ok(Ok(_)) => return self.tell_end(live, state, code.as_deref()),
                Ok(Err(error)) => tracing::error!(job = %live.id, %error, "an end is not recorded yet; trying again"),
                Err(_) => return,
            }
            if self.is_leaving() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// An end is on disk: tell those who wait.
    fn tell_end(&self, live: &Live, state: JobState, code: Option<&str>) {
        self.metrics.ended(state.name());
        tracing::info!(job = %live.id, %state, code, "ended");
        if let Some(run) = live.key() {
            self.ended_runs.push(&live.id, run);
        }
        live.set_state(state);
        self.queue.remove(&live.id);
    }
}

impl Outcome {
    /// The end, now, of a job that did not run.
    fn without_run(state: JobState, failure: Option<(String, String)>, live: &Live) -> Self {
        Self { state, started_ms: live.started_ms(), ended_ms: now_ms(), failure, proved: None, stages: None }
    }
}

fn body(mut hasher: blake3::Hasher, circuit: &HostedCircuit, input: blake3::Hash, pinned: Option<&str>) -> [u8; 32] {
    hasher.update(&circuit.digest().0);
    hasher.update(input.as_bytes());
    hasher.update(pinned.unwrap_or_default().as_bytes());
    hasher.finalize().into()
}

/// Pinned public inputs in the one form that is recorded and compared.
fn check_publics(publics: &[Vec<String>], circuit: &HostedCircuit) -> Result<String, SubmitError> {
    let (partitions, count) = (circuit.partitions() as usize, circuit.public_count());
    if publics.len() != partitions || publics.iter().any(|publics| publics.len() != count) {
        let expected = format!("{partitions} partitions of {count} were expected, as an array of arrays");
        return Err(SubmitError::Publics(expected));
    }
    let scalars = scalars::all_from_hex(publics).map_err(SubmitError::Publics)?;
    let texts: Vec<Vec<_>> = scalars.iter().map(|publics| publics.iter().map(scalars::to_hex).collect()).collect();
    Ok(serde_json::json!(texts).to_string())
}
