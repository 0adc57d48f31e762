//! A world of workers and devices on virtual time around the real scheduler, budget and arena. It does what the scheduler
//! orders, checks every order against what is true in the world, and reports, after a delay, success or a fault.

mod orders;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use zkhost_engine::arena::{Arena, Lease, Ordinary, SlabSpec};
use zkhost_engine::budget::{Budget, Limits, Pool, Usage};
use zkhost_engine::failure::Outcome;
use zkhost_engine::ids::{
    CircuitId, DeviceId, JobId, JobKey, PROOF_BYTES, PartitionKey, PartitionProof, Priority, ProofBytes, SlotId, Time,
};
use zkhost_engine::scheduler::{
    Action, Config, DeviceFault, DeviceSpec, Refusal, Report, Scheduler, Submission, Submitted, SynthesisFault, Verdict,
};
use zkhost_groth16::assignment::{SegmentLimits, Window};
use zkhost_groth16::r1cs::Unsatisfied;

pub const MILLISECOND: u64 = 1_000_000;

/// How soon a worker notices that its job is to stop: no launch of a device and no epoch of a guest is longer.
const ABORT_NANOS: Range<u64> = 0..50 * MILLISECOND;
const CANCEL_NANOS_MAX: u64 = 100 * MILLISECOND;

#[derive(Clone, Debug)]
pub struct Setup {
    pub config: Config,
    pub devices: Vec<(DeviceSpec, Pool)>,
    pub host: Pool,
    pub slab_bytes: Vec<u64>,
    pub pinned_head_room_bytes: u64,
    pub synthesis_nanos: Range<u64>,
    pub prove_nanos: Range<u64>,
    pub load_nanos: Range<u64>,
    /// Chances of each fault, in thousandths.
    pub faults: Rates,
    /// One fault at one call to a device, counted from 0.
    pub fault_at: Option<(u64, Fault)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub failed: u64,
    pub lost: u64,
    pub faulty: u64,
    pub load: u64,
    pub restart: u64,
    pub panic: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Failed,
    Lost,
    Faulty,
    Panicked,
}

/// What is true of a job, whatever the scheduler does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Truth {
    /// The partition whose assignment does not satisfy the constraints.
    pub unsatisfied: Option<u32>,
    /// The partition and segment that the guest fails in.
    pub guest_fault: Option<(u32, u32)>,
}

#[derive(Debug)]
enum Happening {
    Report(Report),
    LoaderDone(DeviceId, Report),
    Submit(Submission, Truth),
    Cancel(JobId),
    Preload(CircuitId, u64),
    Evict(CircuitId),
    Drain,
}

#[derive(Clone, Copy)]
enum LoaderOrder {
    Evict(CircuitId),
    Load(CircuitId),
    Restart,
}

#[derive(Default)]
struct DeviceTruth {
    resident: BTreeMap<CircuitId, u64>,
    loader: VecDeque<LoaderOrder>,
    loading: bool,
    proving: BTreeMap<u16, (PartitionKey, CircuitId)>,
}

pub struct Run {
    pub submission: Submission,
    pub truth: Truth,
    pub outcome: Option<Arc<Outcome>>,
    pub cancelled_at: Option<Time>,
    pub submitted_at: Time,
    /// When each partition's assignment was complete, and when a slot first had it.
    pub ready_at: BTreeMap<u32, Time>,
    pub proving_at: BTreeMap<u32, Time>,
    written: BTreeSet<(u32, u32)>,
    admitted: BTreeMap<u32, Vec<Lease>>,
    computed: BTreeMap<u32, (SlotId, bool)>,
    pub guests: Guests,
    pub slots: Vec<(u32, SlotId)>,
}

/// A job's guests: those that write, those that rest, and how many were opened.
#[derive(Default)]
pub struct Guests {
    writing: u64,
    resting: u64,
    pub opened: u64,
}

pub struct World {
    pub scheduler: Scheduler,
    pub now: Time,
    pub runs: BTreeMap<JobKey, Run>,
    pub refusals: Vec<(JobId, Refusal)>,
    pub device_calls: u64,
    pub drained: bool,
    pub order: Vec<String>,
    setup: Setup,
    arena: Arena,
    rng: ChaCha8Rng,
    happenings: BTreeMap<(Time, u64), Happening>,
    next_happening: u64,
    devices: Vec<DeviceTruth>,
    synthesising: usize,
    checking: usize,
    circuit_bytes: HashMap<CircuitId, u64>,
}

impl World {
    pub fn new(seed: u64, setup: Setup) -> Self {
        let slabs: Vec<_> = (0..).zip(&setup.slab_bytes).map(|(node, &bytes)| SlabSpec { node, bytes }).collect();
        let arena = Arena::new(&slabs, Arc::new(Ordinary)).unwrap();
        let limits = Limits {
            host: setup.host,
            pinned_head_room_bytes: setup.pinned_head_room_bytes,
            devices: setup.devices.iter().map(|device| device.1).collect(),
        };
        let specs: Vec<_> = setup.devices.iter().map(|device| device.0).collect();
        Self {
            scheduler: Scheduler::new(setup.config, &specs, Budget::new(limits, arena.clone())),
            now: Time(0),
            runs: BTreeMap::new(),
            refusals: vec![],
            device_calls: 0,
            drained: false,
            order: vec![],
            devices: specs.iter().map(|_| DeviceTruth::default()).collect(),
            setup,
            arena,
            rng: ChaCha8Rng::seed_from_u64(seed),
            happenings: BTreeMap::new(),
            next_happening: 0,
            synthesising: 0,
            checking: 0,
            circuit_bytes: HashMap::new(),
        }
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound.max(1)
    }

    fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    fn chance(&mut self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }

    pub fn submit_at(&mut self, nanos: u64, submission: Submission, truth: Truth) {
        self.at(Time(nanos), Happening::Submit(submission, truth));
    }

    pub fn cancel_at(&mut self, nanos: u64, id: JobId) {
        self.at(Time(nanos), Happening::Cancel(id));
    }

    pub fn preload_at(&mut self, nanos: u64, circuit: CircuitId, bytes: u64) {
        self.at(Time(nanos), Happening::Preload(circuit, bytes));
    }

    pub fn evict_at(&mut self, nanos: u64, circuit: CircuitId) {
        self.at(Time(nanos), Happening::Evict(circuit));
    }

    pub fn drain_at(&mut self, nanos: u64) {
        self.at(Time(nanos), Happening::Drain);
    }

    fn at(&mut self, time: Time, happening: Happening) {
        self.happenings.insert((time, self.next_happening), happening);
        self.next_happening += 1;
    }

    fn after(&mut self, nanos: u64, happening: Happening) {
        self.at(self.now.plus_nanos(nanos), happening);
    }

    /// Run until nothing happens any more, and check that then nothing is left.
    pub fn run(&mut self) {
        loop {
            self.obey();
            let happening = self.happenings.first_key_value().map(|(&(time, _), _)| time);
            let wake = self.scheduler.next_wake(self.now);
            match (happening, wake) {
                (None, None) => break,
                (Some(next), wake) if wake.is_none_or(|wake| next <= wake) => {
                    self.now = next;
                    let (_, happening) = self.happenings.pop_first().unwrap();
                    self.happen(happening);
                }
                (_, Some(wake)) => {
                    self.now = self.now.max(wake);
                    self.scheduler.wake(self.now);
                }
                (Some(_), None) => unreachable!("covered by the guard"),
            }
        }
        self.check_end();
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Report(report) => self.report(report),
            Happening::LoaderDone(device, report) => {
                self.devices[usize::from(device.0)].loading = false;
                match &report {
                    Report::Loaded { circuit, result: Ok(()), .. } => {
                        let bytes = self.circuit_bytes[circuit];
                        self.devices[usize::from(device.0)].resident.insert(*circuit, bytes);
                    }
                    Report::Restarted { .. } => self.devices[usize::from(device.0)].resident.clear(),
                    _ => {}
                }
                self.report(report);
                self.next_load(device);
            }
            Happening::Submit(submission, truth) => self.submit(submission, truth),
            Happening::Drain => self.scheduler.drain(self.now),
            Happening::Preload(circuit, bytes) => {
                self.circuit_bytes.insert(circuit, bytes);
                self.scheduler.preload(self.now, circuit, &vec![Some(bytes); self.devices.len()]);
            }
            Happening::Evict(circuit) => {
                let gone = self.scheduler.evict(self.now, circuit);
                let used = self.devices.iter().any(|device| device.proving.values().any(|&(_, of)| of == circuit));
                assert!(!(gone && used), "what a slot uses is not gone");
            }
            Happening::Cancel(id) => {
                if let Some(key) = self.scheduler.find(&id)
                    && self.scheduler.cancel(self.now, key)
                {
                    self.runs.get_mut(&key).unwrap().cancelled_at = Some(self.now);
                    assert_eq!(self.scheduler.find(&id), None, "a cancelled name is free at once");
                }
            }
        }
    }

    fn submit(&mut self, submission: Submission, truth: Truth) {
        let bytes = submission.circuit_bytes.iter().flatten().copied().max().unwrap_or(0);
        self.circuit_bytes.insert(submission.circuit, bytes);
        let id = submission.id.clone();
        match self.scheduler.submit(self.now, submission.clone()) {
            Ok(Submitted::Started(key)) => {
                let run = Run {
                    submission,
                    truth,
                    outcome: None,
                    cancelled_at: None,
                    submitted_at: self.now,
                    ready_at: BTreeMap::new(),
                    proving_at: BTreeMap::new(),
                    written: BTreeSet::new(),
                    admitted: BTreeMap::new(),
                    computed: BTreeMap::new(),
                    guests: Guests::default(),
                    slots: vec![],
                };
                assert!(self.runs.insert(key, run).is_none(), "a run's key is used once");
            }
            Ok(Submitted::Joined(key)) => assert_eq!(self.runs[&key].submission.body, submission.body),
            Err(refusal) => self.refusals.push((id, refusal)),
        }
    }

    fn report(&mut self, report: Report) {
        match &report {
            Report::Synthesised { partition, segment, result } => {
                self.synthesising -= 1;
                let guests = &mut self.run_mut(*partition).guests;
                guests.writing -= 1;
                guests.resting += u64::from(result.is_ok());
                if result.is_ok() {
                    self.write_witness(*partition, *segment);
                }
            }
            Report::Proved { slot, .. } => {
                self.devices[usize::from(slot.device.0)].proving.remove(&slot.index);
            }
            Report::Checked { .. } => self.checking -= 1,
            Report::Released { partition } => {
                let leases = self.run_mut(*partition).admitted.remove(&partition.index);
                assert!(leases.is_some(), "what is released was admitted and not released before");
            }
            Report::Loaded { .. } | Report::Restarted { .. } => {}
        }
        self.scheduler.report(self.now, report);
    }

    /// Fill a segment's lease with a pattern that zeros cannot be mistaken for.
    fn write_witness(&mut self, partition: PartitionKey, segment: u32) {
        let now = self.now;
        let run = self.run_mut(partition);
        let limits = run.submission.segments[segment as usize];
        let lease = &mut run.admitted.get_mut(&partition.index).unwrap()[segment as usize];
        assert!(lease.masks().is_empty() && lease.elements().is_empty(), "a segment is written once");
        lease.append_masks(&vec![u64::MAX; 2 * limits.aux_count.div_ceil(64) as usize]);
        lease.append_elements(&vec![[u64::MAX; 4]; limits.full_max as usize]);
        assert!(run.written.insert((partition.index, segment)), "a segment is written once");
        let all = run.submission.segments.len() as u32;
        if (0..all).all(|segment| run.written.contains(&(partition.index, segment))) {
            run.ready_at.insert(partition.index, now);
        }
    }

    fn run_mut(&mut self, partition: PartitionKey) -> &mut Run {
        self.runs.get_mut(&partition.job).expect("orders are about jobs that were submitted")
    }

    fn end(&mut self, job: JobKey, outcome: Arc<Outcome>) {
        let run = self.runs.get_mut(&job).unwrap();
        assert!(run.outcome.is_none(), "a job ends once");
        assert!(run.admitted.is_empty(), "a job ends when its memory is free");
        if let Outcome::Proved(proved) = &*outcome {
            let expected: Vec<_> =
                (0..run.submission.partitions).flat_map(|index| proof_of(PartitionKey { job, index })).collect();
            assert_eq!(proved.proofs, expected, "proofs are the job's own, in order, none missing or twice");
            let truth = run.truth;
            assert!(truth.unsatisfied.is_none() && truth.guest_fault.is_none(), "a bad witness is never proved");
        }
        if let Some(at) = run.cancelled_at {
            assert!(self.now.0 - at.0 <= CANCEL_NANOS_MAX, "cancelling took {} ns", self.now.0 - at.0);
            assert_eq!(*outcome, Outcome::Cancelled);
        }
        run.outcome = Some(outcome);
    }

    pub fn usage(&self) -> Usage {
        self.scheduler.usage()
    }

    fn check_usage(&self) {
        let usage = self.usage();
        assert!(usage.host_bytes <= self.setup.host.capacity_bytes);
        let bytes = |run: &Run| (run.guests.writing + run.guests.resting) * run.submission.guest_bytes;
        let guests = self.runs.values().map(bytes).sum::<u64>();
        assert!(guests <= usage.host_bytes, "guests have {guests} bytes, the budget says {}", usage.host_bytes);
        assert!(usage.pinned_bytes <= self.arena.capacity_bytes());
        for (used, (_, pool)) in usage.device_bytes.iter().zip(&self.setup.devices) {
            assert!(*used <= pool.capacity_bytes);
        }
    }

    fn check_end(&mut self) {
        for (key, run) in &self.runs {
            assert!(run.outcome.is_some(), "job {key:?} is stuck: {:?}", self.scheduler.status(*key));
        }
        let usage = self.usage();
        assert_eq!((usage.host_bytes, usage.pinned_bytes), (0, 0), "memory is back at its base");
        let given_up: Vec<_> = self.scheduler.given_up().collect();
        for (index, (used, device)) in usage.device_bytes.iter().zip(&self.devices).enumerate() {
            let resident = if given_up.contains(&DeviceId(index as u16)) { 0 } else { device.resident.values().sum() };
            assert_eq!(*used, resident, "device memory is what is resident");
        }
        assert_eq!(self.arena.dirty_free_bytes(), 0, "no witness is left in free memory");
        assert_eq!((self.synthesising, self.checking), (0, 0));
    }
}

/// A proof that says whose it is.
pub fn proof_of(partition: PartitionKey) -> ProofBytes {
    let mut proof = [0xa5; PROOF_BYTES];
    proof[..8].copy_from_slice(&partition.job.0.to_le_bytes());
    proof[8..12].copy_from_slice(&partition.index.to_le_bytes());
    proof
}

fn describe(action: &Action) -> String {
    match action {
        Action::Admit { partition, leases } => {
            let tags: Vec<_> = leases.iter().map(Lease::tag).collect();
            format!("admit {partition:?} {tags:?}")
        }
        Action::Synthesise { partition, segment } => format!("synthesise {partition:?} {segment}"),
        Action::KeepGuests { job, count } => format!("keep {count} guests of {job:?}"),
        Action::Evict { device, circuit } => format!("evict {device:?} {circuit}"),
        Action::Load { device, circuit } => format!("load {device:?} {circuit}"),
        Action::Prove { slot, partition, .. } => format!("prove {slot:?} {partition:?}"),
        Action::Check { partition, .. } => format!("check {partition:?}"),
        Action::Abort { job } => format!("abort {job:?}"),
        Action::Release { partition } => format!("release {partition:?}"),
        Action::Restart { device } => format!("restart {device:?}"),
        Action::End { job, outcome } => format!("end {job:?} {outcome:?}"),
        Action::Drained => "drained".into(),
    }
}

pub fn submission(name: &str, circuit: u8, partitions: u32, segments: &[u64]) -> Submission {
    let limits = |&aux_count: &u64| SegmentLimits { aux_count, full_max: aux_count / 2, public_count: 0 };
    Submission {
        id: JobId { owner: "test".into(), name: name.into() },
        body: [circuit; 32],
        circuit: CircuitId([circuit; 32]),
        circuit_bytes: vec![],
        priority: Priority::Normal,
        partitions,
        segments: segments.iter().map(limits).collect(),
        guest_bytes: 100,
        deadline: None,
    }
}
