//! What the whole-system tests share: what `make` builds, and bellman on either side of a constraint system.

#[path = "../../host/groth16/tests/common/for_bellman.rs"]
mod for_bellman;
mod recorder;

pub use for_bellman::ForBellman;
pub use recorder::record;

/// Where the project's files are when the tests run elsewhere than they were built, as on a machine with a GPU.
const ROOT_VARIABLE: &str = "ZKHOST_TEST_ROOT";

fn read(path: &str, hint: &str) -> Vec<u8> {
    let root = std::env::var(ROOT_VARIABLE).unwrap_or_else(|_| format!("{}/..", env!("CARGO_MANIFEST_DIR")));
    let path = format!("{root}/{path}");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}; {hint}"))
}

/// A guest circuit as a component.
pub fn component(name: &str) -> Vec<u8> {
    read(&format!("guest-circuits/target/components/{name}.wasm"), "run `make guests` first")
}

/// The example input of a guest circuit.
pub fn example_input(name: &str) -> Vec<u8> {
    read(&format!("guest-circuits/{name}/example-input.json"), "every guest circuit has an example input")
}

/// The parameters that the example input of a guest circuit is for.
pub fn example_params(name: &str) -> Vec<u8> {
    read(&format!("guest-circuits/{name}/example-params.json"), "this guest circuit has no parameters")
}

/// A key of Zcash's Sapling ceremony.
pub fn ceremony_key(name: &str) -> Vec<u8> {
    read(&format!("build/sapling/{name}.params"), "run `make sapling-keys` first")
}

/// A file made by another tool.
pub fn fixture(path: &str) -> Vec<u8> {
    read(&format!("tests/fixtures/{path}"), "fixtures are part of the repository")
}
