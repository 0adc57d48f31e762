//! What follows from a worker's report: the next state, another attempt, or a job's end.

use super::job::{Ended, Partition};
use super::{
    ATTEMPTS_MAX, Action, DEVICE_RESTARTS_MAX, DeviceFault, ENDED_BYTES_MAX, Health, PartitionState, Report, Scheduler,
    SynthesisFault, Turn, Verdict,
};
use crate::failure::{Cause, Place, Stage};
use crate::ids::{CircuitId, DeviceId, JobKey, PartitionKey, PartitionProof, SlotId, Time};
use std::cmp::Reverse;

impl Scheduler {
    /// A worker reports; each order is answered once.
    pub fn report(&mut self, now: Time, report: Report) {
        self.now = now;
        match report {
            Report::Synthesised { partition, segment, result } => self.synthesised(partition, segment, result),
            Report::Loaded { device, circuit, result } => self.loaded(device, circuit, result),
            Report::Proved { slot, partition, result } => self.slot_done(slot, partition, result),
            Report::Checked { partition, verdict } => self.checked(partition, verdict),
            Report::Released { partition } => self.released(partition),
            Report::Restarted { device, result } => self.restarted(device, result),
        }
        self.pump(now);
    }

    fn synthesised(&mut self, key: PartitionKey, segment: u32, result: Result<(), SynthesisFault>) {
        self.synthesis_idle += 1;
        if self.answered(key) {
            return;
        }
        let place = Place { partition: Some(key.index), segment: Some(segment) };
        let cause = match result {
            Ok(()) => return self.segment_done(key),
            Err(SynthesisFault::Guest(sentence)) => Cause::Guest(sentence),
            Err(SynthesisFault::Unsatisfied(broken)) => Cause::Unsatisfied(broken),
            Err(SynthesisFault::Cancelled) => Cause::Guest("it stopped without being asked to".into()),
            Err(SynthesisFault::Panicked) => Cause::Panicked,
        };
        self.fail(self.now, key.job, Stage::Synthesis, place, cause);
    }

    fn segment_done(&mut self, key: PartitionKey) {
        let segments = self.jobs[&key.job].submission.segments.len();
        let turn = self.turn(key);
        let partition = self.partition_mut(key);
        partition.segments_done += 1;
        if partition.segments_done as usize == segments {
            self.give_back_host(key);
            self.enqueue_to_prove(turn);
        }
    }

    /// Its assignment is complete: it waits for a slot, or, if its device was lost meanwhile, for a device.
    fn enqueue_to_prove(&mut self, turn: Turn) {
        let partition = self.partition_mut(turn.partition);
        if partition.home.is_some() {
            partition.state = PartitionState::Ready;
            self.ready.insert(turn);
        } else {
            partition.state = PartitionState::Homeless;
            self.homeless.insert(turn);
        }
    }

    fn loaded(&mut self, device: DeviceId, circuit: CircuitId, result: Result<(), DeviceFault>) {
        if self.devices[usize::from(device.0)].health != Health::Live {
            return;
        }
        let fault = match result {
            Ok(()) => return self.budget.loaded(device, circuit),
            Err(fault) => fault,
        };
        let sentence = format!("loading its key on device {} failed: {}", device.0, fault.sentence());
        tracing::warn!(device = device.0, "{sentence}");
        if matches!(fault, DeviceFault::Lost(_)) {
            return self.lost(device, Stage::KeyLoad, &sentence);
        }
        self.evacuate(device, (Stage::KeyLoad, &sentence), |_, of| of == circuit);
        self.devices[usize::from(device.0)].refuses.insert(circuit);
        self.budget.forget(device, circuit);
    }

    fn slot_done(&mut self, slot: SlotId, key: PartitionKey, result: Result<PartitionProof, DeviceFault>) {
        let device = &mut self.devices[usize::from(slot.device.0)];
        device.slots[usize::from(slot.index)] = None;
        if device.health != Health::Live {
            self.leave_home(key);
        }
        if let Err(DeviceFault::Lost(sentence)) = &result {
            self.lost(slot.device, Stage::Proving, sentence);
        }
        self.restart_if_quiet(slot.device);
        if self.answered(key) {
            return;
        }
        match result {
            Ok(proof) => {
                let turn = self.turn(key);
                let partition = self.partition_mut(key);
                partition.proof = Some(proof);
                partition.state = PartitionState::Proved;
                self.proved.insert(turn);
            }
            Err(DeviceFault::Rejected(sentence)) => {
                let place = Place { partition: Some(key.index), segment: None };
                self.fail(self.now, key.job, Stage::Proving, place, Cause::Rejected(sentence));
            }
            Err(fault) => self.retry(key, Stage::Proving, fault.sentence()),
        }
    }

    fn checked(&mut self, key: PartitionKey, verdict: Verdict) {
        self.check_idle += 1;
        if self.answered(key) {
            return;
        }
        let cause = match verdict {
            Verdict::Valid => {
                if let Some(slot) = self.partition_mut(key).slot {
                    self.devices[usize::from(slot.device.0)].restarts = 0;
                }
                return self.release(key);
            }
            Verdict::Faulty => {
                self.counters.faulty_proofs += 1;
                let sentence = "the proof does not verify although the constraints hold".to_owned();
                return self.retry(key, Stage::Verification, sentence);
            }
            Verdict::Unsatisfied(broken) => Cause::Unsatisfied(broken),
            Verdict::Rejected(sentence) => Cause::Rejected(sentence),
            Verdict::Panicked => Cause::Panicked,
        };
        let place = Place { partition: Some(key.index), segment: None };
        self.fail(self.now, key.job, Stage::Verification, place, cause);
    }

    /// An attempt failed and the assignment is not to blame: prove this partition again, elsewhere if possible.
    fn retry(&mut self, key: PartitionKey, stage: Stage, sentence: String) {
        self.leave_home(key);
        let turn = self.turn(key);
        let partition = self.partition_mut(key);
        let slot = partition.slot.take();
        partition.proof = None;
        partition.attempts += 1;
        partition.tried.extend(slot);
        let last = slot.map_or(sentence.clone(), |slot| format!("{slot}: {sentence}"));
        partition.last_error = Some((stage, last.clone()));
        let attempts = partition.attempts;
        tracing::warn!(partition = key.index, attempts, "{stage} failed: {last}");
        if attempts >= ATTEMPTS_MAX {
            let cause = Cause::Device { attempts, last };
            let place = Place { partition: Some(key.index), segment: None };
            return self.fail(self.now, key.job, stage, place, cause);
        }
        self.counters.retries += 1;
        self.enqueue_to_prove(turn);
    }

    fn released(&mut self, key: PartitionKey) {
        self.leave_home(key);
        self.close(key);
        self.end_if_closed(key.job);
    }

    fn restarted(&mut self, device: DeviceId, result: Result<(), DeviceFault>) {
        let state = &mut self.devices[usize::from(device.0)];
        match result {
            Ok(()) => {
                state.health = Health::Live;
                state.refuses.clear();
            }
            Err(fault) if state.restarts >= DEVICE_RESTARTS_MAX => {
                tracing::error!(device = device.0, "the device is given up: {}", fault.sentence());
                state.health = Health::Dead;
            }
            Err(_) => {
                state.restarts += 1;
                self.actions.push(Action::Restart { device });
            }
        }
    }

    /// A device lost everything it had. Its partitions move; the slots that still work will report.
    fn lost(&mut self, device: DeviceId, stage: Stage, sentence: &str) {
        let state = &mut self.devices[usize::from(device.0)];
        if state.health != Health::Live {
            return;
        }
        tracing::error!(device = device.0, "the device is lost: {sentence}");
        state.health = Health::Lost;
        self.counters.device_losses += 1;
        self.evacuate(device, (stage, sentence), |partition, _| !matches!(partition.state, PartitionState::Proving(_)));
        self.leave_home_of_reported(device);
        self.restart_if_quiet(device);
    }

    /// The partition whose report brought the news is in state Proving and has no slot any more.
    fn leave_home_of_reported(&mut self, device: DeviceId) {
        let busy: Vec<_> = self.devices[usize::from(device.0)].slots.iter().flatten().copied().collect();
        let reported =
            |key: &PartitionKey, partition: &Partition| partition.home == Some(device) && !busy.contains(key);
        for key in self.partitions_where(reported) {
            self.leave_home(key);
        }
    }

    /// Restart a lost device as soon as none of its slots is at work.
    fn restart_if_quiet(&mut self, device: DeviceId) {
        let state = &mut self.devices[usize::from(device.0)];
        if state.health != Health::Lost || state.slots.iter().any(Option::is_some) {
            return;
        }
        self.budget.forget_all(device);
        if state.restarts >= DEVICE_RESTARTS_MAX {
            tracing::error!(
                device = device.0,
                "the device is given up after {DEVICE_RESTARTS_MAX} restarts without a proof"
            );
            state.health = Health::Dead;
            return;
        }
        state.health = Health::Restarting;
        state.restarts += 1;
        self.actions.push(Action::Restart { device });
    }

    /// Take partitions off a device; those that are ready wait for another.
    fn evacuate(&mut self, device: DeviceId, why: (Stage, &str), which: impl Fn(&Partition, CircuitId) -> bool) {
        let moving = self.partitions_where(|key, partition| {
            partition.home == Some(device) && which(partition, self.jobs[&key.job].submission.circuit)
        });
        for key in moving {
            self.leave_home(key);
            let turn = self.turn(key);
            let partition = self.partition_mut(key);
            partition.last_error = Some((why.0, why.1.to_owned()));
            if partition.state == PartitionState::Ready {
                partition.state = PartitionState::Homeless;
                self.ready.remove(&turn);
                self.homeless.insert(turn);
            }
        }
    }

    fn partitions_where(&self, which: impl Fn(&PartitionKey, &Partition) -> bool) -> Vec<PartitionKey> {
        let keys = self.jobs.iter().flat_map(|(&job, state)| {
            (0..).zip(&state.partitions).map(move |(index, partition)| (PartitionKey { job, index }, partition))
        });
        keys.filter(|(key, partition)| which(key, partition)).map(|(key, _)| key).collect()
    }

    /// A worker answered. Says whether that was all there is to do, because the job stops.
    fn answered(&mut self, key: PartitionKey) -> bool {
        let stopping = self.jobs.get(&key.job).is_none_or(|job| job.stopping.is_some());
        let partition = self.partition_mut(key);
        partition.running -= 1;
        if stopping && partition.running == 0 {
            self.release(key);
        }
        stopping
    }

    /// Wind up a partition of a job that stops, unless a worker still has a part of it.
    pub(super) fn wind_up(&mut self, key: PartitionKey) {
        let turn = self.turn(key);
        let partition = self.partition_mut(key);
        let (state, running) = (partition.state, partition.running);
        match state {
            PartitionState::Waiting => {
                self.waiting.remove(&turn);
                self.close(key);
            }
            PartitionState::Releasing | PartitionState::Closed => {}
            _ => {
                for set in [&mut self.homeless, &mut self.ready, &mut self.proved] {
                    set.remove(&turn);
                }
                let own: Vec<_> = self.segments.range((turn, 0)..=(turn, u32::MAX)).copied().collect();
                for segment in own {
                    self.segments.remove(&segment);
                }
                if running == 0 {
                    self.release(key);
                }
            }
        }
    }

    fn release(&mut self, key: PartitionKey) {
        self.give_back_host(key);
        self.partition_mut(key).state = PartitionState::Releasing;
        self.actions.push(Action::Release { partition: key });
    }

    /// A partition's guests are done. Those of the last that is being written stay for the next one, so that the input need
    /// not be opened again; any other job that needs their memory gets it: see `reclaim_guests`.
    fn give_back_host(&mut self, key: PartitionKey) {
        if !std::mem::take(&mut self.partition_mut(key).has_host) {
            return;
        }
        let job = &self.jobs[&key.job];
        let turn = |index| job.turn(PartitionKey { job: key.job, index });
        let waits = || self.waiting.range(turn(0)..=turn(u32::MAX)).next().is_some();
        if job.grants == 1 && job.stopping.is_none() && waits() {
            self.resting.insert(key.job);
        } else {
            self.give_back_grant(key.job);
        }
    }

    /// Give back the memory of one partition's guests.
    pub(super) fn give_back_grant(&mut self, key: JobKey) {
        let workers = self.config.synthesis_workers;
        let job = self.jobs.get_mut(&key).expect("a job stays while it has memory");
        job.grants -= 1;
        let count = job.submission.guests(workers) * u64::from(job.grants);
        self.budget.give_back_host(job.submission.host_bytes(workers));
        self.actions.push(Action::KeepGuests { job: key, count });
    }

    /// Give back a partition's credit and its use of the circuit on its device.
    pub(super) fn leave_home(&mut self, key: PartitionKey) {
        let circuit = self.jobs[&key.job].submission.circuit;
        if let Some(device) = self.partition_mut(key).home.take() {
            self.budget.end_use(device, circuit, self.now);
            self.devices[usize::from(device.0)].in_flight -= 1;
        }
    }

    fn close(&mut self, key: PartitionKey) {
        self.partition_mut(key).state = PartitionState::Closed;
        if let Some(job) = self.jobs.get_mut(&key.job) {
            job.open -= 1;
        }
    }

    pub(super) fn end_if_closed(&mut self, key: JobKey) {
        if self.jobs.get(&key).is_none_or(|job| job.open > 0) {
            return;
        }
        let Some(job) = self.jobs.remove(&key) else { return };
        let outcome = std::sync::Arc::new(job.outcome());
        let submission = job.submission;
        self.deadlines.retain(|&(_, of)| of != key);
        self.ended_bytes += outcome.bytes();
        self.ended.push_back(Ended { key, id: submission.id, body: submission.body, outcome: outcome.clone() });
        self.forget_ended();
        self.actions.push(Action::End { job: key, outcome });
        if self.draining && self.jobs.is_empty() {
            self.actions.push(Action::Drained);
        }
    }

    /// Forget the oldest of the jobs that have ended, as far as there are too many.
    fn forget_ended(&mut self) {
        while self.ended.len() > self.config.ended_jobs_max || self.ended_bytes > ENDED_BYTES_MAX {
            let Some(old) = self.ended.pop_front() else { return };
            self.ended_bytes -= old.outcome.bytes();
            if self.ids.get(&old.id) == Some(&old.key) {
                self.ids.remove(&old.id);
            }
        }
    }

    pub(super) fn partition_mut(&mut self, key: PartitionKey) -> &mut Partition {
        let job = self.jobs.get_mut(&key.job).expect("a job stays until all its partitions are closed");
        &mut job.partitions[key.index as usize]
    }

    pub(super) fn turn(&self, key: PartitionKey) -> Turn {
        Turn { priority: Reverse(self.jobs[&key.job].submission.priority), partition: key }
    }
}

impl DeviceFault {
    fn sentence(&self) -> String {
        match self {
            Self::Failed(sentence) | Self::Lost(sentence) | Self::Rejected(sentence) => sentence.clone(),
            Self::Cancelled => "it stopped without being asked to".to_owned(),
            Self::Panicked => "the thread of the slot panicked, which is a bug".to_owned(),
        }
    }
}
