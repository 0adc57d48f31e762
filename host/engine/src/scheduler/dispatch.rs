//! Which worker gets what, in order of turns.

use super::{Action, Device, Health, PartitionState, Scheduler, Turn};
use crate::ids::{DeviceId, SlotId};

impl Scheduler {
    pub(super) fn dispatch_segments(&mut self) {
        while self.synthesis_idle > 0 {
            let Some((turn, segment)) = self.segments.pop_first() else { break };
            self.synthesis_idle -= 1;
            self.partition_mut(turn.partition).running += 1;
            self.actions.push(Action::Synthesise { partition: turn.partition, segment });
        }
    }

    pub(super) fn dispatch_checks(&mut self) {
        while self.check_idle > 0 {
            let Some(turn) = self.proved.pop_first() else { break };
            self.check_idle -= 1;
            let partition = self.partition_mut(turn.partition);
            partition.running += 1;
            partition.state = PartitionState::Checking;
            let proof = partition.proof.as_ref().expect("a partition that is proved has a proof").bytes;
            self.actions.push(Action::Check { partition: turn.partition, proof });
        }
    }

    /// Every ready partition, in order, goes to the first free slot that has its circuit: of its own device, else of
    /// another of the same role.
    pub(super) fn dispatch_slots(&mut self) {
        let mut idle = self.devices.iter().map(Device::idle_slots).sum::<usize>();
        let ready: Vec<_> = self.ready.iter().copied().collect();
        for turn in ready {
            if idle == 0 {
                break;
            }
            if let Some(slot) = self.slot_for(turn) {
                self.dispatch_to(turn, slot);
                idle -= 1;
            }
        }
    }

    fn slot_for(&self, turn: Turn) -> Option<SlotId> {
        let job = &self.jobs[&turn.partition.job];
        let partition = &job.partitions[turn.partition.index as usize];
        let home = partition.home?;
        let role = self.devices[usize::from(home.0)].spec.role;
        // One that failed stays where it was placed, so that "elsewhere" is elsewhere.
        let others = (0..super::ceil_u32(self.devices.len()) as u16)
            .map(DeviceId)
            .filter(|&id| id != home && partition.attempts == 0 && self.devices[usize::from(id.0)].spec.role == role);
        std::iter::once(home)
            .chain(others)
            .filter(|&id| self.budget.is_loaded(id, job.submission.circuit))
            .find_map(|id| self.devices[usize::from(id.0)].free_slot(id, &partition.tried))
    }

    fn dispatch_to(&mut self, turn: Turn, slot: SlotId) {
        let circuit = self.jobs[&turn.partition.job].submission.circuit;
        let home = self.partition_mut(turn.partition).home;
        if home != Some(slot.device) {
            self.move_home(turn, slot.device);
        }
        self.ready.remove(&turn);
        self.devices[usize::from(slot.device.0)].slots[usize::from(slot.index)] = Some(turn.partition);
        let partition = self.partition_mut(turn.partition);
        partition.running += 1;
        partition.state = PartitionState::Proving(slot);
        partition.slot = Some(slot);
        self.actions.push(Action::Prove { slot, partition: turn.partition, circuit });
    }

    /// Take credit and residency from the old home to another device where the circuit is loaded.
    fn move_home(&mut self, turn: Turn, device: DeviceId) {
        let circuit = self.jobs[&turn.partition.job].submission.circuit;
        self.budget.share(device, circuit);
        self.devices[usize::from(device.0)].in_flight += 1;
        self.leave_home(turn.partition);
        self.partition_mut(turn.partition).home = Some(device);
    }
}

impl Device {
    fn idle_slots(&self) -> usize {
        if self.health == Health::Live { self.slots.iter().filter(|slot| slot.is_none()).count() } else { 0 }
    }

    /// A free slot, none of those tried unless all were.
    fn free_slot(&self, id: DeviceId, tried: &[SlotId]) -> Option<SlotId> {
        if self.health != Health::Live {
            return None;
        }
        let slots = || (0..self.spec.slots).map(|index| SlotId { device: id, index });
        let all_tried = slots().all(|slot| tried.contains(&slot));
        slots().find(|slot| self.slots[usize::from(slot.index)].is_none() && (all_tried || !tried.contains(slot)))
    }
}
