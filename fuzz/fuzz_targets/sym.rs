//! circom symbols: every name that is read is found by its wire.
#![no_main]

use zkhost_groth16::formats::read_sym;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(sym) = read_sym(bytes) {
        assert!(sym.names().all(|(wire, name)| sym.name(wire) == Some(name)));
    }
});
