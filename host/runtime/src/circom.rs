//! circom circuits as they are: the witness module that circom's compiler writes, in the sandbox of components.
//!
//! It is a core module, not a component. It imports up to four functions of module `runtime` and exports its memory and
//! functions by which the host sets input signals (named by the 64-bit FNV-1a hash of their names) and reads the witness
//! through a shared slot of 32 bytes: canonical, little-endian. When the last signal is set, the circuit runs. Modules
//! before circom 2.0.7 import two functions only and leave an exception's message to be fetched; what else the earliest lack,
//! the sizes, is optional here. Source: the JavaScript that circom
//! 2.2.3 writes beside a module.
//!
//! Its arithmetic is replaced by a faster one that does the same ([`widen`]).
//!
//! Its witness is z = [1, public outputs, public inputs, private variables], the order of the `.r1cs` beside it.

mod field;
mod module;
mod signals;

pub use field::{Widened, widen};
pub(crate) use module::{examine, link, prepare};

use crate::error::{Export, Fault, Place, Refusal, RunError, printable};
use crate::instance::{Failure, Permit, guarded};
use crate::job::Input;
use crate::limits::{Limits, grouped};
use crate::observer::{Observer, Silent};
use module::{Exports, Host, SLOT_WORDS};
use signals::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use wasmtime::{InstancePre, Store};
use zkhost_groth16::Scalar;
use zkhost_groth16::scalar::{Limbs, MODULUS, SecretScalars, from_canonical, limbs_from_le_bytes, limbs_to_le_bytes};

/// A witness module that is loaded, checked, compiled and linked. Cloning it is cheap; any number of threads may use it.
///
/// Every witness has an instance of its own, which is gone when the call returns.
#[derive(Clone)]
pub struct Circom {
    name: Arc<str>,
    pre: InstancePre<Host>,
    limits: Arc<Limits>,
    alive: Arc<AtomicU32>,
    observer: Arc<dyn Observer>,
    warning: Option<Arc<str>>,
}

impl Circom {
    pub(crate) fn new(name: &str, pre: InstancePre<Host>, limits: Limits, warning: Option<String>) -> Self {
        Circom {
            name: printable(name).into(),
            pre,
            limits: Arc::new(limits),
            alive: Arc::default(),
            observer: Arc::new(Silent),
            warning: warning.map(Arc::from),
        }
    }

    /// What the caller calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What went wrong while it was loaded without keeping it from running, for the operator to read.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The limits it was loaded with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same module, watched: everything run through the returned handle reports to `observer`. What the circuit prints
    /// by `log` reaches an observer that wants logs.
    pub fn observed(&self, observer: Arc<dyn Observer>) -> Self {
        Circom { observer, ..self.clone() }
    }

    /// The witness z for an input: JSON, as snarkjs takes it, but what snarkjs would reduce modulo r is refused.
    ///
    /// `inputs` are the names of the circuit's input signals where they are known (a `.sym` file has them); with them an
    /// error can say which are missing.
    pub fn witness(&self, input: &Input, inputs: &[String]) -> Result<SecretScalars, RunError> {
        let fail = |export, fault| self.error(export, (fault, None));
        let (bytes, limit) = (input.0.len() as u64, self.limits.input_bytes);
        if bytes > limit {
            let what = format!("the input has {} bytes", grouped(bytes));
            return Err(fail(Export::Inputs, Fault::bytes(what, limit, "input_bytes")));
        }
        let signals = Signals::parse(&input.0).map_err(|message| fail(Export::Inputs, bad_input(message)))?;
        let _permit = Permit::acquire(&self.alive, &self.limits).map_err(|fault| fail(Export::Instantiate, fault))?;
        let mut run = Run::start(self).map_err(|failure| self.error(Export::Instantiate, failure))?;
        run.at(Export::Inputs);
        guarded(|| run.set(&signals, inputs)).map_err(|failure| self.error(Export::Inputs, failure))?;
        run.at(Export::Witness);
        guarded(|| run.read()).map_err(|failure| self.error(Export::Witness, failure))
    }

    fn error(&self, export: Export, (fault, backtrace): Failure) -> RunError {
        RunError { circuit: self.name.clone(), place: Place { export, segment: None }, fault, backtrace }
    }
}

fn bad_input(message: String) -> Fault {
    Fault::Refused { kind: Refusal::BadInput, message: printable(&message) }
}

/// FNV-1a, 64 bits: what circom hashes names with.
fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// One instance at work. Its memory is unmapped when it is dropped.
struct Run {
    store: Store<Host>,
    exports: Exports,
    limits: Arc<Limits>,
}

impl Run {
    fn start(circom: &Circom) -> Result<Self, Failure> {
        let limits = circom.limits.clone();
        let host = Host::new(limits.clone(), circom.observer.clone(), limits.deadline(Export::Instantiate));
        let mut store = Store::new(circom.pre.module().engine(), host);
        store.limiter(|host| &mut host.state);
        store.epoch_deadline_callback(|store| store.data().state.on_tick());
        store.set_epoch_deadline(1);
        let exports = guarded(|| {
            let instance = circom.pre.instantiate(&mut store)?;
            let exports = Exports::of(&mut store, &instance)?;
            exports.check_field(&mut store)?;
            exports.init.call(&mut store, 1)?;
            Ok(exports)
        })?;
        Ok(Run { store, exports, limits })
    }

    /// What runs from here on, with its own time.
    fn at(&mut self, export: Export) {
        let state = &mut self.store.data_mut().state;
        (state.place.export, state.deadline) = (export, self.limits.deadline(export));
        self.store.set_epoch_deadline(1);
    }

    /// Set every signal; the last one runs the circuit.
    fn set(&mut self, signals: &Signals, inputs: &[String]) -> wasmtime::Result<()> {
        let Run { store, exports, .. } = self;
        let slot = exports.slot(store)?;
        let mut count = 0;
        for (name, values) in signals.iter() {
            let hash = fnv1a(name);
            let (high, low) = ((hash >> 32) as i32, hash as i32);
            if let Some(size) = &exports.input_signal_size {
                check_size(name, size.call(&mut *store, (high, low))?, values.len(), inputs)?;
            }
            for (index, value) in (0..).zip(values) {
                exports.write(store, slot, value)?;
                store.data_mut().signal = name.to_owned();
                exports.set_input_signal.call(&mut *store, (high, low, index))?;
                count += 1;
            }
        }
        store.data_mut().signal.clear();
        let Some(size) = &exports.input_size else { return Ok(()) };
        let expected = size.call(&mut *store, ())?;
        if count < expected {
            return Err(bad_input(missing(count, expected, signals, inputs)).into());
        }
        Ok(())
    }

    /// Read the witness.
    fn read(&mut self) -> wasmtime::Result<SecretScalars> {
        let Run { store, exports, limits } = self;
        let count = exports.witness_size.call(&mut *store, ())? as u32;
        let most = limits.aux.saturating_add(limits.publics).saturating_add(1);
        if count == 0 {
            return Err(
                Fault::Contradiction("the module's witness is empty; it has the constant one at least".into()).into()
            );
        }
        if u64::from(count) > most {
            let what = format!("the witness has {} values", grouped(count.into()));
            return Err(Fault::count(what, most, "aux").into());
        }
        let slot = exports.slot(store)?;
        let mut z = SecretScalars::zeros(count as usize);
        for (index, value) in (0..).zip(z.iter_mut()) {
            exports.get_witness.call(&mut *store, index)?;
            let limbs = exports.read(store, slot)?;
            *value = from_canonical(&limbs).ok_or_else(|| {
                Fault::Contradiction(format!("value {index} of the module's witness is not below the modulus r"))
            })?;
        }
        if z[0] != Scalar::from(1) {
            return Err(Fault::Contradiction("the module's witness does not start with the constant one".into()).into());
        }
        Ok(z)
    }
}

/// Refuse a signal that the circuit does not have, or has with another size.
fn check_size(name: &str, size: i32, found: usize, inputs: &[String]) -> Result<(), Fault> {
    let known = || match inputs.is_empty() {
        true => String::new(),
        false => format!("; its input signals are {}", inputs.join(", ")),
    };
    // Modules have answered -1 and 0 for a signal that does not exist; one of no elements is never set.
    match u32::try_from(size) {
        Err(_) => Err(bad_input(format!("the circuit has no input signal `{name}`{}", known()))),
        Ok(0) if found > 0 => Err(bad_input(format!("the circuit has no input signal `{name}`{}", known()))),
        Ok(size) if size as usize == found => Ok(()),
        Ok(size) => Err(bad_input(format!("signal `{name}` has {size} elements, the input has {found} for it"))),
    }
}

/// What is said of signals that were not given.
fn missing(count: i32, expected: i32, signals: &Signals, inputs: &[String]) -> String {
    let lacking: Vec<_> =
        inputs.iter().filter(|name| signals.iter().all(|(given, _)| given != **name)).map(String::as_str).collect();
    let which = match lacking.is_empty() {
        true => "give every input signal a value".to_owned(),
        false => format!("missing: {}", lacking.join(", ")),
    };
    format!("the input has {count} of the circuit's {expected} input values; {which}")
}

impl Exports {
    /// Refuse a module for another field.
    fn check_field(&self, store: &mut Store<Host>) -> wasmtime::Result<()> {
        let words = self.field_words.call(&mut *store, ())?;
        let other = || {
            Fault::Contradiction(
                "the module is for another prime field than BLS12-381's; compile the circuit with --prime bls12381"
                    .into(),
            )
        };
        if words != SLOT_WORDS {
            return Err(other().into());
        }
        self.raw_prime.call(&mut *store, ())?;
        let slot = self.slot(store)?;
        if self.read(store, slot)? != MODULUS {
            return Err(other().into());
        }
        Ok(())
    }

    /// Where the shared slot lies in the module's memory.
    fn slot(&self, store: &mut Store<Host>) -> wasmtime::Result<usize> {
        Ok(self.slot_start.call(store, ())? as u32 as usize)
    }

    fn write(&self, store: &mut Store<Host>, slot: usize, value: &Limbs) -> Result<(), Fault> {
        self.memory.write(store, slot, &limbs_to_le_bytes(value)).map_err(|_| outside())
    }

    fn read(&self, store: &mut Store<Host>, slot: usize) -> Result<Limbs, Fault> {
        let mut bytes = [0; 32];
        self.memory.read(store, slot, &mut bytes).map_err(|_| outside())?;
        Ok(limbs_from_le_bytes(&bytes))
    }
}

fn outside() -> Fault {
    Fault::Contradiction("the module's shared slot lies outside its memory".into())
}
