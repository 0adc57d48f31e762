//! A job: one input, opened, and its assignment written segment by segment.

use crate::circuit::{Circuit, refused};
use crate::error::{Export, Fault, Place, RunError};
use crate::instance::Instance;
use crate::limits::grouped;
use std::any::Any;
use std::sync::Arc;
use wasmtime::component::{Resource, ResourceAny};
use zeroize::Zeroizing;
use zkhost_groth16::Encoding;
use zkhost_groth16::assignment::{Segment, SegmentLimits, SegmentSink, SegmentWriter, SinkError};

/// The bytes of an input. They are secret: zeroed when the last clone is dropped, and never printed.
#[derive(Clone)]
pub struct Input(pub(crate) Arc<Zeroizing<Vec<u8>>>);

impl From<Vec<u8>> for Input {
    fn from(bytes: Vec<u8>) -> Self {
        Input(Arc::new(Zeroizing::new(bytes)))
    }
}

/// One opened input in an instance of its own. Any number of segments may be assigned, in any order; the first is slower
/// where a circuit builds tables when it first needs them. After a trap the job is over and another has to be opened.
pub struct Job {
    instance: Instance,
    handle: ResourceAny,
}

impl Job {
    pub(crate) fn open(circuit: &Circuit, params: &[u8], input: &Input) -> Result<Self, RunError> {
        let place = Place { export: Export::Open, segment: None };
        let (bytes, limit) = (input.0.len() as u64, circuit.limits().input_bytes);
        if bytes > limit {
            let what = format!("the input has {} bytes", grouped(bytes));
            return Err(circuit.error(Export::Open, Fault::bytes(what, limit, "input_bytes")));
        }
        let mut instance = circuit.instance()?;
        instance.state().input = Some(input.0.clone());
        let opened = instance.call(place, |guest, store| {
            guest.zkhost_circuit_circuit().job().call_open(store, params, Resource::new_borrow(0))
        });
        let state = instance.state();
        state.input = None;
        state.zero_piece();
        match opened? {
            Ok(handle) => Ok(Job { instance, handle }),
            Err(error) => Err(instance.error(place, refused(error))),
        }
    }

    /// Bytes of linear memory that its instance has grown to. Memory never shrinks, so this is the most it ever had.
    pub fn memory_bytes(&mut self) -> u64 {
        self.instance.state().memory_bytes()
    }

    /// Have the guest write one segment to `sink`, and get the sink back. What the sink refuses becomes an error that
    /// names the place. Whether the segment is complete is for the sink's owner to ask it.
    pub fn assign<S: SegmentSink + 'static>(&mut self, partition: u32, segment: u32, sink: S) -> Result<S, RunError> {
        let place = Place { export: Export::Assign, segment: Some((partition, segment)) };
        self.instance.state().witness = Some(Box::new(sink));
        let handle = self.handle;
        let assigned = self.instance.call(place, |guest, store| {
            guest.zkhost_circuit_circuit().job().call_assign(store, handle, partition, segment, Resource::new_borrow(0))
        });
        let sink = self.instance.state().take_witness("job.assign");
        assigned?.map_err(|error| self.instance.error(place, refused(error)))?;
        let sink: Box<dyn Any> = sink.map_err(|fault| self.instance.error(place, fault))?;
        Ok(*sink.downcast::<S>().expect("the sink that was lent is the one in the state"))
    }

    /// Have the guest write one segment into memory, and check that it is complete.
    pub(crate) fn assign_segment(
        &mut self,
        (partition, segment): (u32, u32),
        encoding: Encoding,
        limits: SegmentLimits,
    ) -> Result<Segment, RunError> {
        let place = Place { export: Export::Assign, segment: Some((partition, segment)) };
        let contradiction = |error: SinkError| Fault::Contradiction(error.to_string());
        let writer = SegmentWriter::on_heap(encoding, limits).map_err(contradiction);
        let writer = writer.map_err(|fault| self.instance.error(place, fault))?;
        let writer = self.assign(partition, segment, writer)?;
        writer.finish().map_err(|error| self.instance.error(place, contradiction(error)))
    }
}
