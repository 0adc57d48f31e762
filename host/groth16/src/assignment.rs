//! The packed assignment: what a guest writes and a prover reads.
//!
//! z = [1, publics, aux]. Aux variables are held by segments, in groups of 64: a word `full` (bit set: the variable is
//! one of the elements), a word `one` (the value bits of the others), and the full elements densely, in order. Every
//! segment starts a fresh group. `ALGEBRA.md` fixes wire, lease and device layout.

mod lookup;
mod writer;

pub use lookup::Lookup;
pub use writer::{HeapWindow, SegmentSink, SegmentWriter, SinkError, Window};

use crate::scalar::{Limbs, Scalar, SecretScalars, from_canonical, from_montgomery};
use crate::secret::SecretBuffer;
use ff::Field;
use rayon::prelude::*;

/// How elements are represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The value itself.
    Canonical,
    /// The value times 2^256 modulo r.
    Montgomery,
}

impl Encoding {
    /// The element of these limbs; none if they are not below the modulus.
    pub fn decode(self, limbs: &Limbs) -> Option<Scalar> {
        match self {
            Self::Canonical => from_canonical(limbs),
            Self::Montgomery => from_montgomery(limbs),
        }
    }
}

/// What one segment may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLimits {
    /// Aux variables; exactly so many are written.
    pub aux_count: u64,
    /// Elements that may travel in full, at most.
    pub full_max: u64,
    /// Public inputs this segment writes, exactly: all of them in a partition's first segment, none in others.
    pub public_count: u64,
}

/// One segment of a partition's assignment, complete and checked: only [`SegmentWriter::finish`] makes one.
///
/// Its window zeroes the memory when it is dropped. It has no Debug on purpose.
pub struct Segment {
    aux_count: u64,
    encoding: Encoding,
    publics: Vec<Scalar>,
    window: Box<dyn Window>,
}

/// 64 aux variables, fewer at the end of a segment.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// Bit set: the variable is one of `elements`.
    pub full: u64,
    /// The values of the other variables.
    pub one: u64,
    /// The full variables, in order.
    pub elements: &'a [Limbs],
}

impl Segment {
    /// Aux variables held.
    pub fn aux_count(&self) -> u64 {
        self.aux_count
    }

    /// The encoding of [`Self::elements`].
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The public inputs this segment wrote, the constant one excluded.
    pub fn publics(&self) -> &[Scalar] {
        &self.publics
    }

    /// Pairs (full, one), one a group of 64; bits past the last variable are zero.
    pub fn masks(&self) -> &[u64] {
        self.window.masks()
    }

    /// The full elements, in order, each below the modulus.
    pub fn elements(&self) -> &[Limbs] {
        self.window.elements()
    }

    /// For each group, how many elements the groups before it have.
    pub fn ranks(&self) -> SecretBuffer<u64> {
        let mut ranks = SecretBuffer::zeros(self.masks().len() / 2);
        let mut before = 0;
        for (rank, pair) in ranks.iter_mut().zip(self.masks().chunks_exact(2)) {
            *rank = before;
            before += u64::from(pair[0].count_ones());
        }
        ranks
    }

    /// The groups in order.
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let mut rest = self.elements();
        self.masks().chunks_exact(2).map(move |pair| {
            let (elements, after) = rest.split_at(pair[0].count_ones() as usize);
            rest = after;
            Group { full: pair[0], one: pair[1], elements }
        })
    }

    /// Write the variables' values, one for each of this segment's aux variables.
    fn expand_into(&self, z: &mut [Scalar]) {
        const GROUPS_PER_TASK: usize = 128;
        let ranks = self.ranks();
        let elements = self.elements();
        let tasks = z.par_chunks_mut(64 * GROUPS_PER_TASK).zip(self.masks().par_chunks(2 * GROUPS_PER_TASK));
        tasks.zip(ranks.par_chunks(GROUPS_PER_TASK)).for_each(|((z, masks), ranks)| {
            let mut full_elements = elements[ranks[0] as usize..].iter();
            for (z, pair) in z.chunks_mut(64).zip(masks.chunks_exact(2)) {
                for (bit, z) in z.iter_mut().enumerate() {
                    *z = if pair[0] >> bit & 1 == 1 {
                        let limbs = full_elements.next().expect("a segment has an element for each bit of `full`");
                        self.encoding.decode(limbs).expect("a segment holds reduced elements")
                    } else {
                        Scalar::from(pair[1] >> bit & 1)
                    };
                }
            }
        });
    }
}

/// The assignment of one partition. Its memory is zeroed when it is dropped; it has no Debug on purpose.
pub struct Assignment {
    segments: Vec<Segment>,
}

impl Assignment {
    /// Join the segments of a partition, in order.
    ///
    /// Panics if their encodings differ: the plan of a circuit has one.
    pub fn new(segments: Vec<Segment>) -> Self {
        let mut encodings = segments.iter().map(Segment::encoding);
        let first = encodings.next();
        assert!(encodings.all(|encoding| Some(encoding) == first), "the segments of one partition share an encoding");
        Self { segments }
    }

    /// Pack public inputs and private values that are at hand, in one segment, the way a guest would.
    pub fn from_values(publics: &[Scalar], aux: &[Scalar]) -> Self {
        let limits = SegmentLimits {
            aux_count: aux.len() as u64,
            full_max: aux.len() as u64,
            public_count: publics.len() as u64,
        };
        let mut window = HeapWindow::new(limits).expect("there is memory for what is in memory already");
        for group in aux.chunks(64) {
            let (mut full, mut one) = (0u64, 0u64);
            for (bit, value) in group.iter().enumerate() {
                if *value == Scalar::ONE {
                    one |= 1 << bit;
                } else if !value.is_zero_vartime() {
                    full |= 1 << bit;
                    window.append_elements(&[crate::scalar::to_montgomery(value)]);
                }
            }
            window.append_masks(&[full, one]);
        }
        let (aux_count, encoding) = (limits.aux_count, Encoding::Montgomery);
        Self::new(vec![Segment { aux_count, encoding, publics: publics.to_vec(), window: Box::new(window) }])
    }

    /// The encoding of every segment's elements.
    pub fn encoding(&self) -> Encoding {
        self.segments.first().map_or(Encoding::Canonical, Segment::encoding)
    }

    /// Public inputs in order, the constant one excluded. Only the first segment has any.
    pub fn publics(&self) -> &[Scalar] {
        self.segments.first().map_or(&[], Segment::publics)
    }

    /// Segments in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Aux variables of all segments.
    pub fn aux_count(&self) -> u64 {
        self.segments.iter().map(Segment::aux_count).sum()
    }

    /// z = [1, publics, aux], expanded.
    pub fn z(&self) -> SecretScalars {
        let publics = self.publics();
        let mut z = SecretScalars::zeros(1 + publics.len() + self.aux_count() as usize);
        z[0] = Scalar::ONE;
        let (head, mut rest) = z.split_at_mut(1 + publics.len());
        head[1..].copy_from_slice(publics);
        for segment in &self.segments {
            let (own, after) = rest.split_at_mut(segment.aux_count as usize);
            segment.expand_into(own);
            rest = after;
        }
        z
    }
}
