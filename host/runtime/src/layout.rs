//! How a job divides: what `plan` answers, checked.

use crate::bindings::exports::zkhost::circuit::circuit as wit;
use crate::error::Fault;
use crate::limits::{Limits, grouped};
use zkhost_groth16::Encoding;
use zkhost_groth16::assignment::SegmentLimits;

/// Partitions of a job at most, and segments of a partition at most; the contract states both.
pub const PARTITIONS_MAX: u32 = 65_536;
/// See [`PARTITIONS_MAX`].
pub const SEGMENTS_MAX: usize = 1_024;

/// How a job divides. Each partition is a proof of its own over the same shape and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Partitions, from 1 to [`PARTITIONS_MAX`].
    pub partitions: u32,
    /// The encoding of elements.
    pub encoding: Encoding,
    /// The segments of every partition, in order. They tile its aux variables; a single segment may say 0 variables,
    /// which stands for all that the recorded shape has.
    pub segments: Vec<Segment>,
}

/// A range of one partition's aux variables that can be assigned in an instance of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first aux variable.
    pub first_aux: u64,
    /// The number of aux variables.
    pub aux_count: u64,
    /// The most of them that travel as full elements.
    pub full_max: u64,
    /// Relative cost, as the circuit estimates it.
    pub weight: u32,
}

impl Layout {
    /// Check what a guest planned. Sums are checked, so that no count can wrap around.
    pub(crate) fn checked(plan: wit::Layout, limits: &Limits) -> Result<Self, Fault> {
        let wit::Layout { partitions, encoding, segments } = plan;
        if partitions == 0 || partitions > PARTITIONS_MAX {
            return Err(bad(format!("{partitions} partitions; there are from 1 to {PARTITIONS_MAX}")));
        }
        if segments.is_empty() || segments.len() > SEGMENTS_MAX {
            return Err(bad(format!("{} segments; there are from 1 to {SEGMENTS_MAX}", segments.len())));
        }
        let single = segments.len() == 1;
        let mut next = 0u64;
        let mut checked = Vec::with_capacity(segments.len());
        for (i, segment) in segments.iter().enumerate() {
            let wit::Segment { first_aux, aux_count, max_full, weight } = *segment;
            if first_aux != next {
                return Err(bad(format!(
                    "segment {i} starts at aux variable {first_aux}, but the segments before it end at {next}: segments \
                     follow each other without gap"
                )));
            }
            if max_full > aux_count && !(single && aux_count == 0) {
                return Err(bad(format!("segment {i} has {aux_count} aux variables but max-full {max_full}")));
            }
            if aux_count == 0 && !single {
                return Err(bad(format!(
                    "segment {i} has no aux variables; only a single segment may leave its count 0"
                )));
            }
            next = next.checked_add(aux_count).filter(|&end| end <= limits.aux).ok_or_else(|| {
                let what = format!("segment {i} ends beyond {} aux variables", grouped(limits.aux));
                Fault::count(what, limits.aux, "aux")
            })?;
            let full_max = if max_full == 0 { aux_count } else { max_full };
            checked.push(Segment { first_aux, aux_count, full_max, weight });
        }
        let encoding = match encoding {
            wit::Encoding::Canonical => Encoding::Canonical,
            wit::Encoding::Montgomery => Encoding::Montgomery,
        };
        let layout = Layout { partitions, encoding, segments: checked };
        layout.check_bytes(0, limits)?;
        Ok(layout)
    }

    /// The exact limits of each segment, for a shape of these dimensions.
    ///
    /// Fails if the segments do not cover the shape's aux variables exactly, or the assignment passes its limit in bytes.
    pub(crate) fn resolved(&self, aux: u64, publics: u64, limits: &Limits) -> Result<Vec<SegmentLimits>, Fault> {
        let mut layout = self.clone();
        if let [only] = layout.segments.as_mut_slice()
            && only.aux_count == 0
        {
            only.full_max = if only.full_max == 0 { aux } else { only.full_max.min(aux) };
            only.aux_count = aux;
        }
        let planned: u64 = layout.segments.iter().map(|segment| segment.aux_count).sum();
        if planned != aux {
            return Err(bad(format!(
                "its segments cover {} aux variables, but the recorded shape has {}: both come from the same parameters",
                grouped(planned),
                grouped(aux)
            )));
        }
        layout.check_bytes(publics, limits)?;
        let segment_limits = |(i, segment): (usize, &Segment)| SegmentLimits {
            aux_count: segment.aux_count,
            full_max: segment.full_max,
            public_count: if i == 0 { publics } else { 0 },
        };
        Ok(layout.segments.iter().enumerate().map(segment_limits).collect())
    }

    /// Whether one partition's assignment fits the limit: 16 bytes a group of 64 variables, 32 an element.
    fn check_bytes(&self, publics: u64, limits: &Limits) -> Result<(), Fault> {
        let bytes = self.segments.iter().fold(publics.saturating_mul(32), |sum, segment| {
            let masks = segment.aux_count.div_ceil(64).saturating_mul(16);
            sum.saturating_add(masks).saturating_add(segment.full_max.saturating_mul(32))
        });
        if bytes > limits.assignment_bytes {
            let what = format!("one partition's assignment may take {} bytes as planned", grouped(bytes));
            return Err(Fault::bytes(what, limits.assignment_bytes, "assignment_bytes"));
        }
        Ok(())
    }
}

fn bad(what: String) -> Fault {
    Fault::Contradiction(format!("the plan is not valid: {what}"))
}
