//! The memory itself: one mapping per NUMA node, for a device faulted in and page-locked once.

use super::{ArenaError, extents::GRANULE_BYTES};
use memmap2::MmapMut;
use std::fs::read_to_string;
use std::ptr::NonNull;
use std::thread;

/// Fewer bytes than this are faulted in by one thread: more threads would cost more than they save.
const FAULT_BYTES_PER_THREAD_MIN: usize = 64 << 20;

/// Threads that fault in one slab, at most: memory, not threads, bounds the rate beyond.
const FAULT_THREADS_MAX: usize = 8;

/// Makes memory fit for asynchronous copies of a device. CUDA registers it; without a device nothing is needed.
pub trait PageLock: Send + Sync {
    /// Whether pages have to be there before they are locked. Without, memory is taken when it is first used, and a host that
    /// never proves has none of it.
    fn needs_pages(&self) -> bool {
        true
    }
    /// Lock these bytes. Called once for each slab, at start-up, from a thread of its own.
    fn lock(&self, memory: NonNull<u8>, bytes: usize) -> Result<(), String>;
    /// Undo it. Called once for each slab that was locked, when nothing uses the memory any more.
    fn unlock(&self, memory: NonNull<u8>, bytes: usize);
}

/// Memory as the operating system gives it, for provers that do not need more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ordinary;

impl PageLock for Ordinary {
    fn needs_pages(&self) -> bool {
        false
    }

    fn lock(&self, _memory: NonNull<u8>, _bytes: usize) -> Result<(), String> {
        Ok(())
    }

    fn unlock(&self, _memory: NonNull<u8>, _bytes: usize) {}
}

/// A NUMA node and what it shall hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlabSpec {
    /// The node's number.
    pub node: u32,
    /// Bytes of its slab; rounded down to whole granules.
    pub bytes: u64,
}

/// Memory shared out evenly over the NUMA nodes that this machine has; one slab where the system does not tell.
pub fn slabs_on_every_node(total_bytes: u64) -> Vec<SlabSpec> {
    let online = read_to_string("/sys/devices/system/node/online").unwrap_or_default();
    let nodes = parse_list(&online).filter(|nodes| !nodes.is_empty()).unwrap_or_else(|| vec![0]);
    let bytes = total_bytes / nodes.len() as u64;
    nodes.into_iter().map(|node| SlabSpec { node: node as u32, bytes }).collect()
}

/// The kernel's lists of numbers, such as "0-3,8".
fn parse_list(text: &str) -> Option<Vec<usize>> {
    const NUMBERS_MAX: usize = 4096;
    let mut numbers = vec![];
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if first > last || last - first >= NUMBERS_MAX {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// One slab. It is unlocked and unmapped when dropped.
pub struct Slab {
    /// Keeps the mapping; everybody goes through `base`.
    _memory: Option<MmapMut>,
    base: NonNull<u8>,
    bytes: usize,
    node: u32,
}

// SAFETY: `base` is the mapping that the slab owns, valid wherever the slab is; what may be done through it is decided by
// the arena, which hands out disjoint ranges.
unsafe impl Send for Slab {}
// SAFETY: as above; a shared slab gives out addresses and reads nothing itself.
unsafe impl Sync for Slab {}

impl Slab {
    /// Map and, if wanted, fault in. Pages come from the node because threads that run there touch them first.
    pub fn map(spec: &SlabSpec, fault_in: bool) -> Result<Self, ArenaError> {
        let bytes = (spec.bytes / GRANULE_BYTES * GRANULE_BYTES) as usize;
        let out_of_memory = |cause: std::io::Error| ArenaError::Map { bytes: spec.bytes, node: spec.node, cause };
        if bytes == 0 {
            return Ok(Self { _memory: None, base: NonNull::<u64>::dangling().cast(), bytes: 0, node: spec.node });
        }
        let mut memory = MmapMut::map_anon(bytes).map_err(out_of_memory)?;
        // Fewer pages to lock and to translate; a kernel without huge pages ignores it.
        let _ = memory.advise(memmap2::Advice::HugePage);
        if fault_in {
            fault(&mut memory, spec.node);
        }
        let base = NonNull::new(memory.as_mut_ptr()).expect("a mapping has an address");
        Ok(Self { _memory: Some(memory), base, bytes, node: spec.node })
    }

    /// Its address.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its NUMA node.
    pub fn node(&self) -> u32 {
        self.node
    }
}

/// Touch every page from the node's processors.
fn fault(memory: &mut [u8], node: u32) {
    let threads = (memory.len() / FAULT_BYTES_PER_THREAD_MIN).clamp(1, FAULT_THREADS_MAX);
    let cpus = cpus_of(node);
    let part_bytes = memory.len().div_ceil(threads);
    thread::scope(|scope| {
        for part in memory.chunks_mut(part_bytes) {
            let cpus = &cpus;
            scope.spawn(move || {
                run_on(cpus);
                part.fill(0);
            });
        }
    });
}

fn cpus_of(node: u32) -> Vec<usize> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    read_to_string(path).ok().and_then(|text| parse_list(&text)).unwrap_or_default()
}

/// Keep this thread on these processors. Placement is a matter of speed only, so a refusal is not an error.
fn run_on(cpus: &[usize]) {
    let usable = cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize);
    // SAFETY: a `cpu_set_t` is an array of bits, for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let mut any = false;
    for &cpu in usable {
        // SAFETY: `cpu` is below CPU_SETSIZE, the number of bits in the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        any = true;
    }
    if any {
        // SAFETY: the set is initialised and its size is passed; 0 is the calling thread.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    }
}
