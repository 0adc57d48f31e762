//! Plutus's JSON: what is accepted is read again from what is written for it.
#![no_main]

use zkhost_groth16::formats::plutus::{read_proof, read_vk, write_proof, write_vk};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(proof) = read_proof(bytes) {
        assert_eq!(read_proof(write_proof(&proof).as_bytes()).unwrap(), proof);
    }
    if let Ok(vk) = read_vk(bytes) {
        assert_eq!(read_vk(write_vk(&vk).as_bytes()).unwrap(), vk);
    }
});
