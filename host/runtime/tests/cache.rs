//! Native code on disk: used when it is whole and ours, made anew otherwise.

mod support;

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use support::*;
use zkhost_runtime::{Cache, Compiler, Limits, LoadError, Runtime};

fn runtime(compiler: Compiler, folder: &Path) -> Runtime {
    Runtime::new(compiler, Some(Cache::open(folder).unwrap())).unwrap()
}

/// A runtime that can compile nothing: what it loads, the cache had.
fn without_compiler(folder: &Path) -> Runtime {
    runtime(Compiler::Child { program: "/nonexistent/compiler".into(), args: vec![] }, folder)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A private folder with the code of the tiny guest in it.
fn filled() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("some/where");
    let component = Guest::default().component();
    runtime(Compiler::InProcess, &folder).load("tiny", &component, Limits::default()).unwrap();
    (temporary, folder, component)
}

fn check_not_cached(folder: &Path, component: &[u8]) {
    let error = without_compiler(folder).load("tiny", component, Limits::default()).err().expect("nothing compiles");
    assert!(matches!(error, LoadError::Compile { .. }), "{error}");
    check_says(&error.to_string(), &["cannot start the compiler /nonexistent/compiler"]);
}

#[test]
fn a_second_load_needs_no_compiler() {
    let (_temporary, folder, component) = filled();
    let circuit = without_compiler(&folder).load("tiny", &component, Limits::default()).unwrap();
    run(&circuit, b"", b"").unwrap();
}

#[test]
fn entries_are_private() {
    let (_temporary, folder, _) = filled();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let entries = entries(&folder);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(mode(&entries[0]), 0o600);
}

#[test]
fn a_damaged_entry_is_made_anew() {
    let (_temporary, folder, component) = filled();
    let entry = entries(&folder).remove(0);
    let whole = std::fs::read(&entry).unwrap();
    for at in [0, 15, 16, 47, 48, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&entry, &damaged).unwrap();
        check_not_cached(&folder, &component);
    }
    for length in [0, 10, 48, whole.len() - 1] {
        std::fs::write(&entry, &whole[..length]).unwrap();
        check_not_cached(&folder, &component);
    }
    let circuit = runtime(Compiler::InProcess, &folder).load("tiny", &component, Limits::default()).unwrap();
    run(&circuit, b"", b"").unwrap();
    assert!(std::fs::read(&entry).unwrap() == whole, "the entry is whole again");
    without_compiler(&folder).load("tiny", &component, Limits::default()).unwrap();
}

#[test]
fn an_entry_serves_no_other_component() {
    let (_temporary, folder, _) = filled();
    let entry = entries(&folder).remove(0);
    let code = std::fs::read(&entry).unwrap();
    let other = Guest { pages: 3, ..Guest::default() }.component();
    check_not_cached(&folder, &other);
    runtime(Compiler::InProcess, &folder).load("other", &other, Limits::default()).unwrap();
    let others = entries(&folder).into_iter().find(|path| *path != entry).unwrap();
    std::fs::write(&others, code).unwrap();
    check_not_cached(&folder, &other);
}

#[test]
fn an_entry_that_is_a_symbolic_link_is_not_followed() {
    let (temporary, folder, component) = filled();
    let entry = entries(&folder).remove(0);
    let elsewhere = temporary.path().join("elsewhere");
    std::fs::rename(&entry, &elsewhere).unwrap();
    symlink(&elsewhere, &entry).unwrap();
    check_not_cached(&folder, &component);
}

#[test]
fn folders_that_are_not_private_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let check = |path: &Path, expected: &[&str]| {
        let error = Cache::open(path).err().expect("the folder must be refused").to_string();
        check_says(&error, &[&["cannot use", &*path.to_string_lossy()], expected].concat());
    };
    let open = temporary.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o755)).unwrap();
    check(&open, &["others may access it", "755", "chmod 700"]);

    let file = temporary.path().join("file");
    std::fs::write(&file, b"").unwrap();
    check(&file, &["not a folder"]);

    let private = temporary.path().join("private");
    Cache::open(&private).unwrap();
    let link = temporary.path().join("link");
    symlink(&private, &link).unwrap();
    check(&link, &["symbolic link"]);

    // Only root can give a folder away.
    let foreign = temporary.path().join("foreign");
    Cache::open(&foreign).unwrap();
    match chown(&foreign, Some(12_345), None) {
        Ok(()) => check(&foreign, &["belongs to user 12345"]),
        Err(_) => eprintln!("not root: a folder of another user was not tried"),
    }
}

#[test]
fn a_limit_that_was_lowered_since_applies_to_cached_code() {
    let (_temporary, folder, component) = filled();
    let lowered = Limits { memory_bytes: 65_536, ..Limits::default() };
    let circuit = without_compiler(&folder).load("tiny", &component, lowered).unwrap();
    let error = circuit.describe().unwrap_err();
    check_says(&error.to_string(), &["instantiation", "131,072 bytes of memory", "`memory_bytes`"]);
}
