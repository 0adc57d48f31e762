//! From scalars to a list of points and buckets, sorted by bucket.

use cudarc::driver::{DeviceRepr, PushKernelArg};

use super::windows::{COARSE_BINS, FINE_BINS, Windows};
use crate::{
    device::{Kernel, Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Slice},
};

const THREADS: u32 = 512;
/// Of the kernels that work on fine bins.
const FINE_THREADS: u32 = 1024;
/// Entries of a tile that one block sorts into fine bins.
const FINE_TILE: usize = 8 * FINE_THREADS as usize;
/// Entries of a tile of scalars that one block sorts into coarse bins, about; a round of all windows at least.
const COARSE_TILE_ENTRIES: usize = 13_312;
/// Scalars that are worth a block with its own counts.
const COUNT_SCALARS_PER_BLOCK: usize = 2048;
/// Entries by which a fine bin may exceed one and a half times the mean and still be sorted by a block.
const FINE_LEN_SLACK: usize = 512;
/// Up to here several small blocks share a multiprocessor.
const FINE_LEN_OF_SMALL_BLOCKS: usize = 8192;
/// Shared memory of a sorting block that is neither entries nor counters.
const SHARED_BYTES_RESERVED: usize = 2560;
const ENTRY_BYTES: usize = size_of::<[u32; 2]>();
/// Scalars a launch may be given so that it stays well below 50 ms.
const LAUNCH_SCALARS_MAX: usize = 1 << 25;
/// Bit 31 of an entry's point is its sign, and all ones means none.
const POINTS_MAX: usize = (1 << 31) - 1;

/// Scalars in groups of 64 with masks, as an assignment travels.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    /// Number of scalars.
    pub len: usize,
    /// Of each 64 scalars: which are elements, and the value bits of the others.
    pub masks: Slice<'a, [u64; 2]>,
    /// Elements before each 64 scalars.
    pub ranks: Slice<'a, u32>,
    /// The elements: canonical, little-endian limbs, below r.
    pub elements: Slice<'a, [u64; 4]>,
}

/// Scalars: dense ones, and packed ones behind them.
#[derive(Clone, Copy, Debug)]
pub struct Scalars<'a> {
    /// Canonical, little-endian limbs, below r.
    pub dense: Slice<'a, [u64; 4]>,
    /// What follows.
    pub packed: Option<Packed<'a>>,
    /// The index of each scalar's point among the bases, `u32::MAX` to leave the scalar out. None: point i for scalar i.
    pub positions: Option<Slice<'a, u32>>,
}

impl<'a> Scalars<'a> {
    /// Dense scalars, each with the point of its index.
    pub fn dense(scalars: Slice<'a, [u64; 4]>) -> Self {
        Self { dense: scalars, packed: None, positions: None }
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.dense.len() + self.packed.map_or(0, |packed| packed.len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most nonzero digits there can be.
    fn entries_max(&self, windows: &Windows) -> usize {
        let (packed, elements) = self.packed.map_or((0, 0), |p| (p.len, p.elements.len()));
        let full = self.dense.len() + elements;
        full * windows.count() as usize + packed.saturating_sub(elements)
    }

    fn check(&self) -> Result<(), CudaError> {
        let wrong = |what: String| Err(CudaError::Unsupported(format!("scalars of a multiplication: {what}")));
        if let Some(packed) = self.packed {
            let groups = packed.len.div_ceil(64);
            if packed.masks.len() < groups || packed.ranks.len() < groups {
                return wrong(format!(
                    "{} packed scalars need {groups} masks and ranks, got {} and {}",
                    packed.len,
                    packed.masks.len(),
                    packed.ranks.len()
                ));
            }
        }
        match self.positions {
            Some(positions) if positions.len() < self.len() => {
                wrong(format!("{} positions for {} scalars", positions.len(), self.len()))
            }
            _ => Ok(()),
        }
    }
}

/// `Scalars` of msm_plan.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ScalarsArgument {
    head: u64,
    head_len: u64,
    masks: u64,
    ranks: u64,
    elements: u64,
    len: u64,
    positions: u64,
}
// SAFETY: plain numbers, in the order and sizes of the kernel's struct.
unsafe impl DeviceRepr for ScalarsArgument {}

/// `Windows` of msm.cuh.
#[repr(C)]
#[derive(Clone, Copy)]
struct WindowsArgument {
    bits: u32,
    windows: u32,
    sets: u32,
    fine_shift: u32,
    spread: u32,
    unused: u32,
    points: u64,
}
// SAFETY: plain numbers, in the order and sizes of the kernel's struct.
unsafe impl DeviceRepr for WindowsArgument {}

/// The nonzero digits of a list of scalars, sorted by bucket. Derived from the scalars, and as secret.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    pub(super) windows: Windows,
    pub(super) points: usize,
    pub(super) entries_max: usize,
    pub(super) sorted: Slice<'a, [u32; 2]>,
    pub(super) total: Slice<'a, u32>,
}

impl<'a> Plan<'a> {
    /// Queues the planning of `scalars`, to be multiplied with `points` bases (in each copy). The plan is `arena`'s; the
    /// arena's rest is used meanwhile and free again for work queued later on the same stream.
    pub fn new(
        stream: &Stream,
        arena: &mut Arena<'a>,
        scalars: &Scalars<'_>,
        windows: Windows,
        points: usize,
    ) -> Result<Self, CudaError> {
        scalars.check()?;
        let entries_max = scalars.entries_max(&windows);
        if points.saturating_mul(windows.copies()) > POINTS_MAX || entries_max >= u32::MAX as usize {
            return Err(CudaError::Unsupported(format!(
                "{} scalars with {points} bases in {} copies are more than a multiplication takes ({POINTS_MAX} points, \
                 {} nonzero digits)",
                scalars.len(),
                windows.copies(),
                u32::MAX - 1
            )));
        }
        if scalars.positions.is_none() && scalars.len() > points {
            return Err(CudaError::Unsupported(format!("{} scalars for {points} bases", scalars.len())));
        }
        let plan = Self { windows, points, entries_max, sorted: arena.take(entries_max)?, total: arena.take(1)? };
        plan.fill(stream, &mut arena.rest(), scalars)?;
        Ok(plan)
    }

    /// Scratch that planning takes, the plan itself included, for `scalars_max` scalars of full size.
    pub fn scratch_bytes(scalars_max: usize, windows: Windows) -> usize {
        let entries = Arena::bytes_for::<[u32; 2]>(scalars_max * windows.count() as usize);
        let counts = 3 * Arena::bytes_for::<u32>(FINE_BINS) + Arena::bytes_for::<u32>(COARSE_BINS);
        2 * entries + Arena::bytes_for::<u32>(windows.buckets()) + counts + Arena::bytes_for::<u32>(1)
    }

    fn fill(&self, stream: &Stream, arena: &mut Arena<'_>, scalars: &Scalars<'_>) -> Result<(), CudaError> {
        let bins = Bins {
            counts: arena.take(FINE_BINS)?,
            starts: arena.take(FINE_BINS)?,
            cursors: arena.take(FINE_BINS)?,
            coarse_cursors: arena.take(COARSE_BINS)?,
        };
        let entries = arena.take::<[u32; 2]>(self.entries_max)?;
        self.count_digits(stream, scalars, &bins)?;
        // `sorted` holds the entries in coarse bins before it takes the result.
        self.scatter_to_bins(stream, scalars, &bins, entries)?;
        self.sort_bins(stream, &bins, entries, arena.take(self.windows.buckets())?)
    }

    fn count_digits(&self, stream: &Stream, scalars: &Scalars<'_>, bins: &Bins<'_>) -> Result<(), CudaError> {
        stream.clear(bins.counts)?;
        let (arguments, windows) = (scalars_argument(scalars), self.windows_argument());
        let shared_bytes = FINE_BINS * size_of::<u32>();
        let count_digits = sorting_kernel(stream, "msm_count_digits")?;
        let blocks_max = 2 * stream.device().multiprocessors() as usize;
        for (first, len) in launch_ranges(scalars.len()) {
            let blocks = (len as usize).div_ceil(COUNT_SCALARS_PER_BLOCK).clamp(1, blocks_max);
            let mut launch = stream.launch_builder(&count_digits);
            launch.arg(&arguments).arg(&windows).arg(&first).arg(&len).arg(&bins.counts);
            // SAFETY: the scalars were checked to be as long as the arguments say; there is a count for each bin.
            unsafe { launch.launch(grid(blocks, THREADS, shared_bytes)) }.doing("counting digits")?;
        }
        let scan_bins = stream.device().kernel("msm_scan_bins")?;
        let mut launch = stream.launch_builder(&scan_bins);
        launch.arg(&bins.counts).arg(&bins.starts).arg(&bins.cursors).arg(&bins.coarse_cursors).arg(&self.total);
        // SAFETY: the arrays have an element for each bin.
        unsafe { launch.launch(grid(1, FINE_THREADS, 0)) }.doing("placing bins")?;
        Ok(())
    }

    /// Entries into coarse bins, those into fine bins.
    fn scatter_to_bins(
        &self,
        stream: &Stream,
        scalars: &Scalars<'_>,
        bins: &Bins<'_>,
        fine: Slice<'_, [u32; 2]>,
    ) -> Result<(), CudaError> {
        let device = stream.device();
        let (arguments, windows) = (scalars_argument(scalars), self.windows_argument());
        let entries_per_round = THREADS as usize * self.windows.count() as usize;
        let rounds = (COARSE_TILE_ENTRIES / entries_per_round).max(1);
        let shared_bytes = rounds * entries_per_round * ENTRY_BYTES;
        let scatter_to_coarse = sorting_kernel(stream, "msm_scatter_to_coarse")?;
        let rounds_argument = rounds as u32;
        for (first, len) in launch_ranges(scalars.len()) {
            let blocks = (len as usize).div_ceil(rounds * THREADS as usize).min(4 * device.multiprocessors() as usize);
            let mut launch = stream.launch_builder(&scatter_to_coarse);
            launch.arg(&arguments).arg(&windows).arg(&first).arg(&len).arg(&rounds_argument);
            launch.arg(&bins.coarse_cursors).arg(&self.sorted);
            // SAFETY: the places were counted from the same scalars, so entries lie within entries_max; a tile's entries
            // fit the shared memory.
            unsafe { launch.launch(grid(blocks, THREADS, shared_bytes)) }.doing("sorting digits into coarse bins")?;
        }
        let shared_bytes = FINE_BINS * size_of::<u32>() + FINE_TILE * (ENTRY_BYTES + size_of::<u32>());
        let scatter_to_fine = sorting_kernel(stream, "msm_scatter_to_fine")?;
        let blocks = self.entries_max.div_ceil(FINE_TILE).clamp(1, device.multiprocessors() as usize);
        let mut launch = stream.launch_builder(&scatter_to_fine);
        launch.arg(&windows).arg(&self.sorted).arg(&self.total).arg(&bins.cursors).arg(&fine);
        // SAFETY: as above; the shared memory holds a counter for each bin and a tile's entries and places.
        unsafe { launch.launch(grid(blocks, FINE_THREADS, shared_bytes)) }.doing("sorting digits into fine bins")?;
        Ok(())
    }

    /// Sorts within fine bins, from `fine` to the plan's own entries.
    fn sort_bins(
        &self,
        stream: &Stream,
        bins: &Bins<'_>,
        fine: Slice<'_, [u32; 2]>,
        bucket_places: Slice<'_, u32>,
    ) -> Result<(), CudaError> {
        let device = stream.device();
        let windows = self.windows_argument();
        let bins_used = self.windows.buckets().div_ceil(1 << self.windows.fine_shift());
        let counters_bytes = size_of::<u32>() << self.windows.fine_shift();
        let room = device.shared_bytes_max().saturating_sub(SHARED_BYTES_RESERVED + counters_bytes) / ENTRY_BYTES;
        let mean = self.entries_max / bins_used;
        let len_max = (mean + mean / 2 + FINE_LEN_SLACK).min(room);
        let threads = if len_max > FINE_LEN_OF_SMALL_BLOCKS { FINE_THREADS } else { FINE_THREADS / 4 };
        let shared_bytes = len_max * ENTRY_BYTES + counters_bytes;
        let len_max = len_max as u32;
        let sort_fine = sorting_kernel(stream, "msm_sort_fine")?;
        let mut launch = stream.launch_builder(&sort_fine);
        launch.arg(&windows).arg(&fine).arg(&bins.starts).arg(&bins.counts).arg(&len_max).arg(&self.sorted);
        // SAFETY: a block for each fine bin; its entries, if at most len_max, and counters fit the shared memory.
        unsafe { launch.launch(grid(bins_used, threads, shared_bytes)) }.doing("sorting fine bins")?;

        stream.clear(bucket_places)?;
        let blocks_max = 4 * device.multiprocessors() as usize;
        let blocks = self.entries_max.div_ceil(THREADS as usize).clamp(1, blocks_max);
        let count_large = device.kernel("msm_count_large")?;
        let mut launch = stream.launch_builder(&count_large);
        launch.arg(&windows).arg(&fine).arg(&self.total).arg(&bins.counts).arg(&len_max).arg(&bucket_places);
        // SAFETY: `total` entries were written, all with buckets of these windows, of which each has a place.
        unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("counting buckets")?;
        let scan_large = device.kernel("msm_scan_large")?;
        let mut launch = stream.launch_builder(&scan_large);
        launch.arg(&windows).arg(&bins.starts).arg(&bins.counts).arg(&len_max).arg(&bucket_places);
        // SAFETY: a block for each fine bin that has buckets.
        unsafe { launch.launch(grid(bins_used, FINE_THREADS, 0)) }.doing("placing buckets")?;
        let scatter_large = device.kernel("msm_scatter_large")?;
        let mut launch = stream.launch_builder(&scatter_large);
        launch.arg(&windows).arg(&fine).arg(&self.total).arg(&bins.counts).arg(&len_max);
        launch.arg(&bucket_places).arg(&self.sorted);
        // SAFETY: as many places as entries.
        unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("sorting digits into buckets")?;
        Ok(())
    }

    fn windows_argument(&self) -> WindowsArgument {
        WindowsArgument {
            bits: self.windows.bits(),
            windows: self.windows.count(),
            sets: self.windows.sets(),
            fine_shift: self.windows.fine_shift(),
            spread: self.windows.spread(),
            unused: 0,
            points: self.points as u64,
        }
    }
}

/// What is counted of bins.
struct Bins<'a> {
    /// Entries of each fine bin, where they start, and where the next entry goes.
    counts: Slice<'a, u32>,
    starts: Slice<'a, u32>,
    cursors: Slice<'a, u32>,
    /// Where the next entry of each coarse bin goes.
    coarse_cursors: Slice<'a, u32>,
}

/// A kernel that may use all shared memory; always the same limit, because others may be launching it too.
fn sorting_kernel(stream: &Stream, name: &'static str) -> Result<Kernel, CudaError> {
    let device = stream.device();
    device.kernel(name)?.with_shared_bytes(device.shared_bytes_max().saturating_sub(SHARED_BYTES_RESERVED))
}

/// First scalar and number of scalars of each launch.
fn launch_ranges(len: usize) -> impl Iterator<Item = (u64, u64)> {
    (0..len).step_by(LAUNCH_SCALARS_MAX).map(move |first| (first as u64, (len - first).min(LAUNCH_SCALARS_MAX) as u64))
}

fn scalars_argument(scalars: &Scalars<'_>) -> ScalarsArgument {
    let (masks, ranks, elements) =
        scalars.packed.map_or((0, 0, 0), |p| (p.masks.address(), p.ranks.address(), p.elements.address()));
    ScalarsArgument {
        head: scalars.dense.address(),
        head_len: scalars.dense.len() as u64,
        masks,
        ranks,
        elements,
        len: scalars.len() as u64,
        positions: scalars.positions.map_or(0, |p| p.address()),
    }
}
