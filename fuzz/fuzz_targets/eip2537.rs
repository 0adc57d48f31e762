//! EIP-2537 proofs, public inputs and calldata: what is accepted is written back as it was.
#![no_main]

use zkhost_groth16::formats::eip2537::{
    read_calldata, read_proof, read_publics, write_calldata, write_proof, write_publics,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(proof) = read_proof(bytes) {
        assert_eq!(write_proof(&proof), bytes);
    }
    if let Ok(publics) = read_publics(bytes) {
        assert_eq!(write_publics(&publics), bytes);
    }
    if let Ok((proof, publics)) = read_calldata(bytes) {
        assert_eq!(write_calldata(&proof, &publics), bytes);
    }
});
