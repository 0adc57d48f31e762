//! From a plan and bases to a point.

use cudarc::driver::{DeviceRepr, PushKernelArg};
use group::Group as _;
use zeroize::Zeroizing;

use super::{
    group::{Group, sealed::Kernels},
    plan::Plan,
    windows::Windows,
};
use crate::{
    device::{Device, Kernel, Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Slice},
};

const THREADS: usize = 128;
/// Of the accumulating kernels.
const ACCUMULATE_THREADS: usize = 384;
/// Buckets of a segment, at least.
const SEGMENT_LEN_MIN: usize = 4;
/// Segments that a group of lanes adds when sums are taken over all of them.
const SEGMENTS_PER_GROUP: usize = 8;
/// Slices of such a sum: as many as a warp holds points of G2.
const SLICES_MAX: usize = 16;

/// `Segments` of msm_sum.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Segments {
    /// Of all sets, and of each.
    count: u32,
    per_set: u32,
    /// Buckets of a segment; the last of a set may have fewer.
    len: u32,
    buckets_per_set: u32,
}
// SAFETY: plain numbers, in the order and sizes of the kernel's struct.
unsafe impl DeviceRepr for Segments {}

impl Segments {
    /// As many as `lanes_max` lanes take at a time: a second turn would leave most of the device idle.
    fn new<G: Group>(windows: &Windows, lanes_max: usize) -> Self {
        let (buckets_per_set, sets) = (1usize << windows.set_log2(), windows.sets() as usize);
        let per_set_max = (lanes_max / G::LANES / sets).max(1);
        let len = buckets_per_set.div_ceil(per_set_max).max(SEGMENT_LEN_MIN).min(buckets_per_set);
        let per_set = buckets_per_set.div_ceil(len);
        Self {
            count: (sets * per_set) as u32,
            per_set: per_set as u32,
            len: len as u32,
            buckets_per_set: buckets_per_set as u32,
        }
    }

    /// Bits of a segment's number within its set.
    fn bits(&self) -> u32 {
        u32::BITS - (self.per_set - 1).leading_zeros()
    }
}

/// Sizes of one sum. Everything follows from the windows, the most entries there can be, and the device.
struct Shape {
    /// Parts of equal size into which the entries are cut.
    shares: usize,
    shares_per_launch: usize,
    segments: Segments,
    /// Sums of each set: one of the weighted segments, one for each bit of a segment's number.
    sums: usize,
    slices: usize,
}

impl Shape {
    fn new<G: Group>(device: &Device, windows: &Windows, entries_max: usize) -> Result<Self, CudaError> {
        let per_block = ACCUMULATE_THREADS / G::LANES;
        let resident = resident_threads(device, &device.kernel(G::ACCUMULATE)?, ACCUMULATE_THREADS)?;
        let shares_per_launch = (resident / G::LANES).min(entries_max.next_multiple_of(per_block)).max(per_block);
        let launches = entries_max.div_ceil(G::LAUNCH_ENTRIES_MAX).max(1);
        let lanes_max = resident_threads(device, &device.kernel(G::SUM_SEGMENTS)?, THREADS)?;
        let segments = Segments::new::<G>(windows, lanes_max);
        let groups_per_block = THREADS / G::LANES;
        let slices = (segments.per_set as usize / 2 / (SEGMENTS_PER_GROUP * groups_per_block)).clamp(1, SLICES_MAX);
        let sums = 1 + segments.bits() as usize;
        Ok(Self { shares: shares_per_launch * launches, shares_per_launch, segments, sums, slices })
    }

    /// Lengths of the levels of carries: of the shares, of the warps that add those, and so on.
    fn carry_levels<G: Group>(&self) -> Vec<usize> {
        let per_warp = 32 / G::LANES;
        let mut levels = vec![self.shares];
        while levels[levels.len() - 1] > 1 {
            levels.push(levels[levels.len() - 1].div_ceil(per_warp));
        }
        levels
    }
}

/// The threads of a kernel that the device holds at a time.
fn resident_threads(device: &Device, kernel: &Kernel, threads: usize) -> Result<usize, CudaError> {
    let blocks = kernel.blocks_per_multiprocessor(threads as u32, 0)?.max(1);
    Ok((blocks * device.multiprocessors()) as usize * threads)
}

/// Scratch that one [`sum`] takes, its result included, over a plan of up to `scalars_max` scalars of full size.
pub fn sum_scratch_bytes<G: Group>(device: &Device, scalars_max: usize, windows: Windows) -> Result<usize, CudaError> {
    let shape = Shape::new::<G>(device, &windows, scalars_max * windows.count() as usize)?;
    let points = |len| Arena::bytes_for::<G::Xyzz>(len);
    let carries: usize = shape.carry_levels::<G>().iter().map(|&len| points(len) + Arena::bytes_for::<u32>(len)).sum();
    let sums = windows.sets() as usize * shape.sums;
    Ok(points(windows.buckets())
        + carries
        + 2 * points(shape.segments.count as usize)
        + points(sums * shape.slices)
        + points(sums))
}

/// Queues the sum of `plan`'s scalars times `bases`: `plan`'s number of points, times the copies of its windows, all of
/// order r (or infinity), because a scalar may be used as another of the same residue. The
/// result is `arena`'s; the rest of the arena is used meanwhile and free again for work queued later on the same stream.
pub fn sum<'a, G: Group>(
    stream: &Stream,
    arena: &mut Arena<'a>,
    plan: &Plan<'_>,
    bases: Slice<'_, G::Affine>,
) -> Result<Sums<'a, G>, CudaError> {
    let points = plan.points * plan.windows.copies();
    if bases.len() < points {
        return Err(CudaError::Unsupported(format!(
            "the plan is for {} bases in {} copies, but only {} points are given",
            plan.points,
            plan.windows.copies(),
            bases.len()
        )));
    }
    let shape = Shape::new::<G>(stream.device(), &plan.windows, plan.entries_max)?;
    let points = arena.take::<G::Xyzz>(plan.windows.sets() as usize * shape.sums)?;
    let sums = Sums { windows: plan.windows, segment_len: shape.segments.len, sums_per_set: shape.sums, points };
    let mut scratch = arena.rest();
    let buckets = scratch.take::<G::Xyzz>(plan.windows.buckets())?;
    // Zeroed memory is points at infinity.
    stream.clear(buckets)?;
    fill_buckets::<G>(stream, &mut scratch.rest(), plan, bases, buckets, &shape)?;
    sums.add_up(stream, &mut scratch, buckets, &shape)?;
    Ok(sums)
}

/// Adds every entry's point to its bucket.
fn fill_buckets<G: Group>(
    stream: &Stream,
    arena: &mut Arena<'_>,
    plan: &Plan<'_>,
    bases: Slice<'_, G::Affine>,
    buckets: Slice<'_, G::Xyzz>,
    shape: &Shape,
) -> Result<(), CudaError> {
    let levels = shape.carry_levels::<G>();
    let mut carry_buckets = arena.take::<u32>(shape.shares)?;
    let mut carries = arena.take::<G::Xyzz>(shape.shares)?;
    let shares = shape.shares as u32;
    let accumulate = stream.device().kernel(G::ACCUMULATE)?;
    for first_share in (0..shape.shares).step_by(shape.shares_per_launch) {
        let first_share = first_share as u32;
        let mut launch = stream.launch_builder(&accumulate);
        launch.arg(&bases).arg(&plan.sorted).arg(&plan.total).arg(&first_share).arg(&shares);
        launch.arg(&buckets).arg(&carry_buckets).arg(&carries);
        let blocks = shape.shares_per_launch * G::LANES / ACCUMULATE_THREADS;
        // SAFETY: the plan's points were checked to lie in `bases`, its buckets are those of its windows, and there is a
        // place for the carry of every share of this grid, whose threads are a multiple of the block's.
        unsafe { launch.launch(grid(blocks, ACCUMULATE_THREADS as u32, 0)) }.doing("adding points to buckets")?;
    }
    let add_carries = stream.device().kernel(G::ADD_CARRIES)?;
    for (level, &len) in levels.iter().enumerate() {
        let next_len = levels.get(level + 1).copied().unwrap_or(1);
        let next_buckets = arena.take::<u32>(next_len)?;
        let next = arena.take::<G::Xyzz>(next_len)?;
        let len_argument = len as u32;
        let mut launch = stream.launch_builder(&add_carries);
        launch.arg(&carry_buckets).arg(&carries).arg(&len_argument).arg(&buckets).arg(&next_buckets).arg(&next);
        // SAFETY: `len` carries are there, and every warp has a place for its own.
        unsafe { launch.launch(grid((len * G::LANES).div_ceil(THREADS), THREADS as u32, 0)) }
            .doing("adding carries")?;
        (carry_buckets, carries) = (next_buckets, next);
        if len <= 32 / G::LANES {
            break;
        }
    }
    Ok(())
}

/// The result of [`sum`] on the device: a few points that the host adds up.
#[derive(Debug)]
pub struct Sums<'a, G: Group> {
    windows: Windows,
    segment_len: u32,
    sums_per_set: usize,
    points: Slice<'a, G::Xyzz>,
}

impl<G: Group> Sums<'_, G> {
    /// Queues what follows the buckets.
    fn add_up(
        &self,
        stream: &Stream,
        arena: &mut Arena<'_>,
        buckets: Slice<'_, G::Xyzz>,
        shape: &Shape,
    ) -> Result<(), CudaError> {
        let device = stream.device();
        let segments = shape.segments.count as usize;
        let weighted = arena.take::<G::Xyzz>(segments)?;
        let plain = arena.take::<G::Xyzz>(segments)?;
        let sum_segments = device.kernel(G::SUM_SEGMENTS)?;
        let mut launch = stream.launch_builder(&sum_segments);
        launch.arg(&buckets).arg(&shape.segments).arg(&weighted).arg(&plain);
        // SAFETY: the kernel stops at the end of each set; there is a place for each segment's two results.
        unsafe { launch.launch(grid((segments * G::LANES).div_ceil(THREADS), THREADS as u32, 0)) }
            .doing("summing segments of buckets")?;

        let sets = self.windows.sets();
        let slices = arena.take::<G::Xyzz>(sets as usize * shape.sums * shape.slices)?;
        let sum_bits = device.kernel(G::SUM_BITS)?;
        let mut launch = stream.launch_builder(&sum_bits);
        launch.arg(&weighted).arg(&plain).arg(&shape.segments.per_set).arg(&slices);
        let mut config = grid(shape.slices, THREADS as u32, 0);
        config.grid_dim = (shape.slices as u32, shape.sums as u32, sets);
        // SAFETY: the kernel stops at a set's last segment; a sum for each bit of a segment's number, a place per block.
        unsafe { launch.launch(config) }.doing("summing over the bits of segments")?;

        let (sums, slices_each) = (sets * shape.sums as u32, shape.slices as u32);
        let sum_slices = device.kernel(G::SUM_SLICES)?;
        let mut launch = stream.launch_builder(&sum_slices);
        launch.arg(&slices).arg(&sums).arg(&slices_each).arg(&self.points);
        // SAFETY: a warp for each sum, of no more slices than a warp holds points.
        unsafe { launch.launch(grid((sums as usize * 32).div_ceil(THREADS), THREADS as u32, 0)) }
            .doing("summing slices")?;
        Ok(())
    }

    /// Waits for the sum and returns it.
    pub fn finish(&self, stream: &Stream) -> Result<G::Sum, CudaError> {
        // Of a proof with r = s = 0 they are as secret as the witness.
        let points = Zeroizing::new(stream.to_vec(self.points)?);
        let sets = points.chunks(self.sums_per_set).rev().map(|sums| self.set_sum(sums));
        Ok(sets.fold(G::Sum::identity(), |sum, set| (0..self.windows.bits()).fold(sum, |sum, _| sum.double()) + set))
    }

    /// Of one set: sum 0 counts as it is, sum 1 + q times 2^q times the length of a segment.
    fn set_sum(&self, sums: &[G::Xyzz]) -> G::Sum {
        let by_bits =
            sums[1..].iter().rev().fold(G::Sum::identity(), |sum, point| sum.double() + <G as Kernels>::to_host(point));
        let top = u32::BITS - self.segment_len.leading_zeros();
        let times_len = (0..top).rev().fold(G::Sum::identity(), |sum, bit| {
            let sum = sum.double();
            if self.segment_len >> bit & 1 == 1 { sum + by_bits } else { sum }
        });
        times_len + <G as Kernels>::to_host(&sums[0])
    }
}
