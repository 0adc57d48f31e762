//! Key images. The header's own hash is made right, so that the dimensions and sizes behind it are reached.
#![no_main]

use std::io::Write;
use zkhost_groth16::image::open_image;
use zkhost_groth16::key::Phase2;

const PAGE_BYTES: usize = 4096;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= PAGE_BYTES {
        let end = PAGE_BYTES - 32;
        let hash = blake3::hash(&bytes[..end]);
        bytes[end..PAGE_BYTES].copy_from_slice(hash.as_bytes());
    }
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let _ = open_image(&file, Phase2::MayBeMissingForTests);
});
