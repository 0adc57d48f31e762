//! Writes one segment: every check that the contract asks for, and one copy.

use super::{Encoding, Segment, SegmentLimits};
use crate::scalar::{Limbs, ReducedCheck, Scalar, from_canonical};
use zeroize::Zeroize;

/// Where the assignment of one segment is written, in order. The runtime copies a guest's lists into it once.
/// Implementations check everything: the guest is not trusted.
pub trait SegmentSink: Send {
    /// Append groups of aux variables: `masks` are pairs (full, one), `elements` four limbs for each bit set in `full`.
    fn write_groups(&mut self, masks: &[u64], elements: &[u64]) -> Result<(), SinkError>;
    /// Append public inputs, canonical, four limbs each, the constant one excluded.
    fn write_public(&mut self, elements: &[u64]) -> Result<(), SinkError>;
}

/// Why a segment's writes were refused. It names variables by index and says nothing of their values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// Half a pair.
    #[error("`masks` has {words} words; it takes a pair (full, one) for each group")]
    OddMasks {
        /// Its length.
        words: usize,
    },
    /// Elements that do not belong to the masks of the same call.
    #[error(
        "`elements` has {limbs} limbs, but the masks of the same call have {full} full variables of four limbs each"
    )]
    ElementCount {
        /// Its length.
        limbs: usize,
        /// Bits set in `full`.
        full: u64,
    },
    /// Public inputs that do not divide into elements.
    #[error("the public inputs have {limbs} limbs, which is no multiple of four")]
    OddPublics {
        /// Their number.
        limbs: usize,
    },
    /// A variable that is both.
    #[error("aux variable {index} of the segment is marked both full and one")]
    Overlap {
        /// Its index in the segment.
        index: u64,
    },
    /// A set bit past the last variable.
    #[error("group {group} has bits set past aux variable {aux_count}, the segment's end")]
    Padding {
        /// Which group.
        group: u64,
        /// Variables of the segment.
        aux_count: u64,
    },
    /// An aux variable that is not reduced.
    #[error("aux variable {index} of the segment is not below the modulus r")]
    UnreducedAux {
        /// Its index in the segment.
        index: u64,
    },
    /// A public input that is not reduced.
    #[error("public input {index} is not below the modulus r")]
    UnreducedPublic {
        /// Its index, counted from 1 as the one is 0.
        index: u64,
    },
    /// More groups than the segment has.
    #[error("more than the segment's {groups} groups of 64 aux variables were written")]
    TooManyGroups {
        /// What the segment has.
        groups: u64,
    },
    /// More full elements than the plan declares.
    #[error("more than {max} aux variables travel as full elements, the most that the plan declares for the segment")]
    TooManyFull {
        /// The declared maximum.
        max: u64,
    },
    /// More public inputs than the segment writes.
    #[error(
        "more than {count} public inputs were written: the circuit's own number in a partition's first segment, none in \
         any other"
    )]
    TooManyPublics {
        /// What the segment writes.
        count: u64,
    },
    /// The host cannot hold the segment.
    #[error("there is no memory for a segment of {aux_count} aux variables, {full_max} of them full")]
    OutOfMemory {
        /// Variables of the segment.
        aux_count: u64,
        /// The most full elements that the plan declares.
        full_max: u64,
    },
    /// Fewer groups than the segment has.
    #[error("only {written} of the segment's {groups} groups of 64 aux variables were written")]
    TooFewGroups {
        /// What was written.
        written: u64,
        /// What the segment has.
        groups: u64,
    },
    /// Fewer public inputs than the segment writes.
    #[error("only {written} of {count} public inputs were written")]
    TooFewPublics {
        /// What was written.
        written: u64,
        /// What the segment writes.
        count: u64,
    },
}

/// The memory of one segment: room for all its masks and for the most full elements it may have, filled from the front.
///
/// The heap implements it here, page-locked leases elsewhere. What was written is zeroed before anyone else can have the
/// memory. The writer never appends more than there is room for.
pub trait Window: Send + Sync {
    /// Append pairs of masks.
    fn append_masks(&mut self, masks: &[u64]);
    /// Append elements and return the index of the first one that is not below the modulus, if any; what was appended does
    /// not matter then. See [`ReducedCheck::copy`].
    fn append_elements(&mut self, elements: &[Limbs]) -> Option<usize>;
    /// The masks appended so far.
    fn masks(&self) -> &[u64];
    /// The elements appended so far.
    fn elements(&self) -> &[Limbs];
}

/// A window in ordinary memory.
pub struct HeapWindow {
    masks: Vec<u64>,
    elements: Vec<Limbs>,
}

impl HeapWindow {
    /// Reserve room for a segment; pages are touched when they are written.
    pub fn new(limits: SegmentLimits) -> Result<Self, SinkError> {
        let SegmentLimits { aux_count, full_max, .. } = limits;
        let groups = aux_count.div_ceil(64) as usize;
        let mut window = Self { masks: vec![], elements: vec![] };
        // All room at once: growth would leave copies of secrets behind.
        let masks = window.masks.try_reserve_exact(2 * groups);
        masks
            .and_then(|()| window.elements.try_reserve_exact(full_max.min(aux_count) as usize))
            .map_err(|_| SinkError::OutOfMemory { aux_count, full_max })?;
        Ok(window)
    }
}

impl Window for HeapWindow {
    fn append_masks(&mut self, masks: &[u64]) {
        assert!(masks.len() <= self.masks.capacity() - self.masks.len(), "the window has room for the segment's masks");
        self.masks.extend_from_slice(masks);
    }

    fn append_elements(&mut self, elements: &[Limbs]) -> Option<usize> {
        let room = self.elements.capacity() - self.elements.len();
        assert!(elements.len() <= room, "the window has room for the segment's full elements");
        let mut check = ReducedCheck::default();
        let end = self.elements.as_ptr_range().end;
        check.copy(elements, end, |piece| self.elements.extend_from_slice(piece));
        check.first_unreduced(elements)
    }

    fn masks(&self) -> &[u64] {
        &self.masks
    }

    fn elements(&self) -> &[Limbs] {
        &self.elements
    }
}

impl Drop for HeapWindow {
    fn drop(&mut self) {
        // The slices, not the vectors, which would zero, and so touch, room that was never written.
        self.masks.as_mut_slice().zeroize();
        self.elements.as_flattened_mut().zeroize();
    }
}

/// Checks and copies what a guest writes of one segment into a window.
pub struct SegmentWriter {
    window: Box<dyn Window>,
    encoding: Encoding,
    limits: SegmentLimits,
    groups_written: u64,
    full_written: u64,
    publics: Vec<Scalar>,
    /// The first refusal: a part of that call may be in the window, so every later call meets it again.
    refused: Option<SinkError>,
}

impl SegmentWriter {
    /// Write into a window that has room for these limits and holds nothing yet.
    pub fn new(window: Box<dyn Window>, encoding: Encoding, limits: SegmentLimits) -> Self {
        Self { window, encoding, limits, groups_written: 0, full_written: 0, publics: vec![], refused: None }
    }

    /// Write into ordinary memory.
    pub fn on_heap(encoding: Encoding, limits: SegmentLimits) -> Result<Self, SinkError> {
        Ok(Self::new(Box::new(HeapWindow::new(limits)?), encoding, limits))
    }

    /// The segment, if everything it needs was written and nothing was refused.
    pub fn finish(self) -> Result<Segment, SinkError> {
        self.meet_refusal()?;
        let groups = self.groups();
        if self.groups_written < groups {
            return Err(SinkError::TooFewGroups { written: self.groups_written, groups });
        }
        let (written, count) = (self.publics.len() as u64, self.limits.public_count);
        if written < count {
            return Err(SinkError::TooFewPublics { written, count });
        }
        let (aux_count, encoding) = (self.limits.aux_count, self.encoding);
        Ok(Segment { aux_count, encoding, publics: self.publics, window: self.window })
    }

    fn meet_refusal(&self) -> Result<(), SinkError> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    fn groups(&self) -> u64 {
        self.limits.aux_count.div_ceil(64)
    }

    /// Check the masks of one call; returns how many full variables they have.
    fn check_masks(&self, masks: &[u64]) -> Result<u64, SinkError> {
        if !masks.len().is_multiple_of(2) {
            return Err(SinkError::OddMasks { words: masks.len() });
        }
        let groups = self.groups();
        if masks.len() as u64 / 2 > groups - self.groups_written {
            return Err(SinkError::TooManyGroups { groups });
        }
        let (mut full, mut overlap) = (0, 0);
        for pair in masks.chunks_exact(2) {
            full += u64::from(pair[0].count_ones());
            overlap |= pair[0] & pair[1];
        }
        if overlap != 0 {
            return Err(self.first_overlap(masks));
        }
        let (aux_count, end) = (self.limits.aux_count, self.groups_written + masks.len() as u64 / 2);
        if let [.., last_full, last_one] = masks
            && end == groups
            && !aux_count.is_multiple_of(64)
            && (last_full | last_one) >> (aux_count % 64) != 0
        {
            return Err(SinkError::Padding { group: groups - 1, aux_count });
        }
        if full > self.limits.full_max.min(self.limits.aux_count) - self.full_written {
            return Err(SinkError::TooManyFull { max: self.limits.full_max });
        }
        Ok(full)
    }

    fn first_overlap(&self, masks: &[u64]) -> SinkError {
        let overlaps = masks.chunks_exact(2).map(|pair| pair[0] & pair[1]);
        let (group, bits) = (self.groups_written..).zip(overlaps).find(|(_, bits)| *bits != 0).unwrap_or_default();
        SinkError::Overlap { index: 64 * group + u64::from(bits.trailing_zeros()) }
    }

    /// The index in the segment of the n-th full variable of one call's masks.
    fn index_of_full(&self, masks: &[u64], mut n: usize) -> u64 {
        for (group, pair) in (self.groups_written..).zip(masks.chunks_exact(2)) {
            let mut full = pair[0];
            let here = full.count_ones() as usize;
            if n >= here {
                n -= here;
                continue;
            }
            for _ in 0..n {
                full &= full - 1;
            }
            return 64 * group + u64::from(full.trailing_zeros());
        }
        self.limits.aux_count
    }

    fn append_groups(&mut self, masks: &[u64], elements: &[u64]) -> Result<(), SinkError> {
        let full = self.check_masks(masks)?;
        if elements.len() as u64 != 4 * full {
            return Err(SinkError::ElementCount { limbs: elements.len(), full });
        }
        let (elements, _) = elements.as_chunks::<4>();
        if let Some(at) = self.window.append_elements(elements) {
            return Err(SinkError::UnreducedAux { index: self.index_of_full(masks, at) });
        }
        self.window.append_masks(masks);
        self.groups_written += masks.len() as u64 / 2;
        self.full_written += full;
        Ok(())
    }

    fn append_publics(&mut self, elements: &[u64]) -> Result<(), SinkError> {
        let (elements, rest) = elements.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(SinkError::OddPublics { limbs: 4 * elements.len() + rest.len() });
        }
        let count = self.limits.public_count;
        if elements.len() as u64 > count - self.publics.len() as u64 {
            return Err(SinkError::TooManyPublics { count });
        }
        for limbs in elements {
            let index = self.publics.len() as u64 + 1;
            self.publics.push(from_canonical(limbs).ok_or(SinkError::UnreducedPublic { index })?);
        }
        Ok(())
    }
}

impl SegmentSink for SegmentWriter {
    fn write_groups(&mut self, masks: &[u64], elements: &[u64]) -> Result<(), SinkError> {
        self.meet_refusal()?;
        self.append_groups(masks, elements).inspect_err(|refusal| self.refused = Some(refusal.clone()))
    }

    fn write_public(&mut self, elements: &[u64]) -> Result<(), SinkError> {
        self.meet_refusal()?;
        self.append_publics(elements).inspect_err(|refusal| self.refused = Some(refusal.clone()))
    }
}
