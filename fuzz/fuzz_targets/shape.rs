//! Recorded shapes, behind their hash: what is accepted is written back as it was.
#![no_main]

use zkhost_groth16::formats::{read_shape, write_shape};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if let Some(end) = bytes.len().checked_sub(32) {
        let hash = blake3::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(hash.as_bytes());
    }
    if let Ok(r1cs) = read_shape(&bytes) {
        let mut again = vec![];
        write_shape(&r1cs, &mut again).unwrap();
        assert_eq!(read_shape(&again).unwrap(), r1cs);
    }
});
