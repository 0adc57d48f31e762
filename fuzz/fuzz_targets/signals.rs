//! Inputs of circom circuits. The parser is compiled from the runtime's source, without the runtime.
#![no_main]

#[path = "../../host/runtime/src/circom/signals.rs"]
mod signals;

use zkhost_groth16::scalar::is_reduced;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(signals) = signals::Signals::parse(bytes) {
        assert!(signals.iter().all(|(name, values)| !name.is_empty() && values.iter().all(is_reduced)));
    }
});
