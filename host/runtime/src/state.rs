//! What one instance of a guest is lent, and what it has used of its limits.

use crate::error::{Fault, Place, printable};
use crate::limits::{CORE_ITEMS_MAX, Limits, grouped};
use crate::observer::{Level, Observer};
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;
use wasmtime::{ResourceLimiter, UpdateDeadline};
use zeroize::{Zeroize, Zeroizing};
use zkhost_groth16::assignment::SegmentSink;
use zkhost_groth16::r1cs::ShapeRecorder;

/// A destination that its lender gets back as the type it lent.
pub(crate) trait LentSink: SegmentSink + Any {}
impl<S: SegmentSink + Any> LentSink for S {}

/// The data of one instance's store.
pub(crate) struct State {
    /// Where `write-groups` and `write-public` write, while `job.assign` runs.
    pub witness: Option<Box<dyn LentSink>>,
    /// What records rows, while `record-shape` runs.
    pub shape: Option<Box<ShapeRecorder>>,
    /// What `blob` reads, while `job.open` runs. Secret.
    pub input: Option<Arc<Zeroizing<Vec<u8>>>>,
    /// The copy that the last `blob.read` returned; kept only to be zeroed.
    piece: Option<Arc<[u8]>>,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
    /// Which export runs.
    pub place: Place,
    /// When it is stopped, and the limit and setting that say so.
    pub deadline: Deadline,
    limits: Arc<Limits>,
    memory_bytes: u64,
    table_elements: u64,
    log_lines: u32,
    log_bytes: u64,
}

/// When a guest is stopped.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    pub at: Instant,
    pub limit: std::time::Duration,
    pub setting: &'static str,
}

impl State {
    pub fn new(limits: Arc<Limits>, observer: Arc<dyn Observer>, place: Place, deadline: Deadline) -> Self {
        State {
            witness: None,
            shape: None,
            input: None,
            piece: None,
            observer,
            place,
            deadline,
            limits,
            memory_bytes: 0,
            table_elements: 0,
            log_lines: 0,
            log_bytes: 0,
        }
    }

    /// Take the witness sink; it must be put back. A guest holds a handle only while the sink is lent, so its absence is
    /// a fault, reported like any other misuse.
    pub fn take_witness(&mut self, function: &str) -> Result<Box<dyn LentSink>, Fault> {
        self.witness.take().ok_or_else(|| not_lent(function))
    }

    /// Take the shape recorder; it must be put back.
    pub fn take_shape(&mut self, function: &str) -> Result<Box<ShapeRecorder>, Fault> {
        self.shape.take().ok_or_else(|| not_lent(function))
    }

    /// The input that is lent.
    pub fn input(&self, function: &str) -> Result<&[u8], Fault> {
        self.input.as_deref().map(|input| input.as_slice()).ok_or_else(|| not_lent(function))
    }

    /// Remember a piece of the input that is about to be copied into the guest, so that it can be zeroed afterwards.
    pub fn lend_piece(&mut self, piece: Arc<[u8]>) -> Arc<[u8]> {
        self.zero_piece();
        self.piece.insert(piece).clone()
    }

    /// Zero the last piece that was lent. Nobody else holds it once the call that lent it has returned.
    pub fn zero_piece(&mut self) {
        if let Some(piece) = self.piece.as_mut().and_then(Arc::get_mut) {
            piece.zeroize();
        }
        self.piece = None;
    }

    /// Bytes of linear memory, all of the instance's memories together.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Pass on one line of log, if anyone wants it and the limits allow it.
    pub fn log_line(&mut self, level: Level, message: &str) {
        if !self.observer.wants_logs() || self.log_lines > self.limits.log_lines {
            return;
        }
        self.log_lines += 1;
        self.log_bytes = self.log_bytes.saturating_add(message.len() as u64);
        if self.log_lines > self.limits.log_lines || self.log_bytes > self.limits.log_bytes {
            // From here on the count of lines alone says that the log is over.
            self.log_lines = self.limits.log_lines.saturating_add(1);
            let notice = format!(
                "the limits of {} lines and {} bytes of log are reached (settings `log_lines`, `log_bytes`); the rest \
                 is dropped",
                grouped(self.limits.log_lines.into()),
                grouped(self.limits.log_bytes)
            );
            self.observer.log(self.place, Level::Warn, &notice);
            return;
        }
        self.observer.log(self.place, level, &printable(message));
    }

    /// Whether the guest may run on: asked at every tick of the engine's clock.
    pub fn on_tick(&self) -> wasmtime::Result<UpdateDeadline> {
        if self.observer.cancelled() {
            return Err(Fault::Cancelled.into());
        }
        if Instant::now() >= self.deadline.at {
            return Err(Fault::Limit {
                what: format!("the guest did not return in time from {}", self.place.export),
                limit: format!("{:?}", self.deadline.limit),
                setting: self.deadline.setting,
            }
            .into());
        }
        Ok(UpdateDeadline::Continue(1))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.zero_piece();
    }
}

fn not_lent(function: &str) -> Fault {
    Fault::Misuse(format!("`{function}` was called on a handle that is not lent now"))
}

/// Memory and tables are counted over the whole instance. Growth beyond a limit traps instead of answering -1, so that a
/// run never depends on how a guest takes a refusal and its error names the limit.
impl ResourceLimiter for State {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory_bytes.saturating_add(desired.saturating_sub(current) as u64);
        if total > self.limits.memory_bytes {
            let what = format!("the guest asked for {} bytes of memory in all", grouped(total));
            return Err(Fault::bytes(what, self.limits.memory_bytes, "memory_bytes").into());
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.table_elements.saturating_add(desired.saturating_sub(current) as u64);
        if total > self.limits.table_elements {
            let what = format!("the guest asked for {} table elements in all", grouped(total));
            return Err(Fault::count(what, self.limits.table_elements, "table_elements").into());
        }
        self.table_elements = total;
        Ok(true)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn instances(&self) -> usize {
        CORE_ITEMS_MAX
    }

    fn tables(&self) -> usize {
        CORE_ITEMS_MAX
    }

    fn memories(&self) -> usize {
        CORE_ITEMS_MAX
    }
}
