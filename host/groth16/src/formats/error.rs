//! What is wrong with a file.

use crate::points::PointError;
use crate::r1cs::ShapeError;

/// Why a file was refused: which format, where in it, what is wrong. The caller knows the file's name and puts it first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format}: {section}{}: {problem}", self.entry())]
pub struct DecodeError {
    /// The format read.
    pub format: &'static str,
    /// The part of the file.
    pub section: &'static str,
    /// The entry of that part, from 0, if it is a list.
    pub index: Option<u64>,
    /// What is wrong.
    pub problem: Problem,
}

impl DecodeError {
    fn entry(&self) -> String {
        self.index.map(|index| format!(", entry {index}")).unwrap_or_default()
    }
}

/// What is wrong with a part of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It ends too early.
    #[error("the file ends {missing} bytes too early; it is empty or incomplete, get it again")]
    Truncated {
        /// Bytes that are missing, at least.
        missing: u64,
    },
    /// A section passes the file's end.
    #[error(
        "its length is given as {length} bytes, but {left} follow in the file; the file is incomplete, get it again, or its \
         writer miscounts sections of 4 GiB and more, as circom's JavaScript witness writer does: write it with another"
    )]
    SectionLength {
        /// The length that the file states.
        length: u64,
        /// What is left of the file.
        left: u64,
    },
    /// It goes on after its end.
    #[error("{bytes} bytes follow where the file should end")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// It goes on after its end, which only a pinned digest makes acceptable.
    #[error(
        "{bytes} bytes follow the key proper, as in keys from a ceremony, and nothing vouches for them; if you know where \
         this file comes from, pin its SHA-256, {sha256}"
    )]
    UnpinnedTrailer {
        /// How many.
        bytes: u64,
        /// The whole file's digest.
        sha256: String,
    },
    /// It is not the file that was pinned.
    #[error("the file's SHA-256 is {found}, pinned was {expected}; it is damaged or another file, get it again")]
    Digest {
        /// The pinned digest.
        expected: String,
        /// The file's.
        found: String,
    },
    /// A count or a length follows from others, and is not what follows.
    #[error("{what} is {found}, but {expected} follows from {from}; the file is damaged or its writer errs")]
    Disagrees {
        /// Which count.
        what: &'static str,
        /// What it is.
        found: u64,
        /// What it must be.
        expected: u64,
        /// Where that follows from.
        from: &'static str,
    },
    /// A bad point.
    #[error("{0}")]
    Point(#[from] PointError),
    /// A scalar that is not reduced.
    #[error("the scalar is not below the modulus r")]
    Unreduced,
    /// A field has another value than the only ones possible.
    #[error("{what} is {found}, expected {expected}")]
    Unexpected {
        /// Which field.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A section is missing.
    #[error("the file has no such section; it is incomplete or another kind of file")]
    NoSection,
    /// Its hash differs, or its contents contradict each other.
    #[error("the file is damaged; make it again from the key it came from")]
    Damaged,
    /// The same of a recorded shape.
    #[error("the file is damaged; delete it, the circuit is recorded again when it is next needed")]
    DamagedShape,
    /// The hash of a part differs.
    #[error(
        "bytes {first} to {last} of it are damaged, their hash differs; make the file again from the key it came from"
    )]
    DamagedRange {
        /// The first byte of the part, in the section.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// A list that ends within an entry.
    #[error("its length is no multiple of its entries' size")]
    PartialEntry,
    /// What was read is no constraint system.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// It is of another field than BLS12-381's.
    #[error("the file is of another prime field; compile for BLS12-381 (circom: --prime bls12381)")]
    OtherField,
    /// It is no JSON, or not the JSON that was expected.
    #[error("the file is not the JSON that was expected: {0}")]
    Json(String),
    /// It is no text.
    #[error("the file is not text in UTF-8")]
    NotText,
    /// It is of another curve.
    #[error("the file is of another curve than BLS12-381; make the key from a circuit and powers of tau for bls12-381")]
    OtherCurve,
}

impl Problem {
    /// A verifying key without the point of the constant one.
    pub(crate) fn no_ic() -> Self {
        Self::Unexpected {
            what: "the number of points",
            expected: "at least 1, for the constant one".into(),
            found: "0".into(),
        }
    }
}
