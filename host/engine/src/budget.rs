//! The budget: host, page-locked and device memory, taken all at once or not at all.
//!
//! It is part of the single-threaded scheduler and has no lock. Page-locked bytes are not counted a second time here: the
//! arena knows what is resident, and it is asked. Keys and matrices on devices stay after their last use and are evicted,
//! least recently used first, when room is needed; never while a partition that was admitted needs them.

use crate::arena::{Arena, Lease};
use crate::ids::{CircuitId, DeviceId, Priority, Time};
use std::collections::BTreeMap;
use zkhost_groth16::assignment::SegmentLimits;

/// Bytes of one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// What there is.
    pub capacity_bytes: u64,
    /// What only urgent jobs may have of it.
    pub head_room_bytes: u64,
}

impl Pool {
    /// What a job of this priority may have.
    pub fn limit_bytes(&self, priority: Priority) -> u64 {
        let head_room = if priority == Priority::Urgent { 0 } else { self.head_room_bytes };
        self.capacity_bytes.saturating_sub(head_room)
    }
}

/// What an engine may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Host memory of guests that run.
    pub host: Pool,
    /// Head-room of the arena; its capacity is the arena's own.
    pub pinned_head_room_bytes: u64,
    /// Memory of each device for keys and matrices; scratch of slots is the device's own and not part of it.
    pub devices: Vec<Pool>,
}

/// A job that could not even run alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NeverFits {
    /// Too much host memory.
    #[error(
        "one partition's guests may take {needed_bytes} bytes of host memory, of which {limit_bytes} can be given; \
             raise the host budget or lower the circuit's memory limit"
    )]
    Host {
        /// What is needed.
        needed_bytes: u64,
        /// What a job of its priority can have.
        limit_bytes: u64,
    },
    /// Too much page-locked memory.
    #[error(
        "one partition's assignment may take {needed_bytes} bytes of pinned memory, of which {limit_bytes} can be given, \
             each segment in one piece; raise the pinned budget"
    )]
    Pinned {
        /// What is needed, before rounding.
        needed_bytes: u64,
        /// What a job of its priority can have.
        limit_bytes: u64,
    },
    /// No device takes its key.
    #[error("no device can hold circuit {circuit} with its key ({needed}); add a device with more memory, or the CPU")]
    Device {
        /// The circuit.
        circuit: CircuitId,
        /// What each device says.
        needed: String,
    },
}

/// What one partition needs to run.
pub struct Demand<'a> {
    /// Its segments, each a lease of its own.
    pub segments: &'a [SegmentLimits],
    /// Memory of the guests that write them.
    pub host_bytes: u64,
    /// The device it will be proved on.
    pub device: DeviceId,
    /// The NUMA node nearest to that device.
    pub node: u32,
    /// What has to be resident there.
    pub circuit: CircuitId,
    /// Bytes of it.
    pub circuit_bytes: u64,
    /// Whose head-room it may use.
    pub priority: Priority,
}

/// What has to be done on a device before a residency that was granted is real, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Circuits to evict.
    pub evict: Vec<CircuitId>,
    /// Whether the circuit is yet to be loaded.
    pub load: bool,
}

/// Everything that a [`Demand`] asked for.
pub struct Grant {
    /// One lease a segment, in order.
    pub leases: Vec<Lease>,
    /// What to do on the device.
    pub residency: Residency,
}

#[derive(Debug)]
struct Resident {
    bytes: u64,
    /// Partitions that were admitted and need it.
    users: u32,
    loaded: bool,
    last_used: Time,
}

impl Resident {
    fn is_idle(&self) -> bool {
        self.users == 0 && self.loaded
    }
}

#[derive(Debug)]
struct DeviceMemory {
    pool: Pool,
    residents: BTreeMap<CircuitId, Resident>,
}

/// Bytes in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Host memory of guests.
    pub host_bytes: u64,
    /// Page-locked memory, rounding and quarantine included.
    pub pinned_bytes: u64,
    /// Keys and matrices on each device, whether in use or only kept.
    pub device_bytes: Vec<u64>,
}

/// The budget. See the module.
pub struct Budget {
    limits: Limits,
    arena: Arena,
    host_used_bytes: u64,
    devices: Vec<DeviceMemory>,
}

impl Budget {
    /// A budget over an arena, nothing in use.
    pub fn new(limits: Limits, arena: Arena) -> Self {
        let devices = limits.devices.iter().map(|&pool| DeviceMemory { pool, residents: BTreeMap::new() }).collect();
        Self { limits, arena, host_used_bytes: 0, devices }
    }

    /// The arena.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// What is in use now.
    pub fn usage(&self) -> Usage {
        Usage {
            host_bytes: self.host_used_bytes,
            pinned_bytes: self.arena.used_bytes(),
            device_bytes: self.devices.iter().map(DeviceMemory::used_bytes).collect(),
        }
    }

    /// Whether a partition could run alone: host and pinned memory. Devices are judged by [`Self::device_could_hold`].
    pub fn could_ever_give(
        &self,
        segments: &[SegmentLimits],
        host_bytes: u64,
        priority: Priority,
    ) -> Result<(), NeverFits> {
        let limit_bytes = self.limits.host.limit_bytes(priority);
        if host_bytes > limit_bytes {
            return Err(NeverFits::Host { needed_bytes: host_bytes, limit_bytes });
        }
        let head_room = self.pinned_head_room_bytes(priority);
        if !self.arena.could_ever_lease(segments, head_room) {
            let bytes = |segment| crate::arena::LeaseLayout::of(segment).map_or(u64::MAX, |layout| layout.bytes());
            return Err(NeverFits::Pinned {
                needed_bytes: segments.iter().map(bytes).fold(0, u64::saturating_add),
                limit_bytes: self.arena.capacity_bytes().saturating_sub(head_room),
            });
        }
        Ok(())
    }

    /// Whether the empty device has room for so much.
    pub fn device_could_hold(&self, device: DeviceId, circuit_bytes: u64, priority: Priority) -> bool {
        circuit_bytes <= self.device(device).pool.limit_bytes(priority)
    }

    /// Give a partition everything, or nothing and say that it has to wait.
    pub fn take(&mut self, demand: &Demand<'_>, now: Time) -> Option<Grant> {
        let host_used_bytes = self.host_used_bytes.checked_add(demand.host_bytes)?;
        if host_used_bytes > self.limits.host.limit_bytes(demand.priority) {
            return None;
        }
        let (circuit, bytes) = (demand.circuit, demand.circuit_bytes);
        let evict = self.device(demand.device).plan(circuit, bytes, demand.priority)?;
        let head_room = self.pinned_head_room_bytes(demand.priority);
        let leases = self.arena.lease(demand.segments, demand.node, head_room)?;
        self.host_used_bytes = host_used_bytes;
        let residency = self.device_mut(demand.device).commit(circuit, bytes, evict, now);
        Some(Grant { leases, residency })
    }

    /// Give a partition that has everything else a place on a device.
    pub fn take_residency(
        &mut self,
        device: DeviceId,
        (circuit, circuit_bytes): (CircuitId, u64),
        priority: Priority,
        now: Time,
    ) -> Option<Residency> {
        let evict = self.device(device).plan(circuit, circuit_bytes, priority)?;
        Some(self.device_mut(device).commit(circuit, circuit_bytes, evict, now))
    }

    /// One more partition uses a circuit that is on the device.
    pub fn share(&mut self, device: DeviceId, circuit: CircuitId) {
        let resident = self.device_mut(device).residents.get_mut(&circuit).expect("what is shared is resident");
        resident.users += 1;
    }

    /// A partition's guests are done.
    pub fn give_back_host(&mut self, bytes: u64) {
        self.host_used_bytes = self.host_used_bytes.checked_sub(bytes).expect("host memory is given back once");
    }

    /// A partition needs the circuit on this device no more. It stays there until room is needed.
    pub fn end_use(&mut self, device: DeviceId, circuit: CircuitId, now: Time) {
        let resident = self.device_mut(device).residents.get_mut(&circuit).expect("what is in use is resident");
        resident.users = resident.users.checked_sub(1).expect("a residency's use ends once");
        resident.last_used = now;
    }

    /// The load of a circuit that was granted is done.
    pub fn loaded(&mut self, device: DeviceId, circuit: CircuitId) {
        if let Some(resident) = self.device_mut(device).residents.get_mut(&circuit) {
            resident.loaded = true;
        }
    }

    /// The circuit is not on the device after all. Nobody may use it there any more.
    pub fn forget(&mut self, device: DeviceId, circuit: CircuitId) {
        let forgotten = self.device_mut(device).residents.remove(&circuit);
        assert!(forgotten.is_none_or(|resident| resident.users == 0), "what is forgotten is not in use");
    }

    /// The device lost its memory. Nobody may use anything there any more.
    pub fn forget_all(&mut self, device: DeviceId) {
        let residents = std::mem::take(&mut self.device_mut(device).residents);
        assert!(residents.values().all(|resident| resident.users == 0), "what is forgotten is not in use");
    }

    /// Whether the circuit is on the device or on its way there.
    pub fn is_resident(&self, device: DeviceId, circuit: CircuitId) -> bool {
        self.device(device).residents.contains_key(&circuit)
    }

    /// Whether the circuit is on the device.
    pub fn is_loaded(&self, device: DeviceId, circuit: CircuitId) -> bool {
        self.device(device).residents.get(&circuit).is_some_and(|resident| resident.loaded)
    }

    /// Whether the circuit is on the device or fits beside all that is.
    pub fn has_room(&self, device: DeviceId, circuit: CircuitId, circuit_bytes: u64, priority: Priority) -> bool {
        self.device(device).plan(circuit, circuit_bytes, priority).is_some_and(|evict| evict.is_empty())
    }

    /// Whether the circuit is on the device and no partition needs it there.
    pub fn is_idle(&self, device: DeviceId, circuit: CircuitId) -> bool {
        self.device(device).residents.get(&circuit).is_some_and(Resident::is_idle)
    }

    fn pinned_head_room_bytes(&self, priority: Priority) -> u64 {
        if priority == Priority::Urgent { 0 } else { self.limits.pinned_head_room_bytes }
    }

    fn device(&self, device: DeviceId) -> &DeviceMemory {
        &self.devices[usize::from(device.0)]
    }

    fn device_mut(&mut self, device: DeviceId) -> &mut DeviceMemory {
        &mut self.devices[usize::from(device.0)]
    }
}

impl DeviceMemory {
    fn used_bytes(&self) -> u64 {
        self.residents.values().map(|resident| resident.bytes).sum()
    }

    /// What to evict so that the circuit is or can be resident; none if it has to wait for others to finish.
    fn plan(&self, circuit: CircuitId, bytes: u64, priority: Priority) -> Option<Vec<CircuitId>> {
        if self.residents.contains_key(&circuit) {
            return Some(vec![]);
        }
        let limit_bytes = self.pool.limit_bytes(priority);
        let mut idle: Vec<_> = self.residents.iter().filter(|(_, resident)| resident.is_idle()).collect();
        idle.sort_by_key(|(id, resident)| (resident.last_used, **id));
        let (mut used_bytes, mut evict) = (self.used_bytes(), vec![]);
        let mut idle = idle.into_iter();
        while used_bytes.checked_add(bytes)? > limit_bytes {
            let (id, resident) = idle.next()?;
            used_bytes -= resident.bytes;
            evict.push(*id);
        }
        Some(evict)
    }

    fn commit(&mut self, circuit: CircuitId, bytes: u64, evict: Vec<CircuitId>, now: Time) -> Residency {
        for id in &evict {
            self.residents.remove(id);
        }
        let load = !self.residents.contains_key(&circuit);
        let new = Resident { bytes, users: 0, loaded: false, last_used: now };
        let resident = self.residents.entry(circuit).or_insert(new);
        resident.users += 1;
        resident.last_used = now;
        Residency { evict, load }
    }
}
