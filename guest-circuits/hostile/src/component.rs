//! The exports.

use std::hint::black_box;

use serde::Deserialize;
use zkhost_guest::export::bindings::exports::zkhost::circuit::circuit::{
    Counts, Encoding, Error, Guest, GuestJob, Info, Job, Layout, Segment,
};
use zkhost_guest::export::bindings::zkhost::circuit::sink::{Shape, Witness};
use zkhost_guest::export::bindings::zkhost::circuit::source::Blob;
use zkhost_guest::export::bindings::zkhost::circuit::{accel, report};

use crate::params::{Act, Export, Params};
use crate::{MODULUS, SEGMENT_AUX, shape, witness};

struct Hostile;

/// An opened input.
struct HostileJob {
    params: Params,
    input: Input,
}

/// Two factors; secret.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    pub left: u32,
    pub right: u32,
}

impl Guest for Hostile {
    type Job = HostileJob;

    fn describe() -> Info {
        Info {
            name: "hostile".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            about: "Misbehaves in the way its parameters name.".into(),
            params_help: r#"{"act": "none", "at": "assign", "partitions": 1, "segments": 1, "declare-counts": true}"#
                .into(),
            input_help: r#"{"left": number, "right": number}"#.into(),
        }
    }

    fn plan(params: Vec<u8>) -> Result<Layout, Error> {
        let params = parse(&params)?;
        act_anywhere(&params, Export::Plan, None)?;
        let (partitions, ranges): (u32, Vec<(u64, u64)>) = match params.act {
            Act::NoPartitions => (0, vec![(0, SEGMENT_AUX)]),
            Act::ManyPartitions => (u32::MAX, vec![(0, SEGMENT_AUX)]),
            Act::NoSegments => (1, vec![]),
            Act::ManySegments => (1, (0..1025).map(|first| (first, 1)).collect()),
            Act::SegmentGap => (1, vec![(0, 64), (65, 65)]),
            Act::SegmentOverlap => (1, vec![(0, 64), (63, 67)]),
            Act::SegmentOverflow => (1, vec![(0, u64::MAX), (u64::MAX, 2)]),
            Act::SegmentHuge => (1, vec![(0, 1 << 63)]),
            Act::SegmentsUndeclared => (1, vec![(0, 0), (0, 0)]),
            _ if !params.declare_counts => (params.partitions, vec![(0, 0)]),
            _ => {
                let range = |segment: u32| (u64::from(segment) * SEGMENT_AUX, SEGMENT_AUX);
                (params.partitions, (0..params.segments).map(range).collect())
            }
        };
        let max_full = match params.act {
            Act::MaxFullHuge => u64::MAX,
            Act::MoreFull => 1,
            _ => 0,
        };
        let segment = |&(first_aux, aux_count)| Segment { first_aux, aux_count, max_full, weight: 1 };
        Ok(Layout { partitions, encoding: Encoding::Canonical, segments: ranges.iter().map(segment).collect() })
    }

    fn record_shape(params: Vec<u8>, names: bool, out: &Shape) -> Result<Counts, Error> {
        let params = parse(&params)?;
        act_anywhere(&params, Export::RecordShape, None)?;
        Ok(shape::record(&params, names, out))
    }
}

impl GuestJob for HostileJob {
    fn open(params: Vec<u8>, input: &Blob) -> Result<Job, Error> {
        let params = parse(&params)?;
        // Past the end and in one piece on purpose: the host cuts what is too long.
        assert!(input.read(u64::MAX, u32::MAX).is_empty(), "bytes past the end of the input");
        let bytes = input.read(0, u32::MAX);
        assert_eq!(bytes.len() as u64, input.size(), "an input of less than 4 MiB arrives in one piece");
        let input = serde_json::from_slice(&bytes).map_err(|error| Error::BadInput(error.to_string()))?;
        act_anywhere(&params, Export::Open, Some(input))?;
        Ok(Job::new(HostileJob { params, input }))
    }

    fn assign(&self, partition: u32, segment: u32, out: &Witness) -> Result<(), Error> {
        act_anywhere(&self.params, Export::Assign, Some(self.input))?;
        witness::assign(&self.params, self.input, partition, segment, out);
        Ok(())
    }
}

fn parse(params: &[u8]) -> Result<Params, Error> {
    if params.is_empty() {
        return Ok(Params::default());
    }
    serde_json::from_slice(params).map_err(|error| Error::BadParams(error.to_string()))
}

const HUGE_BYTES: usize = 64 << 20;
const CONTROLS: &str = "first line\nsecond line\r\u{1b}[2J\u{7}\u{0}\u{9b}31mred\u{202e}";

/// The acts that any export can do.
fn act_anywhere(params: &Params, here: Export, input: Option<Input>) -> Result<(), Error> {
    if params.at != here {
        return Ok(());
    }
    match params.act {
        Act::Trap => core::arch::wasm32::unreachable(),
        Act::Panic => panic!("the factors are {:?}", input.map(|input| (input.left, input.right))),
        Act::Loop => loop {
            black_box(());
        },
        Act::Allocate => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(vec![1_u8; 1 << 20]);
                black_box(&hoard);
            }
        }
        Act::Recurse => {
            recurse(0);
            Ok(())
        }
        Act::LogControls => {
            report::log(report::Level::Info, CONTROLS);
            Ok(())
        }
        Act::LogFlood => loop {
            report::log(report::Level::Info, "one of very many lines");
        },
        Act::LogHuge => {
            report::log(report::Level::Info, &"x".repeat(HUGE_BYTES));
            Ok(())
        }
        Act::ProgressFlood => loop {
            if !report::progress(u64::MAX) {
                return Err(Error::Cancelled);
            }
        },
        Act::ErrorControls => Err(Error::Internal(CONTROLS.into())),
        Act::ErrorHuge => Err(Error::Internal("x".repeat(HUGE_BYTES))),
        Act::Refuse => Err(Error::Unsupported("this circuit was asked to refuse".into())),
        Act::InvertUnreduced => {
            let [a, b, c, d] = MODULUS;
            black_box(accel::invert_one(a, b, c, d));
            Ok(())
        }
        _ => Ok(()),
    }
}

#[expect(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    black_box(recurse(black_box(depth) + 1)) + 1
}

zkhost_guest::export::bindings::export_component!(Hostile with_types_in zkhost_guest::export::bindings);
