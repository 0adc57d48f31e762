//! iden3 constraint systems: what is accepted can be hashed and evaluated.
#![no_main]

use zkhost_groth16::Scalar;
use zkhost_groth16::formats::read_r1cs;
use zkhost_groth16::r1cs::MatrixId;

/// A header may claim many variables that no constraint uses; z for them is no test of the decoder.
const MAX_VARIABLES: usize = 1 << 16;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = read_r1cs(bytes)
        && file.r1cs.variables() <= MAX_VARIABLES
    {
        let z = vec![Scalar::from(1); file.r1cs.variables()];
        let _ = (file.r1cs.hash(), file.r1cs.a_density(), file.r1cs.b_density());
        let _ = MatrixId::ALL.map(|id| file.r1cs.evaluate(id, &z));
    }
});
