//! The packed assignment: what a guest writes and a prover reads.
//!
//! z = [1, publics, aux]. Aux variables are held by segments, in groups of 64: a word `full` (bit set: the variable is
//! one of the elements), a word `one` (the value bits of the others), and the full elements densely, in order. Every
//! segment starts a fresh group. `reference/prover-algebra.md` of the design fixes wire, lease and device layout.

use crate::scalar::{Limbs, Scalar};

/// How elements are represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The value itself.
    Canonical,
    /// The value times 2^256 modulo r.
    Montgomery,
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

/// Where the assignment of one segment is written, in order. The runtime copies a guest's lists into it once; the heap
/// implements it here, pinned leases in the engine. Implementations check everything: the guest is not trusted.
pub trait SegmentSink: Send {
    /// Append groups of aux variables: `masks` are pairs (full, one), `elements` four limbs for each bit set in `full`.
    fn write_groups(&mut self, masks: &[u64], elements: &[u64]) -> Result<(), SinkError>;
    /// Append public inputs, canonical, four limbs each, the constant one excluded.
    fn write_public(&mut self, elements: &[u64]) -> Result<(), SinkError>;
}

/// Why a segment's writes were refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The shape of the call itself is wrong.
    #[error("{0}")]
    Malformed(String),
}

/// One segment of a partition's assignment, complete.
pub struct Segment {
    /// Aux variables held.
    pub aux_count: u64,
    /// (full, one) per group of 64.
    pub masks: Vec<u64>,
    /// The full elements, in the assignment's encoding.
    pub elements: Vec<Limbs>,
}

/// The assignment of one partition. Its memory is zeroed when it is dropped; it has no Debug on purpose.
pub struct Assignment {
    /// The encoding of every segment's elements.
    pub encoding: Encoding,
    /// Public inputs in order, the constant one excluded.
    pub publics: Vec<Scalar>,
    /// Segments in order.
    pub segments: Vec<Segment>,
}
