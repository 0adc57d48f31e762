//! Running the command.

#![allow(dead_code, reason = "each test file uses a part of this")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// A folder to run in.
pub struct Workplace {
    folder: tempfile::TempDir,
}

/// Compiled components and shapes, shared by the tests of a run and kept for the next.
static CACHE: LazyLock<PathBuf> = LazyLock::new(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));

/// How a run ended.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Workplace {
    pub fn new() -> Self {
        Workplace { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The command, ready to run here.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zkhost"));
        command.current_dir(self.folder.path()).env("ZKHOST_CACHE", CACHE.as_path());
        command
    }

    /// Run with arguments separated by spaces; `{component:NAME}` and the like are paths of this repository.
    pub fn run(&self, arguments: &str) -> Run {
        let arguments = arguments.split_whitespace().map(expand);
        let Output { status, stdout, stderr } = self.command().args(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Run { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Run, expect success, and give back the JSON result.
    pub fn json(&self, arguments: &str) -> Value {
        let run = self.run(&format!("--json {arguments}"));
        assert_eq!(run.code, 0, "{arguments}: {}{}", run.stdout, run.stderr);
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Run and expect a failure with this exit code, whose message, on one line, has all these parts.
    pub fn check_failure(&self, arguments: &str, code: i32, parts: &[&str]) {
        let run = self.run(&format!("--json {arguments}"));
        assert_eq!(run.code, code, "{arguments}: {}{}", run.stdout, run.stderr);
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(answer["error"]["exit"], code, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        for part in parts {
            assert!(message.contains(part), "{arguments}: `{part}` is not in: {message}");
        }
        assert!(!message.contains("panicked"), "{message}");
    }
}

/// `{component:NAME}`, `{guest:PATH}`, `{fixture:PATH}`, `{tests:PATH}`, `{circom:PATH}` and `{key:NAME}` as paths.
pub fn expand(argument: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Some((kind, name)) = argument.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')?.split_once(':')) else {
        return argument.to_owned();
    };
    let (path, remedy) = match kind {
        "component" => (root.join("guest-circuits/target/components").join(format!("{name}.wasm")), "make guests"),
        "guest" => (root.join("guest-circuits").join(name), "git status"),
        "fixture" => (root.join("tests/fixtures").join(name), "git status"),
        "tests" => (root.join("tests").join(name), "git status"),
        "circom" => (root.join("build/circom").join(name), "make circom-peers"),
        "key" => (root.join("build/sapling").join(format!("{name}.params")), "make sapling-keys"),
        _ => return argument.to_owned(),
    };
    assert!(path.exists(), "{} is missing: run `{remedy}`", path.display());
    path.display().to_string()
}

/// The path that [`Workplace::run`] puts for a name in braces.
pub fn path(name: &str) -> PathBuf {
    expand(name).into()
}
