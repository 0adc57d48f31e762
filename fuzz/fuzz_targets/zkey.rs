//! snarkjs proving keys.
#![no_main]

use zkhost_groth16::formats::read_zkey;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = read_zkey(bytes);
});
