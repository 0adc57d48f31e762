//! Parameters and inputs as JSON. Messages name the field and what was expected, never the value: inputs are secret.
//!
//! As everywhere in serde, a list of an object's values in the order of its fields stands for the object.

use std::io::Read;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::Error;

/// Parse parameters; empty bytes stand for the defaults.
pub(crate) fn params<P: DeserializeOwned + Default>(json: &[u8]) -> Result<P, Error> {
    if json.is_empty() {
        return Ok(P::default());
    }
    parse(json).map_err(Error::BadParams)
}

/// Parse an input as it is read.
pub(crate) fn input<I: DeserializeOwned>(json: impl Read) -> Result<I, Error> {
    parse(json).map_err(Error::BadInput)
}

fn parse<T: DeserializeOwned>(json: impl Read) -> Result<T, String> {
    let mut deserializer = serde_json::Deserializer::from_reader(json);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let sentence = without_value(&error.into_inner().to_string());
        // "." is the whole, and "?" what ended before it had a name.
        if path == "." || path.contains('?') { sentence } else { format!("field `{path}`: {sentence}") }
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
        let text = String::deserialize(deserializer)?;
        let bytes = decode_hex(&text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{N} bytes as {} hexadecimal digits, without prefix, were expected",
                2 * N
            ))
        })?;
        Ok(HexBytes(bytes))
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
