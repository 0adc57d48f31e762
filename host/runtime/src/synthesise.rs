//! Whole assignments in memory: the segments of a job, spread over instances and threads.

use crate::circuit::Circuit;
use crate::error::{Export, Fault, RunError};
use crate::job::Input;
use crate::layout::Layout;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use zkhost_groth16::assignment::{Segment, SegmentLimits};
use zkhost_groth16::{Assignment, R1cs};

/// What to assign.
#[derive(Clone, Copy)]
pub struct Synthesis<'a> {
    /// The parameters that the layout and the shape were made with.
    pub params: &'a [u8],
    /// The input.
    pub input: &'a Input,
    /// What [`Circuit::plan`] answered.
    pub layout: &'a Layout,
    /// What [`Circuit::record_shape`] recorded.
    pub shape: &'a R1cs,
}

/// A segment that was written, or an error, beside the number of its task.
type Written = (usize, Segment);
type Failed = (usize, RunError);

/// The number of a failure that comes after every task's.
const LAST: usize = usize::MAX;

/// The segments of all partitions asked for, numbered partition by partition; workers take the next that is free.
struct Tasks<'a> {
    first_partition: u32,
    segments: &'a [SegmentLimits],
    count: usize,
    next: AtomicUsize,
}

impl Tasks<'_> {
    /// The next task's number, partition and segment.
    fn take(&self) -> Option<(usize, u32, u32)> {
        let task = self.next.fetch_add(1, Ordering::Relaxed);
        let (partition, segment) = (task / self.segments.len(), task % self.segments.len());
        (task < self.count).then(|| (task, self.first_partition + partition as u32, segment as u32))
    }

    /// A task failed: leave nothing to take.
    fn abandon(&self, task: usize, error: RunError) -> Failed {
        self.next.store(self.count, Ordering::Relaxed);
        (task, error)
    }
}

impl Circuit {
    /// The assignments of a range of partitions, in order. All of them are in memory at once, so a caller with many
    /// partitions asks for a few at a time.
    ///
    /// Segments are spread over at most `threads` threads, each with a job of its own; over fewer where there are fewer
    /// segments or the limit on instances says so. Of several failures the first segment's is returned.
    pub fn synthesise(
        &self,
        job: Synthesis<'_>,
        partitions: Range<u32>,
        threads: usize,
    ) -> Result<Vec<Assignment>, RunError> {
        if partitions.end > job.layout.partitions {
            let what =
                format!("partition {} was asked for; the plan has {}", partitions.end - 1, job.layout.partitions);
            return Err(self.error(Export::Assign, Fault::Contradiction(what)));
        }
        let segments = self.segment_limits(job.layout, job.shape)?;
        let count = partitions.len() * segments.len();
        let tasks = Tasks { first_partition: partitions.start, segments: &segments, count, next: AtomicUsize::new(0) };
        if count == 0 {
            return Ok(Vec::new());
        }
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let helper = |_| scope.spawn(|| self.work(job, &tasks));
            let helpers: Vec<_> = (1..threads.min(count)).map(helper).collect();
            let mut outcomes = vec![self.work(job, &tasks)];
            let join = |helper: ScopedJoinHandle<'_, _>| helper.join().unwrap_or_else(|panic| resume_unwind(panic));
            outcomes.extend(helpers.into_iter().map(join));
            outcomes
        });

        let (mut written, mut failed) = (Vec::with_capacity(count), Vec::new());
        for outcome in outcomes {
            match outcome {
                Ok(mut segments) => written.append(&mut segments),
                Err(failure) => failed.push(failure),
            }
        }
        match failed.into_iter().min_by_key(|(task, _)| *task) {
            Some((task, error)) if task < LAST || written.len() < count => return Err(error),
            _ => {}
        }
        written.sort_unstable_by_key(|(task, _)| *task);
        let mut written = written.into_iter().map(|(_, segment)| segment);
        let assignment = |_| Assignment::new(written.by_ref().take(segments.len()).collect());
        Ok(partitions.map(assignment).collect())
    }

    /// What each segment may hold, by the layout and the recorded shape.
    pub fn segment_limits(&self, layout: &Layout, shape: &R1cs) -> Result<Vec<SegmentLimits>, RunError> {
        layout
            .resolved(shape.aux_count.into(), shape.public_count.into(), self.limits())
            .map_err(|fault| self.error(Export::Plan, fault))
    }

    /// Open a job and write segments until none are left or one fails. A worker that finds no free instance leaves the
    /// work to the others: its failure counts only if segments are left over.
    fn work(&self, job: Synthesis<'_>, tasks: &Tasks<'_>) -> Result<Vec<Written>, Failed> {
        let mut opened = self.open(job.params, job.input).map_err(|error| match error.fault {
            Fault::Busy { .. } => (LAST, error),
            _ => tasks.abandon(0, error),
        })?;
        let mut written = Vec::new();
        while let Some((task, partition, segment)) = tasks.take() {
            let limits = tasks.segments[segment as usize];
            let segment = opened.assign_segment((partition, segment), job.layout.encoding, limits);
            written.push((task, segment.map_err(|error| tasks.abandon(task, error))?));
        }
        Ok(written)
    }
}
