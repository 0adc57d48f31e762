//! Running jobs: the threads that take them to the engine and bring back what became of them.

use super::{Host, now_ms};
use crate::circuits::{HostedCircuit, Resident};
use crate::queue::Live;
use crate::scalars;
use crate::stages::{GuestJob, StageTimes, TimedJob, TimedJudge};
use crate::store::{Outcome as Record, StoreError};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zkhost_client::types::JobState;
use zkhost_engine::failure::{Cause, Failure, Outcome, Proved};
use zkhost_engine::ids::{JobId, Priority};
use zkhost_engine::scheduler::Refusal;
use zkhost_engine::synthesis;
use zkhost_engine::{JobRequest, engine::SubmitError};
use zkhost_runtime::{Fault, Input, Refusal as GuestRefusal, RunError};

/// How soon to ask the engine again when it is full, which other jobs' ends change.
const ENGINE_RETRY: Duration = Duration::from_millis(20);

/// Why a job has no proof: a stable code and a sentence.
struct Failed {
    code: &'static str,
    sentence: String,
}

/// How a run ended, if it did.
enum End {
    Proved(Proved),
    Failed(Failed),
    Cancelled,
    /// The host stops; the job is run again by the next one.
    Left,
    /// Its circuit was unloaded meanwhile.
    Parked,
}

impl From<Failed> for End {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

/// What was measured of a run, in milliseconds.
type Stages = BTreeMap<&'static str, f64>;

impl Host {
    /// Take jobs until the host stops.
    pub(super) fn take_jobs(&self, priority_min: u8) {
        while let Some(live) = self.queue.take(priority_min, |circuit| self.registry.get(circuit).is_some()) {
            let mut stages = Stages::new();
            let run = catch_unwind(AssertUnwindSafe(|| self.run(&live, &mut stages)));
            let end = run.unwrap_or_else(|_| {
                // The message may quote an input.
                let sentence = "a thread of the host panicked, which is a bug; other jobs are not affected".into();
                End::Failed(Failed { code: "host-panicked", sentence })
            });
            self.conclude(live, end, stages);
        }
    }

    fn conclude(&self, live: Arc<Live>, end: End, stages: Stages) {
        let (state, failure, proved) = match end {
            End::Left => return,
            End::Parked => {
                live.set_state(JobState::Queued);
                return self.queue.push(live);
            }
            End::Cancelled => (JobState::Cancelled, None, None),
            End::Failed(Failed { code, sentence }) => (JobState::Failed, Some((code.to_owned(), sentence)), None),
            End::Proved(proved) => {
                let publics = scalars::to_bytes(&proved.publics);
                (JobState::Proved, None, Some((proved.proofs, publics)))
            }
        };
        stages.iter().for_each(|(stage, milliseconds)| self.metrics.stage(stage, *milliseconds));
        let stages = serde_json::to_string(&stages).ok();
        let started_ms = live.started_ms();
        self.finish(&live, || Record {
            state,
            started_ms,
            ended_ms: now_ms(),
            failure: failure.clone(),
            proved: proved.clone(),
            stages: stages.clone(),
        });
    }

    fn run(&self, live: &Live, stages: &mut Stages) -> End {
        let begun_ms = now_ms();
        stages.insert("queue", begun_ms.saturating_sub(live.submitted_ms) as f64);
        if live.is_cancelled() {
            return End::Cancelled;
        }
        if live.deadline_ms.is_some_and(|deadline| deadline <= begun_ms) {
            return failed("deadline", "its deadline passed while it waited").into();
        }
        let Some(circuit) = self.registry.get(live.circuit) else { return End::Parked };
        let _in_use = circuit.begin_use();
        live.begin(begun_ms);
        let began = Instant::now();
        let prepared = self.prepare(live, &circuit);
        stages.insert("prepare", began.elapsed().as_secs_f64() * 1e3);
        let (job, resident) = match prepared {
            Ok(prepared) => prepared,
            Err(end) => return end,
        };
        let times = Arc::new(StageTimes::default());
        let job = Arc::new(TimedJob { job, times: times.clone() });
        let began = Instant::now();
        let end = self.prove(live, &circuit, job, &resident);
        let (synthesis, verification) = times.milliseconds();
        stages.insert("engine", began.elapsed().as_secs_f64() * 1e3);
        stages.insert("synthesis", synthesis);
        stages.insert("verification", verification);
        match end {
            End::Proved(proved) => self.compare(live, proved),
            end => end,
        }
    }

    /// The input, opened; the key, in memory.
    fn prepare(&self, live: &Live, circuit: &HostedCircuit) -> Result<(GuestJob, Arc<Resident>), End> {
        let input = self.input(live)?;
        let resident = circuit.resident().map_err(|error| End::from(failed("key-unusable", error.to_string())))?;
        let job = resident.guest.job(input).map_err(|error| End::from(guest_failed(&error)))?;
        Ok((job, resident))
    }

    fn input(&self, live: &Live) -> Result<Input, End> {
        if let Some(input) = live.take_input() {
            return Ok(input.into_bytes().into());
        }
        let lost = |sentence: String| End::from(failed("input-lost", sentence));
        match self.read_store(live, || self.store.input(&self.vault, &live.id))? {
            None => Err(lost("its input is not in the job store; submit it again".into())),
            Some(Err(cannot_open)) => Err(lost(cannot_open.to_string())),
            Some(Ok(mut input)) => Ok(std::mem::take(&mut *input).into()),
        }
    }

    /// Read from the store until that succeeds, as ends are written: no job and no proof is lost to a disk that fails for a
    /// while.
    fn read_store<T>(&self, live: &Live, read: impl Fn() -> Result<T, StoreError>) -> Result<T, End> {
        loop {
            match read() {
                Ok(found) => return Ok(found),
                Err(_) if live.is_cancelled() => return Err(End::Cancelled),
                Err(_) if self.is_leaving() => return Err(End::Left),
                Err(error) => tracing::error!(job = %live.id, %error, "the job store cannot be read; trying again"),
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn prove(&self, live: &Live, circuit: &HostedCircuit, job: Arc<TimedJob>, resident: &Resident) -> End {
        let handle = loop {
            let judge = TimedJudge { judge: resident.circuit.judge.clone(), times: job.times.clone() };
            let request = JobRequest {
                // With its place: an id comes again once the store forgot it, and must not meet the engine's memory of it.
                id: JobId { owner: live.owner.clone(), name: format!("{}.{}", live.id, live.seq) },
                body: live.circuit.0,
                circuit: synthesis::Circuit { id: circuit.engine_id(), judge: Arc::new(judge) },
                priority: priority(live.priority),
                time_limit: live.deadline_ms.map(|end| Duration::from_millis(end.saturating_sub(now_ms()))),
                synthesis: job.clone(),
            };
            match self.engine.submit(request) {
                Ok(handle) => break handle,
                Err(SubmitError::Refused(Refusal::Busy { .. })) if !self.is_leaving() && !live.is_cancelled() => {
                    std::thread::sleep(ENGINE_RETRY);
                }
                Err(SubmitError::Refused(Refusal::Busy { .. })) if live.is_cancelled() => return End::Cancelled,
                Err(SubmitError::Refused(Refusal::Busy { .. } | Refusal::Draining)) => return End::Left,
                Err(error) => return not_taken(&error).into(),
            }
        };
        if live.set_key(handle.key()) || self.is_leaving() {
            // It is cancelled, or the host stops, since before the engine had it.
            let _ = handle.cancel();
        }
        match handle.wait() {
            Err(stopped) => failed("engine-stopped", stopped.to_string()).into(),
            Ok(outcome) => match &*outcome {
                Outcome::Proved(proved) => End::Proved(proved.clone()),
                Outcome::Cancelled if live.is_cancelled() => End::Cancelled,
                Outcome::Cancelled => End::Left,
                Outcome::Failed(failure) => match job.job.take_error() {
                    Some(error) => guest_failed(&error).into(),
                    None => engine_failed(failure).into(),
                },
            },
        }
    }

    /// Whether the public inputs are those that the submitter expects.
    fn compare(&self, live: &Live, proved: Proved) -> End {
        let pinned = match self.read_store(live, || self.store.job(&live.id)) {
            Ok(row) => row.and_then(|row| row.pinned_publics),
            Err(end) => return end,
        };
        let Some(pinned) = pinned else { return End::Proved(proved) };
        let expected: Vec<Vec<String>> = serde_json::from_str(&pinned).unwrap_or_default();
        for (partition, (expected, found)) in expected.iter().zip(&proved.publics).enumerate() {
            let differs = expected.iter().zip(found).position(|(expected, found)| *expected != scalars::to_hex(found));
            if let Some(index) = differs {
                let sentence = format!(
                    "public input {index} of partition {partition} is not the one that was expected; the input proves \
                     something else"
                );
                return failed("publics-differ", sentence).into();
            }
        }
        End::Proved(proved)
    }
}

fn failed(code: &'static str, sentence: impl Into<String>) -> Failed {
    Failed { code, sentence: sentence.into() }
}

/// A job that the engine refuses for good.
fn not_taken(error: &SubmitError) -> Failed {
    let code = match error {
        SubmitError::Refused(Refusal::NeverFits(_)) => "never-fits",
        SubmitError::Refused(Refusal::Partitions { .. } | Refusal::Segments { .. }) => "circuit-limit",
        // Names and bodies are the host's own.
        SubmitError::Refused(_) => "host-fault",
        SubmitError::Stopped(_) => "engine-stopped",
    };
    failed(code, error.to_string())
}

fn priority(code: u8) -> Priority {
    match code {
        0 => Priority::Background,
        2 => Priority::Urgent,
        _ => Priority::Normal,
    }
}

fn guest_failed(error: &RunError) -> Failed {
    let code = match &error.fault {
        Fault::Refused { kind: GuestRefusal::BadInput | GuestRefusal::BadParams, .. } => "bad-input",
        Fault::Refused { kind: GuestRefusal::Unsatisfied, .. } => "unsatisfied",
        Fault::Limit { .. } => "circuit-limit",
        Fault::Busy { .. } => "circuit-busy",
        _ => "circuit-failed",
    };
    failed(code, error.to_string())
}

fn engine_failed(failure: &Failure) -> Failed {
    let code = match &failure.cause {
        Cause::Unsatisfied(_) => "unsatisfied",
        Cause::Device { .. } | Cause::NoDevice => "device-failed",
        Cause::Rejected(_) => "key-mismatch",
        Cause::Deadline => "deadline",
        Cause::Panicked => "host-panicked",
        _ => "circuit-failed",
    };
    failed(code, failure.to_string())
}
