//! Arrays of points on the device.

use cudarc::driver::PushKernelArg;

use super::group::Group;
use crate::{
    device::{Stream, grid},
    error::{CudaError, Doing},
    memory::Slice,
};

const THREADS: usize = 128;
/// Points that share an inversion.
const POINTS_PER_INVERSION: usize = 32;

/// Queues `out[i] = 2^doublings * points[i]`. A launch of 2^19 points and 24 doublings takes some milliseconds.
pub fn double<G: Group>(
    stream: &Stream,
    points: Slice<'_, G::Affine>,
    doublings: u32,
    out: Slice<'_, G::Xyzz>,
) -> Result<(), CudaError> {
    if points.is_empty() {
        return Ok(());
    }
    let out = out.slice(0, points.len())?;
    let len = points.len() as u32;
    let kernel = stream.device().kernel(G::DOUBLE)?;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&points).arg(&len).arg(&doublings).arg(&out);
    // SAFETY: both arrays hold `len` points, which the kernel checks its index against.
    unsafe { launch.launch(grid((points.len() * G::LANES).div_ceil(THREADS), THREADS as u32, 0)) }
        .doing("doubling points")?;
    Ok(())
}

/// Queues the affine form of `points`. `products` is scratch for a coordinate of each.
pub fn normalise<G: Group>(
    stream: &Stream,
    points: Slice<'_, G::Xyzz>,
    products: Slice<'_, G::Coordinate>,
    out: Slice<'_, G::Affine>,
) -> Result<(), CudaError> {
    if points.is_empty() {
        return Ok(());
    }
    let (products, out) = (products.slice(0, points.len())?, out.slice(0, points.len())?);
    let len = points.len() as u32;
    let threads = points.len().div_ceil(POINTS_PER_INVERSION) * G::LANES;
    let kernel = stream.device().kernel(G::NORMALISE)?;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&points).arg(&len).arg(&products).arg(&out);
    // SAFETY: all arrays hold `len` values, which the kernel checks its index against.
    unsafe { launch.launch(grid(threads.div_ceil(THREADS), THREADS as u32, 0)) }.doing("normalising points")?;
    Ok(())
}
