//! The thread that decides: messages in, the scheduler's actions out to workers. It owns what passes between workers.

use super::workers::{CheckOrder, LoadOrder, SegmentOrder, SlotOrder, Workers};
use super::{JobParts, JobRequest};
use crate::arena::{Lease, LeaseTag};
use crate::budget::Usage;
use crate::device::Stop;
use crate::failure::Outcome;
use crate::ids::{CircuitId, DeviceId, JobId, JobKey, PartitionKey, SlotId, Time};
use crate::scheduler::{Action, Counters, JobStatus, Refusal, Report, Scheduler, Submission};
use crate::timeline::{Category, Span, Timeline, Track};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zkhost_groth16::Assignment;
use zkhost_groth16::assignment::Segment;

/// What the coordinator is told or asked.
pub(super) enum Message {
    Submit {
        request: JobRequest,
        circuit_bytes: Vec<Option<u64>>,
        deadline: Option<Time>,
        ended: Sender<Arc<Outcome>>,
        reply: Sender<Result<JobKey, Refusal>>,
    },
    Find(JobId, Sender<Option<JobKey>>),
    Status(JobKey, Sender<Option<JobStatus>>),
    Cancel(JobKey, Sender<bool>),
    CancelAll,
    Running(Sender<Vec<(JobKey, JobId)>>),
    Usage(Sender<(Usage, Counters)>),
    Timeline(u64, Sender<Timeline>),
    TimelineOf(JobKey, Sender<Timeline>),
    Newest(usize, Sender<Vec<Span>>),
    Preload {
        circuit: CircuitId,
        circuit_bytes: Vec<Option<u64>>,
        reply: Sender<Vec<DeviceId>>,
    },
    Evict(CircuitId, Sender<bool>),
    Drain(Sender<()>),
    /// A worker is done; `segment` is what it wrote.
    Done {
        report: Report,
        segment: Option<Segment>,
        spans: Vec<Span>,
    },
    Exit,
}

/// A job that is not done.
struct Job {
    parts: JobParts,
    waiters: Vec<Sender<Arc<Outcome>>>,
    last_proof: Option<Time>,
}

/// A partition's data, from admission to release.
struct Partition {
    tags: Arc<[LeaseTag]>,
    leases: Vec<Option<Lease>>,
    segments: Vec<Option<Segment>>,
    missing: usize,
    assignment: Option<Arc<Assignment>>,
    queued: Option<Time>,
    proving: Option<(SlotId, Time)>,
}

/// Everything that has to be zeroed and freed when a partition is released. Dropping it does so.
pub(super) struct Remains {
    _leases: Vec<Option<Lease>>,
    _segments: Vec<Option<Segment>>,
    _assignment: Option<Arc<Assignment>>,
}

pub(super) struct Coordinator {
    scheduler: Scheduler,
    workers: Workers,
    began: Instant,
    jobs: HashMap<JobKey, Job>,
    partitions: HashMap<PartitionKey, Partition>,
    drainers: Vec<Sender<()>>,
    drained: bool,
    timeline: Timeline,
}

impl Coordinator {
    pub fn new(scheduler: Scheduler, workers: Workers, began: Instant) -> Self {
        Self {
            scheduler,
            workers,
            began,
            jobs: HashMap::new(),
            partitions: HashMap::new(),
            drainers: vec![],
            drained: false,
            timeline: Timeline::default(),
        }
    }

    /// Decide until told to exit; then end the workers.
    pub fn run(mut self, inbox: &Receiver<Message>) {
        loop {
            let now = self.now();
            let message = match self.scheduler.next_wake(now) {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wake) => inbox.recv_timeout(Duration::from_nanos(wake.0.saturating_sub(now.0))),
            };
            match message {
                Ok(Message::Exit) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(message) => self.hear(message),
                Err(RecvTimeoutError::Timeout) => self.scheduler.wake(self.now()),
            }
            self.obey();
        }
        self.workers.join();
    }

    fn now(&self) -> Time {
        Time(self.began.elapsed().as_nanos() as u64)
    }

    fn hear(&mut self, message: Message) {
        let now = self.now();
        match message {
            Message::Submit { request, circuit_bytes, deadline, ended, reply } => {
                let answer = self.submit(request, circuit_bytes, deadline, ended);
                tell(&reply, answer);
            }
            Message::Find(id, reply) => tell(&reply, self.scheduler.find(&id)),
            Message::Status(key, reply) => tell(&reply, self.scheduler.status(key)),
            Message::Cancel(key, reply) => tell(&reply, self.scheduler.cancel(now, key)),
            Message::CancelAll => self.scheduler.cancel_all(now),
            Message::Running(reply) => {
                let running = self.scheduler.running().map(|(key, id)| (key, id.clone())).collect();
                tell(&reply, running);
            }
            Message::Usage(reply) => tell(&reply, (self.scheduler.usage(), self.scheduler.counters())),
            Message::Newest(count, reply) => tell(&reply, self.newest(count, now)),
            Message::Timeline(mark, reply) => tell(&reply, self.timeline.since(mark)),
            Message::TimelineOf(run, reply) => tell(&reply, self.timeline.of(run)),
            Message::Preload { circuit, circuit_bytes, reply } => {
                tell(&reply, self.scheduler.preload(now, circuit, &circuit_bytes));
            }
            Message::Evict(circuit, reply) => tell(&reply, self.scheduler.evict(now, circuit)),
            Message::Drain(reply) => {
                if self.drained {
                    tell(&reply, ());
                } else {
                    self.drainers.push(reply);
                    self.scheduler.drain(now);
                }
            }
            Message::Done { report, segment, spans } => self.done(now, report, segment, spans),
            Message::Exit => {}
        }
    }

    fn submit(
        &mut self,
        request: JobRequest,
        circuit_bytes: Vec<Option<u64>>,
        deadline: Option<Time>,
        ended: Sender<Arc<Outcome>>,
    ) -> Result<JobKey, Refusal> {
        let JobRequest { id, body, circuit, priority, time_limit: _, synthesis } = request;
        let submission = Submission {
            id,
            body,
            circuit: circuit.id,
            circuit_bytes,
            priority,
            partitions: synthesis.partitions(),
            segments: synthesis.segments().into(),
            guest_bytes: synthesis.guest_bytes(),
            deadline,
        };
        let key = self.scheduler.submit(self.now(), submission)?.key();
        if let Some(JobStatus::Ended(outcome)) = self.scheduler.status(key) {
            tell(&ended, outcome);
            return Ok(key);
        }
        let parts = JobParts { synthesis, circuit, stop: Stop::default() };
        let job = self.jobs.entry(key).or_insert(Job { parts, waiters: vec![], last_proof: None });
        job.waiters.push(ended);
        Ok(key)
    }

    fn done(&mut self, now: Time, report: Report, segment: Option<Segment>, spans: Vec<Span>) {
        spans.into_iter().for_each(|span| self.timeline.push(span));
        match &report {
            Report::Synthesised { partition, segment: index, .. } => {
                let data = self.partition(*partition);
                data.missing -= usize::from(segment.is_some());
                data.segments[*index as usize] = segment;
                if data.missing == 0 {
                    data.queued = Some(now);
                }
            }
            Report::Proved { partition, result, .. } => {
                let data = self.partition(*partition);
                data.proving = None;
                data.queued = result.is_err().then_some(now);
            }
            Report::Checked { partition, .. } => {
                if let Some(job) = self.jobs.get_mut(&partition.job) {
                    job.last_proof = Some(now);
                }
            }
            _ => {}
        }
        self.scheduler.report(now, report);
    }

    fn obey(&mut self) {
        for action in self.scheduler.take_actions() {
            match action {
                Action::Admit { partition, leases } => self.admit(partition, leases),
                Action::Synthesise { partition, segment } => self.synthesise(partition, segment),
                Action::KeepGuests { job, count } => {
                    if let Some(job) = self.jobs.get(&job) {
                        job.parts.synthesis.keep_guests(count);
                    }
                }
                Action::Evict { device, circuit } => self.workers.load(device, LoadOrder::Evict(circuit)),
                Action::Load { device, circuit } => self.workers.load(device, LoadOrder::Load(circuit)),
                Action::Restart { device } => self.workers.load(device, LoadOrder::Restart),
                Action::Prove { slot, partition, circuit } => {
                    let now = self.now();
                    self.end_queue_span(partition, now);
                    let stop = self.jobs[&partition.job].parts.stop.clone();
                    let data = self.partition(partition);
                    data.proving = Some((slot, now));
                    let (assignment, tags) = (data.assignment(), data.tags.clone());
                    self.workers.prove(slot, SlotOrder { partition, circuit, assignment, tags, stop });
                }
                Action::Check { partition, proof } => {
                    let judge = self.jobs[&partition.job].parts.circuit.judge.clone();
                    let assignment = self.partition(partition).assignment();
                    self.workers.check(CheckOrder::Check { partition, judge, assignment, proof });
                }
                Action::Abort { job } => {
                    if let Some(job) = self.jobs.get(&job) {
                        job.parts.stop.set();
                    }
                }
                Action::Release { partition } => self.release(partition),
                Action::End { job, outcome } => self.end(job, outcome),
                Action::Drained => {
                    self.drained = true;
                    self.drainers.drain(..).for_each(|drainer| tell(&drainer, ()));
                }
            }
        }
    }

    fn partition(&mut self, key: PartitionKey) -> &mut Partition {
        self.partitions
            .get_mut(&key)
            .expect("the scheduler orders nothing of a partition before admission or after release")
    }

    fn admit(&mut self, key: PartitionKey, leases: Vec<Lease>) {
        let data = Partition {
            tags: leases.iter().map(Lease::tag).collect(),
            segments: leases.iter().map(|_| None).collect(),
            missing: leases.len(),
            leases: leases.into_iter().map(Some).collect(),
            assignment: None,
            queued: None,
            proving: None,
        };
        self.partitions.insert(key, data);
    }

    fn synthesise(&mut self, partition: PartitionKey, segment: u32) {
        let parts = self.jobs[&partition.job].parts.clone();
        let lease = self.partition(partition).leases[segment as usize].take().expect("a segment is written once");
        self.workers.synthesise(SegmentOrder { partition, segment, lease, parts });
    }

    fn newest(&self, count: usize, now: Time) -> Vec<Span> {
        let at_work = self.partitions.iter().filter_map(|(&key, data)| Some((key, data.proving?)));
        let at_work = at_work.map(|(key, (slot, start))| Span {
            track: Track::Slot(slot),
            category: Category::Proving,
            name: "at work".into(),
            partition: Some(key),
            start,
            end: now,
            bytes: 0,
        });
        self.timeline.newest(count).cloned().chain(at_work).collect()
    }

    fn end_queue_span(&mut self, partition: PartitionKey, now: Time) {
        if let Some(start) = self.partition(partition).queued.take() {
            let name = "wait for a slot".into();
            let (track, category) = (Track::Queue, Category::Queue);
            self.timeline.push(Span { track, category, name, partition: Some(partition), start, end: now, bytes: 0 });
        }
    }

    fn release(&mut self, partition: PartitionKey) {
        let data = self.partitions.remove(&partition).expect("what is released was admitted");
        let Partition { leases, segments, assignment, .. } = data;
        let remains = Remains { _leases: leases, _segments: segments, _assignment: assignment };
        self.workers.check(CheckOrder::Release { partition, remains });
    }

    fn end(&mut self, key: JobKey, outcome: Arc<Outcome>) {
        let Some(job) = self.jobs.remove(&key) else { return };
        if let Some(start) = job.last_proof {
            let (track, category, name) = (Track::Coordinator, Category::Assembly, "assembly".into());
            let partition = Some(PartitionKey { job: key, index: 0 });
            self.timeline.push(Span { track, category, name, partition, start, end: self.now(), bytes: 0 });
        }
        job.waiters.into_iter().for_each(|waiter| tell(&waiter, outcome.clone()));
    }
}

impl Partition {
    /// The assignment, all segments being written.
    fn assignment(&mut self) -> Arc<Assignment> {
        let segments = &mut self.segments;
        let assignment = self.assignment.get_or_insert_with(|| {
            let all = segments.drain(..).map(|segment| segment.expect("a partition is proved when all is written"));
            Arc::new(Assignment::new(all.collect()))
        });
        assignment.clone()
    }
}

/// Answer somebody, who may be gone: that is theirs to know.
fn tell<T>(to: &Sender<T>, what: T) {
    let _ = to.send(what);
}
