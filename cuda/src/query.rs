//! One query of a key: resident with multiples of its bases, or streamed from page-locked memory where the card is small.

use std::sync::Arc;

use cudarc::driver::PushKernelArg;
use group::Group as _;

use crate::{
    device::{Device, Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Buffer, PinnedBuffer, Slice},
    monitor::{Monitor, Work},
    msm::{Group, Plan, Scalars, Sums, Table, Windows, sum, sum_scratch_bytes},
};

const THREADS: u32 = 256;
/// The position of a variable that has no base.
const POSITION_NONE: u32 = u32::MAX;

/// Places for streamed bases: one that is added up and one that is filled meanwhile.
const STAGES: usize = 2;

/// Where the bases are.
enum Bases<G: Group> {
    /// In device memory, with their multiples.
    Resident(Table<G>),
    /// On the host; so many at a time are copied when they are used.
    Streamed { points: Arc<PinnedBuffer<G::Affine>>, windows: Windows, chunk: usize },
}

/// The bases of a query and which variable has which.
pub(crate) struct Query<G: Group> {
    bases: Bases<G>,
    positions: Option<Buffer<u32>>,
}

/// A sum that is queued, or done.
pub(crate) enum Pending<'a, G: Group> {
    /// On the device.
    Queued(Sums<'a, G>),
    /// Here.
    Done(G::Sum),
}

impl<G: Group> Pending<'_, G> {
    /// Waits for the sum.
    pub(crate) fn finish(&self, stream: &Stream) -> Result<G::Sum, CudaError> {
        match self {
            Self::Queued(sums) => sums.finish(stream),
            Self::Done(sum) => Ok(*sum),
        }
    }
}

impl<G: Group> Query<G> {
    /// Copies the bases to the device and computes their multiples.
    pub(crate) fn resident(
        stream: &Stream,
        arena: &mut Arena<'_>,
        bases: &[G::Affine],
        windows: Windows,
        positions: Option<Vec<u32>>,
    ) -> Result<Self, CudaError> {
        let table = Table::allocate(stream.device(), bases.len(), windows)?;
        stream.upload(table.bases(), bases)?;
        table.fill(stream, arena)?;
        Ok(Self { bases: Bases::Resident(table), positions: upload_positions(stream, positions)? })
    }

    /// Leaves the bases in page-locked memory.
    pub(crate) fn streamed(
        stream: &Stream,
        points: Arc<PinnedBuffer<G::Affine>>,
        windows: Windows,
        chunk: usize,
        positions: Option<Vec<u32>>,
    ) -> Result<Self, CudaError> {
        Ok(Self { bases: Bases::Streamed { points, windows, chunk }, positions: upload_positions(stream, positions)? })
    }

    /// Whether the bases are streamed for each sum.
    pub(crate) fn is_streamed(&self) -> bool {
        matches!(self.bases, Bases::Streamed { .. })
    }

    /// Queues the sum of the scalars, one for each variable, times their bases. What is streamed is summed here and now:
    /// while `stream` adds up one piece, `copies` brings the next. The phases have the query's `name`.
    pub(crate) fn multiply<'a>(
        &self,
        (stream, copies): (&Stream, &Stream),
        arena: &mut Arena<'a>,
        scalars: &Scalars<'_>,
        (name, monitor): (&'static str, &Monitor<'_>),
    ) -> Result<Pending<'a, G>, CudaError> {
        match &self.bases {
            Bases::Resident(table) => {
                let scalars = Scalars { positions: self.positions.as_ref().map(Buffer::as_slice), ..*scalars };
                monitor.phase(stream, (Work::Kernels, name, 0), || {
                    let plan = Plan::new(stream, arena, &scalars, table.windows(), table.len())?;
                    Ok(Pending::Queued(sum(stream, arena, &plan, table.points())?))
                })
            }
            Bases::Streamed { points, windows, chunk } => {
                let mut arena = arena.rest();
                let stage = arena.take::<G::Affine>(STAGES * (*chunk).min(points.len()))?;
                let places = arena.take::<u32>(scalars.len())?;
                let bring = |piece: usize| -> Result<Slice<'_, G::Affine>, CudaError> {
                    let points = &points[piece * chunk..points.len().min((piece + 1) * chunk)];
                    let place = stage.slice(piece % STAGES * stage.len() / STAGES, points.len())?;
                    // What this place held before has been added up when the stream is where it is now.
                    copies.wait_for(stream)?;
                    monitor.phase(copies, (Work::Copy, name, size_of_val(points) as u64), || {
                        // SAFETY: the points never change, and they are freed by the driver, which waits for copies.
                        unsafe { copies.upload_async(place, points) }
                    })?;
                    Ok(place)
                };
                let pieces = points.len().div_ceil(*chunk);
                let mut total = G::Sum::identity();
                let mut next = (pieces > 0).then(|| bring(0)).transpose()?;
                let mut piece = 0;
                while let Some(bases) = next {
                    stream.wait_for(copies)?;
                    next = (piece + 1 < pieces).then(|| bring(piece + 1)).transpose()?;
                    let mut arena = arena.rest();
                    let sums = monitor.phase(stream, (Work::Kernels, name, 0), || {
                        self.place(stream, piece * chunk, bases.len(), places)?;
                        let scalars = Scalars { positions: Some(places), ..*scalars };
                        let plan = Plan::new(stream, &mut arena, &scalars, *windows, bases.len())?;
                        sum::<G>(stream, &mut arena, &plan, bases)
                    })?;
                    total += sums.finish(stream)?;
                    piece += 1;
                }
                Ok(Pending::Done(total))
            }
        }
    }

    /// Scratch that [`Self::multiply`] takes for a query of `bases` over `variables`, with bases streamed by `chunk`.
    pub(crate) fn scratch_bytes(
        device: &Device,
        bases: usize,
        variables: usize,
        windows: Windows,
        chunk: Option<usize>,
    ) -> Result<usize, CudaError> {
        let stage = chunk.map_or(0, |chunk| {
            Arena::bytes_for::<G::Affine>(STAGES * chunk.min(bases)) + Arena::bytes_for::<u32>(variables)
        });
        Ok(stage + Plan::scratch_bytes(variables, windows) + sum_scratch_bytes::<G>(device, variables, windows)?)
    }

    /// Writes the place of each variable's base among `len` from `first` on.
    fn place(&self, stream: &Stream, first: usize, len: usize, places: Slice<'_, u32>) -> Result<(), CudaError> {
        let kernel = stream.device().kernel("expand_positions")?;
        let positions = self.positions.as_ref().map_or(0, |positions| positions.as_slice().address());
        let (count, first, len) = (places.len() as u32, first as u32, len as u32);
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&positions).arg(&count).arg(&first).arg(&len).arg(&places);
        // SAFETY: a thread for each variable; positions, if there are any, and places have one entry for each.
        unsafe { launch.launch(grid(places.len().div_ceil(THREADS as usize), THREADS, 0)) }.doing("placing bases")?;
        Ok(())
    }
}

/// Where each variable's base is; none if all have one.
pub(crate) fn positions(density: &[u64], variables: usize, bases: usize) -> Option<Vec<u32>> {
    if bases == variables {
        return None;
    }
    let mut next = 0;
    let position = |i: usize| {
        if density[i / 64] >> (i % 64) & 1 == 0 {
            return POSITION_NONE;
        }
        next += 1;
        next - 1
    };
    Some((0..variables).map(position).collect())
}

fn upload_positions(stream: &Stream, positions: Option<Vec<u32>>) -> Result<Option<Buffer<u32>>, CudaError> {
    let Some(positions) = positions else { return Ok(None) };
    let buffer = stream.device().allocate(positions.len())?;
    stream.upload(buffer.as_slice(), &positions)?;
    Ok(Some(buffer))
}
