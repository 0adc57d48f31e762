//! From a plan and bases to a point.

use cudarc::driver::PushKernelArg;
use group::Group as _;

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
/// Lanes, over all sets, that sum segments of buckets: they keep a large device busy.
const SEGMENT_LANES: usize = 1 << 15;
/// Buckets of a segment, at least.
const SEGMENT_LEN_MIN: usize = 4;
/// Segments that a group of lanes adds when sums are taken over all of them.
const SEGMENTS_PER_GROUP: usize = 8;
/// Slices of such a sum: as many as a warp holds points of G2.
const SLICES_MAX: usize = 16;

/// Sizes of one sum. Everything follows from the windows, the most entries there can be, and the device.
struct Shape {
    /// Parts of equal size into which the entries are cut.
    shares: usize,
    shares_per_launch: usize,
    segment_len: usize,
    /// log2 of the segments in a set.
    segments_log2: u32,
    /// Sums of each set: one of the weighted segments, one for each bit of a segment's number.
    sums: usize,
    slices: usize,
}

impl Shape {
    fn new<G: Group>(windows: &Windows, entries_max: usize, resident_threads: usize) -> Self {
        let per_block = ACCUMULATE_THREADS / G::LANES;
        let shares_per_launch =
            (resident_threads / G::LANES).min(entries_max.next_multiple_of(per_block)).max(per_block);
        let launches = entries_max.div_ceil(G::LAUNCH_ENTRIES_MAX).max(1);
        let segment_len = (windows.buckets() * G::LANES / SEGMENT_LANES)
            .next_power_of_two()
            .max(SEGMENT_LEN_MIN)
            .min(1 << windows.set_log2());
        let segments_log2 = windows.set_log2() - segment_len.ilog2();
        let groups_per_block = THREADS / G::LANES;
        let slices = ((1 << segments_log2) / 2 / (SEGMENTS_PER_GROUP * groups_per_block)).clamp(1, SLICES_MAX);
        let sums = 1 + segments_log2 as usize;
        Self { shares: shares_per_launch * launches, shares_per_launch, segment_len, segments_log2, sums, slices }
    }

    fn segments(&self, windows: &Windows) -> usize {
        (windows.sets() as usize) << self.segments_log2
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

/// The accumulating kernel, and the threads of it that the device holds at a time.
fn accumulate_kernel<G: Group>(device: &Device) -> Result<(Kernel, usize), CudaError> {
    let kernel = device.kernel(G::ACCUMULATE)?;
    let blocks = kernel.blocks_per_multiprocessor(ACCUMULATE_THREADS as u32, 0)?.max(1);
    Ok((kernel, (blocks * device.multiprocessors()) as usize * ACCUMULATE_THREADS))
}

/// Scratch that one [`sum`] takes, its result included, over a plan of up to `scalars_max` scalars of full size.
pub fn sum_scratch_bytes<G: Group>(device: &Device, scalars_max: usize, windows: Windows) -> Result<usize, CudaError> {
    let (_, resident_threads) = accumulate_kernel::<G>(device)?;
    let shape = Shape::new::<G>(&windows, scalars_max * windows.count() as usize, resident_threads);
    let points = |len| Arena::bytes_for::<G::Xyzz>(len);
    let carries: usize = shape.carry_levels::<G>().iter().map(|&len| points(len) + Arena::bytes_for::<u32>(len)).sum();
    let sums = windows.sets() as usize * shape.sums;
    Ok(points(windows.buckets())
        + carries
        + 2 * points(shape.segments(&windows))
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
    let (accumulate, resident_threads) = accumulate_kernel::<G>(stream.device())?;
    let shape = Shape::new::<G>(&plan.windows, plan.entries_max, resident_threads);
    let points = arena.take::<G::Xyzz>(plan.windows.sets() as usize * shape.sums)?;
    let sums =
        Sums { windows: plan.windows, segment_log2: shape.segment_len.ilog2(), sums_per_set: shape.sums, points };
    let mut scratch = arena.rest();
    let buckets = scratch.take::<G::Xyzz>(plan.windows.buckets())?;
    // Zeroed memory is points at infinity.
    stream.clear(buckets)?;
    fill_buckets::<G>(stream, &mut scratch.rest(), plan, bases, buckets, &shape, &accumulate)?;
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
    accumulate: &Kernel,
) -> Result<(), CudaError> {
    let levels = shape.carry_levels::<G>();
    let mut carry_buckets = arena.take::<u32>(shape.shares)?;
    let mut carries = arena.take::<G::Xyzz>(shape.shares)?;
    let shares = shape.shares as u32;
    for first_share in (0..shape.shares).step_by(shape.shares_per_launch) {
        let first_share = first_share as u32;
        let mut launch = stream.launch_builder(accumulate);
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
    segment_log2: u32,
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
        let segments = shape.segments(&self.windows);
        let weighted = arena.take::<G::Xyzz>(segments)?;
        let plain = arena.take::<G::Xyzz>(segments)?;
        let (segments_argument, segment_len) = (segments as u32, shape.segment_len as u32);
        let sum_segments = device.kernel(G::SUM_SEGMENTS)?;
        let mut launch = stream.launch_builder(&sum_segments);
        launch.arg(&buckets).arg(&segments_argument).arg(&segment_len).arg(&weighted).arg(&plain);
        // SAFETY: the segments tile the buckets exactly; there are so many places for each result.
        unsafe { launch.launch(grid((segments * G::LANES).div_ceil(THREADS), THREADS as u32, 0)) }
            .doing("summing segments of buckets")?;

        let sets = self.windows.sets();
        let slices = arena.take::<G::Xyzz>(sets as usize * shape.sums * shape.slices)?;
        let sum_bits = device.kernel(G::SUM_BITS)?;
        let mut launch = stream.launch_builder(&sum_bits);
        launch.arg(&weighted).arg(&plain).arg(&shape.segments_log2).arg(&slices);
        let mut config = grid(shape.slices, THREADS as u32, 0);
        config.grid_dim = (shape.slices as u32, shape.sums as u32, sets);
        // SAFETY: a set has 2^segments_log2 segments and a sum for each bit of a segment's number; a place per block.
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
        let points = stream.to_vec(self.points)?;
        // What is to be added at each power of two. In a set, sum 0 counts as it is and sum 1 + q times
        // 2^(segment_log2 + q), because bit q of a segment's number is bit segment_log2 + q of a bucket's.
        let mut at_bit = vec![G::Sum::identity(); (self.windows.sets() * self.windows.bits()) as usize];
        for (set, sums) in points.chunks(self.sums_per_set).enumerate() {
            let first_bit = set * self.windows.bits() as usize;
            for (i, point) in sums.iter().enumerate() {
                let bit = if i == 0 { first_bit } else { first_bit + self.segment_log2 as usize + i - 1 };
                at_bit[bit] += <G as Kernels>::to_host(point);
            }
        }
        Ok(at_bit.iter().rev().fold(G::Sum::identity(), |sum, point| sum.double() + point))
    }
}
