//! bellman verifying keys: what is accepted is written back as it was.
#![no_main]

use zkhost_groth16::formats::{read_vk, write_vk};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(vk) = read_vk(bytes) {
        let mut again = vec![];
        write_vk(&vk, &mut again).unwrap();
        assert_eq!(again, bytes);
    }
});
