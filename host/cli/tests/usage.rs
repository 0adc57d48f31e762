//! How the command speaks: help, exit codes, completions, JSON.

mod support;

use std::io::Read;
use std::process::Stdio;
use support::Workplace;

#[test]
fn help_lists_every_command_and_exit_code() {
    let help = Workplace::new().run("--help");
    assert_eq!(help.code, 0);
    for word in "new build inspect check setup import-key prove verify convert bench completions --json".split(' ') {
        assert!(help.stdout.contains(word), "{word} is not in the help");
    }
    assert!(help.stdout.contains("0 done, 1 a proof or constraint is false, 2 usage, 3 input or file, 4 guest"));
    assert!(!help.stdout.contains("compile-worker"));
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let workplace = Workplace::new();
    for command in "new build inspect check setup import-key prove verify convert bench".split(' ') {
        let help = workplace.run(&format!("{command} --help"));
        assert_eq!(help.code, 0, "{command}");
        assert!(help.stdout.contains("Example"), "{command} has no example");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let workplace = Workplace::new();
    for arguments in ["frobnicate", "prove", "verify --proof a --public b", "build --locked=maybe"] {
        assert_eq!(workplace.run(arguments).code, 2, "{arguments}");
    }
    for (limit, part) in
        [("memory_bytes=x", "no whole number"), ("memory=1", "there is no limit `memory`"), ("x", "NAME=VALUE")]
    {
        let run = workplace.run(&format!("inspect {{component:hostile}} --limit {limit}"));
        assert_eq!(run.code, 2, "{limit}");
        assert!(run.stderr.contains(part), "{limit}: {}", run.stderr);
    }
    workplace.check_failure(
        "verify --vk a.vk --proof a --proof b --public a",
        2,
        &["2 --proof and 1 --public", "each file of proofs needs its own"],
    );
    workplace.check_failure("build --package nothing {guest:hostile}", 2, &["no package `nothing`", "sapling-spend"]);
    workplace.check_failure("build {guest:.}", 2, &["a workspace of several packages", "--package", "sapling-spend"]);
}

#[test]
fn missing_files_exit_with_3_and_are_named() {
    let workplace = Workplace::new();
    workplace.check_failure("inspect absent.wasm", 3, &["absent.wasm", "No such file"]);
    workplace.check_failure("verify --vk absent.vk --proof p --public i", 3, &["the verifying key absent.vk"]);
    workplace.check_failure("build .", 3, &["no Cargo.toml", "zkhost new"]);
}

#[test]
fn completions_are_written_for_every_shell() {
    let workplace = Workplace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = workplace.run(&format!("completions {shell}"));
        assert_eq!(run.code, 0, "{shell}");
        assert!(run.stdout.contains("import-key"), "{shell}");
    }
}

#[test]
fn bash_accepts_its_completions() {
    let workplace = Workplace::new();
    let script = workplace.write("completions.bash", workplace.run("completions bash").stdout);
    let status = std::process::Command::new("bash").arg("-n").arg(script).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let workplace = Workplace::new();
    let mut child = workplace.command().args(["completions", "bash"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut byte = [0];
    child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_new_circuit_needs_a_name_that_cargo_and_the_contract_take() {
    let workplace = Workplace::new();
    let long = "a".repeat(65);
    for name in ["Upper", "1st", "under_score", "dot.dot", "../up", "", long.as_str()] {
        let run = workplace.command().args(["new", name]).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{name}");
    }
    workplace.check_failure("new fine", 2, &["--sdk"]);
}

/// aligned_layer issue 1749: nobody saw which version of a library with a known fault was in use.
#[test]
fn aligned_layer_i1749_the_long_version_names_the_libraries_that_proofs_depend_on() {
    let version = Workplace::new().run("--version").stdout;
    for library in ["blst", "wasmtime", "cranelift-codegen"] {
        let line = version.lines().find(|line| line.starts_with(&format!("{library} "))).unwrap();
        assert!(line.split(' ').nth(1).unwrap().starts_with(|digit: char| digit.is_ascii_digit()), "{line}");
    }
}
