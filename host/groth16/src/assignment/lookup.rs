//! The value of any variable, out of the packed assignment.

use super::{Assignment, Encoding, Segment};
use crate::r1cs::Variables;
use crate::scalar::{Limbs, Scalar, SecretScalars, from_canonical, from_montgomery, to_montgomery};
use crate::secret::SecretBuffer;
use ff::Field;

/// z = [1, publics, aux] of an assignment, read where it is packed: nothing is expanded but the publics.
///
/// Canonical elements are taken for Montgomery ones, so that no product is spent on each of them: all values come divided
/// by R = 2^256 then, and [`Variables::restore`] multiplies by it, once a row.
pub struct Lookup<'a> {
    segments: Vec<Part<'a>>,
    /// 1 / R, or 1.
    one: Scalar,
    /// R, unless it is 1.
    scale: Option<Scalar>,
    /// The one and the publics, as values come.
    head: SecretScalars,
    len: usize,
}

/// A segment of which variable `first` is the first one.
struct Part<'a> {
    first: usize,
    masks: &'a [u64],
    elements: &'a [Limbs],
    ranks: SecretBuffer<u64>,
}

impl<'a> Lookup<'a> {
    /// Of an assignment.
    pub fn new(assignment: &'a Assignment) -> Self {
        let (one, scale) = match assignment.encoding() {
            Encoding::Montgomery => (Some(Scalar::ONE), None),
            // The Montgomery form of the one is R.
            Encoding::Canonical => (from_montgomery(&[1, 0, 0, 0]), from_canonical(&to_montgomery(&Scalar::ONE))),
        };
        let one = one.expect("one is below the modulus");
        let publics = assignment.publics();
        let mut head = SecretScalars::zeros(1 + publics.len());
        head[0] = one;
        head[1..].iter_mut().zip(publics).for_each(|(head, public)| *head = *public * one);
        let mut len = head.len();
        let part = |segment: &'a Segment| {
            let first = len;
            len += segment.aux_count() as usize;
            Part { first, masks: segment.masks(), elements: segment.elements(), ranks: segment.ranks() }
        };
        let segments = assignment.segments().iter().map(part).collect();
        Self { segments, one, scale, head, len }
    }
}

impl Variables for Lookup<'_> {
    fn count(&self) -> usize {
        self.len
    }

    #[inline]
    fn value(&self, variable: usize) -> Scalar {
        if variable < self.head.len() {
            return self.head[variable];
        }
        let part = &self.segments[self.segments.partition_point(|part| part.first <= variable) - 1];
        let (group, bit) = ((variable - part.first) / 64, (variable - part.first) % 64);
        let (full, one) = (part.masks[2 * group], part.masks[2 * group + 1]);
        if full >> bit & 1 == 1 {
            let rank = part.ranks[group] as usize + (full & ((1 << bit) - 1)).count_ones() as usize;
            from_montgomery(&part.elements[rank]).expect("a segment holds reduced elements")
        } else if one >> bit & 1 == 1 {
            self.one
        } else {
            Scalar::ZERO
        }
    }

    #[inline]
    fn restore(&self, sum: Scalar) -> Scalar {
        self.scale.map_or(sum, |scale| sum * scale)
    }
}
