//! Long lists of points, decoded and checked in pieces, with progress.

use super::{DecodeError, Reader, Subgroup};
use crate::points::PointError;
use crate::subgroup::{self, Cofactored};
use rayon::prelude::*;

/// Points that are decoded and checked together: seconds of work, and many enough for checks in batches.
const PIECE_POINTS: usize = 1 << 18;

/// Is told how many more bytes of a file are read and checked. Several threads call it at once.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// The points of a section, `stride` bytes each. The first bad one is named by its index.
pub(super) fn checked_points<P: Cofactored>(
    section: &Reader,
    (bytes, stride): (&[u8], usize),
    decode: impl Fn(&[u8]) -> Result<P, PointError> + Sync,
    subgroup: Subgroup,
    progress: Progress,
) -> Result<Vec<P>, DecodeError> {
    let mut points = vec![P::zeroed(); bytes.len() / stride];
    let check = |points: &mut [P], bytes: &[u8]| -> Option<(usize, PointError)> {
        let decoded = points.par_iter_mut().zip(bytes.par_chunks_exact(stride)).enumerate();
        let bad = decoded.find_map_first(|(index, (point, bytes))| match decode(bytes) {
            Ok(decoded) => {
                *point = decoded;
                None
            }
            Err(error) => Some((index, error)),
        });
        let outside = || subgroup::first_outside(points).map(|index| (index, PointError::NotInSubgroup));
        let bad = bad.or_else(|| if subgroup == Subgroup::Check { outside() } else { None });
        progress(bytes.len() as u64);
        bad
    };
    let pieces = points.par_chunks_mut(PIECE_POINTS).zip(bytes.par_chunks(PIECE_POINTS * stride)).enumerate();
    let bad = pieces.find_map_first(|(piece, (points, bytes))| {
        check(points, bytes).map(|(index, error)| ((piece * PIECE_POINTS + index) as u64, error))
    });
    match bad {
        Some((index, error)) => Err(section.error(Some(index), error)),
        None => Ok(points),
    }
}
