//! The threads that work: each takes an order, does it and reports. What panics in an order stays in it.

use super::JobParts;
use super::coordinator::{Message, Remains};
use crate::arena::{Arena, Lease, LeaseTag};
use crate::device::{Call, Device, Phase, PhaseKind, ProveFault, Stop};
use crate::ids::{CircuitId, DeviceId, PartitionKey, PartitionProof, ProofBytes, SlotId, Time};
use crate::scheduler::{Config, DeviceFault, Report, SynthesisFault, Verdict};
use crate::synthesis::Judge;
use crate::timeline::{Category, Span, Track};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use zkhost_groth16::Assignment;
use zkhost_groth16::assignment::{Segment, SegmentWriter};
use zkhost_groth16::r1cs::CheckError;

/// Write one segment.
pub(super) struct SegmentOrder {
    pub partition: PartitionKey,
    pub segment: u32,
    pub lease: Lease,
    pub parts: JobParts,
}

/// Compute one proof.
pub(super) struct SlotOrder {
    pub partition: PartitionKey,
    pub circuit: CircuitId,
    pub assignment: Arc<Assignment>,
    pub tags: Arc<[LeaseTag]>,
    pub stop: Stop,
}

/// Change what is resident on a device.
pub(super) enum LoadOrder {
    Load(CircuitId),
    Evict(CircuitId),
    Restart,
}

/// Verify one proof, or free one partition.
pub(super) enum CheckOrder {
    Check { partition: PartitionKey, judge: Arc<dyn Judge>, assignment: Arc<Assignment>, proof: ProofBytes },
    Release { partition: PartitionKey, remains: Remains },
}

/// All of them. Their threads end when this is dropped or joined.
pub(super) struct Workers {
    segments: Sender<SegmentOrder>,
    checks: Sender<CheckOrder>,
    slots: HashMap<SlotId, Sender<SlotOrder>>,
    loaders: HashMap<DeviceId, Sender<LoadOrder>>,
    threads: Vec<JoinHandle<()>>,
}

/// Where a worker reports to.
#[derive(Clone)]
struct Desk {
    messages: Sender<Message>,
    began: Instant,
}

impl Workers {
    pub fn start(
        config: &Config,
        devices: &[Arc<dyn Device>],
        arena: &Arena,
        began: Instant,
        messages: &Sender<Message>,
    ) -> io::Result<Self> {
        let desk = Desk { messages: messages.clone(), began };
        let (segments, segment_orders) = unbounded();
        let (checks, check_orders) = unbounded();
        let mut workers = Self { segments, checks, slots: HashMap::new(), loaders: HashMap::new(), threads: vec![] };
        for worker in 0..config.synthesis_workers.max(1) {
            let (orders, desk, track) = (segment_orders.clone(), desk.clone(), Track::Synthesis(worker as u16));
            workers.spawn(track, move || synthesise_all(&orders, &desk, track))?;
        }
        for worker in 0..config.check_workers.max(1) {
            let (orders, desk, track) = (check_orders.clone(), desk.clone(), Track::Check(worker as u16));
            workers.spawn(track, move || check_all(&orders, &desk, track))?;
        }
        for (id, device) in (0..).map(DeviceId).zip(devices) {
            let (sender, orders) = unbounded();
            let (loading, report_to) = (device.clone(), desk.clone());
            workers.loaders.insert(id, sender);
            workers.spawn(Track::Loader(id), move || load_all(&orders, &report_to, id, &*loading))?;
            for index in 0..device.spec().slots {
                let slot = SlotId { device: id, index };
                let (sender, orders) = unbounded();
                let (proving, desk, arena) = (device.clone(), desk.clone(), arena.clone());
                workers.slots.insert(slot, sender);
                workers.spawn(Track::Slot(slot), move || prove_all(&orders, &desk, slot, &*proving, &arena))?;
            }
        }
        Ok(workers)
    }

    fn spawn(&mut self, track: Track, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(std::thread::Builder::new().name(format!("zkhost {track}")).spawn(work)?);
        Ok(())
    }

    // A worker ends only after its channel is closed, so that orders are always heard.

    pub fn synthesise(&self, order: SegmentOrder) {
        let _ = self.segments.send(order);
    }

    pub fn check(&self, order: CheckOrder) {
        let _ = self.checks.send(order);
    }

    pub fn prove(&self, slot: SlotId, order: SlotOrder) {
        let _ = self.slots[&slot].send(order);
    }

    pub fn load(&self, device: DeviceId, order: LoadOrder) {
        let _ = self.loaders[&device].send(order);
    }

    /// End all threads and wait for them.
    pub fn join(self) {
        let Self { segments, checks, slots, loaders, threads } = self;
        drop((segments, checks, slots, loaders));
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Desk {
    fn time(&self, at: Instant) -> Time {
        Time(at.saturating_duration_since(self.began).as_nanos() as u64)
    }

    fn now(&self) -> Time {
        self.time(Instant::now())
    }

    fn report(&self, report: Report, segment: Option<Segment>, spans: Vec<Span>) {
        // The coordinator outlives the workers.
        let _ = self.messages.send(Message::Done { report, segment, spans });
    }
}

fn span(
    track: Track,
    category: Category,
    name: &'static str,
    partition: Option<PartitionKey>,
    times: (Time, Time),
) -> Span {
    Span { track, category, name: name.into(), partition, start: times.0, end: times.1, bytes: 0 }
}

fn synthesise_all(orders: &Receiver<SegmentOrder>, desk: &Desk, track: Track) {
    for order in orders {
        let (partition, segment, start) = (order.partition, order.segment, desk.now());
        let written = catch_unwind(AssertUnwindSafe(|| synthesise(order))).unwrap_or(Err(SynthesisFault::Panicked));
        let (written, result) = match written {
            Ok(written) => (Some(written), Ok(())),
            Err(fault) => (None, Err(fault)),
        };
        let spans = vec![span(track, Category::Synthesis, "segment", Some(partition), (start, desk.now()))];
        desk.report(Report::Synthesised { partition, segment, result }, written, spans);
    }
}

fn synthesise(order: SegmentOrder) -> Result<Segment, SynthesisFault> {
    let SegmentOrder { partition, segment, lease, parts } = order;
    if parts.stop.is_set() {
        return Err(SynthesisFault::Cancelled);
    }
    let synthesis = &parts.synthesis;
    let limits = synthesis.segments()[segment as usize];
    let writer = SegmentWriter::new(Box::new(lease), synthesis.encoding(), limits);
    let writer = synthesis.assign(partition.index, segment, writer, &parts.stop)?;
    writer.finish().map_err(|error| SynthesisFault::Guest(format!("its segment is not complete: {error}")))
}

fn prove_all(orders: &Receiver<SlotOrder>, desk: &Desk, slot: SlotId, device: &dyn Device, arena: &Arena) {
    for order in orders {
        let SlotOrder { partition, circuit, assignment, tags, stop } = order;
        let call = Call::new(stop);
        let began = call.began();
        let proved = catch_unwind(AssertUnwindSafe(|| device.prove(slot.index, circuit, &assignment, &call)));
        let end = desk.now();
        let result = match proved {
            Ok(Ok(proof)) => Ok(PartitionProof { bytes: proof.to_bytes(), publics: assignment.publics().to_vec() }),
            Ok(Err(ProveFault { fault, reading })) => {
                // The device may still read the assignment, which this thread holds until after.
                if let Some(event) = reading {
                    let held = tags.iter().try_for_each(|&tag| arena.hold(tag, event.clone()));
                    held.expect("a lease lives as long as its assignment");
                }
                Err(fault)
            }
            Err(_) => Err(DeviceFault::Panicked),
        };
        drop(assignment);
        let track = Track::Slot(slot);
        let mut spans = vec![span(track, Category::Proving, "partition", Some(partition), (desk.time(began), end))];
        spans.extend(call.into_phases().into_iter().map(|phase| phase_span(desk, track, partition, began, phase)));
        desk.report(Report::Proved { slot, partition, result }, None, spans);
    }
}

fn phase_span(desk: &Desk, track: Track, partition: PartitionKey, began: Instant, phase: Phase) -> Span {
    let category = match phase.kind {
        PhaseKind::Copy => Category::Copy,
        PhaseKind::Kernel => Category::Kernel,
    };
    let times = (desk.time(began + phase.start), desk.time(began + phase.end.max(phase.start)));
    Span { bytes: phase.bytes, ..span(track, category, phase.name, Some(partition), times) }
}

fn load_all(orders: &Receiver<LoadOrder>, desk: &Desk, id: DeviceId, device: &dyn Device) {
    for order in orders {
        let start = desk.now();
        let guarded = |work: &dyn Fn() -> Result<(), DeviceFault>| {
            catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(DeviceFault::Panicked))
        };
        let (name, report) = match order {
            LoadOrder::Evict(circuit) => {
                // A panic here is printed like all others; what is resident then is the device's to know.
                let _ = catch_unwind(AssertUnwindSafe(|| device.evict(circuit)));
                continue;
            }
            LoadOrder::Load(circuit) => {
                let result = guarded(&|| device.load(circuit));
                ("load", Report::Loaded { device: id, circuit, result })
            }
            LoadOrder::Restart => ("restart", Report::Restarted { device: id, result: guarded(&|| device.restart()) }),
        };
        let spans = vec![span(Track::Loader(id), Category::KeyLoad, name, None, (start, desk.now()))];
        desk.report(report, None, spans);
    }
}

fn check_all(orders: &Receiver<CheckOrder>, desk: &Desk, track: Track) {
    for order in orders {
        let start = desk.now();
        let (category, name, partition, report) = match order {
            CheckOrder::Check { partition, judge, assignment, proof } => {
                let verdict = catch_unwind(AssertUnwindSafe(|| check(&*judge, &assignment, &proof)));
                drop(assignment);
                let verdict = verdict.unwrap_or(Verdict::Panicked);
                (Category::Verification, "verify", partition, Report::Checked { partition, verdict })
            }
            CheckOrder::Release { partition, remains } => {
                drop(remains);
                (Category::Release, "release", partition, Report::Released { partition })
            }
        };
        desk.report(report, None, vec![span(track, category, name, Some(partition), (start, desk.now()))]);
    }
}

fn check(judge: &dyn Judge, assignment: &Assignment, proof: &ProofBytes) -> Verdict {
    if judge.verify(assignment.publics(), proof) {
        return Verdict::Valid;
    }
    match judge.check(assignment) {
        Ok(()) => Verdict::Faulty,
        Err(CheckError::Unsatisfied(broken)) => Verdict::Unsatisfied(broken),
        Err(mismatch) => Verdict::Rejected(mismatch.to_string()),
    }
}
