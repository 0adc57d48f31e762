//! gnark's proofs: what is accepted is written back as it was.
#![no_main]

use zkhost_groth16::formats::gnark::{read_proof, write_proof};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(proof) = read_proof(bytes) {
        assert_eq!(write_proof(&proof), bytes);
    }
});
