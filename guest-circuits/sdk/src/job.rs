//! What the contract asks of a circuit, in terms of the [`Circuit`] trait. Components and native tests run this same code.

use std::io::Read;

use crate::input::ReadInput;
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

/// One input, opened: parsed and checked, ready to assign. It knows no plan, which may take longer to make than a segment:
/// who asks for segments has made it once for all jobs, and asks for those in it. `native` compares their numbers of
/// variables; a host sees only whole groups of 64, and finds a smaller difference when a constraint does not hold.
pub struct Job<C> {
    circuit: C,
}

impl<C: Circuit> Job<C> {
    /// Parse and check an input: JSON of so many bytes.
    pub fn open(params: &[u8], input: impl Read, input_bytes: u64) -> Result<Self, Error> {
        let params = json::params(params)?;
        Ok(Job { circuit: C::open(&params, C::Input::read(input, input_bytes)?)? })
    }

    /// Write the assignment of one segment of one partition; both count from 0. Returns the number of aux variables.
    pub fn assign(&self, partition: u32, segment: u32, sink: &mut dyn WitnessSink) -> Result<u64, Error> {
        let mut cs = Synthesis::new(Pass::Witness(WitnessWriter::new(sink, segment == 0)));
        let result = self.circuit.synthesize(Scope { partition, segments: segment..segment + 1 }, &mut cs);
        let Pass::Witness(witness) = cs.into_pass() else { unreachable!("a synthesis keeps its pass") };
        match result {
            Ok(()) => witness.finish(),
            // A gadget that was stopped half way says something of its own; the cause is what counts.
            Err(error) => Err(witness.stopped().unwrap_or(error)),
        }
    }
}
