//! A segment's window in page-locked memory, from which the device copies at the link's speed.

use std::sync::Arc;

use zkhost_groth16::{
    assignment::{SegmentLimits, Window},
    scalar::{Limbs, is_reduced},
};

use crate::{device::Device, error::CudaError, memory::PinnedBuffer};

/// Page-locked room for one segment. Allocate it early: page-locking takes 0.4 s for a gigabyte.
pub struct PinnedWindow {
    masks: PinnedBuffer<u64>,
    elements: PinnedBuffer<Limbs>,
    masks_len: usize,
    elements_len: usize,
}

impl PinnedWindow {
    /// Room for what a segment may hold.
    pub fn new(device: &Arc<Device>, limits: SegmentLimits) -> Result<Self, CudaError> {
        let groups = limits.aux_count.div_ceil(64) as usize;
        let elements = limits.full_max.min(limits.aux_count) as usize;
        Ok(Self {
            masks: PinnedBuffer::new(device, 2 * groups)?,
            elements: PinnedBuffer::new(device, elements)?,
            masks_len: 0,
            elements_len: 0,
        })
    }
}

impl Window for PinnedWindow {
    fn append_masks(&mut self, masks: &[u64]) {
        self.masks[self.masks_len..][..masks.len()].copy_from_slice(masks);
        self.masks_len += masks.len();
    }

    fn append_elements(&mut self, elements: &[Limbs]) -> Option<usize> {
        self.elements[self.elements_len..][..elements.len()].copy_from_slice(elements);
        self.elements_len += elements.len();
        elements.iter().position(|limbs| !is_reduced(limbs))
    }

    fn masks(&self) -> &[u64] {
        &self.masks[..self.masks_len]
    }

    fn elements(&self) -> &[Limbs] {
        &self.elements[..self.elements_len]
    }
}
