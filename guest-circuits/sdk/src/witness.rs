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
/// of value 1; the rest are 0.
pub(crate) struct WitnessWriter<'a> {
    sink: &'a mut dyn WitnessSink,
    masks: Vec<u64>,
    elements: Vec<u64>,
    full: u64,
    one: u64,
    bit: u32,
    public_elements: Vec<u64>,
    publics: u64,
    first_aux: u64,
    aux: u64,
    /// Whether this is the partition's first segment, which writes the public inputs.
    is_first: bool,
    stopped: Option<Error>,
}

impl<'a> WitnessWriter<'a> {
    pub(crate) fn new(sink: &'a mut dyn WitnessSink, first_aux: u64, is_first: bool) -> Self {
        WitnessWriter {
            sink,
            masks: Vec::with_capacity(CHUNK_WORDS),
            elements: Vec::with_capacity(CHUNK_WORDS),
            full: 0,
            one: 0,
            bit: 0,
            public_elements: Vec::new(),
            publics: 0,
            first_aux,
            aux: 0,
            is_first,
            stopped: None,
        }
    }

    /// The aux variable that the next call appends.
    pub(crate) fn next_aux(&self) -> usize {
        (self.first_aux + self.aux) as usize
    }

    /// Append an aux variable of value 0 or 1.
    #[inline]
    pub(crate) fn push_bit(&mut self, value: bool) {
        self.one |= u64::from(value) << self.bit;
        self.advance();
    }

    /// Append an aux variable of any value.
    #[inline]
    pub(crate) fn push_element(&mut self, limbs: [u64; 4]) {
        self.full |= 1 << self.bit;
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
