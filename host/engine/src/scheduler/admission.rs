//! Which partition may begin, and where it will be proved.

use super::{Action, Health, PartitionState, Role, Scheduler, Submission, Turn};
use crate::budget::{Demand, NeverFits, Residency};
use crate::failure::{Cause, Place, Stage};
use crate::ids::{CircuitId, DeviceId, JobKey, PartitionKey, Priority, Time};

/// Where a partition can go.
enum Places {
    /// To the first of these that has room for it.
    Any(Vec<DeviceId>),
    /// Nowhere now; a device that takes it is busy or restarting.
    Later,
    /// Nowhere.
    Nowhere,
}

impl Scheduler {
    pub(super) fn refuse_what_never_fits(&self, submission: &Submission) -> Result<(), NeverFits> {
        let host_bytes = submission.host_bytes(self.config.synthesis_workers);
        self.budget.could_ever_give(&submission.segments, host_bytes, submission.priority)?;
        let takes = |role| !self.devices_that_take(submission, role).is_empty();
        if takes(Role::Primary) || takes(Role::LastResort) {
            return Ok(());
        }
        let say = |(i, bytes): (usize, &Option<u64>)| match bytes {
            Some(bytes) => format!("device {i} would need {bytes} bytes for it"),
            None => format!("device {i} does not take it"),
        };
        let needed: Vec<_> = submission.circuit_bytes.iter().enumerate().map(say).collect();
        Err(NeverFits::Device { circuit: submission.circuit, needed: needed.join(", ") })
    }

    /// Admit partitions in order, until one has to wait.
    pub(super) fn admit(&mut self, now: Time) {
        // Partitions that lost their device hold memory, so they come first.
        while self.homeless.is_empty() {
            let Some(&turn) = self.waiting.first() else { break };
            match self.places(turn.partition) {
                Places::Any(devices) => {
                    let admitted = devices.into_iter().any(|device| self.admit_to(now, turn, device));
                    if !admitted && !self.reclaim_guests(turn.partition.job) {
                        break;
                    }
                }
                Places::Later => break,
                Places::Nowhere => self.fail_without_device(now, turn.partition),
            }
        }
    }

    /// Admit one partition with everything it needs, or do nothing.
    fn admit_to(&mut self, now: Time, turn: Turn, device: DeviceId) -> bool {
        let job = turn.partition.job;
        let submission = &self.jobs[&job].submission;
        let segments = submission.segments.clone();
        let rested = self.resting.contains(&job);
        let demand = Demand {
            segments: &segments,
            host_bytes: if rested { 0 } else { submission.host_bytes(self.config.synthesis_workers) },
            device,
            node: self.devices[usize::from(device.0)].spec.node,
            circuit: submission.circuit,
            circuit_bytes: submission.circuit_bytes[usize::from(device.0)].unwrap_or(u64::MAX),
            priority: submission.priority,
        };
        let circuit = demand.circuit;
        let Some(grant) = self.budget.take(&demand, now) else { return false };
        self.waiting.remove(&turn);
        self.actions.push(Action::Admit { partition: turn.partition, leases: grant.leases });
        self.order_residency(device, circuit, grant.residency);
        self.segments.extend((0..segments.len()).map(|segment| (turn, super::ceil_u32(segment))));
        self.devices[usize::from(device.0)].in_flight += 1;
        if !self.resting.remove(&job) {
            self.jobs.get_mut(&job).expect("its partition is here").grants += 1;
        }
        let partition = self.partition_mut(turn.partition);
        partition.state = PartitionState::Synthesising;
        partition.home = Some(device);
        partition.has_host = true;
        true
    }

    /// Take back the memory of guests that only rest between partitions, for a job whose turn it is. Says whether there was any.
    fn reclaim_guests(&mut self, for_job: JobKey) -> bool {
        let resting: Vec<_> = self.resting.iter().copied().filter(|&job| job != for_job).collect();
        for &job in &resting {
            self.resting.remove(&job);
            self.give_back_grant(job);
        }
        !resting.is_empty()
    }

    /// Give partitions that lost their device another one.
    pub(super) fn rehome(&mut self, now: Time) {
        let homeless: Vec<_> = self.homeless.iter().copied().collect();
        for turn in homeless {
            match self.places(turn.partition) {
                Places::Any(devices) => {
                    devices.into_iter().any(|device| self.rehome_to(now, turn, device));
                }
                Places::Later => {}
                Places::Nowhere => self.fail_without_device(now, turn.partition),
            }
        }
    }

    fn rehome_to(&mut self, now: Time, turn: Turn, device: DeviceId) -> bool {
        let submission = &self.jobs[&turn.partition.job].submission;
        let (circuit, priority) = (submission.circuit, submission.priority);
        let bytes = submission.circuit_bytes[usize::from(device.0)].unwrap_or(u64::MAX);
        let Some(residency) = self.budget.take_residency(device, (circuit, bytes), priority, now) else { return false };
        self.order_residency(device, circuit, residency);
        self.devices[usize::from(device.0)].in_flight += 1;
        self.homeless.remove(&turn);
        self.ready.insert(turn);
        let partition = self.partition_mut(turn.partition);
        partition.state = PartitionState::Ready;
        partition.home = Some(device);
        true
    }

    /// Bring a circuit to every primary device that takes it and has room for it, others' idle keys making way, also if
    /// an earlier load failed. Says where it is, or will be.
    pub fn preload(&mut self, now: Time, circuit: CircuitId, circuit_bytes: &[Option<u64>]) -> Vec<DeviceId> {
        let mut there = vec![];
        // Whoever asks may have mended what made an earlier load fail.
        for device in &mut self.devices {
            device.refuses.remove(&circuit);
        }
        for (index, bytes) in (0..).zip(circuit_bytes) {
            let (id, device) = (DeviceId(index), &self.devices[usize::from(index)]);
            let takes = device.spec.role == Role::Primary && device.health == Health::Live;
            let Some(bytes) = bytes.filter(|_| takes) else { continue };
            let Some(residency) = self.budget.take_residency(id, (circuit, bytes), Priority::Normal, now) else {
                continue;
            };
            self.order_residency(id, circuit, residency);
            self.budget.end_use(id, circuit, now);
            there.push(id);
        }
        there
    }

    /// Take a circuit off every device on which no partition needs it. Says whether it is on none now.
    pub fn evict(&mut self, now: Time, circuit: CircuitId) -> bool {
        let devices = (0..super::ceil_u32(self.devices.len()) as u16).map(DeviceId);
        let (idle, busy): (Vec<_>, Vec<_>) = devices
            .filter(|&id| self.budget.is_resident(id, circuit))
            .partition(|&id| self.budget.is_idle(id, circuit));
        for device in idle {
            self.counters.evictions += 1;
            self.budget.forget(device, circuit);
            self.actions.push(Action::Evict { device, circuit });
        }
        self.pump(now);
        busy.is_empty()
    }

    fn order_residency(&mut self, device: DeviceId, circuit: CircuitId, residency: Residency) {
        self.counters.evictions += residency.evict.len() as u64;
        self.actions.extend(residency.evict.into_iter().map(|circuit| Action::Evict { device, circuit }));
        if residency.load {
            self.counters.loads += 1;
            self.actions.push(Action::Load { device, circuit });
        }
    }

    fn fail_without_device(&mut self, now: Time, key: PartitionKey) {
        let partition = self.partition_mut(key);
        let attempts = partition.attempts;
        let (stage, cause) = match partition.last_error.clone() {
            Some((stage, last)) => (stage, Cause::Device { attempts, last }),
            None => (Stage::Admission, Cause::NoDevice),
        };
        self.fail(now, key.job, stage, Place { partition: Some(key.index), segment: None }, cause);
    }

    /// Where a partition can go, the best place first: attempts lead from anywhere to elsewhere to the last resort, as far
    /// as there are such places.
    fn places(&self, key: PartitionKey) -> Places {
        let job = &self.jobs[&key.job];
        let partition = &job.partitions[key.index as usize];
        let submission = &job.submission;
        let primary = self.devices_that_take(submission, Role::Primary);
        let last_resort = self.devices_that_take(submission, Role::LastResort);
        let untried = |device: &DeviceId| {
            let slots = self.devices[usize::from(device.0)].spec.slots;
            let tried = partition.tried.iter().filter(|slot| slot.device == *device).count();
            tried < usize::from(slots)
        };
        let elsewhere: Vec<_> = primary.iter().copied().filter(untried).collect();
        let preferred = match partition.attempts {
            0 => [primary, last_resort, vec![]],
            1 => [elsewhere, last_resort, primary],
            _ => [last_resort, elsewhere, primary],
        };
        let Some(devices) = preferred.into_iter().find(|devices| !devices.is_empty()) else { return Places::Nowhere };
        let admitted = partition.state == PartitionState::Homeless;
        self.rank(submission, devices, admitted)
    }

    /// Those that live and have a credit: where the circuit is resident and a slot is free first, then where it fits beside
    /// others and a slot is free, then where it is resident; of equal ones the least busy. A partition that is admitted needs
    /// no new credit.
    fn rank(&self, submission: &Submission, devices: Vec<DeviceId>, admitted: bool) -> Places {
        let free = |id: &DeviceId| {
            let device = &self.devices[usize::from(id.0)];
            let credits = device.credits(&self.config, submission.priority);
            device.health == Health::Live && (admitted || device.in_flight < credits)
        };
        let mut free: Vec<_> = devices.into_iter().filter(free).collect();
        free.sort_by_key(|&id| {
            let device = &self.devices[usize::from(id.0)];
            let load = u64::from(device.in_flight) * 1024 / u64::from(device.spec.slots.max(1));
            let bytes = submission.circuit_bytes[usize::from(id.0)].unwrap_or(u64::MAX);
            let crowded = device.in_flight >= u32::from(device.spec.slots);
            let resident = self.budget.is_resident(id, submission.circuit);
            let fits = resident || self.budget.has_room(id, submission.circuit, bytes, submission.priority);
            let place = match (crowded, resident, fits) {
                (false, true, _) => 0,
                (false, false, true) => 1,
                (true, true, _) => 2,
                _ => 3,
            };
            (place, load, id)
        });
        if free.is_empty() { Places::Later } else { Places::Any(free) }
    }

    /// Devices of a role, dead ones apart, on which the circuit could be resident.
    fn devices_that_take(&self, submission: &Submission, role: Role) -> Vec<DeviceId> {
        let takes = |&(index, bytes): &(u16, &Option<u64>)| {
            let device = &self.devices[usize::from(index)];
            let fits = |bytes| self.budget.device_could_hold(DeviceId(index), bytes, submission.priority);
            device.spec.role == role
                && device.health != Health::Dead
                && !device.refuses.contains(&submission.circuit)
                && bytes.is_some_and(fits)
        };
        (0..).zip(&submission.circuit_bytes).filter(takes).map(|(index, _)| DeviceId(index)).collect()
    }
}
