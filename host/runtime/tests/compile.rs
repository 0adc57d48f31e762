//! The compiling child process: what it answers, and how it is stopped.
//!
//! This test has a `main` of its own, because the child is this very program: that is how programs use it.

mod support;

use std::process::ExitCode;
use std::time::{Duration, Instant};
use support::*;
use zkhost_runtime::{Compiler, Limits, LoadError, Runtime, compile_worker_main};

const WORKER: &str = "compile-worker";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(WORKER) {
        return compile_worker_main();
    }
    let tests: [(&str, fn()); 6] = [
        ("a_child_compiles_what_this_process_runs", a_child_compiles_what_this_process_runs),
        ("a_child_refuses_in_the_same_words", a_child_refuses_in_the_same_words),
        ("a_slow_child_is_killed_at_its_time_limit", a_slow_child_is_killed_at_its_time_limit),
        ("a_hungry_child_dies_at_its_memory_limit", a_hungry_child_dies_at_its_memory_limit),
        ("native_code_has_a_limit", native_code_has_a_limit),
        ("programs_that_are_no_worker_are_told_apart", programs_that_are_no_worker_are_told_apart),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

fn worker() -> Compiler {
    Compiler::Child { program: std::env::current_exe().unwrap(), args: vec![WORKER.into()] }
}

/// Loading with this compiler under these limits fails, and its error says these things.
fn check(compiler: Compiler, component: &[u8], limits: Limits, expected: &[&str]) -> LoadError {
    let error = Runtime::new(compiler, None).unwrap().load("tiny", component, limits).err().expect("it must fail");
    check_says(&error.to_string(), &[&["circuit `tiny`"], expected].concat());
    error
}

fn a_child_compiles_what_this_process_runs() {
    let runtime = Runtime::new(worker(), None).unwrap();
    let circuit = runtime.load("tiny", &Guest::default().component(), Limits::default()).unwrap();
    let ran = run(&circuit, b"", b"").unwrap();
    ran.shape.check(&ran.assignments[0]).unwrap();
}

fn a_child_refuses_in_the_same_words() {
    let core = wat::parse_str("(module)").unwrap();
    for compiler in [worker(), Compiler::InProcess] {
        let error = check(compiler, &core, Limits::default(), &["core module", "zkhost build"]);
        assert!(matches!(error, LoadError::Refused { .. }), "{error:?}");
    }
    let limits = Limits { memory_bytes: 65_536, ..Limits::default() };
    check(worker(), &Guest::default().component(), limits, &["131,072 bytes of memory", "`memory_bytes`"]);
}

fn a_slow_child_is_killed_at_its_time_limit() {
    let sleeper = Compiler::Child { program: "/bin/sleep".into(), args: vec!["20".into()] };
    let limits = Limits { compile_time: Duration::from_millis(200), ..Limits::default() };
    let started = Instant::now();
    let component = Guest::default().component();
    let error = check(sleeper, &component, limits, &["took longer than 200ms", "`compile_time`"]);
    assert!(matches!(error, LoadError::Compile { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

fn a_hungry_child_dies_at_its_memory_limit() {
    // The program and its libraries alone take more, so the first allocations of the compiler fail.
    let limits = Limits { compile_memory_bytes: 16 << 20, ..Limits::default() };
    check(worker(), &Guest::default().component(), limits, &["`compile_memory_bytes`"]);
}

fn native_code_has_a_limit() {
    let limits = Limits { native_code_bytes: 1_000, ..Limits::default() };
    check(worker(), &Guest::default().component(), limits, &["more than 1,000 bytes", "`native_code_bytes`"]);
}

fn programs_that_are_no_worker_are_told_apart() {
    let program = |path: &str| Compiler::Child { program: path.into(), args: vec![] };
    let component = Guest::default().component();
    check(program("/nonexistent"), &component, Limits::default(), &["cannot start the compiler /nonexistent"]);
    check(program("/bin/true"), &component, Limits::default(), &["without an answer", "compile_worker_main"]);
    check(program("/bin/cat"), &component, Limits::default(), &["without an answer", "compile_worker_main"]);
}
