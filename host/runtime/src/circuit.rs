//! A loaded circuit: what it says of itself, its plan, its shape.

use crate::bindings::GuestPre;
use crate::bindings::exports::zkhost::circuit::circuit as wit;
use crate::bindings::zkhost::circuit::types::Error as WitError;
use crate::error::{Export, Fault, Place, Refusal, RunError, printable, printable_lines};
use crate::instance::{Instance, Shared};
use crate::job::{Input, Job};
use crate::layout::Layout;
use crate::limits::{Limits, grouped};
use crate::observer::{Observer, Silent};
use crate::state::State;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use wasmtime::Engine;
use wasmtime::component::Resource;
use zkhost_groth16::R1cs;
use zkhost_groth16::r1cs::{Counts, ShapeLimits, ShapeRecorder};

/// Characters of a circuit's name at most; the contract states it.
const NAME_CHARS_MAX: usize = 64;

/// Bytes of all texts of `describe` together, at most.
const INFO_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a refusal's text that are kept.
const REFUSAL_BYTES_MAX: usize = 4 * 1024;

/// A circuit that is loaded, checked, compiled and linked. Cloning it is cheap; any number of threads may use it.
///
/// Every call that runs the guest makes an instance for it, which is gone when the call returns; only a [`Job`] keeps
/// one. So a trap never reaches another call.
#[derive(Clone)]
pub struct Circuit {
    shared: Arc<Shared>,
    observer: Arc<dyn Observer>,
    digest: blake3::Hash,
    warning: Option<Arc<str>>,
}

/// What a person reads about a circuit. Texts come from the circuit; control characters are gone from all of them, line
/// feeds excepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// A short name: letters, digits, `-`, `_` and `.`, at most 64.
    pub name: String,
    /// The version of the circuit.
    pub version: String,
    /// One paragraph: what is proved.
    pub about: String,
    /// What parameters mean, as the JSON a caller would write; empty if there are none.
    pub params_help: String,
    /// What the input holds, as the JSON a caller would write.
    pub input_help: String,
}

impl Circuit {
    pub(crate) fn new(
        name: &str,
        digest: blake3::Hash,
        engine: Engine,
        pre: GuestPre<State>,
        limits: Limits,
        warning: Option<String>,
    ) -> Self {
        let alive = Arc::new(AtomicU32::new(0));
        let shared = Shared { name: printable(name).into(), engine, pre, limits: Arc::new(limits), alive };
        Circuit { shared: Arc::new(shared), observer: Arc::new(Silent), digest, warning: warning.map(Arc::from) }
    }

    /// What the caller calls it.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The BLAKE3 digest of the component's file.
    pub fn digest(&self) -> blake3::Hash {
        self.digest
    }

    /// What went wrong while it was loaded without keeping it from running, for the operator to read.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The limits it was loaded with.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// The same circuit, watched: everything run through the returned handle reports to `observer`.
    pub fn observed(&self, observer: Arc<dyn Observer>) -> Self {
        Circuit { observer, ..self.clone() }
    }

    /// A fresh instance, watched by this handle's observer. Instances are what [`Limits::instances`] counts.
    pub(crate) fn instance(&self) -> Result<Instance, RunError> {
        Instance::new(&self.shared, self.observer.clone())
    }

    pub(crate) fn error(&self, export: Export, fault: Fault) -> RunError {
        self.shared.error(Place { export, segment: None }, fault, None)
    }

    /// What the circuit says of itself.
    pub fn describe(&self) -> Result<Info, RunError> {
        let place = Place { export: Export::Describe, segment: None };
        let info = self.instance()?.call(place, |guest, store| guest.zkhost_circuit_circuit().call_describe(store))?;
        checked_info(info).map_err(|fault| self.error(Export::Describe, fault))
    }

    /// How a job with these parameters divides. Parameters are JSON; empty bytes stand for the defaults.
    pub fn plan(&self, params: &[u8]) -> Result<Layout, RunError> {
        self.check_params(Export::Plan, params)?;
        let place = Place { export: Export::Plan, segment: None };
        let plan =
            self.instance()?.call(place, |guest, store| guest.zkhost_circuit_circuit().call_plan(store, params))?;
        plan.map_err(refused)
            .and_then(|plan| Layout::checked(plan, self.limits()))
            .map_err(|fault| self.error(Export::Plan, fault))
    }

    /// Record the constraint system of one partition; with `names`, the path of every constraint too.
    pub fn record_shape(&self, params: &[u8], names: bool) -> Result<R1cs, RunError> {
        self.check_params(Export::RecordShape, params)?;
        let place = Place { export: Export::RecordShape, segment: None };
        let mut instance = self.instance()?;
        instance.state().shape = Some(Box::new(ShapeRecorder::new(shape_limits(self.limits()), names)));
        let counts = instance.call(place, |guest, store| {
            guest.zkhost_circuit_circuit().call_record_shape(store, params, names, Resource::new_borrow(0))
        })?;
        let fault = |fault| instance.error(place, fault);
        let wit::Counts { publics, aux, constraints } = counts.map_err(|error| fault(refused(error)))?;
        let recorder = instance.state().take_shape("record-shape").map_err(|fault| self.error(place.export, fault))?;
        let counts = Counts { publics, aux, constraints };
        recorder.finish(counts).map_err(|error| self.error(place.export, Fault::shape(error, Fault::Contradiction)))
    }

    /// Open a job: one input, parsed and checked by the circuit, in an instance of its own.
    pub fn open(&self, params: &[u8], input: &Input) -> Result<Job, RunError> {
        self.check_params(Export::Open, params)?;
        Job::open(self, params, input)
    }

    fn check_params(&self, export: Export, params: &[u8]) -> Result<(), RunError> {
        let (bytes, limit) = (params.len() as u64, self.limits().params_bytes);
        if bytes > limit {
            let what = format!("the parameters have {} bytes", grouped(bytes));
            return Err(self.error(export, Fault::bytes(what, limit, "params_bytes")));
        }
        Ok(())
    }
}

/// The circuit's own refusal as a fault.
pub(crate) fn refused(error: WitError) -> Fault {
    let (kind, message) = match error {
        WitError::BadParams(message) => (Refusal::BadParams, message),
        WitError::BadInput(message) => (Refusal::BadInput, message),
        WitError::Unsatisfied(message) => (Refusal::Unsatisfied, message),
        WitError::Unsupported(message) => (Refusal::Unsupported, message),
        WitError::Internal(message) => (Refusal::Internal, message),
        WitError::Cancelled => return Fault::Cancelled,
    };
    let kept = &message[..message.floor_char_boundary(REFUSAL_BYTES_MAX)];
    let cut = if kept.len() < message.len() { " ..." } else { "" };
    Fault::Refused { kind, message: printable(kept) + cut }
}

fn shape_limits(limits: &Limits) -> ShapeLimits {
    ShapeLimits {
        publics: limits.publics,
        aux: limits.aux,
        constraints: limits.constraints,
        terms: limits.terms,
        coefficients: limits.coefficients,
        name_bytes: limits.name_bytes,
    }
}

fn checked_info(info: wit::Info) -> Result<Info, Fault> {
    let wit::Info { name, version, about, params_help, input_help } = info;
    let bytes = [&name, &version, &about, &params_help, &input_help].iter().map(|text| text.len()).sum::<usize>();
    if bytes > INFO_BYTES_MAX {
        let what = format!("the texts of `describe` have {bytes} bytes; {INFO_BYTES_MAX} are the most");
        return Err(Fault::Contradiction(what));
    }
    let named = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !named {
        return Err(Fault::Contradiction(format!(
            "the circuit's name is \"{}\"; a name has from 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_` and `.`",
            printable(&name)
        )));
    }
    Ok(Info {
        name,
        version: printable(&version),
        about: printable_lines(&about),
        params_help: printable_lines(&params_help),
        input_help: printable_lines(&input_help),
    })
}
