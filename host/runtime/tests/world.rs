//! What a component must be and fit before it is compiled.

mod support;

use support::*;
use zkhost_runtime::{CONTRACT, Limits, LoadError, examine, examine_without_wide_arithmetic};

/// Examining refuses, and says all of these things.
fn check(component: &[u8], expected: &[&str]) {
    let limits = Limits { memory_bytes: 1 << 30, ..Limits::default() };
    let reason = examine(component, &limits).expect_err("the component must be refused");
    check_says(&reason, expected);
    // Loading says the same and who is meant.
    let error = RUNTIME.load("wrong", component, limits).err().expect("loading must refuse");
    assert!(matches!(error, LoadError::Refused { .. }), "{error}");
    check_says(&error.to_string(), &[&["circuit `wrong`"], expected].concat());
}

/// The tiny guest, with a piece of its contract and of its module exchanged.
fn check_changed(wit: [&str; 2], module: [&str; 2], expected: &[&str]) {
    let [wit, module] = [(CONTRACT.to_owned(), wit), (Guest::default().module(), module)].map(|(text, [from, to])| {
        assert!(text.contains(from), "nothing to exchange: {from}");
        text.replace(from, to)
    });
    check(&component(&module, &wit, "guest"), expected);
}

#[test]
fn the_checked_contract_is_the_one_in_wit() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/v0.1/circuit.wit");
    assert_eq!(CONTRACT, std::fs::read_to_string(path).unwrap());
    assert!(CONTRACT.contains("package zkhost:circuit@0.1.0;"));
}

#[test]
fn every_interface_of_the_contract_is_offered() {
    let found = examine(&Guest::default().component(), &Limits::default()).unwrap();
    for interface in ["sink", "source", "report", "accel"] {
        assert!(found.imports.contains(&format!("zkhost:circuit/{interface}@0.1.0")), "{:?}", found.imports);
    }
    assert_eq!(found.exports, ["zkhost:circuit/circuit@0.1.0"]);
    assert_eq!(found.memory_bytes, 2 * 65_536);
    assert!(!found.wide_arithmetic);
    Guest::default().load(Limits::default()).describe().unwrap();
}

#[test]
fn wide_arithmetic_is_seen() {
    let product = "(func (param i64) (i64.mul_wide_u (local.get 0) (local.get 0)) drop drop)".to_owned();
    let guest = Guest { functions: product, ..Guest::default() };
    assert!(examine(&guest.component(), &Limits::default()).unwrap().wide_arithmetic);
}

#[test]
fn a_host_without_wide_arithmetic_refuses_what_needs_it_and_says_how_to_build_without() {
    for instruction in ["i64.mul_wide_u", "i64.mul_wide_s", "i64.add128", "i64.sub128"] {
        let operands = if instruction.contains("128") { 4 } else { 2 };
        let operands = "(local.get 0)".repeat(operands);
        let guest =
            Guest { functions: format!("(func (param i64) ({instruction} {operands}) drop drop)"), ..Guest::default() };
        let reason = examine_without_wide_arithmetic(&guest.component(), &Limits::default()).unwrap_err();
        check_says(&reason, &["needs wide arithmetic", "zkhost build --no-wide-arithmetic"]);
    }
    let without = examine_without_wide_arithmetic(&Guest::default().component(), &Limits::default()).unwrap();
    assert!(!without.wide_arithmetic);
}

#[test]
fn files_that_are_no_component_are_told_apart() {
    let core = wat::parse_str("(module)").unwrap();
    check(b"", &["empty", "zkhost build"]);
    check(b"\0as", &["not WebAssembly"]);
    check(b"\x7fELF, a program", &["not WebAssembly"]);
    check(b"(component)", &["not WebAssembly", "text format"]);
    check(b"\0asm\x01", &["truncated"]);
    check(&core, &["core module", "zkhost build"]);
    check(b"\0asm\x09\0\x07\0", &["unknown kind"]);
    check(&wat::parse_str("(component)").unwrap(), &["does not export `zkhost:circuit/circuit@0.1.0`", "nothing"]);
}

#[test]
fn truncation_at_any_byte_is_refused() {
    let component = Guest::default().component();
    for length in (0..component.len()).step_by(7).chain(component.len() - 40..component.len()) {
        if let Ok(found) = examine(&component[..length], &Limits::default()) {
            // Cut between two sections behind the last one that matters, such as names, it is still whole.
            assert_eq!(found.exports, ["zkhost:circuit/circuit@0.1.0"], "cut at {length}");
        }
    }
    check(&component[..component.len() / 2], &["truncated or damaged at byte"]);
}

#[test]
fn flipped_bytes_never_panic() {
    let component = Guest::default().component();
    for at in (8..component.len()).step_by(11) {
        let mut damaged = component.clone();
        damaged[at] ^= 0x41;
        let _ = examine(&damaged, &Limits::default());
    }
}

#[test]
fn wasi_imports_are_named_with_the_way_out() {
    let wit = CONTRACT.replace("  import accel;\n", "  import accel;\n  import wasi:clocks/monotonic-clock@0.2.0;\n")
        + "\npackage wasi:clocks@0.2.0 { interface monotonic-clock { now: func() -> u64; } }";
    let import = "(import \"wasi:clocks/monotonic-clock@0.2.0\" \"now\" (func (result i64)))\n  (memory (export";
    let module = Guest::default().module().replacen("(memory (export", import, 1);
    check(
        &component(&module, &wit, "guest"),
        &["wasi:clocks/monotonic-clock@0.2.0", "no clock", "wasm32-unknown-unknown"],
    );
}

#[test]
fn another_version_of_the_contract_is_named() {
    check_changed(
        ["circuit@0.1.0", "circuit@0.2.0"],
        ["@0.1.0", "@0.2.0"],
        &["zkhost:circuit/sink@0.2.0", "serves zkhost:circuit@0.1.0", "does not export `zkhost:circuit/circuit@0.1.0`"],
    );
}

#[test]
fn what_is_extra_missing_or_different_is_listed() {
    check_changed(
        ["  log: func(", "  flush: func();\n  log: func("],
        ["(memory (export", "(import \"zkhost:circuit/report@0.1.0\" \"flush\" (func))\n  (memory (export"],
        &["imports `flush` of `zkhost:circuit/report@0.1.0`, which version 0.1.0 does not have"],
    );
    check_changed(
        ["  describe: func() -> info;", ""],
        ["(func (export \"zkhost:circuit/circuit@0.1.0#describe\")", "(func "],
        &["lacks `describe`"],
    );
    check_changed(
        ["progress: func(done: u64) -> bool", "progress: func(done: u32) -> bool"],
        ["$progress (param i64)", "$progress (param i32)"],
        &["`progress` of `zkhost:circuit/report@0.1.0` is `func(done: u32) -> bool`", "has `func(done: u64) -> bool`"],
    );
    check_changed(
        ["  import accel;\n", "  import accel;\n  import helper: func();\n"],
        ["(memory (export", "(import \"$root\" \"helper\" (func))\n  (memory (export"],
        &["imports function `helper` by itself"],
    );
}

#[test]
fn memories_and_features_outside_the_sandbox_are_explained() {
    let module = |text: &str| wat::parse_str(format!("(component (core module {text}))")).unwrap();
    check(&module("(memory 1 1 shared)"), &["shared memory", "segments"]);
    check(&module("(memory i64 1)"), &["64-bit memory", "segments"]);
    check(&module("(memory 20000)"), &["1,310,720,000 bytes of memory", "1,073,741,824 bytes", "`memory_bytes`"]);
    check(&module("(func return_call 0)"), &["feature that the sandbox leaves off", "tail calls"]);
    check(
        &module("(func (param v128) (result v128) (i32x4.relaxed_trunc_f32x4_s (local.get 0)))"),
        &["feature that the sandbox leaves off", "relaxed SIMD"],
    );
}

#[test]
fn strings_in_utf16_are_refused() {
    let text = r#"(component
        (core module $m (memory (export "m") 1) (func (export "f") (param i32 i32))
          (func (export "r") (param i32 i32 i32 i32) (result i32) unreachable))
        (core instance $i (instantiate $m))
        (alias core export $i "m" (core memory $memory))
        (alias core export $i "r" (core func $realloc))
        (alias core export $i "f" (core func $f))
        (func (export "f") (param "s" string)
          (canon lift (core func $f) string-encoding=utf16 (memory (core memory $memory)) (realloc (core func $realloc)))))"#;
    check(&wat::parse_str(text).unwrap(), &["UTF-16"]);
}

#[test]
fn a_component_beyond_the_limit_is_refused_by_size() {
    let limits = Limits { component_bytes: 100, ..Limits::default() };
    let error = RUNTIME.load("large", &Guest::default().component(), limits).err().unwrap();
    check_says(&error.to_string(), &["circuit `large`", "the limit is 100 bytes", "`component_bytes`"]);
}
