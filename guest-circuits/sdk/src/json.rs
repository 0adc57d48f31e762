//! Parameters and inputs as JSON. Messages name the field and what was expected, never the value: inputs are secret.
//!
//! As everywhere in serde, a list of an object's values in the order of its fields stands for the object.

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Error;

/// Parse parameters; empty bytes stand for the defaults.
pub(crate) fn params<P: DeserializeOwned + Default>(json: &[u8]) -> Result<P, Error> {
    if json.is_empty() {
        return Ok(P::default());
    }
    parse("", &mut serde_json::Deserializer::from_slice(json)).map_err(Error::BadParams)
}

/// Parse an input as it is read.
pub(crate) fn input<I: DeserializeOwned>(json: impl Read) -> Result<I, Error> {
    parse("", &mut serde_json::Deserializer::from_reader(json)).map_err(Error::BadInput)
}

/// Parse what an input has at a field, or the whole of it if the field has no name.
pub(crate) fn part<'de, T: Deserialize<'de>>(field: &str, json: &'de [u8]) -> Result<T, Error> {
    parse(field, &mut serde_json::Deserializer::from_slice(json)).map_err(Error::BadInput)
}

fn parse<'de, T: Deserialize<'de>, R: serde_json::de::Read<'de>>(
    field: &str,
    deserializer: &mut serde_json::Deserializer<R>,
) -> Result<T, String> {
    let is_part = !field.is_empty();
    let value = serde_path_to_error::deserialize(&mut *deserializer).map_err(|error| {
        // "." is the whole, and "?" what ended before it had a name.
        let path = error.path().to_string();
        let field = match &path[..] {
            path if path == "." || path.contains('?') => field.to_string(),
            path if field.is_empty() || path.starts_with('[') => format!("{field}{path}"),
            path => format!("{field}.{path}"),
        };
        let error = error.into_inner();
        let mut sentence = error.to_string();
        if is_part {
            // Lines would count from the part's beginning.
            let place = format!(" at line {} column {}", error.line(), error.column());
            sentence.truncate(sentence.strip_suffix(&place).map_or(sentence.len(), str::len));
        }
        let sentence = without_value(&sentence);
        if field.is_empty() { sentence } else { format!("field `{field}`: {sentence}") }
    })?;
    deserializer.end().map_err(|_| "one JSON value was expected; more follows it".to_string())?;
    Ok(value)
}

/// A sentence of serde without the value it quotes.
fn without_value(sentence: &str) -> String {
    for kind in ["invalid type", "invalid value", "unknown variant"] {
        if let Some(rest) = sentence.strip_prefix(kind)
            && let Some(at) = rest.rfind(", expected")
        {
            return format!("{kind}{}", &rest[at..]);
        }
    }
    sentence.to_string()
}

/// `N` bytes written in JSON as a string of 2 `N` hexadecimal digits. It has no `Debug`, for it may hold a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HexBytes<const N: usize>(pub [u8; N]);

impl<'de, const N: usize> Deserialize<'de> for HexBytes<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HexVisitor<const N: usize>;

        impl<const N: usize> Visitor<'_> for HexVisitor<N> {
            type Value = HexBytes<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                decode_hex(text).map(HexBytes).ok_or_else(|| {
                    E::custom(format!("{N} bytes as {} hexadecimal digits, without prefix, were expected", 2 * N))
                })
            }
        }

        // No string is made of what is read at once.
        deserializer.deserialize_str(HexVisitor)
    }
}

fn decode_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}
