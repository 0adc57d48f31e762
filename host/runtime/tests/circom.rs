//! circom's witness modules, written by hand to misbehave in one way each: every act gets its sentence, within the limits.

mod support;

use std::time::Duration;
use support::{RUNTIME, check_says};
use zkhost_groth16::Scalar;
use zkhost_groth16::scalar::{MODULUS, limbs_to_le_bytes};
use zkhost_runtime::circom::widen;
use zkhost_runtime::{Circom, Fault, Input, Limits, Refusal, RunError};

/// Nobody may learn it.
const SECRET: u64 = 3_141_592;

/// A module of one input signal `a` and the witness [1, a]. Bodies are instructions in the text format; the shared slot is
/// at 0, the value that was set at 64, the modulus at 32.
#[derive(Clone)]
struct Module {
    imports: &'static str,
    pages: u32,
    slot: i32,
    field_words: i32,
    prime: [u8; 32],
    start: &'static str,
    init: &'static str,
    signal_size: &'static str,
    input_size: i32,
    set: &'static str,
    witness_size: i32,
    get: &'static str,
    character: &'static str,
    /// Exports that are left out.
    without: &'static [&'static str],
}

const PRINT: &str = r#"(import "runtime" "printErrorMessage" (func $print))"#;

impl Default for Module {
    fn default() -> Self {
        Module {
            imports: "",
            pages: 1,
            slot: 0,
            field_words: 8,
            prime: limbs_to_le_bytes(&MODULUS),
            start: "",
            init: "",
            signal_size: "(i32.const 1)",
            input_size: 1,
            set: "(memory.copy (i32.const 64) (i32.const 0) (i32.const 32))",
            witness_size: 2,
            get: "(memory.copy (i32.const 0) (i32.add (i32.const 128) (i32.mul (local.get 0) (i32.const -64))) (i32.const 32))",
            character: "(i32.const 0)",
            without: &[],
        }
    }
}

impl Module {
    fn bytes(&self) -> Vec<u8> {
        let escaped = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
        let export = |name: &str| match self.without.contains(&name) {
            true => String::new(),
            false => format!("(export \"{name}\")"),
        };
        let function = |name: &str, rest: &str| format!("(func {} {rest})\n", export(name));
        let constant = |value: i32| format!("(result i32) (i32.const {value})");
        let mut text = format!(
            "(module (import \"runtime\" \"exceptionHandler\" (func $exception (param i32)))\n{}\n(memory {} {})\n\
             (data (i32.const 32) \"{}\") (data (i32.const 128) \"\\01\")\n",
            self.imports,
            export("memory"),
            self.pages,
            escaped(&self.prime)
        );
        text += &function("getVersion", &constant(2));
        text += &function("getSharedRWMemoryStart", &constant(self.slot));
        text += &function("getFieldNumLen32", &constant(self.field_words));
        text += &function("getRawPrime", "(memory.copy (i32.const 0) (i32.const 32) (i32.const 32))");
        text += &function("init", &format!("(param i32) {}", self.init));
        text += &function("getInputSignalSize", &format!("(param i32 i32) (result i32) {}", self.signal_size));
        text += &function("getInputSize", &constant(self.input_size));
        text += &function("setInputSignal", &format!("(param i32 i32 i32) {}", self.set));
        text += &function("getWitnessSize", &constant(self.witness_size));
        text += &function("getWitness", &format!("(param i32) {}", self.get));
        text += &function("getMessageChar", &format!("(result i32) {}", self.character));
        text += &format!("(func $start {}) (start $start)\n", self.start);
        text += "(global $at (mut i32) (i32.const 0)) (func $again (call $again)))";
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn load(&self) -> Circom {
        let time = Duration::from_millis(300);
        let limits = Limits {
            memory_bytes: 1 << 20,
            plan_time: time,
            open_time: time,
            assign_time: time,
            aux: 1000,
            publics: 10,
            ..Limits::default()
        };
        RUNTIME.load_circom("odd", &self.bytes(), limits).unwrap()
    }

    fn witness(&self, input: &str) -> Result<Vec<Scalar>, RunError> {
        self.load().witness(&Input::from(input.as_bytes().to_vec()), &[]).map(|z| z.to_vec())
    }
}

/// The module fails with a sentence of all these parts, which tells no secret.
fn check(module: Module, expected: &[&str]) -> Fault {
    let Err(error) = module.witness(&format!("{{\"a\": {SECRET}}}")) else { panic!("expected {expected:?}") };
    let text = error.to_string();
    check_says(&text, &[&["circuit `odd`"], expected].concat());
    assert!(!text.contains(char::is_control), "{text:?}");
    let told = format!("{text} {error:?}");
    assert!(!told.contains(&SECRET.to_string()) && !told.contains("2fefd8"), "a secret is told: {told}");
    error.fault
}

/// The file is refused before anything of it runs.
fn check_refused(module: &[u8], expected: &[&str]) {
    let Err(error) = RUNTIME.load_circom("odd", module, Limits::default()) else { panic!("expected {expected:?}") };
    check_says(&error.to_string(), &[&["circuit `odd`"], expected].concat());
}

#[test]
fn when_it_behaves_it_gives_a_witness() {
    let z = Module::default().witness("{\"a\": \"0x2fefd8\"}").unwrap();
    assert_eq!(z, [Scalar::from(1), Scalar::from(SECRET)]);
}

/// The interface before circom 2.0.7: no messages, and in the earliest no sizes.
#[test]
fn what_early_modules_lack_is_not_needed() {
    let early = Module { without: &["getMessageChar", "getInputSignalSize", "getInputSize"], ..Module::default() };
    assert_eq!(early.witness("{\"a\": 5}").unwrap(), [Scalar::from(1), Scalar::from(5)]);
    let fault =
        check(Module { set: "(call $exception (i32.const 4))", ..early }, &["an assertion of the circuit fails"]);
    assert!(matches!(fault, Fault::Refused { kind: Refusal::Unsatisfied, .. }));
    // Some left the message to be fetched.
    let fetched = "(global.set $at (i32.add (global.get $at) (i32.const 1)))
        (if (result i32) (i32.gt_u (global.get $at) (i32.const 3)) (then (i32.const 0)) (else (i32.const 120)))";
    check(Module { set: "(call $exception (i32.const 4))", character: fetched, ..Module::default() }, &["fails: xxx"]);
}

/// Faster arithmetic is for circom's functions alone.
#[test]
fn a_module_without_circoms_functions_is_compiled_as_it_is() {
    let module = Module::default().bytes();
    let widened = widen(&module).unwrap();
    assert_eq!(widened.replaced, []);
    assert!(widened.module == module);
    for length in 0..module.len() {
        // A module cut between two sections is one.
        if let Ok(widened) = widen(&module[..length]) {
            assert!(widened.module == module[..length.max(8)], "{length}");
        }
    }
}

#[test]
fn every_error_code_has_its_sentence() {
    use Refusal::{BadInput, Internal, Unsatisfied};
    for (set, kind, sentence) in [
        ("(call $exception (i32.const 1))", BadInput, "the circuit has no input signal `a`"),
        ("(call $exception (i32.const 2))", BadInput, "signal `a` is given although all"),
        ("(call $exception (i32.const 3))", BadInput, "signal `a` is set twice"),
        ("(call $exception (i32.const 4))", Unsatisfied, "an assertion of the circuit fails"),
        ("(call $exception (i32.const 5))", Internal, "the module's own memory is full"),
        ("(call $exception (i32.const 6))", BadInput, "signal `a` has fewer elements"),
        ("(call $exception (i32.const 7))", Internal, "an array out of its bounds"),
        ("(call $exception (i32.const 8))", Internal, "the unknown error 8"),
        ("(call $exception (i32.const -1))", Internal, "the unknown error -1"),
    ] {
        let fault = check(Module { set, ..Module::default() }, &["input signals", sentence]);
        assert!(matches!(fault, Fault::Refused { kind: found, .. } if found == kind), "{set}: {fault}");
    }
}

#[test]
fn loops_greed_and_traps_end_wherever_they_are() {
    for (body, sentence) in [
        ("(loop $l (br $l))", "did not return in time"),
        ("(loop $l (drop (memory.grow (i32.const 1))) (br $l))", "`memory_bytes`"),
        ("unreachable", "the guest trapped"),
        ("(call $again)", "overflowed its stack"),
        ("(drop (i32.load (i32.const -4)))", "the guest trapped"),
    ] {
        check(Module { start: body, ..Module::default() }, &["instantiation", sentence]);
        check(Module { init: body, ..Module::default() }, &["instantiation", sentence]);
        check(Module { set: body, ..Module::default() }, &["input signals", sentence]);
        check(Module { get: body, ..Module::default() }, &["`getWitness`", sentence]);
    }
    let endless = Module { character: "(loop $l (br $l)) (i32.const 0)", ..Module::default() };
    check(Module { set: "(call $exception (i32.const 4))", ..endless }, &["did not return in time"]);
}

#[test]
fn a_flood_of_messages_is_cut() {
    let module = Module { imports: PRINT, character: "(i32.const 65)", ..Module::default() };
    let set = "(call $print) (call $print) (call $print) (call $exception (i32.const 4))";
    let Fault::Refused { message, .. } = check(Module { set, ..module.clone() }, &["AAAA"]) else { panic!() };
    assert!(message.len() < 5_000, "{} bytes", message.len());
    // Without an end, until its time is over.
    check(Module { set: "(loop $l (call $print) (br $l))", ..module }, &["did not return in time"]);
}

#[test]
fn control_characters_in_messages_are_stripped() {
    let characters = "(global.set $at (i32.add (global.get $at) (i32.const 1)))
        (if (result i32) (i32.gt_u (global.get $at) (i32.const 5)) (then (i32.const 0)) (else (i32.const 27)))";
    check(
        Module { set: "(call $exception (i32.const 4))", character: characters, ..Module::default() },
        &["assertion"],
    );
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let witness = |witness_size| Module { witness_size, ..Module::default() };
    check(witness(0), &["witness is empty"]);
    check(witness(-1), &["4,294,967,295 values", "`aux`"]);
    check(witness(2000), &["2,000 values", "the limit is 1,011"]);
    for size in ["(i32.const -1)", "(i32.const 0)"] {
        check(Module { signal_size: size, ..Module::default() }, &["no input signal `a`"]);
    }
    check(Module { signal_size: "(i32.const 5)", ..Module::default() }, &["`a` has 5 elements", "1 for it"]);
    check(Module { input_size: 100, ..Module::default() }, &["1 of the circuit's 100 input values"]);
}

#[test]
fn values_that_cannot_be_are_refused() {
    check(
        Module { get: "(memory.fill (i32.const 0) (i32.const 255) (i32.const 32))", ..Module::default() },
        &["value 0", "not below the modulus"],
    );
    let modulus =
        "(memory.copy (i32.const 0) (i32.add (i32.const 128) (i32.mul (local.get 0) (i32.const -96))) (i32.const 32))";
    check(Module { get: modulus, ..Module::default() }, &["value 1 of", "not below the modulus"]);
    check(
        Module { get: "(memory.fill (i32.const 0) (i32.const 0) (i32.const 32))", ..Module::default() },
        &["constant one"],
    );
}

#[test]
fn a_slot_outside_the_memory_or_another_field_is_refused() {
    for slot in [-1, 65_536, 65_505] {
        check(Module { slot, ..Module::default() }, &["shared slot lies outside"]);
    }
    for field_words in [-8, 0, 7, 9, i32::MAX] {
        check(Module { field_words, ..Module::default() }, &["another prime field", "--prime bls12381"]);
    }
    check(Module { prime: [3; 32], ..Module::default() }, &["another prime field", "--prime bls12381"]);
}

#[test]
fn an_export_that_is_missing_is_named() {
    let needed: [&'static [&'static str]; 8] = [
        &["memory"],
        &["getSharedRWMemoryStart"],
        &["getFieldNumLen32"],
        &["getRawPrime"],
        &["init"],
        &["setInputSignal"],
        &["getWitnessSize"],
        &["getWitness"],
    ];
    for without in needed {
        check(
            Module { without, ..Module::default() },
            &[&format!("does not export `{}`", without[0]), "circom --wasm"],
        );
    }
}

#[test]
fn files_that_are_no_witness_modules_are_refused_before_they_run() {
    check_refused(b"", &["no WebAssembly module"]);
    check_refused(&[&b"\0asm\x01\0\0\0"[..], &[1, 9, 9]].concat(), &["truncated or damaged"]);
    // circom 1 and its interface.
    let first = wat::parse_str(r#"(module (import "env" "memory" (memory 1)))"#).unwrap();
    check_refused(&first, &["imports `memory` of `env`", "circom 2"]);
    let network = wat::parse_str(r#"(module (import "wasi_snapshot_preview1" "fd_write" (func)))"#).unwrap();
    check_refused(&network, &["imports `fd_write`"]);
    let large = Module { pages: 40_000, ..Module::default() };
    check_refused(&large.bytes(), &["2,621,440,000 bytes of memory", "`memory_bytes`"]);
    let typed = wat::parse_str(r#"(module (import "runtime" "exceptionHandler" (func (param i64))))"#).unwrap();
    check_refused(&typed, &["does not link"]);
}
