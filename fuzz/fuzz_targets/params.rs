//! bellman proving keys.
#![no_main]

use zkhost_groth16::formats::{Subgroup, Trailer, read_params};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = read_params(bytes, Subgroup::Check, Trailer::None);
});
