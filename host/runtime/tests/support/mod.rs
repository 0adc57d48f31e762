//! Guests written in the text format, small enough to misbehave in exactly one way, and what tests do with them.
#![allow(dead_code, missing_docs)]

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;
use zkhost_groth16::R1cs;
use zkhost_runtime::{
    CONTRACT, Circuit, Compiler, Fault, Input, Layout, Level, Limits, Observer, Place, RunError, Runtime, Synthesis,
};

/// A guest in pieces. By default it is a whole circuit: one public x, private a and b, a * b = x, here 2 * 3 = 6.
///
/// Bodies are instructions in the text format. `$out` and `$blob` are the handles lent, `$partition` and `$segment` the
/// arguments of `assign`. Memory from 4,096 to 32,768 is for `data`.
#[derive(Clone)]
pub struct Guest {
    pub pages: u32,
    pub data: String,
    pub functions: String,
    pub describe: String,
    pub plan: String,
    pub record_shape: String,
    pub open: String,
    pub assign: String,
    pub start: String,
}

pub const MASKS: u32 = 4096;
pub const ELEMENTS: u32 = 8192;
pub const PUBLICS: u32 = 16384;
const SHAPE: u32 = 20480;

/// A data segment of u64 at an address.
pub fn words(address: u32, words: &[u64]) -> String {
    let bytes: String = words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("\\{b:02x}")).collect();
    format!("(data (i32.const {address}) \"{bytes}\")\n")
}

/// A data segment of u32 at an address.
pub fn half_words(address: u32, words: &[u32]) -> String {
    let bytes: String = words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("\\{b:02x}")).collect();
    format!("(data (i32.const {address}) \"{bytes}\")\n")
}

/// A call of `write-groups` with lists at [`MASKS`] and [`ELEMENTS`].
pub fn write_groups(masks: u32, elements: u32) -> String {
    format!(
        "(call $write_groups (local.get $out) (i32.const {MASKS}) (i32.const {masks}) (i32.const {ELEMENTS}) \
         (i32.const {elements}))\n"
    )
}

/// A call of `write-public` with a list at [`PUBLICS`].
pub fn write_public(words: u32) -> String {
    format!("(call $write_public (local.get $out) (i32.const {PUBLICS}) (i32.const {words}))\n")
}

/// A body of `plan`: partitions, and segments as (first aux, aux count, max full).
pub fn plan_of(partitions: u32, segments: &[(u64, u64, u64)]) -> String {
    let mut body = format!(
        "(i32.store (i32.const 4) (i32.const {partitions}))\n(i32.store8 (i32.const 8) (i32.const 0))\n\
         (i32.store (i32.const 16) (i32.const {}))\n\
         (i32.store (i32.const 12) (local.tee $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const {}))))\n",
        segments.len(),
        32 * segments.len()
    );
    for (i, (first, count, full)) in segments.iter().enumerate() {
        for (offset, value) in [(0, *first), (8, *count), (16, *full), (24, 1)] {
            let at = 32 * i + offset;
            body += &format!("(i64.store offset={at} (local.get $at) (i64.const {}))\n", value as i64);
        }
    }
    body
}

/// Counts that `record-shape` answers.
pub fn counts(publics: u64, aux: u64, constraints: u64) -> String {
    let mut body = String::new();
    for (at, value) in [(8, publics), (16, aux), (24, constraints)] {
        body += &format!("(i64.store (i32.const {at}) (i64.const {}))\n", value as i64);
    }
    body
}

/// The rows of a * b = x, for `record_shape`.
pub fn record_product() -> String {
    let row = |matrix: u32, column: u32| {
        format!(
            "(call $add_rows (local.get $out) (i32.const {matrix}) (i32.const {SHAPE}) (i32.const 1) \
             (i32.const {column}) (i32.const 1) (i32.const {}) (i32.const 1))\n",
            SHAPE + 4
        )
    };
    format!(
        "(drop (call $add_coefficients (local.get $out) (i32.const {}) (i32.const 4)))\n{}{}{}",
        SHAPE + 32,
        row(0, SHAPE + 8),
        row(1, SHAPE + 12),
        row(2, SHAPE + 16)
    )
}

impl Default for Guest {
    fn default() -> Self {
        let data = words(MASKS, &[0b11, 0])
            + &words(ELEMENTS, &[2, 0, 0, 0, 3, 0, 0, 0])
            + &words(PUBLICS, &[6, 0, 0, 0])
            // One term a row, its coefficient's index, columns aux 0, aux 1 and public 1, the coefficient 1.
            + &half_words(SHAPE, &[1, 0, 0, 1, 0x8000_0001])
            + &words(SHAPE + 32, &[1, 0, 0, 0]);
        Guest {
            pages: 2,
            data,
            functions: String::new(),
            describe: String::new(),
            plan: plan_of(1, &[(0, 0, 0)]),
            record_shape: record_product() + &counts(1, 2, 1),
            open: String::new(),
            assign: write_public(4) + &write_groups(2, 8),
            start: String::new(),
        }
    }
}

impl Guest {
    /// The core module. Results are returned in memory below 1,024: a discriminant of 0, which is `ok`, and the payload.
    pub fn module(&self) -> String {
        let Guest { pages, data, functions, describe, plan, record_shape, open, assign, start } = self;
        format!(
            r#"(module
  (import "zkhost:circuit/sink@0.1.0" "[method]witness.write-groups"
    (func $write_groups (param i32 i32 i32 i32 i32)))
  (import "zkhost:circuit/sink@0.1.0" "[method]witness.write-public" (func $write_public (param i32 i32 i32)))
  (import "zkhost:circuit/sink@0.1.0" "[resource-drop]witness" (func $drop_witness (param i32)))
  (import "zkhost:circuit/sink@0.1.0" "[method]shape.add-coefficients"
    (func $add_coefficients (param i32 i32 i32) (result i32)))
  (import "zkhost:circuit/sink@0.1.0" "[method]shape.add-rows"
    (func $add_rows (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "zkhost:circuit/sink@0.1.0" "[method]shape.name-rows" (func $name_rows (param i32 i32 i32)))
  (import "zkhost:circuit/sink@0.1.0" "[resource-drop]shape" (func $drop_shape (param i32)))
  (import "zkhost:circuit/source@0.1.0" "[method]blob.size" (func $size (param i32) (result i64)))
  (import "zkhost:circuit/source@0.1.0" "[method]blob.read" (func $read (param i32 i64 i32 i32)))
  (import "zkhost:circuit/source@0.1.0" "[resource-drop]blob" (func $drop_blob (param i32)))
  (import "zkhost:circuit/report@0.1.0" "log" (func $log (param i32 i32 i32)))
  (import "zkhost:circuit/report@0.1.0" "progress" (func $progress (param i64) (result i32)))
  (import "zkhost:circuit/accel@0.1.0" "invert-one" (func $invert_one (param i64 i64 i64 i64 i32)))
  (import "[export]zkhost:circuit/circuit@0.1.0" "[resource-new]job" (func $new_job (param i32) (result i32)))
  (memory (export "memory") {pages})
  (global $heap (mut i32) (i32.const 65536))
  (global $calls (mut i32) (i32.const 0))
  (table $table 1 funcref)
  {data}
  (data (i32.const 2048) "tiny1")
  (func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (block $enough (loop $more
      (br_if $enough (i32.le_u (i32.shr_u (global.get $heap) (i32.const 16)) (i32.sub (memory.size) (i32.const 1))))
      (drop (memory.grow (i32.const 1)))
      (br $more)))
    (local.get $at))
  {functions}
  (func (export "_initialize") {start})
  (func (export "zkhost:circuit/circuit@0.1.0#describe") (result i32)
    (i32.store (i32.const 0) (i32.const 2048)) (i32.store (i32.const 4) (i32.const 4))
    (i32.store (i32.const 8) (i32.const 2052)) (i32.store (i32.const 12) (i32.const 1))
    (i64.store (i32.const 16) (i64.const 0)) (i64.store (i32.const 24) (i64.const 0)) (i64.store (i32.const 32) (i64.const 0))
    {describe}
    (i32.const 0))
  (func (export "zkhost:circuit/circuit@0.1.0#plan") (param $params i32) (param $len i32) (result i32)
    (local $at i32)
    (i32.store8 (i32.const 0) (i32.const 0))
    {plan}
    (i32.const 0))
  (func (export "zkhost:circuit/circuit@0.1.0#record-shape")
    (param $params i32) (param $len i32) (param $names i32) (param $out i32) (result i32)
    (i32.store8 (i32.const 0) (i32.const 0))
    {record_shape}
    (call $drop_shape (local.get $out))
    (i32.const 0))
  (func (export "zkhost:circuit/circuit@0.1.0#[static]job.open")
    (param $params i32) (param $len i32) (param $blob i32) (result i32)
    (i32.store8 (i32.const 0) (i32.const 0))
    (i32.store (i32.const 4) (call $new_job (i32.const 7)))
    {open}
    (call $drop_blob (local.get $blob))
    (i32.const 0))
  (func (export "zkhost:circuit/circuit@0.1.0#[method]job.assign")
    (param $job i32) (param $partition i32) (param $segment i32) (param $out i32) (result i32)
    (i32.store8 (i32.const 0) (i32.const 0))
    {assign}
    (call $drop_witness (local.get $out))
    (i32.const 0))
  (func (export "zkhost:circuit/circuit@0.1.0#[dtor]job") (param i32)))"#
        )
    }

    /// The component.
    pub fn component(&self) -> Vec<u8> {
        component(&self.module(), CONTRACT, "guest")
    }

    /// The circuit, loaded with these limits by the runtime that all tests of a file share.
    pub fn load(&self, limits: Limits) -> Circuit {
        RUNTIME.load("tiny", &self.component(), limits).expect("the guest loads")
    }
}

/// A component from a core module and the world it was written for.
pub fn component(module: &str, wit: &str, world: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_source("test.wit", wit).expect("the WIT of the test parses");
    let world = resolve.select_world(&[package], Some(world)).expect("the world exists");
    let mut module = wat::parse_str(module).expect("the module of the test parses");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata embeds");
    ComponentEncoder::default().module(&module).and_then(|mut encoder| encoder.encode()).expect("the component encodes")
}

pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new(Compiler::InProcess, None).expect("it starts"));

/// A component that `make guests` builds.
pub fn built_guest(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-circuits/target/components"));
    let path = folder.join(name).with_extension("wasm");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run `make guests` first", path.display()))
}

/// Everything from plan to assignment, one thread.
pub fn run(circuit: &Circuit, params: &[u8], input: &[u8]) -> Result<Ran, RunError> {
    let input = Input::from(input.to_vec());
    let layout = circuit.plan(params)?;
    let shape = circuit.record_shape(params, false)?;
    let job = Synthesis { params, input: &input, layout: &layout, shape: &shape };
    let assignments = circuit.synthesise(job, 0..layout.partitions, 1)?;
    Ok(Ran { layout, shape, assignments })
}

pub struct Ran {
    pub layout: Layout,
    pub shape: R1cs,
    pub assignments: Vec<zkhost_groth16::Assignment>,
}

/// The whole run fails, and its error says all of these things.
pub fn check_fails(circuit: &Circuit, expected: &[&str]) -> Fault {
    let error = match run(circuit, b"", b"") {
        Ok(_) => panic!("the run succeeded; expected an error with {expected:?}"),
        Err(error) => error,
    };
    check_says(&error.to_string(), expected);
    error.fault
}

/// A text has all of these parts.
pub fn check_says(text: &str, expected: &[&str]) {
    for part in expected {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// Collects what a guest reports; can cancel it.
#[derive(Default)]
pub struct Recorded {
    pub lines: Mutex<Vec<(Level, String)>>,
    pub progress: Mutex<Vec<u64>>,
    pub cancel: std::sync::atomic::AtomicBool,
}

impl Observer for Recorded {
    fn wants_logs(&self) -> bool {
        true
    }
    fn log(&self, _place: Place, level: Level, line: &str) {
        self.lines.lock().unwrap().push((level, line.to_owned()));
    }
    fn progress(&self, _place: Place, done: u64) {
        self.progress.lock().unwrap().push(done);
    }
    fn cancelled(&self) -> bool {
        self.cancel.load(std::sync::atomic::Ordering::Relaxed)
    }
}

pub fn observed(circuit: &Circuit) -> (Circuit, Arc<Recorded>) {
    let recorded = Arc::new(Recorded::default());
    (circuit.observed(recorded.clone()), recorded)
}
