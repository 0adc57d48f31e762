//! From scalars to a list of points and buckets, sorted by bucket.

use cudarc::driver::{DeviceRepr, PushKernelArg};

use super::windows::{BINS, Windows};
use crate::{
    device::{Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Slice},
};

const THREADS: u32 = 256;
const SORT_THREADS: u32 = 1024;
/// Shared memory of a sorting block that is not counters.
const SHARED_BYTES_RESERVED: usize = 1024;
/// Blocks that a multiprocessor holds of the planning kernels.
const BLOCKS_PER_MULTIPROCESSOR: usize = 8;
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
    bin_shift: u32,
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
        let buckets = Arena::bytes_for::<u32>(windows.buckets());
        2 * entries + buckets + 3 * Arena::bytes_for::<u32>(BINS as usize) + Arena::bytes_for::<u32>(1)
    }

    fn fill(&self, stream: &Stream, arena: &mut Arena<'_>, scalars: &Scalars<'_>) -> Result<(), CudaError> {
        let device = stream.device();
        let entries = arena.take::<[u32; 2]>(self.entries_max)?;
        let bucket_places = arena.take::<u32>(self.windows.buckets())?;
        let bin_counts = arena.take::<u32>(BINS as usize)?;
        let bin_starts = arena.take::<u32>(BINS as usize)?;
        let bin_cursors = arena.take::<u32>(BINS as usize)?;
        stream.clear(bin_counts)?;
        stream.clear(bucket_places)?;

        let windows = self.windows_argument();
        let arguments = scalars_argument(scalars);
        let blocks_max = device.multiprocessors() as usize * BLOCKS_PER_MULTIPROCESSOR;
        let blocks_for = |items: usize| items.div_ceil(THREADS as usize).clamp(1, blocks_max);
        let ranges = || {
            let firsts = (0..scalars.len()).step_by(LAUNCH_SCALARS_MAX);
            firsts.map(|first| (first as u64, (scalars.len() - first).min(LAUNCH_SCALARS_MAX) as u64))
        };

        let count_bins = device.kernel("msm_count_bins")?;
        for (first, len) in ranges() {
            let mut launch = stream.launch_builder(&count_bins);
            launch.arg(&arguments).arg(&windows).arg(&first).arg(&len).arg(&bin_counts);
            // SAFETY: the scalars were checked to be as long as the arguments say; there is a count for each bin.
            unsafe { launch.launch(grid(blocks_for(len as usize), THREADS, 0)) }.doing("counting digits")?;
        }
        let scan_bins = device.kernel("msm_scan_bins")?;
        let mut launch = stream.launch_builder(&scan_bins);
        launch.arg(&bin_counts).arg(&bin_starts).arg(&bin_cursors).arg(&self.total);
        // SAFETY: one thread for each bin.
        unsafe { launch.launch(grid(1, BINS, 0)) }.doing("placing bins")?;
        let scatter_to_bins = device.kernel("msm_scatter_to_bins")?;
        for (first, len) in ranges() {
            let mut launch = stream.launch_builder(&scatter_to_bins);
            launch.arg(&arguments).arg(&windows).arg(&first).arg(&len).arg(&bin_cursors).arg(&entries);
            // SAFETY: as above; the places were counted from the same scalars, so entries lie within entries_max.
            unsafe { launch.launch(grid(blocks_for(len as usize), THREADS, 0)) }.doing("sorting digits into bins")?;
        }

        self.sort_bins(stream, entries, bin_starts, bin_counts)?;
        let blocks = blocks_for(self.entries_max);
        let bins = self.bins();
        let counters_max = self.counters_max(stream);
        let count_buckets = device.kernel("msm_count_buckets")?;
        let mut launch = stream.launch_builder(&count_buckets);
        launch.arg(&windows).arg(&entries).arg(&bin_starts).arg(&bin_counts).arg(&self.total).arg(&counters_max);
        launch.arg(&bucket_places);
        // SAFETY: `total` entries were written, all with buckets of these windows, of which each has a place.
        unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("counting buckets")?;
        let scan_buckets = device.kernel("msm_scan_buckets")?;
        let mut launch = stream.launch_builder(&scan_buckets);
        launch.arg(&windows).arg(&bin_starts).arg(&bin_counts).arg(&self.total).arg(&counters_max).arg(&bucket_places);
        // SAFETY: at most BINS bins, which hold all buckets.
        unsafe { launch.launch(grid(bins, SORT_THREADS, 0)) }.doing("placing buckets")?;
        let scatter_to_buckets = device.kernel("msm_scatter_to_buckets")?;
        let mut launch = stream.launch_builder(&scatter_to_buckets);
        launch.arg(&windows).arg(&entries).arg(&bin_starts).arg(&bin_counts).arg(&self.total).arg(&counters_max);
        launch.arg(&bucket_places).arg(&self.sorted);
        // SAFETY: as many places as entries.
        unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("sorting digits into buckets")?;
        Ok(())
    }

    /// Sorts all bins that a block can sort alone.
    fn sort_bins(
        &self,
        stream: &Stream,
        entries: Slice<'_, [u32; 2]>,
        bin_starts: Slice<'_, u32>,
        bin_counts: Slice<'_, u32>,
    ) -> Result<(), CudaError> {
        let counters_max = self.counters_max(stream);
        let counters = 1 << self.windows.bin_shift();
        if counters > counters_max {
            return Ok(());
        }
        let shared_bytes = counters as usize * size_of::<u32>();
        let sort_bins = stream.device().kernel("msm_sort_bins")?.with_shared_bytes(shared_bytes)?;
        let windows = self.windows_argument();
        let mut launch = stream.launch_builder(&sort_bins);
        launch.arg(&windows).arg(&entries).arg(&bin_starts).arg(&bin_counts).arg(&self.total).arg(&counters_max);
        launch.arg(&self.sorted);
        // SAFETY: a block for each bin, with a counter for each of its buckets; as many places as entries.
        unsafe { launch.launch(grid(self.bins(), SORT_THREADS, shared_bytes)) }.doing("sorting bins")?;
        Ok(())
    }

    fn bins(&self) -> usize {
        self.windows.buckets().div_ceil(1 << self.windows.bin_shift())
    }

    /// Counters that a block's shared memory holds beside what else the kernel keeps there.
    fn counters_max(&self, stream: &Stream) -> u32 {
        let bytes = stream.device().shared_bytes_max().saturating_sub(SHARED_BYTES_RESERVED);
        (bytes / size_of::<u32>()) as u32
    }

    fn windows_argument(&self) -> WindowsArgument {
        WindowsArgument {
            bits: self.windows.bits(),
            windows: self.windows.count(),
            sets: self.windows.sets(),
            bin_shift: self.windows.bin_shift(),
            points: self.points as u64,
        }
    }
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
