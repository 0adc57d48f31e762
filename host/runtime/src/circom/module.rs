//! What a witness module imports and exports.

use super::bad_input;
use crate::engine;
use crate::error::{Export, Fault, Place, Refusal, printable};
use crate::limits::{Limits, grouped};
use crate::observer::{Level, Observer};
use crate::state::{Deadline, State};
use crate::world;
use std::borrow::Cow;
use std::sync::Arc;
use wasmparser::{Parser, Payload, TypeRef, Validator};
use wasmtime::{
    Caller, Instance, InstancePre, Linker, Memory, Module, Result, Store, TypedFunc, WasmParams, WasmResults,
};

/// Words of 32 bits in the shared slot: one element of the field.
pub(super) const SLOT_WORDS: i32 = 8;

/// Bytes of messages that are kept of one run.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The module that functions are imported from.
const RUNTIME: &str = "runtime";
/// What there is to import.
const IMPORTS: [&str; 4] = ["exceptionHandler", "printErrorMessage", "writeBufferMessage", "showSharedRWMemory"];

/// Check a file before it is compiled: a core module of the sandbox's features, plain memory within the limits, and no
/// import but circom's.
pub(crate) fn examine(module: &[u8], limits: &Limits) -> Result<(), String> {
    world::check_size(module, limits)?;
    if !module.starts_with(b"\0asm\x01\0\0\0") {
        return Err("the file is no WebAssembly module; the one that `circom --wasm` writes was expected".into());
    }
    let mut bytes = 0u64;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| world::malformed(&error))? {
            Payload::MemorySection(memories) => {
                for memory in memories {
                    let pages = world::checked_memory(memory.map_err(|error| world::malformed(&error))?)?;
                    bytes = bytes.saturating_add(pages.saturating_mul(world::PAGE_BYTES));
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(|error| world::malformed(&error))?;
                    let known = import.module == RUNTIME && IMPORTS.contains(&import.name);
                    if !known || !matches!(import.ty, TypeRef::Func(_)) {
                        return Err(format!(
                            "it imports `{}` of `{}`; a witness module of circom 2 imports nothing but {} of `{RUNTIME}`: compile the \
                             circuit with circom 2",
                            import.name,
                            import.module,
                            IMPORTS.join(", ")
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    if bytes > limits.memory_bytes {
        return Err(format!(
            "the module starts with {} bytes of memory; the limit is {} bytes (setting `memory_bytes`)",
            grouped(bytes),
            grouped(limits.memory_bytes)
        ));
    }
    match Validator::new_with_features(*engine::FEATURES).validate_all(module) {
        Ok(_) => Ok(()),
        Err(error) => Err(world::malformed(&error)),
    }
}

/// What is compiled of a module that was examined: itself, with faster arithmetic where this machine has it.
pub(crate) fn prepare(module: &[u8]) -> Cow<'_, [u8]> {
    if !engine::FEATURES.wide_arithmetic() {
        return module.into();
    }
    match super::widen(module) {
        Ok(widened) => widened.module.into(),
        // The compiler says what is wrong with it.
        Err(_) => module.into(),
    }
}

/// The data of a witness module's store.
pub(crate) struct Host {
    /// Its limits and clock.
    pub state: State,
    /// The signal that is being set, for errors.
    pub signal: String,
    /// What the module said before an exception: templates and lines.
    messages: String,
    /// The line of log that is being put together.
    line: String,
}

impl Host {
    pub fn new(limits: Arc<Limits>, observer: Arc<dyn Observer>, deadline: Deadline) -> Self {
        let place = Place { export: Export::Instantiate, segment: None };
        let state = State::new(limits, observer, place, deadline);
        Host { state, signal: String::new(), messages: String::new(), line: String::new() }
    }

    /// An exception of the module as a fault.
    fn exception(&self, code: i32) -> Fault {
        let because = match self.messages.trim() {
            "" => String::new(),
            messages => format!(": {}", messages.lines().map(str::trim).collect::<Vec<_>>().join("; ")),
        };
        let refused = |kind, what: &str| Fault::Refused { kind, message: printable(&format!("{what}{because}")) };
        let signal = &self.signal;
        match code {
            1 => bad_input(format!("the circuit has no input signal `{signal}`")),
            2 => bad_input(format!("signal `{signal}` is given although all of the circuit's input signals are set")),
            3 => bad_input(format!("signal `{signal}` is set twice")),
            4 => refused(Refusal::Unsatisfied, "an assertion of the circuit fails"),
            5 => refused(Refusal::Internal, "the module's own memory is full"),
            6 => bad_input(format!("signal `{signal}` has fewer elements than the input has for it")),
            7 => refused(Refusal::Internal, "the circuit accesses an array out of its bounds"),
            code => refused(Refusal::Internal, &format!("the module reports the unknown error {code}")),
        }
    }
}

/// Append within [`MESSAGE_BYTES_MAX`].
fn append(text: &mut String, more: &str) {
    let room = MESSAGE_BYTES_MAX.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}

/// The module's message: its characters one by one, ended by a zero.
fn message(caller: &mut Caller<'_, Host>) -> Result<String> {
    let Some(character) = caller.get_export("getMessageChar").and_then(|export| export.into_func()) else {
        return Ok(String::new());
    };
    let character = character.typed::<(), i32>(&*caller)?;
    let mut message = String::new();
    while message.len() < MESSAGE_BYTES_MAX {
        match character.call(&mut *caller, ())? as u8 {
            0 => break,
            byte => message.push(char::from(byte)),
        }
    }
    Ok(message)
}

/// Give a module its imports. Types that differ from circom's are refused here.
pub(crate) fn link(module: &Module) -> Result<InstancePre<Host>> {
    let mut linker = Linker::new(module.engine());
    linker.func_wrap(RUNTIME, "exceptionHandler", |mut caller: Caller<'_, Host>, code: i32| -> Result<()> {
        // Modules before circom 2.0.7 do not print their message but leave it to be fetched.
        if caller.data().messages.is_empty() {
            let text = message(&mut caller)?;
            append(&mut caller.data_mut().messages, &text);
        }
        Err(caller.data().exception(code).into())
    })?;
    linker.func_wrap(RUNTIME, "printErrorMessage", |mut caller: Caller<'_, Host>| -> Result<()> {
        let text = message(&mut caller)?;
        append(&mut caller.data_mut().messages, &(text + "\n"));
        Ok(())
    })?;
    linker.func_wrap(RUNTIME, "writeBufferMessage", |mut caller: Caller<'_, Host>| -> Result<()> {
        let text = message(&mut caller)?;
        let host = caller.data_mut();
        // A line feed by itself ends a call of `log`.
        match text == "\n" {
            true => host.state.log_line(Level::Info, &std::mem::take(&mut host.line)),
            false => {
                append(&mut host.line, &text);
                append(&mut host.line, " ");
            }
        }
        Ok(())
    })?;
    linker.func_wrap(RUNTIME, "showSharedRWMemory", |mut caller: Caller<'_, Host>| -> Result<()> {
        // A value of the witness: read only for who wants to see it.
        if !caller.data().state.observer.wants_logs() {
            return Ok(());
        }
        let read = caller.get_export("readSharedRWMemory").and_then(|export| export.into_func());
        let Some(read) = read else { return Ok(()) };
        let read = read.typed::<i32, i32>(&caller)?;
        let words = (0..SLOT_WORDS).rev().map(|word| read.call(&mut caller, word)).collect::<Result<Vec<_>>>()?;
        let digits: String = words.iter().map(|word| format!("{word:08x}")).collect();
        let digits = match digits.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        // Before circom 2.0.7, when modules began to tell their minor version, a value was a whole call of `log`.
        let whole_line = caller.get_export("getMinorVersion").is_none();
        let host = caller.data_mut();
        append(&mut host.line, &format!("0x{digits} "));
        if whole_line {
            host.state.log_line(Level::Info, &std::mem::take(&mut host.line));
        }
        Ok(())
    })?;
    linker.instantiate_pre(module)
}

/// What the host calls.
pub(super) struct Exports {
    pub memory: Memory,
    pub field_words: TypedFunc<(), i32>,
    pub raw_prime: TypedFunc<(), ()>,
    pub slot_start: TypedFunc<(), i32>,
    pub init: TypedFunc<i32, ()>,
    pub set_input_signal: TypedFunc<(i32, i32, i32), ()>,
    pub witness_size: TypedFunc<(), i32>,
    pub get_witness: TypedFunc<i32, ()>,
    /// Missing in the earliest modules.
    pub input_signal_size: Option<TypedFunc<(i32, i32), i32>>,
    /// Missing in the earliest modules.
    pub input_size: Option<TypedFunc<(), i32>>,
}

impl Exports {
    pub fn of(store: &mut Store<Host>, instance: &Instance) -> Result<Self, Fault> {
        if let Some(version) = optional::<(), i32>(store, instance, "getVersion")? {
            let version = version.call(&mut *store, ()).map_err(|error| Fault::Trap(printable(&error.to_string())))?;
            if version != 2 {
                return Err(Fault::Contradiction(format!(
                    "the module is of circom {version}; compile the circuit with circom 2"
                )));
            }
        }
        let memory = instance.get_memory(&mut *store, "memory").ok_or_else(|| lacks("memory"))?;
        Ok(Exports {
            memory,
            field_words: required(store, instance, "getFieldNumLen32")?,
            raw_prime: required(store, instance, "getRawPrime")?,
            slot_start: required(store, instance, "getSharedRWMemoryStart")?,
            init: required(store, instance, "init")?,
            set_input_signal: required(store, instance, "setInputSignal")?,
            witness_size: required(store, instance, "getWitnessSize")?,
            get_witness: required(store, instance, "getWitness")?,
            input_signal_size: optional(store, instance, "getInputSignalSize")?,
            input_size: optional(store, instance, "getInputSize")?,
        })
    }
}

fn lacks(name: &str) -> Fault {
    Fault::Contradiction(format!(
        "the module does not export `{name}` as circom's witness modules do; give the one that `circom --wasm` writes"
    ))
}

fn optional<P: WasmParams, R: WasmResults>(
    store: &mut Store<Host>,
    instance: &Instance,
    name: &str,
) -> Result<Option<TypedFunc<P, R>>, Fault> {
    let Some(function) = instance.get_func(&mut *store, name) else { return Ok(None) };
    function.typed(&*store).map(Some).map_err(|_| lacks(name))
}

fn required<P: WasmParams, R: WasmResults>(
    store: &mut Store<Host>,
    instance: &Instance,
    name: &str,
) -> Result<TypedFunc<P, R>, Fault> {
    optional(store, instance, name)?.ok_or_else(|| lacks(name))
}
