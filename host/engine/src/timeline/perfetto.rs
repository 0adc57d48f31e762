//! Timelines as files that Perfetto and Chrome open: the JSON trace event format, complete events ("X") in microseconds.
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>

use super::{Category, SPANS_MAX, Span, Timeline, Track};
use crate::ids::{DeviceId, JobKey, PartitionKey, SlotId, Time};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// A trace file that is read back, at most, in bytes.
pub const TRACE_BYTES_MAX: usize = 128 << 20;

/// Why a file is not a trace of ours.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Too large.
    #[error("the trace has {bytes} bytes; {TRACE_BYTES_MAX} are the most that is read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// No JSON.
    #[error("the trace is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// No list of events.
    #[error("the trace has no list \"traceEvents\"; is it one that `zkhost prove --trace FILE` wrote?")]
    NoEvents,
    /// An event that we did not write.
    #[error("event {index} of the trace: {what}; is it one that `zkhost prove --trace FILE` wrote?")]
    Event {
        /// Which.
        index: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// More spans than a timeline holds.
    #[error("the trace has more than {SPANS_MAX} spans")]
    TooManySpans,
}

impl Track {
    /// Process and thread of a trace: the host is process 0, devices follow.
    fn ids(self) -> (u32, u32) {
        match self {
            Self::Coordinator => (0, 0),
            Self::Queue => (0, 1),
            Self::Synthesis(worker) => (0, 0x1_0000 + u32::from(worker)),
            Self::Check(worker) => (0, 0x2_0000 + u32::from(worker)),
            Self::Slot(slot) => (1 + u32::from(slot.device.0), 1 + u32::from(slot.index)),
            Self::Loader(device) => (1 + u32::from(device.0), 0),
        }
    }

    fn from_ids(pid: u64, tid: u64) -> Option<Self> {
        if let Some(device) = pid.checked_sub(1) {
            let device = DeviceId(u16::try_from(device).ok()?);
            let Some(index) = tid.checked_sub(1) else { return Some(Self::Loader(device)) };
            return Some(Self::Slot(SlotId { device, index: u16::try_from(index).ok()? }));
        }
        let worker = (tid & 0xffff) as u16;
        match tid {
            0 => Some(Self::Coordinator),
            1 => Some(Self::Queue),
            0x1_0000..=0x1_ffff => Some(Self::Synthesis(worker)),
            0x2_0000..=0x2_ffff => Some(Self::Check(worker)),
            _ => None,
        }
    }
}

impl Timeline {
    /// Write a trace. Kernels and copies lie inside their slot's span, so viewers nest them.
    pub fn write_trace(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
        let tracks: BTreeSet<_> = self.spans().map(|span| span.track).collect();
        let mut separator = "";
        for track in tracks {
            let (pid, tid) = track.ids();
            let process = track.device().map_or("host".to_owned(), |device| format!("device {}", device.0));
            for (what, name) in [("process_name", process), ("thread_name", track.to_string())] {
                let event = json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": { "name": name } });
                write!(to, "{separator}{event}")?;
                separator = ",\n";
            }
        }
        for span in self.spans() {
            write!(to, "{separator}{}", event(span))?;
            separator = ",\n";
        }
        to.write_all(b"\n]}\n")?;
        to.flush()
    }

    /// Read a trace that [`Self::write_trace`] wrote.
    pub fn read_trace(bytes: &[u8]) -> Result<Self, TraceError> {
        if bytes.len() > TRACE_BYTES_MAX {
            return Err(TraceError::TooLarge { bytes: bytes.len() });
        }
        let trace: Value = serde_json::from_slice(bytes)?;
        let events = trace.get("traceEvents").and_then(Value::as_array).ok_or(TraceError::NoEvents)?;
        let mut timeline = Self::default();
        for (index, event) in events.iter().enumerate() {
            let bad = |what| TraceError::Event { index, what };
            if event.get("ph").and_then(Value::as_str) != Some("X") {
                continue;
            }
            if timeline.spans.len() == SPANS_MAX {
                return Err(TraceError::TooManySpans);
            }
            timeline.push(span(event).map_err(bad)?);
        }
        Ok(timeline)
    }
}

fn event(span: &Span) -> Value {
    let (pid, tid) = span.track.ids();
    let mut args = serde_json::Map::new();
    args.insert("start_ns".into(), span.start.0.into());
    args.insert("end_ns".into(), span.end.0.into());
    if let Some(partition) = span.partition {
        args.insert("job".into(), partition.job.0.into());
        args.insert("partition".into(), partition.index.into());
    }
    if span.bytes > 0 {
        args.insert("bytes".into(), span.bytes.into());
    }
    json!({
        "ph": "X", "name": span.name, "cat": span.category.name(), "pid": pid, "tid": tid, "args": args,
        "ts": span.start.0 as f64 / 1e3, "dur": span.nanos() as f64 / 1e3,
    })
}

fn span(event: &Value) -> Result<Span, &'static str> {
    let number = |object: &Value, key| object.get(key).and_then(Value::as_u64);
    let args = event.get("args").ok_or("it has no \"args\"")?;
    let ids = number(event, "pid").zip(number(event, "tid"));
    let track =
        ids.and_then(|(pid, tid)| Track::from_ids(pid, tid)).ok_or("its process and thread are none of ours")?;
    let category = event.get("cat").and_then(Value::as_str);
    let category = Category::ALL.into_iter().find(|known| Some(known.name()) == category);
    let times = number(args, "start_ns").zip(number(args, "end_ns")).filter(|(start, end)| start <= end);
    let (start, end) = times.ok_or("it has no start and end")?;
    let partition = match (number(args, "job"), number(args, "partition")) {
        (Some(job), Some(index)) => {
            let index = u32::try_from(index).map_err(|_| "its partition is out of range")?;
            Some(PartitionKey { job: JobKey(job), index })
        }
        _ => None,
    };
    Ok(Span {
        track,
        category: category.ok_or("its category is none of ours")?,
        name: event.get("name").and_then(Value::as_str).unwrap_or_default().to_owned().into(),
        partition,
        start: Time(start),
        end: Time(end),
        bytes: number(args, "bytes").unwrap_or(0),
    })
}
