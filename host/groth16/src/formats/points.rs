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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Problem;
    use crate::points::G1Point;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A point a byte: infinity for 0, bad for 1, and the byte in a coordinate for others.
    fn decode(bytes: &[u8]) -> Result<G1Point, PointError> {
        match bytes[0] {
            0 => Ok(G1Point { x: [0; 6], y: [0; 6] }),
            1 => Err(PointError::NotOnCurve),
            byte => Ok(G1Point { x: [u64::from(byte); 6], y: [0; 6] }),
        }
    }

    #[test]
    fn pieces_are_in_order_and_the_first_bad_point_is_named() {
        let read = |bytes: &[u8], progress: Progress| {
            checked_points(&Reader::new("file", "list", &[]), (bytes, 1), decode, Subgroup::CheckedBefore, progress)
        };
        let mut bytes = vec![0u8; 2 * PIECE_POINTS + 3];
        let places = [0, PIECE_POINTS - 1, PIECE_POINTS, 2 * PIECE_POINTS, 2 * PIECE_POINTS + 2];
        (2..).zip(places).for_each(|(byte, place)| bytes[place] = byte);
        let told = AtomicU64::new(0);
        let progress = |bytes| {
            told.fetch_add(bytes, Ordering::Relaxed);
        };
        let Ok(points) = read(&bytes, &progress) else { panic!("every point is good") };
        assert_eq!(told.into_inner(), bytes.len() as u64);
        assert!(bytes.iter().zip(&points).all(|(&byte, point)| point.x[0] == u64::from(byte)));
        for place in places.into_iter().rev() {
            bytes[place] = 1;
            let Err(refused) = read(&bytes, &|_| ()) else { panic!("the point at {place} is bad") };
            assert_eq!(refused.index, Some(place as u64));
            assert!(matches!(refused.problem, Problem::Point(PointError::NotOnCurve)));
        }
    }
}
