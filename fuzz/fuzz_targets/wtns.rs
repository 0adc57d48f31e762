//! iden3 witnesses.
#![no_main]

use zkhost_groth16::formats::read_wtns;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = read_wtns(bytes);
});
