//! Traces of single jobs, out of the engine's timeline.

use super::Host;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use zkhost_engine::ids::JobKey;

/// Runs whose names are kept after their end; the timeline has few spans of older ones.
const RUNS_MAX: usize = 16 * 1024;

/// The engine's names of runs that ended.
#[derive(Default)]
pub(super) struct EndedRuns(Mutex<VecDeque<(String, JobKey)>>);

impl EndedRuns {
    /// A run of a job ended.
    pub fn push(&self, id: &str, run: JobKey) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() == RUNS_MAX {
            runs.pop_front();
        }
        runs.push_back((id.to_owned(), run));
    }

    /// The newest run of a job.
    fn find(&self, id: &str) -> Option<JobKey> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.iter().rev().find(|(other, _)| other == id).map(|(_, run)| *run)
    }
}

impl Host {
    /// What the engine did for a job, in the JSON trace event format; none if it has not begun, or the engine's timeline no longer
    /// has it.
    pub fn trace(&self, id: &str) -> Option<Vec<u8>> {
        let run = self.queue.get(id).and_then(|live| live.key()).or_else(|| self.ended_runs.find(id))?;
        let own = self.engine.timeline_of(run).ok()?;
        own.range()?;
        let mut bytes = vec![];
        own.write_trace(&mut bytes).ok()?;
        Some(bytes)
    }
}
