//! What happened when: spans of all workers and, from their own events, of devices. Names and numbers only, no data.

mod intervals;
mod perfetto;
mod summary;
mod waterfall;

pub use intervals::Intervals;
pub use perfetto::{TRACE_BYTES_MAX, TraceError};
pub use summary::{DeviceSummary, Gap, Summary};

use crate::ids::{DeviceId, JobKey, PartitionKey, SlotId, Time};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

/// Spans that are kept; older ones are forgotten. About 100 bytes each.
pub const SPANS_MAX: usize = 1 << 18;

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// A guest writes a segment.
    Synthesis,
    /// A complete assignment waits for a slot.
    Queue,
    /// A key is brought to a device, or the device is restarted.
    KeyLoad,
    /// A slot has a partition.
    Proving,
    /// A copy to or from a device, by the device's events.
    Copy,
    /// Kernels of a device, by the device's events.
    Kernel,
    /// A proof is verified.
    Verification,
    /// Memory is zeroed and freed.
    Release,
    /// A job's last proof is there, and its parts become one.
    Assembly,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Synthesis,
        Self::Queue,
        Self::KeyLoad,
        Self::Proving,
        Self::Copy,
        Self::Kernel,
        Self::Verification,
        Self::Release,
        Self::Assembly,
    ];

    /// Its name in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Synthesis => "synthesis",
            Self::Queue => "queue",
            Self::KeyLoad => "key load",
            Self::Proving => "proving",
            Self::Copy => "copy",
            Self::Kernel => "kernel",
            Self::Verification => "verification",
            Self::Release => "release",
            Self::Assembly => "assembly",
        }
    }
}

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Track {
    /// A thread that runs guests.
    Synthesis(u16),
    /// Nobody: waiting.
    Queue,
    /// A slot.
    Slot(SlotId),
    /// The thread that brings keys to a device.
    Loader(DeviceId),
    /// A thread that verifies and releases.
    Check(u16),
    /// The thread that decides.
    Coordinator,
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synthesis(worker) => write!(f, "synthesis {worker}"),
            Self::Queue => f.write_str("queue"),
            Self::Slot(slot) => write!(f, "device {} slot {}", slot.device.0, slot.index),
            Self::Loader(device) => write!(f, "device {} loader", device.0),
            Self::Check(worker) => write!(f, "check {worker}"),
            Self::Coordinator => f.write_str("coordinator"),
        }
    }
}

impl Track {
    /// The device, if it is one's.
    pub fn device(self) -> Option<DeviceId> {
        match self {
            Self::Slot(slot) => Some(slot.device),
            Self::Loader(device) => Some(device),
            _ => None,
        }
    }
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Who did it.
    pub track: Track,
    /// What it is about.
    pub category: Category,
    /// What exactly, such as "transform" or "H multiplication".
    pub name: Cow<'static, str>,
    /// For which partition.
    pub partition: Option<PartitionKey>,
    /// When it began.
    pub start: Time,
    /// When it ended, not before it began.
    pub end: Time,
    /// Bytes that it moved.
    pub bytes: u64,
}

impl Span {
    /// How long it took, in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }
}

/// The newest spans, in order of their reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    spans: VecDeque<Span>,
    /// Spans that were ever added, those that are forgotten included.
    added: u64,
}

impl Timeline {
    /// Add a span.
    pub fn push(&mut self, span: Span) {
        if self.spans.len() == SPANS_MAX {
            self.spans.pop_front();
        }
        self.spans.push_back(span);
        self.added += 1;
    }

    /// Where it ends, for [`Self::since`].
    pub fn mark(&self) -> u64 {
        self.added
    }

    /// The spans that were added after a mark, as far as they are still kept. Its own mark is this timeline's.
    pub fn since(&self, mark: u64) -> Self {
        let new = usize::try_from(self.added.saturating_sub(mark)).unwrap_or(usize::MAX);
        let known = self.spans.len().saturating_sub(new);
        Self { spans: self.spans.range(known..).cloned().collect(), added: self.added }
    }

    /// The spans of one run of a job, as far as they are still kept.
    pub fn of(&self, run: JobKey) -> Self {
        let mut own = Self::default();
        let is_own = |span: &&Span| span.partition.is_some_and(|partition| partition.job == run);
        self.spans.iter().filter(is_own).for_each(|span| own.push(span.clone()));
        own
    }

    /// All of them.
    pub fn spans(&self) -> impl Iterator<Item = &Span> + '_ {
        self.spans.iter()
    }

    /// The newest of them, so many at most.
    pub fn newest(&self, count: usize) -> impl Iterator<Item = &Span> + '_ {
        self.spans.range(self.spans.len().saturating_sub(count)..)
    }

    /// From when to when there are spans; none if there are none.
    pub fn range(&self) -> Option<(Time, Time)> {
        let start = self.spans.iter().map(|span| span.start).min()?;
        let end = self.spans.iter().map(|span| span.end).max()?;
        Some((start, end))
    }

    /// The times covered by the spans that a predicate takes.
    pub fn intervals(&self, which: impl Fn(&Span) -> bool) -> Intervals {
        self.spans.iter().filter(|span| which(span)).map(|span| (span.start.0, span.end.0)).collect()
    }
}
