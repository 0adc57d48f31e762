//! The pinned arena: all memory that devices copy from, mapped and page-locked once, at start-up, and then leased.
//!
//! - Free memory is all zeros: whoever gets a lease finds nothing of its predecessor.
//! - A lease ends when its holder has dropped it *and* every device event it was held for has fired.
//! - What is resident is what is counted: [`Arena::used_bytes`] has the bytes that no lease can have, rounding and quarantine
//!   included.
//! - No lock is held while memory is zeroed, copied or waited for, and nothing is page-locked after start-up.

mod extents;
mod lease;
mod slab;

pub use extents::{GRANULE_BYTES, class_bytes};
pub use lease::{Lease, LeaseLayout};
pub use slab::{Ordinary, PageLock, SlabSpec, slabs_on_every_node};

use extents::Extents;
use slab::Slab;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::thread;
use zkhost_groth16::assignment::SegmentLimits;

#[cfg(feature = "shuttle")]
use shuttle::sync::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(feature = "shuttle"))]
use std::sync::{Mutex, MutexGuard};

/// Why there is no arena.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// The system has not got the memory.
    #[error("no slab of {bytes} bytes on NUMA node {node}: {cause}; give the arena fewer bytes")]
    Map {
        /// What was asked for.
        bytes: u64,
        /// Where.
        node: u32,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The device's driver does not lock it.
    #[error("the slab of {bytes} bytes on NUMA node {node} was not page-locked: {cause}; give the arena fewer bytes")]
    PageLock {
        /// Its size.
        bytes: u64,
        /// Where.
        node: u32,
        /// What the driver said.
        cause: String,
    },
}

/// Names one lease. A tag outlives its lease and then names nothing, even when the same memory is leased again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseTag {
    slab: u32,
    offset: u64,
    generation: u64,
}

/// The tag's lease has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease of generation {} has ended", .0.generation)]
pub struct Stale(pub LeaseTag);

/// Work of a device that was enqueued and reads a lease.
pub trait DeviceEvent: Send + Sync {
    /// Whether that work is done. Does not wait.
    fn has_fired(&self) -> bool;
}

/// A lease's written ranges: offset in the lease and length, in bytes.
type Written = [(u64, u64); 2];

struct Live {
    bytes: u64,
    events: Vec<Arc<dyn DeviceEvent>>,
    state: State,
}

/// Who may still reach a lease's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its holder.
    Held,
    /// Devices only: the holder dropped it, and an event has not fired.
    Quarantined(Written),
    /// Only the thread that zeroes it.
    Ending,
}

struct Books {
    extents: Vec<Extents>,
    live: HashMap<LeaseTag, Live>,
    next_generation: u64,
    used_bytes: u64,
}

/// What leases share with the arena. See [`Arena`].
pub struct Inner {
    slabs: Vec<Slab>,
    books: Mutex<Books>,
    page_lock: Arc<dyn PageLock>,
    page_lock_calls: AtomicU64,
}

/// The arena. Clones share it; its memory goes when the last clone and the last lease are dropped.
#[derive(Clone)]
pub struct Arena(Arc<Inner>);

impl Arena {
    /// Map the slabs, and fault in and page-lock them where a device needs that, in parallel.
    pub fn new(specs: &[SlabSpec], page_lock: Arc<dyn PageLock>) -> Result<Self, ArenaError> {
        let page_lock_calls = AtomicU64::new(0);
        let start = |spec: &SlabSpec| -> Result<Slab, ArenaError> {
            let slab = Slab::map(spec, page_lock.needs_pages())?;
            if slab.bytes() > 0 {
                page_lock_calls.fetch_add(1, Ordering::Relaxed);
                page_lock.lock(slab.base(), slab.bytes()).map_err(|cause| ArenaError::PageLock {
                    bytes: slab.bytes() as u64,
                    node: slab.node(),
                    cause,
                })?;
            }
            Ok(slab)
        };
        let slabs: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = specs.iter().map(|spec| scope.spawn(move || start(spec))).collect();
            threads.into_iter().map(|thread| thread.join().expect("mapping a slab does not panic")).collect()
        });
        let (slabs, errors): (Vec<_>, Vec<_>) = slabs.into_iter().partition(Result::is_ok);
        let slabs: Vec<_> = slabs.into_iter().flatten().collect();
        let extents = slabs.iter().map(|slab| Extents::new(slab.bytes() as u64)).collect();
        let books = Books { extents, live: HashMap::new(), next_generation: 0, used_bytes: 0 };
        // Built before errors are met, so that its drop unlocks the slabs that were locked.
        let arena = Self(Arc::new(Inner { slabs, books: Mutex::new(books), page_lock, page_lock_calls }));
        errors.into_iter().flat_map(Result::err).next().map_or(Ok(arena), Err)
    }

    /// Leases for all these segments, preferably on one NUMA node, that leave `head_room_bytes` for others. None if others
    /// have to end first; [`Self::could_ever_lease`] tells whether that would help.
    pub fn lease(&self, segments: &[SegmentLimits], node: u32, head_room_bytes: u64) -> Option<Vec<Lease>> {
        self.reclaim();
        let layouts = layouts(segments)?;
        let ceiling_bytes = self.capacity_bytes().saturating_sub(head_room_bytes);
        let tags = self.0.books().take(&layouts, &self.slab_order(node), ceiling_bytes)?;
        let lease = |(tag, layout): (LeaseTag, LeaseLayout)| {
            Lease::new(self.0.clone(), tag, self.0.address(tag.slab, tag.offset), layout)
        };
        Some(tags.into_iter().zip(layouts).map(lease).collect())
    }

    /// Whether the empty arena would have these leases and leave the head-room, whichever node is preferred.
    pub fn could_ever_lease(&self, segments: &[SegmentLimits], head_room_bytes: u64) -> bool {
        let Some(layouts) = layouts(segments) else { return false };
        let ceiling_bytes = self.capacity_bytes().saturating_sub(head_room_bytes);
        // The same steps on an empty copy of the books, so that the answer is exact, pieces and all.
        let fits = |node| {
            let mut empty = self.0.books().emptied();
            empty.take(&layouts, &self.slab_order(node), ceiling_bytes).is_some()
        };
        !self.0.slabs.is_empty() && self.0.slabs.iter().map(Slab::node).all(fits)
    }

    /// Slabs of the node first.
    fn slab_order(&self, node: u32) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.0.slabs.len()).collect();
        order.sort_by_key(|&i| (self.0.slabs[i].node() != node, i));
        order
    }

    /// Keep a lease's memory, even when its holder drops it, until the event has fired.
    pub fn hold(&self, tag: LeaseTag, event: Arc<dyn DeviceEvent>) -> Result<(), Stale> {
        let mut books = self.0.books();
        let live = books.live.get_mut(&tag).filter(|live| live.state == State::Held).ok_or(Stale(tag))?;
        live.events.push(event);
        Ok(())
    }

    /// Free the leases that were dropped and whose events have fired since. Done before each lease, too.
    pub fn reclaim(&self) {
        let mut books = self.0.books();
        let fired: Vec<_> = books.live.iter_mut().filter_map(|(&tag, live)| Some((tag, live.begin_end()?))).collect();
        drop(books);
        for (tag, written) in fired {
            self.0.free(tag, written);
        }
    }

    /// Bytes that no lease can have now: leased, rounded up, or in quarantine.
    pub fn used_bytes(&self) -> u64 {
        self.0.books().used_bytes
    }

    /// Leases that were dropped while a device could still read them.
    pub fn quarantined(&self) -> usize {
        self.0.books().live.values().filter(|live| matches!(live.state, State::Quarantined(_))).count()
    }

    /// Bytes of all slabs.
    pub fn capacity_bytes(&self) -> u64 {
        self.0.slabs.iter().map(|slab| slab.bytes() as u64).sum()
    }

    /// How often [`PageLock::lock`] was called: once for each slab, and never after start-up.
    pub fn page_lock_calls(&self) -> u64 {
        self.0.page_lock_calls.load(Ordering::Relaxed)
    }

    /// Bytes of free memory that are not zero. Always none; tests and diagnosis ask. Reads all free memory.
    pub fn dirty_free_bytes(&self) -> u64 {
        let books = self.0.books();
        let extents = books.extents.iter().enumerate();
        let free =
            extents.flat_map(|(slab, extents)| extents.iter().map(move |(offset, length)| (slab, offset, length)));
        let dirty = |(slab, offset, length): (usize, u64, u64)| {
            let base = self.0.address(slab as u32, offset);
            // SAFETY: a free extent lies in its slab and belongs to nobody; the lock keeps it so meanwhile.
            let bytes = unsafe { std::slice::from_raw_parts(base.as_ptr(), length as usize) };
            bytes.iter().filter(|&&byte| byte != 0).count() as u64
        };
        free.map(dirty).sum()
    }
}

/// The layouts of several segments; none if one passes 2^64 bytes.
fn layouts(segments: &[SegmentLimits]) -> Option<Vec<LeaseLayout>> {
    segments.iter().map(LeaseLayout::of).collect()
}

impl Books {
    fn emptied(&self) -> Self {
        let extents = self.extents.iter().map(Extents::emptied).collect();
        Self { extents, live: HashMap::new(), next_generation: 0, used_bytes: 0 }
    }

    /// Take room for all of them, or for none, the used bytes staying within the ceiling.
    fn take(&mut self, layouts: &[LeaseLayout], order: &[usize], ceiling_bytes: u64) -> Option<Vec<LeaseTag>> {
        let mut taken: Vec<LeaseTag> = vec![];
        for layout in layouts {
            let got = class_bytes(layout.bytes())
                .filter(|bytes| self.used_bytes.checked_add(*bytes).is_some_and(|used| used <= ceiling_bytes))
                .and_then(|bytes| order.iter().find_map(|&slab| Some((slab, self.extents[slab].take(bytes)?, bytes))));
            let Some((slab, offset, bytes)) = got else {
                for tag in taken {
                    self.give_back(tag);
                }
                return None;
            };
            let tag = LeaseTag { slab: slab as u32, offset, generation: self.next_generation };
            self.next_generation += 1;
            self.used_bytes += bytes;
            self.live.insert(tag, Live { bytes, events: vec![], state: State::Held });
            taken.push(tag);
        }
        Some(taken)
    }

    fn give_back(&mut self, tag: LeaseTag) {
        let live = self.live.remove(&tag).expect("a lease that ends is in the books");
        self.used_bytes -= live.bytes;
        self.extents[tag.slab as usize].give_back(tag.offset, live.bytes);
    }
}

impl Live {
    /// What to zero, if this lease was dropped and no event is outstanding any more. The caller is then who ends it.
    fn begin_end(&mut self) -> Option<Written> {
        let State::Quarantined(written) = self.state else { return None };
        if !self.events.iter().all(|event| event.has_fired()) {
            return None;
        }
        self.state = State::Ending;
        Some(written)
    }
}

impl Inner {
    fn books(&self) -> MutexGuard<'_, Books> {
        // A panic while the lock is held can only come from an assertion on the books; refuse to go on with broken ones.
        self.books.lock().expect("the arena's books are sound")
    }

    fn address(&self, slab: u32, offset: u64) -> NonNull<u8> {
        let slab = &self.slabs[slab as usize];
        assert!(offset <= slab.bytes() as u64, "an offset lies inside its slab");
        // SAFETY: by the assertion the sum stays within the slab's mapping.
        unsafe { slab.base().add(offset as usize) }
    }

    /// The holder drops its lease.
    fn end_of_lease(&self, tag: LeaseTag, written: Written) {
        let mut books = self.books();
        let live = books.live.get_mut(&tag).expect("a lease is in the books until it is dropped");
        live.state = State::Quarantined(written);
        let ending = live.begin_end();
        drop(books);
        if let Some(written) = ending {
            self.free(tag, written);
        }
    }

    /// Zero what was written and let others have it. Whoever calls this is the last who can reach the lease's memory.
    fn free(&self, tag: LeaseTag, written: Written) {
        for (at, bytes) in written {
            let start = self.address(tag.slab, tag.offset + at);
            // SAFETY: the range was written by the lease, so it lies inside, and nobody reads or writes it any more: its
            // holder is gone, no event is outstanding and the books do not give it away before the line below. The memory
            // is read again by its next holder, so these stores cannot be left out.
            unsafe { start.as_ptr().write_bytes(0, bytes as usize) };
        }
        self.books().give_back(tag);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let books = self.books.get_mut().expect("the arena's books are sound");
        if books.live.values_mut().any(|live| live.begin_end().is_none()) {
            // A device may still read: its memory must outlive this process's interest in it.
            std::mem::forget(std::mem::take(&mut self.slabs));
            return;
        }
        for slab in self.slabs.iter().filter(|slab| slab.bytes() > 0) {
            self.page_lock.unlock(slab.base(), slab.bytes());
        }
    }
}
