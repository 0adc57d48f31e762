//! What a timeline says in a few lines: how busy each device was, and why it was not.

use super::{Category, Intervals, Span, Timeline};
use crate::ids::DeviceId;
use std::collections::BTreeSet;
use std::fmt;

/// Why a device ran no kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// Its slots had work and copied.
    Copy,
    /// Its slots had work and did something else: host work between kernels, launches, waiting for events.
    Host,
    /// A key was on its way.
    KeyLoad,
    /// Assignments were ready and not dispatched.
    Dispatch,
    /// Nothing was ready; guests were at work.
    Synthesis,
    /// Nothing was to be done but verify or release.
    Verification,
    /// Nothing was to be done at all.
    NoWork,
}

impl Gap {
    /// What a reader sees.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy not hidden",
            Self::Host => "slot busy on the host",
            Self::KeyLoad => "key load",
            Self::Dispatch => "ready but not dispatched",
            Self::Synthesis => "waiting for synthesis",
            Self::Verification => "waiting for verification or release",
            Self::NoWork => "no work",
        }
    }
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSummary {
    /// Which.
    pub device: DeviceId,
    /// From its slots' first moment of work to their last, in nanoseconds.
    pub wall_nanos: u64,
    /// Of that, the time in which a kernel ran: the union over slots. Where a device reports no kernels (the CPU), the time
    /// in which a slot had work.
    pub busy_nanos: u64,
    /// Whether `busy_nanos` comes from the device's events.
    pub by_device_events: bool,
    /// Time in which the link was busy: the union of all slots' copies.
    pub link_nanos: u64,
    /// Time in which slots copied, all slots together.
    pub copy_nanos: u64,
    /// Of that, the time in which a kernel of another slot ran.
    pub hidden_copy_nanos: u64,
    /// Bytes copied.
    pub copied_bytes: u64,
    /// The rest of the wall time, by cause; no cause twice, none empty.
    pub gaps: Vec<(Gap, u64)>,
}

/// All devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// From the first span to the end of the last, in nanoseconds.
    pub wall_nanos: u64,
    /// Devices that had work.
    pub devices: Vec<DeviceSummary>,
    /// Time by category: the sum of its spans, and their number.
    pub categories: Vec<(Category, u64, usize)>,
}

impl Timeline {
    /// The summary.
    pub fn summary(&self) -> Summary {
        let of_slots = self.spans().filter(|span| span.category == Category::Proving);
        let devices: BTreeSet<_> = of_slots.filter_map(|span| span.track.device()).collect();
        let category = |category| {
            let spans = || self.spans().filter(move |span| span.category == category);
            (category, spans().map(Span::nanos).sum(), spans().count())
        };
        Summary {
            wall_nanos: self.range().map_or(0, |(start, end)| end.0 - start.0),
            devices: devices.into_iter().map(|device| self.device_summary(device)).collect(),
            categories: Category::ALL.map(category).into_iter().filter(|(_, _, count)| *count > 0).collect(),
        }
    }

    fn device_summary(&self, device: DeviceId) -> DeviceSummary {
        let here = |span: &Span, category| span.track.device() == Some(device) && span.category == category;
        let slots = self.intervals(|span| here(span, Category::Proving));
        let kernels = self.intervals(|span| here(span, Category::Kernel));
        let copies = self.intervals(|span| here(span, Category::Copy));
        let by_device_events = kernels.nanos() > 0;
        let busy = if by_device_events { kernels } else { slots.clone() };
        let first = slots.iter().next().map_or(0, |(start, _)| start);
        let last = slots.iter().last().map_or(0, |(_, end)| end);
        let wall: Intervals = [(first, last)].into_iter().collect();
        let copied_bytes = self.spans().filter(|span| here(span, Category::Copy)).map(|span| span.bytes).sum();
        let (copy_nanos, hidden_copy_nanos) = self.slot_copies(device);
        DeviceSummary {
            device,
            wall_nanos: wall.nanos(),
            busy_nanos: busy.intersect(&wall).nanos(),
            by_device_events,
            link_nanos: copies.nanos(),
            copy_nanos,
            hidden_copy_nanos,
            copied_bytes,
            gaps: self.gaps(device, wall.minus(&busy), &copies, &slots),
        }
    }

    /// The time of each slot's copies, all slots together, and how much of it kernels of other slots of the device cover.
    fn slot_copies(&self, device: DeviceId) -> (u64, u64) {
        let of_device = |span: &&Span| span.track.device() == Some(device);
        let tracks: BTreeSet<_> = self.spans().filter(of_device).map(|span| span.track).collect();
        let times = tracks.into_iter().map(|track| {
            let copies = self.intervals(|span| span.track == track && span.category == Category::Copy);
            let others = self.intervals(|span| {
                span.track != track && span.track.device() == Some(device) && span.category == Category::Kernel
            });
            (copies.nanos(), copies.intersect(&others).nanos())
        });
        times.fold((0, 0), |sum, slot| (sum.0 + slot.0, sum.1 + slot.1))
    }

    /// Give every moment of a gap to the first cause that explains it.
    fn gaps(&self, device: DeviceId, gap: Intervals, copies: &Intervals, slots: &Intervals) -> Vec<(Gap, u64)> {
        let all = |category| self.intervals(|span| span.category == category);
        let loads = self.intervals(|span| span.category == Category::KeyLoad && span.track.device() == Some(device));
        let last = self.intervals(|span| matches!(span.category, Category::Verification | Category::Release));
        let causes = [
            (Gap::Copy, copies.clone()),
            (Gap::Host, slots.clone()),
            (Gap::KeyLoad, loads),
            (Gap::Dispatch, all(Category::Queue)),
            (Gap::Synthesis, all(Category::Synthesis)),
            (Gap::Verification, last),
        ];
        let mut rest = gap;
        let mut gaps = vec![];
        for (cause, times) in causes {
            gaps.push((cause, rest.intersect(&times).nanos()));
            rest = rest.minus(&times);
        }
        gaps.push((Gap::NoWork, rest.nanos()));
        gaps.retain(|(_, nanos)| *nanos > 0);
        gaps
    }
}

fn milliseconds(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:.1} ms in all", milliseconds(self.wall_nanos))?;
        for device in &self.devices {
            write!(f, "{device}")?;
        }
        for (category, nanos, count) in &self.categories {
            writeln!(f, "  {:<14} {:>10.1} ms in {count} spans", category.name(), milliseconds(*nanos))?;
        }
        Ok(())
    }
}

impl fmt::Display for DeviceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.by_device_events { "kernels" } else { "slots, by the host's clock," };
        let share = percent(self.busy_nanos, self.wall_nanos);
        let wall = milliseconds(self.wall_nanos);
        writeln!(f, "device {}: {what} busy {share:.1} % of {wall:.1} ms", self.device.0)?;
        if self.copy_nanos > 0 {
            writeln!(
                f,
                "  copied {:.1} MB at {:.1} GB/s, {:.0} % behind kernels of other slots",
                self.copied_bytes as f64 / 1e6,
                self.copied_bytes as f64 / self.link_nanos as f64,
                percent(self.hidden_copy_nanos, self.copy_nanos),
            )?;
        }
        for (gap, nanos) in &self.gaps {
            let share = percent(*nanos, self.wall_nanos);
            writeln!(f, "  idle {:>10.1} ms ({share:.1} %): {}", milliseconds(*nanos), gap.name())?;
        }
        Ok(())
    }
}
