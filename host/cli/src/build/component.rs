//! From a core module to a component.

use crate::error::{Code, Failure};
use anyhow::Result;
use wit_component::ComponentEncoder;
use zkhost_runtime::{Limits, examine};

/// Encode a module as a component, check that it fits the contract, and say what it imports.
pub fn encode(name: &str, module: &[u8]) -> Result<(Vec<u8>, Vec<String>)> {
    let refused = |problem: String| {
        Failure::new(
            Code::Guest,
            format!(
                "package `{name}` compiles, but it is no circuit: {problem}. Does it end with \
                 `zkhost_guest::export_circuit!(TYPE);`?"
            ),
        )
    };
    let component = ComponentEncoder::default()
        .module(module)
        .and_then(|encoder| encoder.validate(true).encode())
        .map_err(|error| refused(format!("{error:#}")))?;
    let examination = examine(&component, &Limits::default()).map_err(refused)?;
    Ok((component, examination.imports))
}
