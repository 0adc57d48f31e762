//! Does a component fit the contract? Answered before anything is compiled, in sentences an author can act on.

mod signature;

use crate::engine::{FEATURES, without_wide_arithmetic};
use crate::error::printable;
use crate::limits::{Limits, grouped};
use signature::signature;
use std::collections::BTreeMap;
use wasmparser::{CanonicalFunction, CanonicalOption, MemoryType, Operator, Parser, Payload, Validator, WasmFeatures};
use wit_component::{DecodedWasm, decode};
use wit_parser::{InterfaceId, Resolve, WorldId, WorldItem, WorldKey};

/// The contract, the very file that guests are built against.
pub const CONTRACT: &str = include_str!("../../../wit/v0.1/circuit.wit");

/// The package and version that this host serves.
const PACKAGE: &str = "zkhost:circuit";
const VERSION: &str = "0.1.0";

/// Bytes of a page of linear memory.
pub(crate) const PAGE_BYTES: u64 = 65_536;

/// What is known of a component before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// The interfaces it imports, with their versions.
    pub imports: Vec<String>,
    /// The interfaces it exports, with their versions.
    pub exports: Vec<String>,
    /// Bytes of linear memory that it starts with.
    pub memory_bytes: u64,
    /// Whether it uses wide arithmetic. A circuit built without it multiplies in Fr ten times slower, and Sapling
    /// Spend's witness takes five times as long.
    pub wide_arithmetic: bool,
}

/// Examine a component: whether it is one, whether the sandbox runs what it uses, and whether it fits world `guest`.
///
/// The error has one sentence a line; each says what was found, what was expected and what to do.
pub fn examine(component: &[u8], limits: &Limits) -> Result<Examination, String> {
    examine_with(component, limits, *FEATURES)
}

/// As [`examine`], as a host answers whose sandbox has no wide arithmetic: for tests, which run where it is there.
#[doc(hidden)]
pub fn examine_without_wide_arithmetic(component: &[u8], limits: &Limits) -> Result<Examination, String> {
    examine_with(component, limits, without_wide_arithmetic(*FEATURES))
}

fn examine_with(component: &[u8], limits: &Limits, features: WasmFeatures) -> Result<Examination, String> {
    check_size(component, limits)?;
    check_is_component(component)?;
    let found = scan(component, limits)?;
    if found.wide_arithmetic && !features.contains(WasmFeatures::WIDE_ARITHMETIC) {
        return Err("the component needs wide arithmetic (such as `i64.mul_wide_u`), which this host's sandbox does not run \
                    on this machine: build it with `zkhost build --no-wide-arithmetic`, and expect field products to take \
                    ten times as long, or use another host"
            .to_owned());
    }
    check_features(component, features)?;
    let decoded = decode(component).map_err(|error| {
        format!("the component's interface cannot be read: {error:#}. Build it with `zkhost build`")
    })?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(
            "this is an encoded WIT package, which has types and no code; the component of a circuit is needed, \
                    such as `zkhost build` makes"
                .to_owned(),
        );
    };
    let complaints = compare(&resolve, world);
    if !complaints.is_empty() {
        let head = format!("the component does not fit world `guest` of {PACKAGE}@{VERSION}:");
        return Err(std::iter::once(head).chain(complaints).collect::<Vec<_>>().join("\n  - "));
    }
    let world = &resolve.worlds[world];
    let imports = world.imports.keys().map(|key| resolve.name_world_key(key)).collect();
    let exports = world.exports.keys().map(|key| resolve.name_world_key(key)).collect();
    Ok(Examination { imports, exports, memory_bytes: found.memory_bytes, wide_arithmetic: found.wide_arithmetic })
}

/// Refuse a component that is larger than its limit.
pub(crate) fn check_size(component: &[u8], limits: &Limits) -> Result<(), String> {
    let (bytes, limit) = (component.len() as u64, limits.component_bytes);
    if bytes > limit {
        return Err(format!(
            "the file has {} bytes; the limit is {} bytes (setting `component_bytes`)",
            grouped(bytes),
            grouped(limit)
        ));
    }
    Ok(())
}

/// The first bytes of a file tell what it is.
fn check_is_component(bytes: &[u8]) -> Result<(), String> {
    if bytes.is_empty() {
        return Err("the file is empty; a component such as `zkhost build` makes was expected".to_owned());
    }
    if !bytes.starts_with(b"\0asm") {
        let hint = if bytes.trim_ascii_start().starts_with(b"(") {
            "it looks like the text format: assemble it first"
        } else {
            "it does not start with the bytes of one"
        };
        return Err(format!(
            "the file is not WebAssembly ({hint}); a component such as `zkhost build` makes was expected"
        ));
    }
    let cut = || "the file is truncated: it ends within its first section; copy or build it again".to_owned();
    match bytes.get(4..8).ok_or_else(cut)? {
        [0x0d, 0, 1, 0] => Ok(()),
        [1, 0, 0, 0] => {
            Err("the file is a core module, not a component; make a component of it with `zkhost build`, or \
                             with `wasm-tools component new` if it was built against the contract"
                .to_owned())
        }
        version => Err(format!(
            "the file is WebAssembly of an unknown kind ({version:02x?}); a component (0d 00 01 00) was expected"
        )),
    }
}

/// What a scan of the binary found.
struct Found {
    memory_bytes: u64,
    wide_arithmetic: bool,
}

/// Walk through a component and the modules in it for what validation does not explain.
fn scan(component: &[u8], limits: &Limits) -> Result<Found, String> {
    let mut found = Found { memory_bytes: 0, wide_arithmetic: false };
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(|error| malformed(&error))? {
            Payload::MemorySection(memories) => {
                for memory in memories {
                    let pages = checked_memory(memory.map_err(|error| malformed(&error))?)?;
                    found.memory_bytes = found.memory_bytes.saturating_add(pages.saturating_mul(PAGE_BYTES));
                }
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions {
                    check_options(&function.map_err(|error| malformed(&error))?)?;
                }
            }
            Payload::CodeSectionEntry(body) if !found.wide_arithmetic => {
                let mut operators = body.get_operators_reader().map_err(|error| malformed(&error))?;
                while !operators.eof() && !found.wide_arithmetic {
                    let operator = operators.read().map_err(|error| malformed(&error))?;
                    found.wide_arithmetic = is_wide(&operator);
                }
            }
            _ => {}
        }
    }
    if found.memory_bytes > limits.memory_bytes {
        return Err(format!(
            "the component starts with {} bytes of memory; the limit is {} bytes (setting `memory_bytes`)",
            grouped(found.memory_bytes),
            grouped(limits.memory_bytes)
        ));
    }
    Ok(found)
}

/// The pages a memory starts with, if it is of the plain kind.
pub(crate) fn checked_memory(memory: MemoryType) -> Result<u64, String> {
    let kind = match memory {
        MemoryType { shared: true, .. } => {
            "shared memory: circuits run on many threads by segments, not by threads of \
                                            their own"
        }
        MemoryType { memory64: true, .. } => "64-bit memory: cut a large circuit into segments instead",
        MemoryType { page_size_log2: Some(log2), .. } if log2 != 16 => "memory with pages of another size than 64 KiB",
        plain => return Ok(plain.initial),
    };
    Err(format!("the file uses {kind}; build it for wasm32-unknown-unknown without threads, as `zkhost build` does"))
}

/// Strings are UTF-8 here, and nothing is asynchronous.
fn check_options(function: &CanonicalFunction) -> Result<(), String> {
    let (CanonicalFunction::Lift { options, .. } | CanonicalFunction::Lower { options, .. }) = function else {
        return Ok(());
    };
    for option in options.iter() {
        let what = match option {
            CanonicalOption::UTF16 | CanonicalOption::CompactUTF16 => "strings in UTF-16; the contract's are UTF-8",
            CanonicalOption::Async | CanonicalOption::Callback(_) => "asynchronous functions; the contract has none",
            _ => continue,
        };
        return Err(format!("the component uses {what}: change how its bindings are generated"));
    }
    Ok(())
}

fn is_wide(operator: &Operator<'_>) -> bool {
    matches!(operator, Operator::I64Add128 | Operator::I64Sub128 | Operator::I64MulWideS | Operator::I64MulWideU)
}

/// Validate with the features of the sandbox.
fn check_features(component: &[u8], features: WasmFeatures) -> Result<(), String> {
    match Validator::new_with_features(features).validate_all(component) {
        Ok(_) => Ok(()),
        Err(error) => Err(malformed(&error)),
    }
}

/// A sentence for what the validator or parser says, which knows more proposals than the sandbox runs.
pub(crate) fn malformed(error: &wasmparser::BinaryReaderError) -> String {
    let (message, offset) = (printable(error.message()), error.offset());
    if message.contains("unexpected end") || message.contains("unexpected EOF") {
        return format!("the file is truncated or damaged at byte {offset} ({message}); copy or build it again");
    }
    if message.contains("not enabled") || message.contains("requires the") {
        return format!(
            "the component uses a WebAssembly feature that the sandbox leaves off ({message}, at byte {offset}); build it \
             as `zkhost build` does"
        );
    }
    format!("the file is not a valid component: {message} (at byte {offset}); build it again")
}

/// What keeps a component from fitting world `guest`, one sentence each; nothing if it fits.
fn compare(resolve: &Resolve, world: WorldId) -> Vec<String> {
    let contract = Contract::parse();
    let mut complaints = Vec::new();
    let world = &resolve.worlds[world];
    for (key, item) in &world.imports {
        let name = resolve.name_world_key(key);
        match item {
            WorldItem::Interface { id, .. } => complaints.extend(contract.complain_of_import(resolve, &name, *id)),
            WorldItem::Function(_) => complaints.push(format!(
                "it imports function `{name}` by itself; this host offers only the interfaces of {PACKAGE}@{VERSION}"
            )),
            WorldItem::Type { .. } => {}
        }
    }
    for (name, expected) in &contract.exports {
        let found = world.exports.iter().find(|(key, _)| resolve.name_world_key(key) == *name);
        let Some((_, WorldItem::Interface { id, .. })) = found else {
            let found: Vec<_> = world.exports.keys().map(|key| resolve.name_world_key(key)).collect();
            let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
            complaints.push(format!(
                "it does not export `{name}`, but {found}: export a circuit with zkhost-guest {VERSION}'s `export_circuit!`"
            ));
            continue;
        };
        let functions = signatures(resolve, *id);
        for (function, expected) in expected {
            match functions.get(function) {
                None => complaints.push(format!("its `{name}` lacks `{function}`, which version {VERSION} requires")),
                Some(found) if found != expected => complaints.push(differs(name, function, found, expected)),
                Some(_) => {}
            }
        }
    }
    complaints
}

fn differs(interface: &str, function: &str, found: &str, expected: &str) -> String {
    format!("`{function}` of `{interface}` is `{found}`; version {VERSION} has `{expected}`")
}

/// The functions of an interface by name, and their types spelt out.
type Signatures = BTreeMap<String, String>;

/// The contract's interfaces.
struct Contract {
    imports: BTreeMap<String, Signatures>,
    exports: BTreeMap<String, Signatures>,
}

impl Contract {
    fn parse() -> Self {
        let mut resolve = Resolve::default();
        let package = resolve.push_source("circuit.wit", CONTRACT).expect("the contract is well-formed WIT");
        let world = resolve.select_world(&[package], Some("guest")).expect("the contract has world `guest`");
        let interfaces = |items: &mut dyn Iterator<Item = (&WorldKey, &WorldItem)>| {
            let interface = |(key, item): (&WorldKey, &WorldItem)| match item {
                WorldItem::Interface { id, .. } => Some((resolve.name_world_key(key), signatures(&resolve, *id))),
                _ => None,
            };
            items.filter_map(interface).collect()
        };
        let world = &resolve.worlds[world];
        Contract { imports: interfaces(&mut world.imports.iter()), exports: interfaces(&mut world.exports.iter()) }
    }

    /// What is wrong with an imported interface.
    fn complain_of_import(&self, resolve: &Resolve, name: &str, id: InterfaceId) -> Vec<String> {
        let Some(expected) = self.imports.get(name) else { return vec![unknown_import(name)] };
        let complain = |(function, found): (String, String)| match expected.get(&function) {
            None => Some(format!("it imports `{function}` of `{name}`, which version {VERSION} does not have")),
            Some(expected) if *expected != found => Some(differs(name, &function, &found, expected)),
            Some(_) => None,
        };
        signatures(resolve, id).into_iter().filter_map(complain).collect()
    }
}

fn unknown_import(name: &str) -> String {
    if name.starts_with("wasi:") {
        return format!(
            "it imports `{name}`: a circuit has no clock, randomness, files or sockets. It was built with a WASI target or \
             an engine that needs one; build it for wasm32-unknown-unknown, as `zkhost build` does"
        );
    }
    if name.strip_prefix(PACKAGE).is_some_and(|rest| rest.starts_with('/')) {
        return format!(
            "it imports `{name}`; this host serves {PACKAGE}@{VERSION}: rebuild the circuit with zkhost-guest {VERSION}, \
             or use a host of that version"
        );
    }
    format!("it imports `{name}`, which this host does not offer; it offers only the interfaces of {PACKAGE}@{VERSION}")
}

fn signatures(resolve: &Resolve, id: InterfaceId) -> Signatures {
    let functions = resolve.interfaces[id].functions.iter();
    functions.map(|(name, function)| (name.clone(), signature(resolve, function))).collect()
}
