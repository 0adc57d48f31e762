//! The second pass: packs the assignment and streams it.

use crate::Error;
use crate::sink::WitnessSink;

/// Words of full elements or of masks collected before they are sent: 64 KiB.
const CHUNK_WORDS: usize = 8 * 1024;
/// Aux variables in a group.
const GROUP: u32 = 64;
/// The most words of elements that one group adds.
const GROUP_WORDS: usize = 4 * GROUP as usize;

/// Streams the assignment of one segment to a [`WitnessSink`]. Knows nothing of dialects or field types.
///
/// Aux variables travel in groups of 64. Of each group the word `full` marks those sent as elements, the word `one` those
/// of value 1; the rest are 0. Gadgets that compute with words append many variables at once.
pub struct WitnessWriter<'a> {
    sink: &'a mut dyn WitnessSink,
    masks: Vec<u64>,
    elements: Vec<u64>,
    full: u64,
    one: u64,
    bit: u32,
    public_elements: Vec<u64>,
    publics: u64,
    aux: u64,
    full_count: u64,
    /// Whether this is the partition's first segment, which writes the public inputs.
    is_first: bool,
    stopped: Option<Error>,
}

impl<'a> WitnessWriter<'a> {
    pub(crate) fn new(sink: &'a mut dyn WitnessSink, is_first: bool) -> Self {
        WitnessWriter {
            sink,
            masks: Vec::with_capacity(CHUNK_WORDS),
            elements: Vec::with_capacity(CHUNK_WORDS),
            full: 0,
            one: 0,
            bit: 0,
            public_elements: Vec::new(),
            publics: 0,
            aux: 0,
            full_count: 0,
            is_first,
            stopped: None,
        }
    }

    /// The aux variable that the next call appends, counted from the segment's first: numbers are for constraints, which
    /// this pass has none of.
    pub fn next_aux(&self) -> usize {
        self.aux as usize
    }

    /// How many of the aux variables travel as elements.
    pub(crate) fn full_count(&self) -> u64 {
        self.full_count
    }

    /// Append an aux variable of value 0 or 1.
    #[inline]
    pub fn push_bit(&mut self, value: bool) {
        self.one |= u64::from(value) << self.bit;
        self.advance();
    }

    /// Append `count` aux variables of value 0 or 1, at most 64: bit i of `values` is the i-th. Bits from `count` on must
    /// be 0.
    #[cfg(feature = "gadgets")]
    #[inline]
    pub fn push_bits(&mut self, values: u64, count: u32) {
        debug_assert!(count == GROUP || values >> count == 0, "bits beyond the count");
        self.aux += u64::from(count);
        self.one |= values << self.bit;
        let free = GROUP - self.bit;
        if count < free {
            self.bit += count;
        } else {
            self.close_group();
            self.one = values.checked_shr(free).unwrap_or(0);
            self.bit = count - free;
        }
    }

    /// Append an aux variable of any value, as canonical limbs, least significant first.
    #[inline]
    pub fn push_value(&mut self, limbs: [u64; 4]) {
        match limbs {
            [value @ (0 | 1), 0, 0, 0] => self.push_bit(value == 1),
            _ => self.push_element(limbs),
        }
    }

    /// Append an aux variable that travels as an element, whatever its value.
    #[inline]
    fn push_element(&mut self, limbs: [u64; 4]) {
        self.full |= 1 << self.bit;
        self.full_count += 1;
        self.elements.extend_from_slice(&limbs);
        self.advance();
    }

    #[inline]
    fn advance(&mut self) {
        self.aux += 1;
        self.bit += 1;
        if self.bit == GROUP {
            self.close_group();
        }
    }

    /// Append a public input; returns its index, the constant one being 0.
    pub(crate) fn push_public(&mut self, limbs: [u64; 4]) -> usize {
        if !self.is_first && self.stopped.is_none() {
            self.stopped = Some(Error::Internal(
                "a segment other than the first allocates a public input; the first segment allocates them all".into(),
            ));
        }
        self.publics += 1;
        self.public_elements.extend_from_slice(&limbs);
        self.publics as usize
    }

    /// Whether synthesis should go on: false after the host asked to stop or a rule was broken.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.stopped.is_none()
    }

    fn close_group(&mut self) {
        self.masks.extend_from_slice(&[self.full, self.one]);
        (self.full, self.one, self.bit) = (0, 0, 0);
        if self.elements.len() + GROUP_WORDS > CHUNK_WORDS || self.masks.len() + 2 > CHUNK_WORDS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.sink.write_groups(&self.masks, &self.elements);
        self.masks.clear();
        self.elements.clear();
        if !self.sink.progress(self.aux) && self.stopped.is_none() {
            self.stopped = Some(Error::Cancelled);
        }
    }

    /// Send what is left; returns the number of aux variables of the segment.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        if self.bit > 0 {
            self.close_group();
        }
        if !self.masks.is_empty() {
            self.flush();
        }
        if let Some(error) = self.stopped {
            return Err(error);
        }
        for chunk in self.public_elements.chunks(CHUNK_WORDS) {
            self.sink.write_public(chunk);
        }
        Ok(self.aux)
    }

    /// What stopped synthesis, if anything did.
    pub(crate) fn stopped(self) -> Option<Error> {
        self.stopped
    }
}
