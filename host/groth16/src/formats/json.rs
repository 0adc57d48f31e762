//! What the codecs of JSON files share: fields, numbers and points as text.

use super::{DecodeError, Problem, Reader};
use crate::points::{G1Point, G2Point, Point, PointError};
use crate::scalar::{Limbs, Scalar, from_canonical, limbs_from_le_bytes, limbs_to_le_bytes, to_canonical};
use blstrs::{G1Affine, G2Affine};
use num_bigint::BigUint;
use serde_json::Value;

/// Digits of a number at most: the largest has 115 in decimal, 96 in hexadecimal.
const DIGITS_MAX: usize = 128;
const FP_BYTES: usize = 48;

/// How a format writes numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Radix {
    /// Decimal, without leading zeros.
    Decimal,
    /// Hexadecimal after 0x, padded to the field's size.
    Hexadecimal,
}

/// A part of a JSON file that knows where it is.
#[derive(Clone, Copy)]
pub struct Json<'a> {
    value: &'a Value,
    format: &'static str,
    section: &'static str,
    index: Option<u64>,
}

/// The whole of a file.
pub fn parse(format: &'static str, bytes: &[u8]) -> Result<Value, DecodeError> {
    serde_json::from_slice(bytes)
        .map_err(|e| Reader::new(format, "file", bytes).error(None, Problem::Json(e.to_string())))
}

impl<'a> Json<'a> {
    pub fn new(format: &'static str, value: &'a Value) -> Self {
        Self { value, format, section: "file", index: None }
    }

    pub fn error(&self, problem: impl Into<Problem>) -> DecodeError {
        Reader::new(self.format, self.section, &[]).error(self.index, problem)
    }

    fn expected(&self, what: &str) -> DecodeError {
        self.error(Problem::Json(format!("expected {what}")))
    }

    /// A field that may be missing.
    pub fn get(&self, name: &'static str) -> Option<Self> {
        self.value.get(name).map(|value| Self { value, section: name, ..*self })
    }

    pub fn field(&self, name: &'static str) -> Result<Self, DecodeError> {
        self.get(name).ok_or_else(|| Self { section: name, ..*self }.error(Problem::NoSection))
    }

    /// A field that can have these values only.
    pub fn expect(&self, name: &'static str, allowed: &[&str]) -> Result<(), DecodeError> {
        let field = self.field(name)?;
        match field.value.as_str() {
            Some(text) if allowed.contains(&text) => Ok(()),
            _ => {
                let (expected, found) = (allowed.join(" or "), field.value.to_string());
                Err(field.error(Problem::Unexpected { what: "the text", expected, found }))
            }
        }
    }

    /// The entries of a list.
    pub fn list(&self) -> Result<Vec<Self>, DecodeError> {
        let list = self.value.as_array().ok_or_else(|| self.expected("a list"))?;
        Ok((0..).zip(list).map(|(i, value)| Self { value, index: Some(self.index.unwrap_or(i)), ..*self }).collect())
    }

    /// A list of this many entries.
    pub fn tuple<const N: usize>(&self) -> Result<[Self; N], DecodeError> {
        let list = self.value.as_array().filter(|list| list.len() == N);
        let list = list.ok_or_else(|| self.expected(&format!("a list of {N}")))?;
        Ok(std::array::from_fn(|i| Self { value: &list[i], ..*self }))
    }

    pub fn count(&self) -> Result<u64, DecodeError> {
        self.value.as_u64().ok_or_else(|| self.expected("a whole number"))
    }

    pub fn text(&self) -> Result<&'a str, DecodeError> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    /// The number of a string.
    fn number(&self, radix: Radix) -> Result<BigUint, DecodeError> {
        let text = self.text()?;
        let (digits, base, what) = match radix {
            Radix::Decimal => (Some(text), 10, "a string of decimal digits"),
            Radix::Hexadecimal => (text.strip_prefix("0x"), 16, "a string of hexadecimal digits after 0x"),
        };
        // The library would take underscores and a sign as well.
        let digits = digits.filter(|d| (1..=DIGITS_MAX).contains(&d.len()) && d.chars().all(|c| c.is_digit(base)));
        let number = digits.and_then(|digits| BigUint::parse_bytes(digits.as_bytes(), base));
        number.ok_or_else(|| self.expected(what))
    }

    /// A string that is this number.
    pub fn constant(&self, radix: Radix, value: u32) -> Result<(), DecodeError> {
        let found = self.number(radix)?;
        if found == BigUint::from(value) {
            return Ok(());
        }
        let what = "a coordinate that is constant in affine points";
        Err(self.error(Problem::Unexpected { what, expected: value.to_string(), found: found.to_string() }))
    }

    /// A scalar below r.
    pub fn scalar(&self, radix: Radix) -> Result<Scalar, DecodeError> {
        let mut bytes = self.number(radix)?.to_bytes_le();
        bytes.resize(bytes.len().max(size_of::<Limbs>()), 0);
        let limbs = bytes.try_into().ok().map(|bytes| limbs_from_le_bytes(&bytes));
        limbs.and_then(|limbs| from_canonical(&limbs)).ok_or_else(|| self.error(Problem::Unreduced))
    }

    fn coordinate(&self, radix: Radix) -> Result<[u8; FP_BYTES], DecodeError> {
        let bytes = self.number(radix)?.to_bytes_be();
        // The three bits above the modulus are flags in an encoded point; no number may reach them.
        if bytes.len() > FP_BYTES || (bytes.len() == FP_BYTES && bytes[0] >> 5 != 0) {
            return Err(self.error(PointError::Encoding));
        }
        let mut out = [0; FP_BYTES];
        out[FP_BYTES - bytes.len()..].copy_from_slice(&bytes);
        Ok(out)
    }

    /// A point of G1 from x and y, checked in full.
    pub fn g1(&self, radix: Radix, [x, y]: [Self; 2]) -> Result<G1Affine, DecodeError> {
        let bytes = [x.coordinate(radix)?, y.coordinate(radix)?].concat();
        self.checked(G1Point::decode(&bytes)).map(G1Affine::from)
    }

    /// A point of G2 from x and y, each c0 before c1, checked in full.
    pub fn g2(&self, radix: Radix, coordinates: [Self; 2]) -> Result<G2Affine, DecodeError> {
        let mut bytes = vec![];
        for coordinate in coordinates {
            let [c0, c1] = coordinate.tuple()?;
            bytes.extend([c1.coordinate(radix)?, c0.coordinate(radix)?].concat());
        }
        self.checked(G2Point::decode(&bytes)).map(G2Affine::from)
    }

    /// A decoded point, which must be in the subgroup and not infinity.
    pub fn checked<P: Point>(&self, point: Result<P, PointError>) -> Result<P, DecodeError> {
        Reader::new(self.format, self.section, &[]).checked(self.index, point)
    }
}

/// A number of big-endian bytes as text.
pub fn number(radix: Radix, be: &[u8]) -> Value {
    match radix {
        Radix::Decimal => BigUint::from_bytes_be(be).to_string().into(),
        Radix::Hexadecimal => format!("0x{}", hex::encode(be)).into(),
    }
}

/// A scalar as text.
pub fn scalar(radix: Radix, scalar: &Scalar) -> Value {
    let mut bytes = limbs_to_le_bytes(&to_canonical(scalar));
    bytes.reverse();
    number(radix, &bytes)
}

/// x and y of a point.
pub fn g1(radix: Radix, point: &G1Affine) -> [Value; 2] {
    let bytes = point.to_uncompressed();
    [0, 1].map(|i| number(radix, &bytes[FP_BYTES * i..][..FP_BYTES]))
}

/// x and y of a point, each c0 before c1.
pub fn g2(radix: Radix, point: &G2Affine) -> [Value; 2] {
    let bytes = point.to_uncompressed();
    // The encoding has c1 first.
    [[1, 0], [3, 2]].map(|pair| pair.map(|i| number(radix, &bytes[FP_BYTES * i..][..FP_BYTES])).into_iter().collect())
}
