//! What targets of proving keys share.

use std::sync::LazyLock;
use zkhost_groth16::R1cs;
use zkhost_groth16::formats::read_r1cs;

/// Constraint systems of the fixtures, which keys of the corpus are for.
pub static CIRCUITS: LazyLock<[R1cs; 3]> = LazyLock::new(|| {
    [
        include_bytes!("../../tests/fixtures/circom/mul2/circuit.r1cs").as_slice(),
        include_bytes!("../../tests/fixtures/circom/edge_nopublic/circuit.r1cs"),
        include_bytes!("../../tests/fixtures/circom/edge_pow2/circuit.r1cs"),
    ]
    .map(|bytes| read_r1cs(bytes).expect("fixtures are good").r1cs)
});
