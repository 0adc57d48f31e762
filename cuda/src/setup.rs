//! Multiples of the generators on the device: what making a key costs most.

use std::sync::Arc;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use cudarc::driver::PushKernelArg;
use group::{Curve, Group as _, prime::PrimeCurveAffine};
use rayon::prelude::*;
use zkhost_groth16::{
    G1Point, G2Point, Scalar,
    scalar::{Limbs, to_canonical},
    setup::GeneratorMultiples,
};

use crate::{
    device::{Device, Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Buffer, PinnedBuffer},
    msm::{G1, G2, Group, points::normalise},
};

const WINDOW_BITS: u32 = 8;
const WINDOWS: usize = 32;
const DIGITS: usize = 256;
const THREADS: usize = 128;
/// Scalars of one launch, which takes some tens of milliseconds.
const LAUNCH_SCALARS_MAX: usize = 1 << 19;
/// Scalars or points that one task of the host converts or copies.
const PER_TASK: usize = 1 << 12;

/// Makes keys with the device: see [`zkhost_groth16::setup::setup_with`].
pub struct DeviceMultiples {
    stream: Stream,
    g1: Buffer<G1Point>,
    g2: Buffer<G2Point>,
    scratch: Buffer<u8>,
}

impl DeviceMultiples {
    /// Tables of both generators, and scratch memory.
    pub fn new(device: &Arc<Device>) -> Result<Self, CudaError> {
        let stream = device.stream()?;
        let g1: Vec<G1Point> = table(G1Projective::generator(), |points| {
            let mut affine = vec![G1Affine::identity(); points.len()];
            G1Projective::batch_normalize(points, &mut affine);
            affine.into_iter().map(G1Point::from).collect()
        });
        let g2: Vec<G2Point> = table(G2Projective::generator(), |points| {
            let mut affine = vec![G2Affine::identity(); points.len()];
            G2Projective::batch_normalize(points, &mut affine);
            affine.into_iter().map(G2Point::from).collect()
        });
        let tables = Self {
            g1: device.allocate(g1.len())?,
            g2: device.allocate(g2.len())?,
            scratch: device.allocate(scratch_bytes::<G2>())?,
            stream,
        };
        tables.stream.upload(tables.g1.as_slice(), &g1)?;
        tables.stream.upload(tables.g2.as_slice(), &g2)?;
        Ok(tables)
    }

    fn multiply<G: Group>(
        &self,
        kernel: &'static str,
        table: u64,
        scalars: &[Scalar],
    ) -> Result<Vec<G::Affine>, CudaError> {
        let stream = &self.stream;
        let kernel = stream.device().kernel(kernel)?;
        let at_once = scalars.len().min(LAUNCH_SCALARS_MAX);
        // Zeroed when they are dropped: the scalars are products of the secrets.
        let mut limbs = PinnedBuffer::<Limbs>::new(stream.device(), at_once)?;
        let mut points = PinnedBuffer::<G::Affine>::new(stream.device(), at_once)?;
        let mut out = Vec::with_capacity(scalars.len());
        for scalars in scalars.chunks(LAUNCH_SCALARS_MAX) {
            let count = scalars.len();
            let mut arena = Arena::new(&self.scratch);
            let digits = arena.take::<Limbs>(count)?;
            let multiples = arena.take::<G::Xyzz>(count)?;
            let products = arena.take::<G::Coordinate>(count)?;
            let affine = arena.take::<G::Affine>(count)?;
            let pairs = limbs.par_iter_mut().zip(scalars).with_min_len(PER_TASK);
            pairs.for_each(|(limbs, scalar)| *limbs = to_canonical(scalar));
            stream.upload(digits, &limbs[..count])?;
            let len = count as u32;
            let mut launch = stream.launch_builder(&kernel);
            launch.arg(&table).arg(&digits).arg(&len).arg(&multiples);
            // SAFETY: a canonical scalar is 32 bytes, one digit each; the table has a point for each digit of each window;
            // the kernel checks its index against `len`, the length of all arrays.
            unsafe { launch.launch(grid((count * G::LANES).div_ceil(THREADS), THREADS as u32, 0)) }
                .doing("multiplying a generator")?;
            normalise::<G>(stream, multiples, products, affine)?;
            stream.download(&mut points[..count], affine)?;
            out.par_extend(points[..count].par_iter().with_min_len(PER_TASK).copied());
            stream.clear(digits)?;
        }
        Ok(out)
    }
}

/// Bytes of the arrays of one launch.
fn scratch_bytes<G: Group>() -> usize {
    Arena::bytes_for::<Limbs>(LAUNCH_SCALARS_MAX)
        + Arena::bytes_for::<G::Xyzz>(LAUNCH_SCALARS_MAX)
        + Arena::bytes_for::<G::Coordinate>(LAUNCH_SCALARS_MAX)
        + Arena::bytes_for::<G::Affine>(LAUNCH_SCALARS_MAX)
}

/// digit * 2^(8 window) * generator, by window and digit.
fn table<P: group::Group, A>(generator: P, normalise: impl Fn(&[P]) -> Vec<A>) -> Vec<A> {
    let mut points = Vec::with_capacity(WINDOWS * DIGITS);
    let mut base = generator;
    for _ in 0..WINDOWS {
        let mut multiple = P::identity();
        for _ in 0..DIGITS {
            points.push(multiple);
            multiple += base;
        }
        for _ in 0..WINDOW_BITS {
            base = base.double();
        }
    }
    normalise(&points)
}

impl GeneratorMultiples for DeviceMultiples {
    fn g1(&self, scalars: &[Scalar]) -> Result<Vec<G1Point>, String> {
        self.multiply::<G1>("fixed_base_g1", self.g1.as_slice().address(), scalars).map_err(|e| e.to_string())
    }

    fn g2(&self, scalars: &[Scalar]) -> Result<Vec<G2Point>, String> {
        self.multiply::<G2>("fixed_base_g2", self.g2.as_slice().address(), scalars).map_err(|e| e.to_string())
    }
}
