//! Which parts of a slab are free. Pure book-keeping over offsets; it touches no memory.

use std::collections::BTreeMap;

/// The unit of leases, in bytes: what a huge page divides into evenly, and large against an allocation's book-keeping.
pub const GRANULE_BYTES: u64 = 64 << 10;

/// The size class of a lease: whole granules, rounded up to an eighth of the power of two below.
///
/// Classes keep holes reusable: a hole that one lease leaves fits the next of about its size. At most an eighth is lost.
pub fn class_bytes(bytes: u64) -> Option<u64> {
    let bytes = bytes.max(1).checked_next_multiple_of(GRANULE_BYTES)?;
    let step = (1u64 << bytes.ilog2()) / 8;
    bytes.checked_next_multiple_of(step.max(GRANULE_BYTES))
}

/// The free extents of one slab.
#[derive(Clone, Debug)]
pub struct Extents {
    /// Length by offset; neighbours are always joined.
    free: BTreeMap<u64, u64>,
    capacity_bytes: u64,
}

impl Extents {
    /// A slab of this size, all free.
    pub fn new(capacity_bytes: u64) -> Self {
        let free = if capacity_bytes == 0 { BTreeMap::new() } else { BTreeMap::from([(0, capacity_bytes)]) };
        Self { free, capacity_bytes }
    }

    /// The same slab with everything free.
    pub fn emptied(&self) -> Self {
        Self::new(self.capacity_bytes)
    }

    /// Take `bytes` from the smallest extent that has them, the first of several. Gives the offset.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let fitting = self.free.iter().filter(|&(_, &length)| length >= bytes);
        let (&offset, &length) = fitting.min_by_key(|&(&offset, &length)| (length, offset))?;
        self.free.remove(&offset);
        if length > bytes {
            self.free.insert(offset + bytes, length - bytes);
        }
        Some(offset)
    }

    /// Give back what [`Self::take`] gave.
    ///
    /// Panics if a part of it is free already: that would hand one address to two holders.
    pub fn give_back(&mut self, offset: u64, bytes: u64) {
        let (mut start, mut end) = (offset, offset + bytes);
        assert!(end <= self.capacity_bytes, "an extent lies inside its slab");
        if let Some((&before, &length)) = self.free.range(..offset).next_back() {
            assert!(before + length <= offset, "an extent is given back once");
            if before + length == offset {
                self.free.remove(&before);
                start = before;
            }
        }
        if let Some((&after, &length)) = self.free.range(offset..).next() {
            assert!(after >= end, "an extent is given back once");
            if after == end {
                self.free.remove(&after);
                end = after + length;
            }
        }
        self.free.insert(start, end - start);
    }

    /// Offset and length of each free extent.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.free.iter().map(|(&offset, &length)| (offset, length))
    }
}
