//! snarkjs proving keys, and whether they are taken for keys of circuits.
#![no_main]

use zkhost_fuzz::CIRCUITS;
use zkhost_groth16::ProvingKey;
use zkhost_groth16::formats::read_zkey;
use zkhost_groth16::key::Phase2;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(zkey) = read_zkey(bytes)
        && let Some(r1cs) = CIRCUITS.iter().find(|r1cs| r1cs.variables() == zkey.variables as usize)
    {
        let _ = ProvingKey::import_zkey(zkey, r1cs, Phase2::MayBeMissingForTests);
    }
});
