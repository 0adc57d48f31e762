//! Jobs whose assignments a circuit component writes, in its sandbox.

use crate::device::Stop;
use crate::scheduler::SynthesisFault;
use crate::synthesis::Synthesis;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zkhost_groth16::assignment::{SegmentLimits, SegmentWriter};
use zkhost_groth16::{Encoding, R1cs};
use zkhost_runtime::{Circuit, Fault, Input, Job, Layout, Level, Observer, Place, RunError};

/// One input of a component. Instances are kept between segments, whatever their partition, as far as the engine has memory
/// for them: opening an input can take longer than writing a segment of it.
pub struct ComponentJob {
    circuit: Circuit,
    params: Vec<u8>,
    input: Input,
    partitions: u32,
    encoding: Encoding,
    segments: Vec<SegmentLimits>,
    watch: Arc<Watch>,
    guests: Mutex<Guests>,
    /// The first run that failed.
    error: Mutex<Option<RunError>>,
}

/// The input, opened.
#[derive(Default)]
struct Guests {
    /// Those that write nothing now.
    idle: Vec<Job>,
    /// All of them.
    count: u64,
}

impl ComponentJob {
    /// A job of these parameters and this input. `shape` is what the circuit recorded for the parameters, `layout` what it
    /// plans; the observer hears of all runs.
    pub fn new(
        circuit: &Circuit,
        params: &[u8],
        input: &Input,
        (layout, shape): (&Layout, &R1cs),
        observer: Arc<dyn Observer>,
    ) -> Result<Self, RunError> {
        let watch = Arc::new(Watch::new(observer));
        Ok(Self {
            segments: circuit.segment_limits(layout, shape)?,
            circuit: circuit.observed(watch.clone()),
            params: params.to_vec(),
            input: input.clone(),
            partitions: layout.partitions,
            encoding: layout.encoding,
            watch,
            guests: Mutex::default(),
            error: Mutex::default(),
        })
    }

    /// What went wrong first in its runs, in full, if anything did. The engine tells it as a sentence.
    pub fn take_error(&self) -> Option<RunError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guest(&self) -> Result<Job, RunError> {
        let mut guests = self.guests();
        if let Some(job) = guests.idle.pop() {
            return Ok(job);
        }
        guests.count += 1;
        drop(guests);
        self.circuit.open(&self.params, &self.input).inspect_err(|_| self.guests().count -= 1)
    }

    fn write(&self, partition: u32, segment: u32, writer: SegmentWriter) -> Result<SegmentWriter, RunError> {
        let mut job = self.guest()?;
        let written = job.assign(partition, segment, writer);
        match &written {
            Ok(_) => self.guests().idle.push(job),
            // It trapped, or something else is wrong with it.
            Err(_) => {
                drop(job);
                self.guests().count -= 1;
            }
        }
        written
    }
}

impl Synthesis for ComponentJob {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn encoding(&self) -> Encoding {
        self.encoding
    }

    fn segments(&self) -> &[SegmentLimits] {
        &self.segments
    }

    fn guest_bytes(&self) -> u64 {
        self.circuit.limits().memory_bytes
    }

    fn assign(
        &self,
        partition: u32,
        segment: u32,
        writer: SegmentWriter,
        stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault> {
        self.watch.stop_by(stop);
        self.write(partition, segment, writer).map_err(|error| match error.fault {
            Fault::Cancelled => SynthesisFault::Cancelled,
            _ => {
                let sentence = error.to_string();
                self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                SynthesisFault::Guest(sentence)
            }
        })
    }

    fn keep_guests(&self, count: u64) {
        let mut guests = self.guests();
        let surplus = guests.count.saturating_sub(count).min(guests.idle.len() as u64);
        guests.count -= surplus;
        let kept = guests.idle.len() - surplus as usize;
        let closed = guests.idle.split_off(kept);
        drop(guests);
        // Freeing guests takes time; the lock is free meanwhile.
        drop(closed);
    }
}

/// The caller's observer, and the engine's wish to stop.
pub(crate) struct Watch {
    observer: Arc<dyn Observer>,
    /// All segments of a job have the same.
    stop: Mutex<Stop>,
}

impl Watch {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, stop: Mutex::default() }
    }

    /// Runs are cancelled when this says so.
    pub(crate) fn stop_by(&self, stop: &Stop) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
    }
}

impl Observer for Watch {
    fn wants_logs(&self) -> bool {
        self.observer.wants_logs()
    }

    fn log(&self, place: Place, level: Level, line: &str) {
        self.observer.log(place, level, line);
    }

    fn progress(&self, place: Place, done: u64) {
        self.observer.progress(place, done);
    }

    fn cancelled(&self) -> bool {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).is_set() || self.observer.cancelled()
    }
}
