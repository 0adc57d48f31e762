//! A cursor over a file in memory that knows where it is.

use super::{DecodeError, Problem};
use crate::points::{Point, PointError};

/// Reads a file front to back; its errors name the format, the section and the entry.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    pub format: &'static str,
    pub section: &'static str,
}

impl<'a> Reader<'a> {
    pub fn new(format: &'static str, section: &'static str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, format, section }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn error(&self, index: Option<u64>, problem: impl Into<Problem>) -> DecodeError {
        DecodeError { format: self.format, section: self.section, index, problem: problem.into() }
    }

    /// The next bytes.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], DecodeError> {
        let have = self.rest.len() as u64;
        if have < count {
            return Err(self.error(None, Problem::Truncated { missing: count - have }));
        }
        let (taken, rest) = self.rest.split_at(count as usize);
        self.rest = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        Ok(self.take(N as u64)?.try_into().expect("as many bytes as were asked for"))
    }

    pub fn u32_be(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u32_le(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64_le(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A compressed point, checked in full: on the curve, in the subgroup, not infinity.
    pub fn compressed<P: Point>(&mut self) -> Result<P, DecodeError> {
        let bytes = self.take(P::COMPRESSED_BYTES as u64)?;
        self.checked(None, P::decode_compressed(bytes))
    }

    /// An uncompressed point, checked in full.
    pub fn uncompressed<P: Point>(&mut self) -> Result<P, DecodeError> {
        let bytes = self.take(P::ENCODED_BYTES as u64)?;
        self.checked(None, P::decode(bytes))
    }

    /// A decoded point, which must be in the subgroup and not infinity.
    pub fn checked<P: Point>(&self, index: Option<u64>, point: Result<P, PointError>) -> Result<P, DecodeError> {
        let problem = match point {
            Ok(point) if point.is_infinity() => PointError::Infinity,
            Ok(point) if !point.is_in_subgroup() => PointError::NotInSubgroup,
            Ok(point) => return Ok(point),
            Err(error) => error,
        };
        Err(self.error(index, problem))
    }

    /// Nothing may follow.
    pub fn end(&self) -> Result<(), DecodeError> {
        match self.rest.len() as u64 {
            0 => Ok(()),
            bytes => Err(self.error(None, Problem::Trailing { bytes })),
        }
    }

    /// A field must have the one value that is possible.
    pub fn expect<T: PartialEq + ToString>(
        &self,
        what: &'static str,
        expected: T,
        found: T,
    ) -> Result<(), DecodeError> {
        if expected == found {
            return Ok(());
        }
        let (expected, found) = (expected.to_string(), found.to_string());
        Err(self.error(None, Problem::Unexpected { what, expected, found }))
    }
}
