//! The scheduler: a state machine without threads, clocks or locks. Reports of workers and requests of callers go in, with
//! the time; orders to workers come out. Every wait is a state here, so no lock can be held across one.
//!
//! A partition goes through [`PartitionState`]. It is admitted, in order, when the budget has everything it needs until it is
//! done (host, pinned and device memory) and a device has a credit for it; so what was admitted never waits for memory again,
//! and there is nothing to deadlock on. What is admitted ends with an order to release its memory, and only the report of
//! that returns its credit.

mod admission;
mod dispatch;
mod job;
mod orders;
mod reports;

pub use job::{JobStatus, PARTITIONS_MAX, PartitionState, SEGMENTS_MAX, Submission, Submitted};
pub use orders::{Action, DeviceFault, Report, SynthesisFault, Verdict};

use crate::budget::{Budget, NeverFits, Usage};
use crate::failure::{Cause, Failure, Outcome, Place, Stage};
use crate::ids::{CircuitId, DeviceId, JobId, JobKey, NAME_BYTES_MAX, PartitionKey, Priority, Time};
use job::{Ended, Job, Turn};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Attempts to prove one partition: anywhere, then elsewhere, then on the last resort.
pub const ATTEMPTS_MAX: u32 = 3;

/// Bytes of proofs and public inputs of ended jobs that are remembered, at most; the oldest job is forgotten.
pub const ENDED_BYTES_MAX: usize = 64 << 20;

/// Restarts of a device in a row, without one proof between them, after which it is given up.
pub const DEVICE_RESTARTS_MAX: u32 = 3;

/// How soon the scheduler looks again for page-locked memory that waits for a device's event, in nanoseconds.
const QUARANTINE_POLL_NANOS: u64 = 1_000_000;

/// When a device is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// For everything it has room for.
    Primary,
    /// For circuits that no primary device takes, and for partitions that failed on two slots or have no device left.
    LastResort,
}

/// A device as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Slots, one at least.
    pub slots: u16,
    /// When it is used.
    pub role: Role,
    /// Its NUMA node.
    pub node: u32,
}

/// What the scheduler decides with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Threads that run guests, one at least.
    pub synthesis_workers: usize,
    /// Threads that verify proofs and release memory, one at least.
    pub check_workers: usize,
    /// Partitions in flight for each slot, from admission to release, one at least.
    pub credits_per_slot: u32,
    /// Partitions in flight beyond that, for urgent jobs.
    pub urgent_credits_per_slot: u32,
    /// Jobs that are not done, at most.
    pub jobs_max: usize,
    /// Jobs that are done and remembered, at most; the oldest is forgotten. See also [`ENDED_BYTES_MAX`].
    pub ended_jobs_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            synthesis_workers: 1,
            check_workers: 1,
            credits_per_slot: 3,
            urgent_credits_per_slot: 1,
            jobs_max: 1024,
            ended_jobs_max: 1024,
        }
    }
}

/// Why a job was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The engine finishes what it has.
    #[error("the engine is draining and takes no new jobs; submit to another one, or after its restart")]
    Draining,
    /// The queue is full.
    #[error("busy: {jobs} jobs are running or waiting, the most that this engine takes; try again later")]
    Busy {
        /// How many there are.
        jobs: usize,
    },
    /// The name is taken.
    #[error("job {0} exists with another circuit, key or input; give this one a name of its own")]
    OtherBody(JobId),
    /// A bad name.
    #[error("a job and its owner have names of 1 to {NAME_BYTES_MAX} bytes without control characters")]
    Name,
    /// A bad number of partitions.
    #[error("the job has {partitions} partitions; there are from 1 to {PARTITIONS_MAX}")]
    Partitions {
        /// How many it has.
        partitions: u32,
    },
    /// A bad number of segments.
    #[error("each partition has {segments} segments; there are from 1 to {SEGMENTS_MAX}")]
    Segments {
        /// How many it has.
        segments: usize,
    },
    /// It could not run even alone.
    #[error("it never fits: {0}")]
    NeverFits(NeverFits),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Live,
    /// Lost; some slots have not reported yet.
    Lost,
    Restarting,
    Dead,
}

struct Device {
    spec: DeviceSpec,
    health: Health,
    /// Restarts since its last proof.
    restarts: u32,
    /// What each slot works on.
    slots: Vec<Option<PartitionKey>>,
    /// Partitions that have one of its credits.
    in_flight: u32,
    /// Circuits whose load failed since it was last started.
    refuses: BTreeSet<CircuitId>,
}

impl Device {
    fn credits(&self, config: &Config, priority: Priority) -> u32 {
        let urgent = if priority == Priority::Urgent { config.urgent_credits_per_slot } else { 0 };
        u32::from(self.spec.slots).saturating_mul(config.credits_per_slot.saturating_add(urgent))
    }
}

/// The scheduler. See the module.
pub struct Scheduler {
    config: Config,
    budget: Budget,
    devices: Vec<Device>,
    next_job: u64,
    jobs: BTreeMap<JobKey, Job>,
    ids: HashMap<JobId, JobKey>,
    ended: VecDeque<Ended>,
    ended_bytes: usize,
    deadlines: BTreeSet<(Time, JobKey)>,
    waiting: BTreeSet<Turn>,
    homeless: BTreeSet<Turn>,
    segments: BTreeSet<(Turn, u32)>,
    ready: BTreeSet<Turn>,
    proved: BTreeSet<Turn>,
    /// Jobs that keep the memory of one partition's guests while none is being written.
    resting: BTreeSet<JobKey>,
    synthesis_idle: usize,
    check_idle: usize,
    draining: bool,
    now: Time,
    counters: Counters,
    actions: Vec<Action>,
}

/// What happened since the start, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Circuits that were brought to a device.
    pub loads: u64,
    /// Circuits that made room for others.
    pub evictions: u64,
    /// Attempts to prove a partition after a failed one.
    pub retries: u64,
    /// Proofs that did not verify although their constraints hold.
    pub faulty_proofs: u64,
    /// Devices that were lost.
    pub device_losses: u64,
}

impl Scheduler {
    /// A scheduler with nothing to do. `devices` are those of the budget, in the same order; one without slots is given up.
    pub fn new(config: Config, devices: &[DeviceSpec], budget: Budget) -> Self {
        // Nothing would ever happen without these.
        let config = Config {
            synthesis_workers: config.synthesis_workers.max(1),
            check_workers: config.check_workers.max(1),
            credits_per_slot: config.credits_per_slot.max(1),
            ..config
        };
        let device = |&spec: &DeviceSpec| Device {
            spec,
            health: if spec.slots == 0 { Health::Dead } else { Health::Live },
            restarts: 0,
            slots: vec![None; usize::from(spec.slots)],
            in_flight: 0,
            refuses: BTreeSet::new(),
        };
        Self {
            budget,
            devices: devices.iter().map(device).collect(),
            next_job: 0,
            jobs: BTreeMap::new(),
            ids: HashMap::new(),
            ended: VecDeque::new(),
            ended_bytes: 0,
            deadlines: BTreeSet::new(),
            waiting: BTreeSet::new(),
            homeless: BTreeSet::new(),
            segments: BTreeSet::new(),
            ready: BTreeSet::new(),
            proved: BTreeSet::new(),
            resting: BTreeSet::new(),
            synthesis_idle: config.synthesis_workers,
            check_idle: config.check_workers,
            config,
            draining: false,
            now: Time::default(),
            counters: Counters::default(),
            actions: vec![],
        }
    }

    /// Take a job, join it to one of the same name and body, or refuse it.
    pub fn submit(&mut self, now: Time, submission: Submission) -> Result<Submitted, Refusal> {
        if let Some(&key) = self.ids.get(&submission.id) {
            return self.join(key, &submission);
        }
        if self.draining {
            return Err(Refusal::Draining);
        }
        if self.jobs.len() >= self.config.jobs_max {
            return Err(Refusal::Busy { jobs: self.jobs.len() });
        }
        submission.validate(self.devices.len())?;
        self.refuse_what_never_fits(&submission).map_err(Refusal::NeverFits)?;
        let key = JobKey(self.next_job);
        self.next_job += 1;
        self.ids.insert(submission.id.clone(), key);
        self.deadlines.extend(submission.deadline.map(|deadline| (deadline, key)));
        let job = Job::new(submission);
        let turns = (0..job.submission.partitions).map(|index| job.turn(PartitionKey { job: key, index }));
        self.waiting.extend(turns);
        self.jobs.insert(key, job);
        self.pump(now);
        Ok(Submitted::Started(key))
    }

    fn join(&self, key: JobKey, submission: &Submission) -> Result<Submitted, Refusal> {
        let running = self.jobs.get(&key).map(|job| job.submission.body);
        let body = running.or_else(|| self.ended(key).map(|ended| ended.body));
        if body == Some(submission.body) {
            Ok(Submitted::Joined(key))
        } else {
            Err(Refusal::OtherBody(submission.id.clone()))
        }
    }

    /// Stop a job. It ends once its workers have answered; its name is free at once. Says whether there was one to stop.
    pub fn cancel(&mut self, now: Time, job: JobKey) -> bool {
        let running = self.jobs.get(&job).is_some_and(|job| job.stopping.is_none());
        if running {
            self.now = now;
            self.stop(job, Outcome::Cancelled);
            self.pump(now);
        }
        running
    }

    /// Take no new jobs; [`Action::Drained`] follows when those that exist have ended.
    pub fn drain(&mut self, now: Time) {
        if !self.draining {
            self.draining = true;
            if self.jobs.is_empty() {
                self.actions.push(Action::Drained);
            }
        }
        self.pump(now);
    }

    /// Stop every job.
    pub fn cancel_all(&mut self, now: Time) {
        let running: Vec<_> = self.jobs.iter().filter(|(_, job)| job.stopping.is_none()).map(|(&key, _)| key).collect();
        self.now = now;
        for key in running {
            self.stop(key, Outcome::Cancelled);
        }
        self.pump(now);
    }

    /// The time has come that [`Self::next_wake`] gave.
    pub fn wake(&mut self, now: Time) {
        while let Some(&(deadline, key)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            self.deadlines.pop_first();
            let (stage, place) = self.furthest_behind(key);
            self.fail(now, key, stage, place, Cause::Deadline);
        }
        self.pump(now);
    }

    /// When to call [`Self::wake`], if nothing is reported before.
    pub fn next_wake(&self, now: Time) -> Option<Time> {
        let deadline = self.deadlines.first().map(|&(deadline, _)| deadline);
        let poll = !self.waiting.is_empty() && self.budget.arena().quarantined() > 0;
        let poll = poll.then(|| now.plus_nanos(QUARANTINE_POLL_NANOS));
        deadline.into_iter().chain(poll).min()
    }

    /// What to do now, in order. The list is empty afterwards.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Where a run stands; none if it is unknown or forgotten.
    pub fn status(&self, key: JobKey) -> Option<JobStatus> {
        let Some(job) = self.jobs.get(&key) else {
            return self.ended(key).map(|ended| JobStatus::Ended(ended.outcome.clone()));
        };
        let first = |index| PartitionKey { job: index, index: 0 };
        let before = |&(&other, state): &(&JobKey, &Job)| state.turn(first(other)) < job.turn(first(key));
        Some(JobStatus::Running {
            ahead: self.jobs.iter().filter(before).count(),
            stopping: job.stopping.is_some(),
            partitions: job.partitions.iter().map(|partition| partition.state).collect(),
        })
    }

    fn ended(&self, key: JobKey) -> Option<&Ended> {
        self.ended.iter().find(|ended| ended.key == key)
    }

    /// The run of this name that exists or is remembered.
    pub fn find(&self, id: &JobId) -> Option<JobKey> {
        self.ids.get(id).copied()
    }

    /// Names and runs of all jobs that are not done.
    pub fn running(&self) -> impl Iterator<Item = (JobKey, &JobId)> + '_ {
        self.jobs.iter().map(|(&key, job)| (key, &job.submission.id))
    }

    /// What happened since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Devices that were lost so often, or could not be restarted, that nothing is given to them any more.
    pub fn given_up(&self) -> impl Iterator<Item = DeviceId> + '_ {
        (0..).zip(&self.devices).filter(|(_, device)| device.health == Health::Dead).map(|(index, _)| DeviceId(index))
    }

    /// Bytes in use.
    pub fn usage(&self) -> Usage {
        self.budget.usage()
    }

    /// Begin everything that can begin.
    fn pump(&mut self, now: Time) {
        self.rehome(now);
        self.admit(now);
        self.dispatch_segments();
        self.dispatch_slots();
        self.dispatch_checks();
    }

    fn fail(&mut self, now: Time, key: JobKey, stage: Stage, place: Place, cause: Cause) {
        let Some(job) = self.jobs.get(&key).filter(|job| job.stopping.is_none()) else { return };
        let failure = Failure { job: job.submission.id.clone(), stage, place, cause };
        tracing::warn!(job = %failure.job, "{failure}");
        self.now = now;
        self.stop(key, Outcome::Failed(failure));
    }

    /// What the first partition of a job that is not done waits for.
    fn furthest_behind(&self, key: JobKey) -> (Stage, Place) {
        let partitions = self.jobs.get(&key).into_iter().flat_map(|job| (0..).zip(&job.partitions));
        let stages = partitions.filter_map(|(index, partition)| Some((partition.state.stage()?, index)));
        let Some((stage, partition)) = stages.min() else { return (Stage::Verification, Place::default()) };
        (stage, Place { partition: Some(partition), segment: None })
    }

    /// Begin nothing more of a job and release what has no worker; the rest follows as workers report.
    fn stop(&mut self, key: JobKey, outcome: Outcome) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.stopping = Some(outcome);
        let id = job.submission.id.clone();
        let count = job.submission.partitions;
        // The name is free: a later run has another key, so nothing of this one can reach it.
        self.ids.remove(&id);
        self.actions.push(Action::Abort { job: key });
        if self.resting.remove(&key) {
            self.give_back_grant(key);
        }
        for index in 0..count {
            self.wind_up(PartitionKey { job: key, index });
        }
        self.end_if_closed(key);
    }
}

fn ceil_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
