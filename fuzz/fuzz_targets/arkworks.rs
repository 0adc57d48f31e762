//! arkworks' keys and proofs: what is accepted is written back as it was.
#![no_main]

use zkhost_groth16::formats::arkworks::Compression::{Compressed, Uncompressed};
use zkhost_groth16::formats::arkworks::{read_proof, read_vk, write_proof, write_vk};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for compression in [Compressed, Uncompressed] {
        if let Ok(proof) = read_proof(bytes, compression) {
            assert_eq!(write_proof(&proof, compression), bytes);
        }
        if let Ok(vk) = read_vk(bytes, compression) {
            assert_eq!(write_vk(&vk, compression), bytes);
        }
    }
});
