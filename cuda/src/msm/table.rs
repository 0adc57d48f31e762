//! Precomputed multiples of fixed bases.

use std::sync::Arc;

use super::{
    group::Group,
    points::{double, normalise},
    windows::Windows,
};
use crate::{
    device::{Device, Stream},
    error::CudaError,
    memory::{Arena, Buffer, Slice},
};

/// Points that are doubled in one launch: some milliseconds.
const LAUNCH_POINTS_MAX: usize = 1 << 19;

/// Bases and, behind them, their copies: copy k is 2^(bits * sets * k) times the bases. With as many copies as windows
/// there is one set of buckets.
pub struct Table<G: Group> {
    points: Buffer<G::Affine>,
    len: usize,
    windows: Windows,
}

impl<G: Group> Table<G> {
    /// Bytes of a table.
    pub fn bytes(len: usize, windows: Windows) -> usize {
        len * windows.copies() * size_of::<G::Affine>()
    }

    /// Scratch that filling a table of `len` bases takes.
    pub fn scratch_bytes(len: usize) -> usize {
        let piece = len.min(LAUNCH_POINTS_MAX);
        Arena::bytes_for::<G::Xyzz>(piece) + Arena::bytes_for::<G::Coordinate>(piece)
    }

    /// Memory for the table of `len` bases; [`Self::bases`] is to be filled, and then the copies by [`Self::fill`].
    pub fn allocate(device: &Arc<Device>, len: usize, windows: Windows) -> Result<Self, CudaError> {
        Ok(Self { points: device.allocate(len * windows.copies())?, len, windows })
    }

    /// Where the bases themselves are.
    pub fn bases(&self) -> Slice<'_, G::Affine> {
        self.points.as_slice().slice(0, self.len).expect("the bases are the first copy")
    }

    /// All copies, as [`super::sum`] takes them.
    pub fn points(&self) -> Slice<'_, G::Affine> {
        self.points.as_slice()
    }

    /// How the copies were made.
    pub fn windows(&self) -> Windows {
        self.windows
    }

    /// Number of bases.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues the computation of the copies from the bases.
    pub fn fill(&self, stream: &Stream, arena: &mut Arena<'_>) -> Result<(), CudaError> {
        let mut scratch = arena.rest();
        let piece_max = self.len.min(LAUNCH_POINTS_MAX);
        let multiples = scratch.take::<G::Xyzz>(piece_max)?;
        let products = scratch.take::<G::Coordinate>(piece_max)?;
        let all = self.points.as_slice();
        for copy in 1..self.windows.copies() {
            for first in (0..self.len).step_by(LAUNCH_POINTS_MAX) {
                let len = piece_max.min(self.len - first);
                let from = all.slice((copy - 1) * self.len + first, len)?;
                let to = all.slice(copy * self.len + first, len)?;
                let doublings = self.windows.bits() * self.windows.sets();
                double::<G>(stream, from, doublings, multiples)?;
                normalise::<G>(stream, multiples.slice(0, len)?, products, to)?;
            }
        }
        Ok(())
    }
}
