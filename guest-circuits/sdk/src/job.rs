//! What the contract asks of a circuit, in terms of the [`Circuit`] trait. Components and native tests run this same code.

use std::io::Read;

use crate::json;
use crate::shape::ShapeRecorder;
use crate::sink::{ShapeSink, WitnessSink};
use crate::synthesis::Pass;
use crate::witness::WitnessWriter;
use crate::{Circuit, Counts, Error, Plan, Scope, Synthesis};

/// The plan for these parameters: JSON, or empty for the defaults.
pub fn plan<C: Circuit>(params: &[u8]) -> Result<Plan, Error> {
    C::plan(&json::params(params)?)
}

/// Record the constraint system of one partition, with a name for every row if asked.
pub fn record_shape<C: Circuit>(params: &[u8], names: bool, sink: &mut dyn ShapeSink) -> Result<Counts, Error> {
    let params = json::params(params)?;
    let plan = C::plan(&params)?;
    let circuit = C::blank(&params)?;
    let mut cs = Synthesis::new(Pass::Shape(Box::new(ShapeRecorder::new(sink, names))));
    circuit.synthesize(Scope { partition: 0, segments: 0..plan.segments.len() as u32 }, &mut cs)?;
    match cs.into_pass() {
        Pass::Shape(shape) => shape.finish(),
        Pass::Witness(_) => unreachable!("a synthesis keeps its pass"),
    }
}

/// One input, opened: parsed and checked, ready to assign.
pub struct Job<C> {
    circuit: C,
    plan: Plan,
}

impl<C: Circuit> Job<C> {
    /// Parse and check an input: JSON.
    pub fn open(params: &[u8], input: impl Read) -> Result<Self, Error> {
        let params = json::params(params)?;
        let plan = C::plan(&params)?;
        let circuit = C::open(&params, json::input(input)?)?;
        Ok(Job { circuit, plan })
    }

    /// Write the assignment of one segment of one partition; both count from 0.
    pub fn assign(&self, partition: u32, segment: u32, sink: &mut dyn WitnessSink) -> Result<(), Error> {
        let Some(range) = self.plan.segments.get(segment as usize).filter(|_| partition < self.plan.partitions) else {
            return Err(Error::Internal(format!(
                "asked for segment {segment} of partition {partition}; the plan has {} partitions of {} segments",
                self.plan.partitions,
                self.plan.segments.len()
            )));
        };
        let mut cs = Synthesis::new(Pass::Witness(WitnessWriter::new(sink, range.first_aux, segment == 0)));
        let result = self.circuit.synthesize(Scope { partition, segments: segment..segment + 1 }, &mut cs);
        let Pass::Witness(witness) = cs.into_pass() else { unreachable!("a synthesis keeps its pass") };
        if let Err(error) = result {
            // A gadget that was stopped half way says something of its own; the cause is what counts.
            return Err(witness.stopped().unwrap_or(error));
        }
        let written = witness.finish()?;
        if range.aux_count != 0 && written != range.aux_count {
            return Err(Error::Internal(format!(
                "segment {segment} allocated {written} aux variables; the plan says {}",
                range.aux_count
            )));
        }
        Ok(())
    }
}
