//! An assignment on the device: the packed form that multiplications read and the vector z that constraints read.

use cudarc::driver::PushKernelArg;
use zeroize::Zeroizing;
use zkhost_groth16::{
    Assignment, Encoding, Scalar,
    assignment::Segment,
    scalar::{Limbs, to_canonical, to_montgomery},
};

use crate::{
    device::{Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Slice},
    monitor::{Monitor, Work},
    msm::{Packed, Scalars},
};

const THREADS: u32 = 256;
/// Groups that a block of the counting kernels takes; see `kernels/expand.cu`.
const GROUPS_PER_BLOCK: usize = 1024;

/// An assignment in device memory, as secret as on the host.
pub struct DeviceAssignment<'a> {
    head: Slice<'a, Limbs>,
    packed: Packed<'a>,
    z: Slice<'a, Limbs>,
}

/// Puts a segment's masks at bit `at` of a sequence.
fn append_bits(out: &mut [[u64; 2]], at: usize, words: &[[u64; 2]]) {
    let (first, shift) = (at / 64, at % 64);
    for (i, word) in words.iter().enumerate() {
        for which in 0..2 {
            out[first + i][which] |= word[which] << shift;
            // Bits past the segment's last variable are zero, so nothing is lost past the end of `out`.
            if shift > 0 && first + i + 1 < out.len() {
                out[first + i + 1][which] |= word[which] >> (64 - shift);
            }
        }
    }
}

fn mask_pairs(segment: &Segment) -> &[[u64; 2]] {
    bytemuck::cast_slice(segment.masks())
}

impl<'a> DeviceAssignment<'a> {
    /// Device memory that an assignment with `publics` and `aux` variables takes at most.
    pub fn bytes(publics: usize, aux: usize) -> usize {
        let groups = aux.div_ceil(64);
        Arena::bytes_for::<Limbs>(1 + publics)
            + Arena::bytes_for::<[u64; 2]>(groups)
            + Arena::bytes_for::<u32>(groups)
            + Arena::bytes_for::<u32>(groups.div_ceil(GROUPS_PER_BLOCK))
            + 2 * Arena::bytes_for::<Limbs>(aux)
            + Arena::bytes_for::<Limbs>(1 + publics + aux)
    }

    /// Copies an assignment to the device and unpacks it there. The copies are queued from the assignment's own memory, at
    /// full speed where that is page-locked: it must not change or go before the stream has passed them, which the caller
    /// promises by waiting for the stream.
    ///
    /// # Safety
    /// The assignment must live, unchanged, until the stream has been waited for.
    pub unsafe fn upload(
        stream: &Stream,
        arena: &mut Arena<'a>,
        assignment: &Assignment,
        monitor: &Monitor<'_>,
    ) -> Result<Self, CudaError> {
        let aux = assignment.aux_count() as usize;
        let groups = aux.div_ceil(64);
        let count: usize = assignment.segments().iter().map(|segment| segment.elements().len()).sum();
        let one_and_publics = || std::iter::once(Scalar::from(1)).chain(assignment.publics().iter().copied());
        let head_len = 1 + assignment.publics().len();

        let head = arena.take::<Limbs>(head_len)?;
        let masks = arena.take::<[u64; 2]>(groups)?;
        let ranks = arena.take::<u32>(groups)?;
        let totals = arena.take::<u32>(groups.div_ceil(GROUPS_PER_BLOCK))?;
        let canonical = arena.take::<Limbs>(count)?;
        let montgomery = arena.take::<Limbs>(count)?;
        let z = arena.take::<Limbs>(head_len + aux)?;

        let bytes = masks.bytes() + canonical.bytes() + 2 * head.bytes();
        monitor.phase(stream, (Work::Copy, "witness", bytes as u64), || {
            let limbs: Zeroizing<Vec<Limbs>> = Zeroizing::new(one_and_publics().map(|x| to_canonical(&x)).collect());
            stream.upload(head, &limbs)?;
            let limbs: Zeroizing<Vec<Limbs>> = Zeroizing::new(one_and_publics().map(|x| to_montgomery(&x)).collect());
            stream.upload(z, &limbs)?;
            // SAFETY: the caller keeps the assignment.
            unsafe {
                upload_masks(stream, masks, assignment)?;
                let mut first = 0;
                for segment in assignment.segments() {
                    let elements = segment.elements();
                    stream.upload_async(canonical.slice(first, elements.len())?, elements)?;
                    first += elements.len();
                }
            }
            Ok(())
        })?;
        let packed = Packed { len: aux, masks, ranks, elements: canonical };
        let assigned = Self { head, packed, z };
        monitor.phase(stream, (Work::Kernels, "unpack", 0), || {
            assigned.unpack(stream, totals, montgomery, assignment.encoding())
        })?;
        Ok(assigned)
    }

    /// z = [1, publics, aux], Montgomery.
    pub fn z(&self) -> Slice<'a, Limbs> {
        self.z
    }

    /// z for a multiplication.
    pub fn scalars(&self) -> Scalars<'a> {
        Scalars { dense: self.head, packed: Some(self.packed), positions: None }
    }

    fn unpack(
        &self,
        stream: &Stream,
        totals: Slice<'_, u32>,
        montgomery: Slice<'_, Limbs>,
        encoding: Encoding,
    ) -> Result<(), CudaError> {
        let Packed { len, masks, ranks, elements } = self.packed;
        if len == 0 {
            return Ok(());
        }
        let device = stream.device();
        let (groups, aux, count) = (masks.len() as u32, len as u32, elements.len() as u32);
        let blocks = masks.len().div_ceil(GROUPS_PER_BLOCK);

        let kernel = device.kernel("expand_count")?;
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&masks).arg(&groups).arg(&totals);
        // SAFETY: a block for each GROUPS_PER_BLOCK groups and a total for each block.
        unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("counting elements")?;
        let kernel = device.kernel("expand_rank")?;
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&masks).arg(&groups).arg(&totals).arg(&ranks);
        // SAFETY: as above, and a rank for each group.
        unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("ranking groups")?;

        if count > 0 {
            let from_montgomery = u32::from(encoding == Encoding::Montgomery);
            let kernel = device.kernel("expand_convert")?;
            let mut launch = stream.launch_builder(&kernel);
            // In place for what came canonical: each thread reads its element before it writes it.
            launch.arg(&elements).arg(&count).arg(&from_montgomery).arg(&montgomery).arg(&elements);
            // SAFETY: a thread for each element; all slices hold `count`.
            unsafe { launch.launch(grid(elements.len().div_ceil(THREADS as usize), THREADS, 0)) }
                .doing("converting elements")?;
        }
        let z = self.z.slice(self.head.len(), len)?;
        let kernel = device.kernel("expand_aux")?;
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&masks).arg(&ranks).arg(&montgomery).arg(&aux).arg(&z);
        // SAFETY: a thread for each aux variable; the masks have as many full bits as there are elements, which segments
        // guarantee.
        unsafe { launch.launch(grid(len.div_ceil(THREADS as usize), THREADS, 0)) }.doing("expanding variables")?;
        Ok(())
    }
}

/// Queues the masks of all segments as one sequence: bit i mod 64 of group i / 64 is aux variable i.
///
/// # Safety
/// The assignment must live, unchanged, until the stream has been waited for.
unsafe fn upload_masks(stream: &Stream, masks: Slice<'_, [u64; 2]>, assignment: &Assignment) -> Result<(), CudaError> {
    let segments = assignment.segments();
    let whole = segments.split_last().is_none_or(|(_, before)| before.iter().all(|s| s.aux_count() % 64 == 0));
    if whole {
        let mut first = 0;
        for segment in segments {
            let pairs = mask_pairs(segment);
            // SAFETY: the caller keeps the assignment.
            unsafe { stream.upload_async(masks.slice(first, pairs.len())?, pairs)? };
            first += pairs.len();
        }
        return Ok(());
    }
    let mut joined = Zeroizing::new(vec![[0u64; 2]; masks.len()]);
    let mut at = 0;
    for segment in segments {
        append_bits(&mut joined, at, mask_pairs(segment));
        at += segment.aux_count() as usize;
    }
    stream.upload(masks, &joined)
}

#[cfg(test)]
mod tests {
    use super::append_bits;

    #[test]
    fn masks_of_segments_of_any_length_become_one_sequence() {
        for lengths in [vec![1, 63, 64], vec![5, 60, 1, 130], vec![64, 65, 7], vec![3; 50]] {
            let total: usize = lengths.iter().sum();
            let bit = |i: usize| (i * i / 3) as u64 & 1;
            let mut out = vec![[0u64; 2]; total.div_ceil(64)];
            let mut at = 0;
            for length in lengths {
                let mut words = vec![[0u64; 2]; length.div_ceil(64)];
                for i in 0..length {
                    words[i / 64][0] |= bit(at + i) << (i % 64);
                    words[i / 64][1] |= (1 - bit(at + i)) << (i % 64);
                }
                append_bits(&mut out, at, &words);
                at += length;
            }
            for i in 0..total {
                assert_eq!(out[i / 64][0] >> (i % 64) & 1, bit(i), "bit {i}");
                assert_eq!(out[i / 64][1] >> (i % 64) & 1, 1 - bit(i), "bit {i}");
            }
        }
    }
}
