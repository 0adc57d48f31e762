//! The component's side of the contract: adapts `wit/v0.1` to [`Circuit`].

use std::io::{BufReader, Read};
use std::marker::PhantomData;

use crate::sink::{Matrix, ShapeSink, WitnessSink};
use crate::{Circuit, Error, job};

/// What wit-bindgen makes of `wit/v0.1`.
#[allow(missing_docs, clippy::all)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "guest",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "zkhost_guest::export::bindings",
    });
}

use bindings::exports::zkhost::circuit::circuit as contract;
use bindings::zkhost::circuit::{report, sink, source};

/// Bytes of input read from the host at a time.
const READ_BYTES: usize = 64 * 1024;

/// The component of a circuit.
pub struct Component<C>(PhantomData<C>);

impl<C: Circuit> contract::Guest for Component<C> {
    type Job = OpenJob<C>;

    fn describe() -> contract::Info {
        let info = C::info();
        contract::Info {
            name: info.name.into(),
            version: info.version.into(),
            about: info.about.into(),
            params_help: info.params_help.into(),
            input_help: info.input_help.into(),
        }
    }

    fn plan(params: Vec<u8>) -> Result<contract::Layout, contract::Error> {
        let plan = job::plan::<C>(&params)?;
        let segments = plan.segments.iter().map(|segment| contract::Segment {
            first_aux: segment.first_aux,
            aux_count: segment.aux_count,
            max_full: segment.max_full,
            weight: segment.weight,
        });
        Ok(contract::Layout {
            partitions: plan.partitions,
            encoding: contract::Encoding::Canonical,
            segments: segments.collect(),
        })
    }

    fn record_shape(params: Vec<u8>, names: bool, out: &sink::Shape) -> Result<contract::Counts, contract::Error> {
        let counts = job::record_shape::<C>(&params, names, &mut HostShape(out))?;
        Ok(contract::Counts { publics: counts.publics, aux: counts.aux, constraints: counts.constraints })
    }
}

/// The job resource of a circuit.
pub struct OpenJob<C>(job::Job<C>);

impl<C: Circuit> contract::GuestJob for OpenJob<C> {
    fn open(params: Vec<u8>, input: &source::Blob) -> Result<contract::Job, contract::Error> {
        let reader = BufReader::with_capacity(READ_BYTES, HostInput { blob: input, offset: 0 });
        Ok(contract::Job::new(OpenJob(job::Job::<C>::open(&params, reader, input.size())?)))
    }

    fn assign(&self, partition: u32, segment: u32, out: &sink::Witness) -> Result<(), contract::Error> {
        self.0.assign(partition, segment, &mut HostWitness(out))?;
        Ok(())
    }
}

impl From<Error> for contract::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::BadParams(text) => contract::Error::BadParams(text),
            Error::BadInput(text) => contract::Error::BadInput(text),
            Error::Unsatisfied(text) => contract::Error::Unsatisfied(text),
            Error::Unsupported(text) => contract::Error::Unsupported(text),
            Error::Internal(text) => contract::Error::Internal(text),
            Error::Cancelled => contract::Error::Cancelled,
        }
    }
}

struct HostShape<'a>(&'a sink::Shape);

impl ShapeSink for HostShape<'_> {
    fn add_coefficients(&mut self, limbs: &[u64]) {
        self.0.add_coefficients(limbs);
    }

    fn add_rows(&mut self, matrix: Matrix, row_lengths: &[u32], columns: &[u32], coefficients: &[u32]) {
        let matrix = match matrix {
            Matrix::A => sink::Matrix::A,
            Matrix::B => sink::Matrix::B,
            Matrix::C => sink::Matrix::C,
        };
        self.0.add_rows(matrix, row_lengths, columns, coefficients);
    }

    fn name_rows(&mut self, paths: &str) {
        self.0.name_rows(paths);
    }
}

struct HostWitness<'a>(&'a sink::Witness);

impl WitnessSink for HostWitness<'_> {
    fn write_groups(&mut self, masks: &[u64], elements: &[u64]) {
        self.0.write_groups(masks, elements);
    }

    fn write_public(&mut self, elements: &[u64]) {
        self.0.write_public(elements);
    }

    fn progress(&mut self, aux_written: u64) -> bool {
        report::progress(aux_written)
    }
}

struct HostInput<'a> {
    blob: &'a source::Blob,
    offset: u64,
}

impl Read for HostInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let bytes = self.blob.read(self.offset, length);
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    /// Pieces of one size take the same memory one after the other.
    fn read_to_end(&mut self, text: &mut Vec<u8>) -> std::io::Result<usize> {
        let before = text.len();
        loop {
            let bytes = self.blob.read(self.offset, READ_BYTES as u32);
            if bytes.is_empty() {
                return Ok(text.len() - before);
            }
            text.extend_from_slice(&bytes);
            self.offset += bytes.len() as u64;
        }
    }
}

/// Write one line of the host's log. Nothing secret belongs in it.
pub(crate) fn log(level: crate::report::Level, message: &str) {
    let level = match level {
        crate::report::Level::Debug => report::Level::Debug,
        crate::report::Level::Info => report::Level::Info,
        crate::report::Level::Warn => report::Level::Warn,
        crate::report::Level::Error => report::Level::Error,
    };
    report::log(level, message);
}
