//! A lease: the window that one segment of an assignment is written to.

use super::{Inner, LeaseTag};
use std::ptr::NonNull;
use std::sync::Arc;
use zkhost_groth16::assignment::{SegmentLimits, Window};
use zkhost_groth16::scalar::{Limbs, ReducedCheck};

/// Elements start at a multiple of this, in bytes: what a device copies in one transaction, and a cache line's multiple.
const ELEMENTS_ALIGN_BYTES: u64 = 256;

/// Where masks and elements lie in a lease, in bytes from its start: masks first (16 bytes a group of 64 variables), then
/// one window for the elements (32 bytes each).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLayout {
    /// Room for masks.
    pub mask_bytes: u64,
    /// Where elements start.
    pub elements_at: u64,
    /// Room for elements.
    pub element_bytes: u64,
}

impl LeaseLayout {
    /// The layout of a segment; none if its bytes pass 2^64.
    pub fn of(limits: &SegmentLimits) -> Option<Self> {
        let mask_bytes = limits.aux_count.div_ceil(64).checked_mul(16)?;
        let elements_at = mask_bytes.checked_next_multiple_of(ELEMENTS_ALIGN_BYTES)?;
        let element_bytes = limits.full_max.min(limits.aux_count).checked_mul(32)?;
        elements_at.checked_add(element_bytes)?;
        Some(Self { mask_bytes, elements_at, element_bytes })
    }

    /// Bytes in all, before the size class.
    pub fn bytes(&self) -> u64 {
        self.elements_at + self.element_bytes
    }
}

/// Page-locked memory for one segment, as the [`Window`] that a `SegmentWriter` fills.
///
/// When it is dropped its bytes are zeroed and then free, or, if a device may still read them ([`super::Arena::hold`]),
/// once that device's event has fired. It has no Debug on purpose.
pub struct Lease {
    arena: Arc<Inner>,
    tag: LeaseTag,
    base: NonNull<u8>,
    layout: LeaseLayout,
    mask_words: usize,
    elements: usize,
}

// SAFETY: a lease owns the bytes behind `base` until it is dropped: the arena's books give no other lease an overlapping
// range, and `arena` keeps the mapping alive.
unsafe impl Send for Lease {}
// SAFETY: as above; through a shared lease they are only read.
unsafe impl Sync for Lease {}

impl Lease {
    pub(super) fn new(arena: Arc<Inner>, tag: LeaseTag, base: NonNull<u8>, layout: LeaseLayout) -> Self {
        Self { arena, tag, base, layout, mask_words: 0, elements: 0 }
    }

    /// Names this lease and no other, before or after.
    pub fn tag(&self) -> LeaseTag {
        self.tag
    }

    /// Where everything lies in it.
    pub fn layout(&self) -> LeaseLayout {
        self.layout
    }

    fn elements_base(&self) -> *mut Limbs {
        // SAFETY: `elements_at` is inside the lease, which has `layout.bytes()` bytes at least.
        unsafe { self.base.as_ptr().add(self.layout.elements_at as usize).cast() }
    }
}

impl Window for Lease {
    fn append_masks(&mut self, masks: &[u64]) {
        let room = self.layout.mask_bytes as usize / 8 - self.mask_words;
        assert!(masks.len() <= room, "a lease has room for the segment's masks");
        // SAFETY: the words after the first `mask_words` are inside the lease by the assertion, aligned because leases
        // start at granules, owned by `self` alone, and so not part of `masks`.
        unsafe {
            let to = self.base.as_ptr().cast::<u64>().add(self.mask_words);
            to.copy_from_nonoverlapping(masks.as_ptr(), masks.len());
        }
        self.mask_words += masks.len();
    }

    fn append_elements(&mut self, elements: &[Limbs]) -> Option<usize> {
        let room = self.layout.element_bytes as usize / size_of::<Limbs>() - self.elements;
        assert!(elements.len() <= room, "a lease has room for the segment's full elements");
        let mut check = ReducedCheck::default();
        let mut to = self.elements_base().wrapping_add(self.elements);
        check.copy(elements, to, |piece| {
            // SAFETY: as for masks; elements start at a multiple of 256 bytes, and the pieces' lengths add up to
            // `elements.len()`, for which there is room by the assertion.
            unsafe { to.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
            to = to.wrapping_add(piece.len());
        });
        // Counted even if one is refused, so that all of it is zeroed.
        self.elements += elements.len();
        check.first_unreduced(elements)
    }

    fn masks(&self) -> &[u64] {
        // SAFETY: so many words were written, stay until the lease is dropped and change only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.mask_words) }
    }

    fn elements(&self) -> &[Limbs] {
        // SAFETY: as for masks.
        unsafe { std::slice::from_raw_parts(self.elements_base(), self.elements) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let masks = (0, 8 * self.mask_words as u64);
        let elements = (self.layout.elements_at, (self.elements * size_of::<Limbs>()) as u64);
        self.arena.end_of_lease(self.tag, [masks, elements]);
    }
}
