//! What a slot does when, by the device's own events, and whether it is to stop.
//!
//! The events exist from the start: recording one costs a microsecond and allocates nothing.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use crate::{
    device::{Event, Stream},
    error::CudaError,
};

/// What a device did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It copied from the host.
    Copy,
    /// It ran kernels, with no wait of the host between them.
    Kernels,
}

/// Work between two events on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it was.
    pub work: Work,
    /// Its name.
    pub name: &'static str,
    /// When it began, since [`Monitor::began`].
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
    /// Bytes copied.
    pub bytes: u64,
}

/// Work that was queued: the numbers of its events.
struct Queued {
    work: Work,
    name: &'static str,
    start: usize,
    end: usize,
    bytes: u64,
}

/// A slot's events. One proof at a time uses them.
pub(crate) struct Events {
    all: Vec<Event>,
}

impl Events {
    /// Events for so many phases of a proof; phases beyond are not timed.
    pub(crate) fn new(stream: &Stream, phases_max: usize) -> Result<Self, CudaError> {
        let all = (0..1 + 2 * phases_max).map(|_| stream.device().event()).collect::<Result<_, _>>()?;
        Ok(Self { all })
    }
}

/// Watches one proof.
pub struct Monitor<'a> {
    events: &'a Events,
    used: RefCell<(usize, Vec<Queued>)>,
    stop: &'a dyn Fn() -> bool,
    began: Instant,
}

impl<'a> Monitor<'a> {
    /// Begins now. Waits for the stream, so that the device's clock and the host's are read at the same time.
    pub(crate) fn start(events: &'a Events, stream: &Stream, stop: &'a dyn Fn() -> bool) -> Result<Self, CudaError> {
        stream.synchronize()?;
        stream.record(&events.all[0])?;
        stream.synchronize()?;
        Ok(Self { events, used: RefCell::new((1, Vec::new())), stop, began: Instant::now() })
    }

    /// When it began, by the host's clock.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// An error if the proof is not wanted any more. Whoever queues work asks before, so that there is little left to do
    /// when it happens.
    pub fn check(&self) -> Result<(), CudaError> {
        if (self.stop)() { Err(CudaError::Stopped) } else { Ok(()) }
    }

    /// Has `queue` put work on `stream`, all of it one phase; refuses if the proof is not wanted any more.
    pub fn phase<T>(
        &self,
        stream: &Stream,
        (work, name, bytes): (Work, &'static str, u64),
        queue: impl FnOnce() -> Result<T, CudaError>,
    ) -> Result<T, CudaError> {
        self.check()?;
        let start = self.record(stream)?;
        let queued = queue()?;
        let end = self.record(stream)?;
        if let Some((start, end)) = start.zip(end) {
            self.used.borrow_mut().1.push(Queued { work, name, start, end, bytes });
        }
        Ok(queued)
    }

    /// The number of an event that is behind everything on the stream; none if all are used.
    fn record(&self, stream: &Stream) -> Result<Option<usize>, CudaError> {
        let mut used = self.used.borrow_mut();
        let Some(event) = self.events.all.get(used.0) else { return Ok(None) };
        stream.record(event)?;
        used.0 += 1;
        Ok(Some(used.0 - 1))
    }

    /// All phases. Their streams must have been waited for.
    pub(crate) fn phases(self) -> Result<Vec<Phase>, CudaError> {
        let at = |number: usize| self.events.all[0].time_to(&self.events.all[number]);
        let phase = |queued: Queued| {
            let Queued { work, name, bytes, .. } = queued;
            Ok(Phase { work, name, start: at(queued.start)?, end: at(queued.end)?, bytes })
        };
        self.used.into_inner().1.into_iter().map(phase).collect()
    }
}
