//! From a core module to a component.

use crate::error::{Code, Failure};
use anyhow::Result;
use std::path::Path;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;
use zkhost_runtime::{CONTRACT, Limits, examine};

/// Encode the module of a guest crate, which names the interface it was written for, as a component, check that it fits the
/// contract, and say what it imports.
pub fn encode_package(name: &str, module: &[u8]) -> Result<(Vec<u8>, Vec<String>)> {
    encode(module).map_err(|problem| {
        let message = format!(
            "package `{name}` compiles, but it is no circuit: {problem}. Does it end with \
             `zkhost_guest::export_circuit!(TYPE);`?"
        );
        Failure::new(Code::Guest, message).into()
    })
}

/// The same for a module from any compiler, whose imports and exports have the names and types of the contract's
/// canonical ABI.
pub fn encode_module(path: &Path, mut module: Vec<u8>) -> Result<(Vec<u8>, Vec<String>)> {
    let named = add_contract(&mut module).and_then(|()| encode(&module));
    named.map_err(|problem| {
        let message = format!(
            "{} is no module of a circuit: {problem}. Imports, exports and their types have to be those of \
             wit/v0.1/circuit.wit in the canonical ABI; guest-circuits/c-mimc is an example",
            path.display()
        );
        Failure::new(Code::Guest, message).into()
    })
}

/// Note in a module which interface it is written for.
fn add_contract(module: &mut Vec<u8>) -> Result<(), String> {
    if !module.starts_with(b"\0asm\x01\0\0\0") {
        return Err("it does not start as a core module of WebAssembly does".into());
    }
    let mut resolve = Resolve::default();
    let package = resolve.push_source("circuit.wit", CONTRACT).expect("the contract is WIT");
    let world = resolve.select_world(&[package], Some("guest")).expect("the contract has world `guest`");
    embed_component_metadata(module, &resolve, world, StringEncoding::UTF8).map_err(|error| format!("{error:#}"))
}

fn encode(module: &[u8]) -> Result<(Vec<u8>, Vec<String>), String> {
    let component = ComponentEncoder::default()
        .module(module)
        .and_then(|encoder| encoder.validate(true).encode())
        .map_err(|error| format!("{error:#}"))?;
    let examination = examine(&component, &Limits::default())?;
    Ok((component, examination.imports))
}
