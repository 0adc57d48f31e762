//! What the author of a circuit writes.

use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::input::ReadInput;
use crate::{Error, Synthesis};

/// A circuit: one rank-1 constraint system over the scalar field of BLS12-381, and how to assign it from an input.
///
/// Implement it, call [`export_circuit!`](crate::export_circuit) with the type, and `zkhost build` makes a component of
/// the crate. A value of the type is one job: the parsed input, or none when the shape is recorded.
///
/// Every function must be a pure function of its arguments, and the constraints must not depend on the input: the same
/// parameters give the same rows and variables in the same order, whatever the values are.
pub trait Circuit: Sized + 'static {
    /// The field type of the gadgets used, such as `bls12_381::Scalar` or [`Fr`](crate::Fr).
    type Field;
    /// The parameters: what the constraint system depends on. Use [`NoParams`] if there are none. Mark the type
    /// `#[serde(deny_unknown_fields, default)]`.
    type Params: DeserializeOwned + Default;
    /// The input: what a proof is about, public and secret. Mark the type `#[serde(deny_unknown_fields)]`. Circuits of many
    /// partitions take [`input::Text`](crate::input::Text), of which a segment parses what it needs.
    type Input: ReadInput;

    /// What a person reads about the circuit.
    fn info() -> Info;

    /// How a job divides into partitions and segments; refuses parameters that are out of range.
    fn plan(_params: &Self::Params) -> Result<Plan, Error> {
        Ok(Plan::single())
    }

    /// The circuit without values, for recording its shape.
    fn blank(params: &Self::Params) -> Result<Self, Error>;

    /// The circuit with the values of an input; refuses an input that is malformed.
    fn open(params: &Self::Params, input: Self::Input) -> Result<Self, Error>;

    /// Allocate the variables and enforce the constraints of the segments in `scope`.
    ///
    /// A shape is recorded with all the segments of partition 0. An assignment is written one segment at a time: what
    /// variables and values a segment needs of earlier ones it must find without synthesising them. Public inputs are
    /// allocated by the first segment. Circuits of one segment need not look at the segments, and circuits of one
    /// partition not at `scope` at all.
    fn synthesize(&self, scope: Scope, cs: &mut Synthesis<'_, Self::Field>) -> Result<(), Error>;
}

/// The part of a job that one call of [`Circuit::synthesize`] covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The partition, from 0.
    pub partition: u32,
    /// The segments of it, in order.
    pub segments: Range<u32>,
}

impl Scope {
    /// Whether the scope starts with the partition's first segment, which allocates the public inputs.
    pub fn is_first(&self) -> bool {
        self.segments.start == 0
    }
}

/// What a person reads about a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// A short name: letters, digits, `-`, `_` and `.`, at most 64.
    pub name: &'static str,
    /// The version of the circuit, semver; usually `env!("CARGO_PKG_VERSION")`.
    pub version: &'static str,
    /// One paragraph: what is proved.
    pub about: &'static str,
    /// What parameters mean, as the JSON a caller would write, with defaults; empty if there are none.
    pub params_help: &'static str,
    /// What the input holds, as the JSON a caller would write, with the form of each field.
    pub input_help: &'static str,
}

/// How a job divides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of partitions: proofs over the same constraint system and key. From 1 to 65,536.
    pub partitions: u32,
    /// The segments of a partition, in order; they tile its aux variables without gap. From 1 to 1,024.
    pub segments: Vec<Segment>,
}

impl Plan {
    /// One partition of one segment.
    pub fn single() -> Self {
        Plan::partitions(1)
    }

    /// Several partitions of one segment each. The host takes the number of variables from the recorded shape.
    pub fn partitions(partitions: u32) -> Self {
        Plan { partitions, segments: vec![Segment { first_aux: 0, aux_count: 0, max_full: 0, weight: 1 }] }
    }

    /// Several partitions of these segments, in order, whatever variable each says is its first.
    pub fn of_segments(partitions: u32, segments: impl IntoIterator<Item = Segment>) -> Self {
        let mut next = 0;
        let place = |segment: Segment| {
            let first_aux = next;
            next += segment.aux_count;
            Segment { first_aux, ..segment }
        };
        Plan { partitions, segments: segments.into_iter().map(place).collect() }
    }

    /// Several partitions of segments with these numbers of aux variables, in order.
    pub fn segmented(partitions: u32, aux_counts: &[u64]) -> Self {
        let segment = |&aux_count: &u64| Segment {
            first_aux: 0,
            aux_count,
            max_full: aux_count,
            weight: u32::try_from(aux_count).unwrap_or(u32::MAX),
        };
        Plan::of_segments(partitions, aux_counts.iter().map(segment))
    }
}

/// A range of one partition's aux variables that can be assigned in an instance of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first aux variable.
    pub first_aux: u64,
    /// The number of aux variables. A plan of a single segment may say 0: the host then takes it from the recorded shape.
    pub aux_count: u64,
    /// The most of them that are neither 0 nor 1; 0 stands for `aux_count`.
    pub max_full: u64,
    /// Relative cost, for scheduling and progress; progress is counted in aux variables, so their number is a good one.
    pub weight: u32,
}

/// The dimensions of a recorded constraint system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Public inputs, the constant one excluded.
    pub publics: u64,
    /// Aux variables.
    pub aux: u64,
    /// Constraints.
    pub constraints: u64,
}

/// The parameters of a circuit that has none: `{}`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}
