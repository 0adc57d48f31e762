//! The engine: the scheduler's orders, carried out by threads.
//!
//! One thread decides (the coordinator, which owns the scheduler and has no lock), and talks through channels to those that
//! work: guests, slots, loaders, checkers. A panic in one of them costs the job it worked for.

mod coordinator;
mod workers;

use crate::arena::Arena;
use crate::budget::{Budget, Limits, Pool, Usage};
use crate::device::{Device, Stop};
use crate::failure::Outcome;
use crate::ids::{CircuitId, DeviceId, JobId, JobKey, Priority, Time};
use crate::scheduler::{Config, Counters, JobStatus, Refusal, Scheduler};
use crate::synthesis::{Circuit, Synthesis};
use crate::timeline::{Span, Timeline};
use coordinator::{Coordinator, Message};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use workers::Workers;

/// What an engine may use.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// What its scheduler decides with.
    pub scheduler: Config,
    /// Host memory for guests.
    pub host: Pool,
    /// What only urgent jobs may have of the arena, in bytes.
    pub pinned_head_room_bytes: u64,
}

/// A job.
pub struct JobRequest {
    /// Its name; unique for its owner.
    pub id: JobId,
    /// A digest of circuit, key, parameters and input.
    pub body: [u8; 32],
    /// The circuit.
    pub circuit: Circuit,
    /// How much it matters.
    pub priority: Priority,
    /// How long it may take, from now.
    pub time_limit: Option<Duration>,
    /// Its input, ready to be assigned.
    pub synthesis: Arc<dyn Synthesis>,
}

/// The engine stopped before it could answer, which it does for one reason only: it panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine has stopped; its last words are on standard error")]
pub struct Stopped;

/// Why a job was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The engine refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// An engine that runs. Dropping it cancels its jobs and ends its threads.
pub struct Engine {
    messages: Sender<Message>,
    devices: Arc<[Arc<dyn Device>]>,
    began: Instant,
    coordinator: Option<JoinHandle<()>>,
}

impl Engine {
    /// Start the threads. Fails if the system gives no more of them.
    pub fn start(config: EngineConfig, devices: Vec<Arc<dyn Device>>, arena: Arena) -> io::Result<Self> {
        let began = Instant::now();
        let (messages, inbox) = unbounded();
        let specs: Vec<_> = devices.iter().map(|device| device.spec()).collect();
        let limits = Limits {
            host: config.host,
            pinned_head_room_bytes: config.pinned_head_room_bytes,
            devices: devices.iter().map(|device| device.memory()).collect(),
        };
        let scheduler = Scheduler::new(config.scheduler, &specs, Budget::new(limits, arena.clone()));
        let workers = Workers::start(&config.scheduler, &devices, &arena, began, &messages)?;
        let coordinator = Coordinator::new(scheduler, workers, began);
        let coordinator =
            std::thread::Builder::new().name("zkhost-engine".into()).spawn(move || coordinator.run(&inbox))?;
        Ok(Self { messages, devices: devices.into(), began, coordinator: Some(coordinator) })
    }

    /// Submit a job, or join the one that has its name and body.
    pub fn submit(&self, request: JobRequest) -> Result<JobHandle, SubmitError> {
        let circuit_bytes = self.circuit_bytes(request.circuit.id);
        let deadline = request.time_limit.map(|limit| {
            let end = self.began.elapsed().saturating_add(limit).as_nanos();
            Time(u64::try_from(end).unwrap_or(u64::MAX))
        });
        let (ended, outcome) = bounded(1);
        let key = self.ask(|reply| Message::Submit { request, circuit_bytes, deadline, ended, reply })??;
        Ok(JobHandle { key, messages: self.messages.clone(), outcome })
    }

    /// The run of this name that exists or is remembered.
    pub fn find(&self, id: &JobId) -> Result<Option<JobKey>, Stopped> {
        self.ask(|reply| Message::Find(id.clone(), reply))
    }

    /// Where a run stands; none if it is unknown or forgotten.
    pub fn status(&self, key: JobKey) -> Result<Option<JobStatus>, Stopped> {
        self.ask(|reply| Message::Status(key, reply))
    }

    /// Stop a job; says whether there was one to stop. It ends when all of it is freed.
    pub fn cancel(&self, key: JobKey) -> Result<bool, Stopped> {
        self.ask(|reply| Message::Cancel(key, reply))
    }

    /// Runs that are not done, with their names.
    pub fn running(&self) -> Result<Vec<(JobKey, JobId)>, Stopped> {
        self.ask(Message::Running)
    }

    /// Bytes in use, and what happened since the start.
    pub fn usage(&self) -> Result<(Usage, Counters), Stopped> {
        self.ask(Message::Usage)
    }

    /// A copy of the timeline.
    pub fn timeline(&self) -> Result<Timeline, Stopped> {
        self.timeline_since(0)
    }

    /// The spans that were added since an earlier copy, whose [`Timeline::mark`] is given, as far as they are still kept.
    pub fn timeline_since(&self, mark: u64) -> Result<Timeline, Stopped> {
        self.ask(|reply| Message::Timeline(mark, reply))
    }

    /// The spans of one run of a job, as far as they are still kept.
    pub fn timeline_of(&self, run: JobKey) -> Result<Timeline, Stopped> {
        self.ask(|reply| Message::TimelineOf(run, reply))
    }

    /// Bring a circuit's key to every primary device that takes it and has room, ahead of its jobs; keys that no partition
    /// needs make way. Returns at once, with the devices that have it or are loading it.
    pub fn preload(&self, circuit: CircuitId) -> Result<Vec<DeviceId>, Stopped> {
        let circuit_bytes = self.circuit_bytes(circuit);
        self.ask(|reply| Message::Preload { circuit, circuit_bytes, reply })
    }

    /// Take a circuit's key off every device on which no partition needs it now. Says whether it is on none any more; one
    /// that is in use or being loaded stays.
    pub fn evict(&self, circuit: CircuitId) -> Result<bool, Stopped> {
        self.ask(|reply| Message::Evict(circuit, reply))
    }

    fn circuit_bytes(&self, circuit: CircuitId) -> Vec<Option<u64>> {
        self.devices.iter().map(|device| device.circuit_bytes(circuit)).collect()
    }

    /// The newest spans, so many at most, in order of their reports; then, ending now, one for each slot at work.
    pub fn newest(&self, count: usize) -> Result<Vec<Span>, Stopped> {
        self.ask(|reply| Message::Newest(count, reply))
    }

    /// The time since the engine's start, by which spans are dated.
    pub fn now(&self) -> Time {
        Time(self.began.elapsed().as_nanos() as u64)
    }

    /// The devices, in the order of their numbers.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        &self.devices
    }

    /// Take no new jobs and wait until those that exist have ended.
    pub fn drain(&self) -> Result<(), Stopped> {
        self.ask(Message::Drain)
    }

    /// Cancel all jobs. Together with [`Self::drain`], which waits for their end, the fast way down.
    pub fn cancel_all(&self) -> Result<(), Stopped> {
        self.messages.send(Message::CancelAll).map_err(|_| Stopped)
    }

    fn ask<T>(&self, message: impl FnOnce(Sender<T>) -> Message) -> Result<T, Stopped> {
        ask(&self.messages, message)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Each fails only if the coordinator is gone, and then there is nothing to wait for.
        let _ = self.cancel_all();
        let _ = self.drain();
        let _ = self.messages.send(Message::Exit);
        if let Some(coordinator) = self.coordinator.take() {
            let _ = coordinator.join();
        }
    }
}

/// A job that was submitted. Dropping it changes nothing for the job.
pub struct JobHandle {
    key: JobKey,
    messages: Sender<Message>,
    outcome: Receiver<Arc<Outcome>>,
}

impl JobHandle {
    /// The run.
    pub fn key(&self) -> JobKey {
        self.key
    }

    /// Wait for the job's end.
    pub fn wait(self) -> Result<Arc<Outcome>, Stopped> {
        self.outcome.recv().map_err(|_| Stopped)
    }

    /// Wait for the job's end for some time; none if it goes on.
    pub fn wait_for(&self, time: Duration) -> Result<Option<Arc<Outcome>>, Stopped> {
        match self.outcome.recv_timeout(time) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => Ok(None),
            Err(crossbeam_channel::RecvTimeoutError::Disconnected) => Err(Stopped),
        }
    }

    /// Stop the job.
    pub fn cancel(&self) -> Result<bool, Stopped> {
        ask(&self.messages, |reply| Message::Cancel(self.key, reply))
    }
}

fn ask<T>(messages: &Sender<Message>, message: impl FnOnce(Sender<T>) -> Message) -> Result<T, Stopped> {
    let (reply, answer) = bounded(1);
    messages.send(message(reply)).map_err(|_| Stopped)?;
    answer.recv().map_err(|_| Stopped)
}

/// A job's parts that workers need.
#[derive(Clone)]
struct JobParts {
    synthesis: Arc<dyn Synthesis>,
    circuit: Circuit,
    stop: Stop,
}
