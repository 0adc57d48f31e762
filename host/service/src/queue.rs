//! Jobs that have not ended, in memory: their order, who waits for them, and what is known of those that run.

use crate::Digest;
use crate::input::HeldInput;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use zkhost_client::types::JobState;
use zkhost_engine::ids::JobKey;

/// A job that has not ended.
pub struct Live {
    /// Its place in the order of acceptance.
    pub seq: u64,
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// Its circuit.
    pub circuit: Digest,
    /// As the store has it.
    pub priority: u8,
    /// When it was accepted.
    pub submitted_ms: u64,
    /// When it is given up.
    pub deadline_ms: Option<u64>,
    state: watch::Sender<JobState>,
    run: Mutex<Run>,
}

/// What is known of a job's run.
#[derive(Default)]
struct Run {
    /// Its input, if that is not at rest.
    input: Option<HeldInput>,
    started_ms: Option<u64>,
    key: Option<JobKey>,
    cancelled: bool,
}

impl Live {
    /// A job that waits.
    pub fn new(
        (seq, id, owner): (u64, String, String),
        circuit: Digest,
        priority: u8,
        (submitted_ms, deadline_ms): (u64, Option<u64>),
        input: Option<HeldInput>,
    ) -> Self {
        let run = Mutex::new(Run { input, ..Run::default() });
        let state = watch::Sender::new(JobState::Queued);
        Self { seq, id, owner, circuit, priority, submitted_ms, deadline_ms, state, run }
    }

    /// Where it stands, now and from now on.
    pub fn watch(&self) -> watch::Receiver<JobState> {
        self.state.subscribe()
    }

    /// Where it stands.
    pub fn state(&self) -> JobState {
        *self.state.borrow()
    }

    /// Tell those who wait.
    pub fn set_state(&self, state: JobState) {
        self.state.send_replace(state);
    }

    /// It is begun.
    pub fn begin(&self, now_ms: u64) {
        self.run().started_ms = Some(now_ms);
        self.set_state(JobState::Running);
    }

    /// When it was begun.
    pub fn started_ms(&self) -> Option<u64> {
        self.run().started_ms
    }

    /// Its input, if it is in memory.
    pub fn take_input(&self) -> Option<HeldInput> {
        self.run().input.take()
    }

    /// The engine has it. Says whether it was cancelled before.
    pub fn set_key(&self, key: JobKey) -> bool {
        let mut run = self.run();
        run.key = Some(key);
        run.cancelled
    }

    /// The engine's name for it.
    pub fn key(&self) -> Option<JobKey> {
        self.run().key
    }

    /// It is to be cancelled. Returns the engine's name for it, if the engine has it.
    pub fn cancel(&self) -> Option<JobKey> {
        let mut run = self.run();
        run.cancelled = true;
        run.key
    }

    /// Whether it is to be cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.run().cancelled
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the order: priority first, then the older job.
type Turn = (Reverse<u8>, u64);

#[derive(Default)]
struct Inner {
    live: HashMap<String, Arc<Live>>,
    order: BTreeMap<Turn, Arc<Live>>,
    /// Jobs whose circuit is not loaded.
    parked: HashMap<Digest, BTreeSet<(Turn, String)>>,
    closed: bool,
}

/// The queue.
#[derive(Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
}

impl Queue {
    /// Add a job that waits.
    pub fn push(&self, live: Arc<Live>) {
        let mut inner = self.inner();
        inner.order.insert(turn(&live), live.clone());
        inner.live.insert(live.id.clone(), live);
        drop(inner);
        // A thread for urgent jobs alone may be the one that is woken, and leave this one to the others.
        self.wake.notify_all();
    }

    /// The next job of this priority or a higher one whose circuit is loaded; waits for one. None once the queue is closed.
    pub fn take(&self, priority_min: u8, is_loaded: impl Fn(Digest) -> bool) -> Option<Arc<Live>> {
        let mut inner = self.inner();
        loop {
            if inner.closed {
                return None;
            }
            while let Some(entry) = inner.order.first_entry() {
                if entry.get().priority < priority_min {
                    break;
                }
                let (turn, live) = entry.remove_entry();
                if is_loaded(live.circuit) {
                    return Some(live);
                }
                inner.parked.entry(live.circuit).or_default().insert((turn, live.id.clone()));
            }
            inner = self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A circuit may have been loaded: have the jobs that wait for circuits looked at again.
    pub fn unpark(&self) {
        let mut inner = self.inner();
        for (turn, id) in std::mem::take(&mut inner.parked).into_values().flatten() {
            if let Some(live) = inner.live.get(&id).cloned() {
                inner.order.insert(turn, live);
            }
        }
        drop(inner);
        self.wake.notify_all();
    }

    /// Take a job out of the order before it is begun. None if it is begun, or unknown.
    pub fn withdraw(&self, id: &str) -> Option<Arc<Live>> {
        let mut inner = self.inner();
        let live = inner.live.get(id)?.clone();
        let turn = turn(&live);
        let parked = inner.parked.get_mut(&live.circuit).is_some_and(|parked| parked.remove(&(turn, live.id.clone())));
        (inner.order.remove(&turn).is_some() || parked).then_some(live)
    }

    /// A job that has not ended.
    pub fn get(&self, id: &str) -> Option<Arc<Live>> {
        self.inner().live.get(id).cloned()
    }

    /// A job has ended and is recorded.
    pub fn remove(&self, id: &str) {
        self.inner().live.remove(id);
    }

    /// Whether the job waits for its circuit.
    pub fn is_parked(&self, live: &Live) -> bool {
        let inner = self.inner();
        inner.parked.get(&live.circuit).is_some_and(|parked| parked.contains(&(turn(live), live.id.clone())))
    }

    /// Jobs that wait, those that wait for a circuit included.
    pub fn waiting(&self) -> usize {
        let inner = self.inner();
        inner.order.len() + inner.parked.values().map(BTreeSet::len).sum::<usize>()
    }

    /// Jobs that run.
    pub fn running(&self) -> Vec<Arc<Live>> {
        self.inner().live.values().filter(|live| live.state() == JobState::Running).cloned().collect()
    }

    /// Jobs that wait and should have ended by now.
    pub fn overdue(&self, now_ms: u64) -> Vec<Arc<Live>> {
        let inner = self.inner();
        let is_overdue = |live: &&Arc<Live>| live.deadline_ms.is_some_and(|deadline| deadline <= now_ms);
        inner.live.values().filter(|live| live.state() == JobState::Queued).filter(is_overdue).cloned().collect()
    }

    /// Give out no more jobs.
    pub fn close(&self) {
        self.inner().closed = true;
        self.wake.notify_all();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn turn(live: &Live) -> Turn {
    (Reverse(live.priority), live.seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &Queue, seq: u64, circuit: u8, priority: u8) {
        let name = (seq, seq.to_string(), "o".to_owned());
        queue.push(Arc::new(Live::new(name, Digest([circuit; 32]), priority, (0, None), None)));
    }

    /// The order in which all jobs are taken, by their numbers.
    fn check_order(queue: &Queue, loaded: &[u8], expected: &[u64]) {
        let is_loaded = |digest: Digest| loaded.contains(&digest.0[0]);
        let taken: Vec<_> = expected.iter().map(|_| queue.take(0, is_loaded).unwrap().seq).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn jobs_are_taken_by_priority_then_age_and_wait_for_their_circuit() {
        let queue = Queue::default();
        for (seq, circuit, priority) in [(1, 1, 1), (2, 2, 2), (3, 1, 2), (4, 1, 0), (5, 1, 1)] {
            push(&queue, seq, circuit, priority);
        }
        check_order(&queue, &[1], &[3, 1]);
        let parked = queue.get("2").unwrap();
        assert!(queue.is_parked(&parked) && queue.waiting() == 3);
        queue.unpark();
        check_order(&queue, &[1, 2], &[2, 5, 4]);
    }

    #[test]
    fn a_job_is_withdrawn_once_and_only_before_it_is_taken() {
        let queue = Queue::default();
        (1..=3).for_each(|seq| push(&queue, seq, seq as u8, 1));
        assert!(queue.withdraw("3").is_some() && queue.withdraw("3").is_none() && queue.withdraw("9").is_none());
        assert_eq!(queue.take(0, |digest| digest.0[0] == 2).unwrap().seq, 2);
        assert!(queue.withdraw("2").is_none() && queue.withdraw("1").is_some() && queue.waiting() == 0);
        queue.close();
        assert!(queue.take(0, |_| true).is_none());
    }
}
