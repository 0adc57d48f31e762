//! bellman proving keys, and whether they are taken for keys of circuits.
#![no_main]

use zkhost_fuzz::CIRCUITS;
use zkhost_groth16::ProvingKey;
use zkhost_groth16::formats::{Subgroup, Trailer, read_params};
use zkhost_groth16::key::Phase2;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(params) = read_params(bytes, Subgroup::Check, Trailer::None) {
        let aux = params.l.len() as u32;
        if let Some(r1cs) = CIRCUITS.iter().find(|r1cs| r1cs.aux_count == aux) {
            let _ = ProvingKey::import(params, r1cs, Phase2::MayBeMissingForTests);
        }
    }
});
