//! Proofs: what is accepted is written back as it was.
#![no_main]

use zkhost_groth16::Proof;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(proof) = Proof::from_bytes(bytes) {
        assert_eq!(proof.to_bytes(), bytes);
    }
});
