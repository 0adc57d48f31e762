//! What `--version` says: this program's version, and those of the libraries that a proof depends on.

use std::sync::LazyLock;

/// The libraries whose faults would matter to proofs or to the sandbox.
const LIBRARIES: [&str; 5] = ["blst", "blstrs", "wasmtime", "cranelift-codegen", "blake3"];

/// The versions that this program was built with.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

/// The long form.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    let libraries = LIBRARIES.map(|name| format!("\n{name} {}", locked(name).unwrap_or("of unknown version")));
    format!("{}{}", env!("CARGO_PKG_VERSION"), libraries.concat())
});

/// The version of a package in the lock file.
fn locked(name: &str) -> Option<&'static str> {
    let (_, rest) = LOCK_FILE.split_once(&format!("\nname = \"{name}\"\nversion = \""))?;
    Some(rest.split_once('"')?.0)
}

/// The same for a running host.
pub fn of_service() -> zkhost_client::types::Version {
    let libraries = LIBRARIES.map(|name| (name.to_owned(), locked(name).unwrap_or("unknown").to_owned()));
    let libraries = libraries.into_iter().collect();
    zkhost_client::types::Version { zkhost: env!("CARGO_PKG_VERSION").into(), api: vec!["v1".into()], libraries }
}
