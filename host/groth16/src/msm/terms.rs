//! What is multiplied with what: the terms of one multi-scalar multiplication, and the plan that the queries of a key share.

use super::digits::SignedScalar;
use super::pairwise::Summable;
use crate::scalar::{Limbs, Scalar, from_montgomery, to_canonical};
use crate::secret::SecretBuffer;
use crate::{Assignment, Encoding};
use ff::Field;
use rayon::prelude::*;

/// Scalars one task converts.
const SCALARS_PER_TASK: usize = 4096;

/// Scalars as numbers of least absolute value, zeroed when dropped.
pub struct SecretSignedScalars(SecretBuffer<SignedScalar>);

impl SecretSignedScalars {
    /// Of field elements.
    pub fn new(scalars: &[Scalar]) -> Self {
        let mut out = SecretBuffer::zeros(scalars.len());
        convert(&mut out, scalars, |scalar| SignedScalar::from(scalar));
        Self(out)
    }
}

fn convert<T: Sync>(out: &mut [SignedScalar], from: &[T], signed: impl Fn(&T) -> SignedScalar + Sync) {
    let tasks = out.par_chunks_mut(SCALARS_PER_TASK).zip(from.par_chunks(SCALARS_PER_TASK));
    tasks.for_each(|(out, from)| out.iter_mut().zip(from).for_each(|(out, from)| *out = signed(from)));
}

fn convert_limbs(out: &mut [SignedScalar], limbs: &[Limbs], encoding: Encoding) {
    match encoding {
        Encoding::Canonical => convert(out, limbs, SignedScalar::from_canonical),
        Encoding::Montgomery => convert(out, limbs, |limbs| {
            let element = from_montgomery(limbs).expect("a segment holds reduced elements");
            SignedScalar::from_canonical(&to_canonical(&element))
        }),
    }
}

/// The terms of one multi-scalar multiplication.
pub struct Terms<'a> {
    scalars: &'a [SignedScalar],
    picks: Option<SecretBuffer<Pick>>,
}

/// A point's index and a scalar's.
#[derive(Clone, Copy, Default)]
struct Pick {
    point: u32,
    scalar: u32,
}

impl<'a> Terms<'a> {
    /// Scalar i times point i.
    pub fn in_order(scalars: &'a SecretSignedScalars) -> Self {
        Self { scalars: &scalars.0, picks: None }
    }

    pub(super) fn len(&self) -> usize {
        self.picks.as_ref().map_or(self.scalars.len(), |picks| picks.len())
    }

    /// Index of a point, and what it is multiplied with.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &SignedScalar)> {
        (0..self.len()).map(|i| match &self.picks {
            None => (i as u32, &self.scalars[i]),
            Some(picks) => (picks[i].point, &self.scalars[picks[i].scalar as usize]),
        })
    }
}

/// Which variables of z a query of a key has points for.
pub struct Query {
    first: u32,
    density: Option<Density>,
}

struct Density {
    words: Vec<u64>,
    /// For each word, the number of bits set in the words before it.
    ranks: Vec<u32>,
}

impl Query {
    /// One point for each variable from this one on.
    pub fn from_variable(first: u32) -> Self {
        Self { first, density: None }
    }

    /// One point for each variable whose bit is set (bit i mod 64 of word i / 64).
    pub fn sparse(words: Vec<u64>) -> Self {
        let mut rank = 0;
        let before = |word: &u64| {
            rank += word.count_ones();
            rank - word.count_ones()
        };
        let ranks = words.iter().map(before).collect();
        Self { first: 0, density: Some(Density { words, ranks }) }
    }

    /// The index of a variable's point.
    #[inline]
    fn point(&self, variable: u32) -> Option<u32> {
        let Some(density) = &self.density else {
            return variable.checked_sub(self.first);
        };
        let (word, bit) = (variable as usize / 64, variable % 64);
        let bits = density.words[word];
        (bits >> bit & 1 == 1).then(|| density.ranks[word] + (bits & ((1 << bit) - 1)).count_ones())
    }
}

/// The variables of an assignment by what they cost: zeros are gone, ones are added, the others are multiplied. Read off the
/// packed masks once, for every query.
pub struct Plan {
    /// Variables that are one, ascending.
    ones: SecretBuffer<u32>,
    /// Variables that are something else, ascending, and their values.
    full: SecretBuffer<u32>,
    values: SecretSignedScalars,
}

impl Plan {
    /// Of z = [1, publics, aux].
    pub fn new(assignment: &Assignment) -> Self {
        let publics = assignment.publics();
        let count = |word: usize| {
            let words = |segment: &crate::assignment::Segment| {
                segment.masks().iter().skip(word).step_by(2).map(|mask| mask.count_ones() as usize).sum::<usize>()
            };
            assignment.segments().iter().map(words).sum::<usize>()
        };
        let mut ones = Vec::with_capacity(1 + publics.len() + count(1));
        let mut full = Vec::with_capacity(publics.len() + count(0));
        let mut values = SecretBuffer::zeros(full.capacity());
        ones.push(0);
        let mut filled = 0;
        for (variable, public) in (1..).zip(publics) {
            if *public == Scalar::ONE {
                ones.push(variable);
            } else if !public.is_zero_vartime() {
                full.push(variable);
                values[filled] = public.into();
                filled += 1;
            }
        }
        let mut first = 1 + publics.len() as u32;
        for segment in assignment.segments() {
            for (group, masks) in (0..).zip(segment.masks().chunks_exact(2)) {
                full.extend(set_bits(masks[0]).map(|bit| first + 64 * group + bit));
                ones.extend(set_bits(masks[1]).map(|bit| first + 64 * group + bit));
            }
            let elements = segment.elements();
            convert_limbs(&mut values[filled..][..elements.len()], elements, segment.encoding());
            filled += elements.len();
            first += segment.aux_count() as u32;
        }
        Self { ones: SecretBuffer::new(ones), full: SecretBuffer::new(full), values: SecretSignedScalars(values) }
    }

    /// The sum over all variables of value times point.
    ///
    /// Panics if the points are fewer than the query says.
    pub fn combine<P: Summable>(&self, points: &[P], query: &Query) -> P::Sum {
        let mut ones = Vec::with_capacity(self.ones.len());
        ones.extend(self.ones.iter().filter_map(|&variable| query.point(variable)));
        let ones = SecretBuffer::new(ones);
        let mut picks = Vec::with_capacity(self.full.len());
        let pick = |(scalar, &variable)| query.point(variable).map(|point| Pick { point, scalar });
        picks.extend((0..).zip(self.full.iter()).filter_map(pick));
        let terms = Terms { scalars: &self.values.0, picks: Some(SecretBuffer::new(picks)) };
        let (ones, rest) = rayon::join(|| super::sum(points, &ones), || super::msm(points, &terms));
        ones + rest
    }
}

/// Indices of the bits set in a word, ascending.
fn set_bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}
