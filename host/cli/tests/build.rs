//! A circuit that somebody else writes: from the template to a verified proof.

mod support;

use std::path::Path;
use support::Workplace;

/// One build of the standard library and of the template, kept for the next run of this test.
const TARGET: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/template");

#[test]
fn a_new_circuit_builds_checks_proves_and_verifies_as_it_is() {
    let workplace = Workplace::new();
    let folder = Path::new(TARGET);
    std::fs::create_dir_all(folder).unwrap();
    let crate_folder = folder.join("product");
    if crate_folder.exists() {
        std::fs::remove_dir_all(&crate_folder).unwrap();
    }
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-circuits/sdk");
    let run = |arguments: &[&str]| {
        let output = workplace
            .command()
            .args(arguments)
            .current_dir(folder)
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["new", "product", "--sdk", sdk.to_str().unwrap()]);
    let component = workplace.path("product.wasm");
    run(&["build", "product", "--out", component.to_str().unwrap()]);

    let bytes = String::from_utf8_lossy(&workplace.read("product.wasm")).into_owned();
    let (home, root) = (std::env::var("HOME").unwrap(), env!("CARGO_MANIFEST_DIR"));
    for path in [home.as_str(), root, TARGET, "/usr/"] {
        assert!(!bytes.contains(path), "the component names a folder of this machine: {path}");
    }

    let input = crate_folder.join("example-input.json");
    let input = input.to_str().unwrap();
    let answer = workplace.json(&format!("check product.wasm --input {input}"));
    assert_eq!(answer["public"][0].as_str().unwrap().trim_start_matches("0x").trim_start_matches('0'), "f");
    workplace.json("setup product.wasm --out product.zkimage --vk-out product.vk");
    workplace.json(&format!(
        "prove product.wasm --key product.zkimage --input {input} --out product.proof --public-out product.json"
    ));
    workplace.json("verify --vk product.vk --proof product.proof --public product.json");
}

#[test]
fn a_file_that_is_no_module_of_a_circuit_is_refused() {
    let workplace = Workplace::new();
    workplace.write("notes.txt", b"no module");
    workplace.write("empty.wasm", b"\0asm\x01\0\0\0");
    workplace.write("component.wasm", b"\0asm\x0d\0\x01\0");
    let out = "--out circuit.wasm";
    for file in ["notes.txt", "component.wasm"] {
        workplace.check_failure(&format!("build {file} {out}"), 4, &[file, "core module", "wit/v0.1/circuit.wit"]);
    }
    workplace.check_failure(&format!("build empty.wasm {out}"), 4, &["empty.wasm", "circuit@0.1.0", "c-mimc"]);
    workplace.check_failure("build empty.wasm", 2, &["empty.wasm", "--out"]);
    workplace.check_failure(&format!("build empty.wasm --locked {out}"), 2, &["--locked", "for crates"]);
    workplace.check_failure("build empty.wasm --out empty.wasm", 2, &["another file"]);
}
