//! Inputs: how a circuit takes one, and the sentences for what is wrong with a field.

use std::io::Read;
use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
pub use serde_json::value::RawValue;

use crate::{Error, Fr, HexBytes, json};

/// What a circuit takes for an input: any type that serde makes of JSON, or the [`Text`] itself.
pub trait ReadInput: Sized {
    /// Read and parse JSON of so many bytes.
    fn read(json: impl Read, bytes: u64) -> Result<Self, Error>;
}

impl<I: DeserializeOwned> ReadInput for I {
    fn read(json: impl Read, _bytes: u64) -> Result<Self, Error> {
        json::input(json)
    }
}

/// The text of an input, of which a circuit parses the outline when it is opened, and the rest when a segment needs it.
///
/// Every segment may be assigned in an instance of its own, and each instance opens the input. Where that is the input of
/// many partitions, parsing all of it would take longer than what it is for. In the outline, what is left for later is a
/// `&RawValue`: JSON that is well-formed, whatever it means.
///
/// ```
/// use zkhost_guest::input::{RawValue, ReadInput, Text};
///
/// #[derive(serde::Deserialize)]
/// struct Outline<'a> {
///     #[serde(borrow)]
///     paths: Vec<&'a RawValue>,
/// }
///
/// let json = br#"{"paths": [[1, 2], [3, true]]}"#;
/// let text = Text::read(&json[..], json.len() as u64)?;
/// let outline: Outline = text.parse()?;
/// let part = text.part(outline.paths[1]);
/// let refused = text.parse_part::<Vec<u64>>(&part, "paths[1]").unwrap_err();
/// assert_eq!(refused.to_string(), "bad input: field `paths[1][1]`: invalid type, expected u64");
/// # Ok::<(), zkhost_guest::Error>(())
/// ```
pub struct Text(Vec<u8>);

/// Where a part of a [`Text`] stands in it.
pub struct Part(Range<usize>);

impl ReadInput for Text {
    fn read(mut json: impl Read, bytes: u64) -> Result<Self, Error> {
        // Memory of a guest never shrinks, so it is not to grow by doubling.
        let mut text = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        json.read_to_end(&mut text).map_err(|error| Error::Internal(format!("the input cannot be read: {error}")))?;
        Ok(Text(text))
    }
}

impl Text {
    /// Parse the whole.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        json::part("", &self.0)
    }

    /// Where a value stands that was parsed from this text, or nothing of it if it was parsed from another.
    pub fn part(&self, value: &RawValue) -> Part {
        let value = value.get().as_bytes().as_ptr_range();
        let start = (value.start as usize).wrapping_sub(self.0.as_ptr() as usize);
        Part(start..start.wrapping_add(value.end as usize - value.start as usize))
    }

    /// Parse a part; `field` is what it is called in the whole.
    pub fn parse_part<'a, T: Deserialize<'a>>(&'a self, part: &Part, field: &str) -> Result<T, Error> {
        json::part(field, self.0.get(part.0.clone()).unwrap_or_default())
    }
}

/// Refuse a list of another length than the parameters ask for.
pub fn expect_count(field: &str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::BadInput(format!("field `{field}`: a list of {expected} was expected, not of {found}")))
}

/// The element that a field has in its 32 little-endian bytes; what is not below the modulus is refused.
pub fn element(field: &str, bytes: &HexBytes<32>) -> Result<Fr, Error> {
    let expected = "a scalar of BLS12-381 below its modulus, little-endian, was expected";
    Fr::from_le_bytes(&bytes.0).ok_or_else(|| Error::BadInput(format!("field `{field}`: {expected}")))
}
