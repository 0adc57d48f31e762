//! One instance of a circuit, and how its exports are called.

use crate::bindings::{Guest, GuestPre};
use crate::error::{Export, Fault, Place, RunError, printable, printable_lines};
use crate::limits::{HOST_CALL_BYTES_MAX, Limits};
use crate::observer::Observer;
use crate::state::{Deadline, State};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use wasmtime::{Engine, Store, Trap, WasmBacktrace};

/// What every instance of one circuit shares.
pub(crate) struct Shared {
    /// What the caller calls the circuit.
    pub name: Arc<str>,
    pub engine: Engine,
    pub pre: GuestPre<State>,
    pub limits: Arc<Limits>,
    /// Instances alive.
    pub alive: Arc<AtomicU32>,
}

/// A place among the instances that the limits allow.
pub(crate) struct Permit(Arc<AtomicU32>);

impl Permit {
    /// Take a place, if one is free; `alive` counts those taken.
    pub fn acquire(alive: &Arc<AtomicU32>, limits: &Limits) -> Result<Self, Fault> {
        let below = |taken: u32| (taken < limits.instances).then_some(taken + 1);
        match alive.fetch_update(Ordering::AcqRel, Ordering::Acquire, below) {
            Ok(_) => Ok(Permit(alive.clone())),
            Err(_) => Err(Fault::Busy { instances: limits.instances }),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An instance of a circuit in a store of its own.
///
/// It serves one job. Its memories are mapped when it is made and unmapped when it is dropped, and the kernel zeroes
/// pages before it hands them out again: no other instance, and no other user of this process, sees what was in them.
pub(crate) struct Instance {
    store: Store<State>,
    guest: Guest,
    /// Set when a call trapped: the component can then not be entered again.
    dead: bool,
    shared: Arc<Shared>,
    // Dropped last, so that an instance counts as alive until its memory is gone.
    _permit: Permit,
}

impl Instance {
    /// Make an instance; `observer` watches it for as long as it lives.
    pub fn new(shared: &Arc<Shared>, observer: Arc<dyn Observer>) -> Result<Self, RunError> {
        let place = Place { export: Export::Instantiate, segment: None };
        let permit =
            Permit::acquire(&shared.alive, &shared.limits).map_err(|fault| shared.error(place, fault, None))?;
        let state = State::new(shared.limits.clone(), observer, place, shared.limits.deadline(Export::Instantiate));
        let mut store = Store::new(&shared.engine, state);
        store.limiter(|state| state);
        store.set_hostcall_fuel(HOST_CALL_BYTES_MAX);
        store.epoch_deadline_callback(|store| store.data().on_tick());
        store.set_epoch_deadline(1);
        let guest = guarded(|| shared.pre.instantiate(&mut store))
            .map_err(|(fault, backtrace)| shared.error(place, fault, backtrace))?;
        Ok(Instance { store, guest, dead: false, shared: shared.clone(), _permit: permit })
    }

    /// The data of the store, to lend a guest something before a call and to take it back afterwards.
    pub fn state(&mut self) -> &mut State {
        self.store.data_mut()
    }

    /// Call an export. A trap, a panic of the host and a limit all come back as an error that says where.
    pub fn call<R>(
        &mut self,
        place: Place,
        call: impl FnOnce(&Guest, &mut Store<State>) -> wasmtime::Result<R>,
    ) -> Result<R, RunError> {
        if self.dead {
            let fault = Fault::Trap("this instance trapped before and cannot be entered again: open a new job".into());
            return Err(self.error(place, fault));
        }
        let deadline = self.shared.limits.deadline(place.export);
        let state = self.store.data_mut();
        (state.place, state.deadline) = (place, deadline);
        self.store.set_epoch_deadline(1);
        let (guest, store) = (&self.guest, &mut self.store);
        guarded(|| call(guest, store)).map_err(|(fault, backtrace)| {
            self.dead = true;
            self.shared.error(place, fault, backtrace)
        })
    }

    /// An error at a place of this circuit.
    pub fn error(&self, place: Place, fault: Fault) -> RunError {
        self.shared.error(place, fault, None)
    }
}

impl Shared {
    /// An error at a place of this circuit.
    pub fn error(&self, place: Place, fault: Fault, backtrace: Option<Box<str>>) -> RunError {
        RunError { circuit: self.name.clone(), place, fault, backtrace }
    }
}

impl Limits {
    /// When a call that starts now is stopped.
    pub(crate) fn deadline(&self, export: Export) -> Deadline {
        let (limit, setting): (Duration, _) = match export {
            Export::Instantiate | Export::Describe | Export::Plan => (self.plan_time, "plan_time"),
            Export::RecordShape => (self.record_shape_time, "record_shape_time"),
            Export::Open => (self.open_time, "open_time"),
            Export::Assign | Export::Inputs | Export::Witness => (self.assign_time, "assign_time"),
        };
        // A limit beyond what the clock can express is as good as a century.
        let now = Instant::now();
        let at = now.checked_add(limit).unwrap_or_else(|| now + Duration::from_secs(100 * 365 * 24 * 3600));
        Deadline { at, limit, setting }
    }
}

/// What went wrong and the guest's stack at the time.
pub(crate) type Failure = (Fault, Option<Box<str>>);

/// Run guest code. A panic of the host costs the instance, not the process.
pub(crate) fn guarded<R>(call: impl FnOnce() -> wasmtime::Result<R>) -> Result<R, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(diagnose(error)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message");
            Err((Fault::HostPanic(text.to_owned()), None))
        }
    }
}

/// What an error of wasmtime means to the reader, and the guest's stack at the time.
fn diagnose(error: wasmtime::Error) -> Failure {
    let backtrace = error.downcast_ref::<WasmBacktrace>().map(frames).filter(|text| !text.is_empty());
    let fault = match (error.downcast_ref::<Fault>(), error.downcast_ref::<Trap>()) {
        (Some(fault), _) => fault.clone(),
        (None, Some(trap)) => Fault::Trap(explain(*trap)),
        (None, None) => unnamed(&error.root_cause().to_string()),
    };
    (fault, backtrace)
}

/// A failure for which wasmtime has a text and no type: a list that is misaligned or out of bounds, a handle that does
/// not exist, a call with more bytes than [`HOST_CALL_BYTES_MAX`].
fn unnamed(text: &str) -> Fault {
    if text.contains("fuel allocated for hostcalls") {
        return Fault::Misuse(format!("one call carried more than {HOST_CALL_BYTES_MAX} bytes: send less at a time"));
    }
    Fault::Trap(printable(text))
}

/// A trap in words, with what usually causes it.
fn explain(trap: Trap) -> String {
    match trap {
        Trap::UnreachableCodeReached => {
            "it stopped itself (`unreachable`), which is how a panic ends; its message is in the log, if the log is on"
        }
        Trap::StackOverflow => "it overflowed its stack: it recurses too deeply",
        Trap::MemoryOutOfBounds => "it accessed memory out of bounds",
        _ => return trap.to_string(),
    }
    .to_owned()
}

/// The guest's stack, innermost first, demangled. Names come from the component, so they are made printable.
fn frames(backtrace: &WasmBacktrace) -> Box<str> {
    printable_lines(&backtrace.to_string()).into()
}
