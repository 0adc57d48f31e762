//! Proofs of the device are those that other provers made by the same keys, witnesses, r and s.

mod common;

use std::sync::Arc;

use zkhost_cuda::{CudaKey, CudaProver, to_quotient_points};
use zkhost_groth16::{
    Assignment, Prover, ProvingKey, Scalar,
    formats::{Subgroup, Trailer, read_params, read_r1cs, read_wtns},
    key::Phase2,
};

/// The blinding of the golden proofs.
const R: u64 = 27134;
const S: u64 = 17146;

/// A circuit and witness by circom, a key and a proof by bellman. In the program, so that it runs where no files are.
struct Golden {
    name: &'static str,
    r1cs: &'static [u8],
    witness: &'static [u8],
    params: &'static [u8],
    proof: &'static [u8],
}

macro_rules! golden {
    ($name:literal) => {
        Golden {
            name: $name,
            r1cs: include_bytes!(concat!("../../tests/fixtures/circom/", $name, "/circuit.r1cs")),
            witness: include_bytes!(concat!("../../tests/fixtures/circom/", $name, "/witness.wtns")),
            params: include_bytes!(concat!("../../tests/fixtures/bellman-golden/", $name, ".params")),
            proof: include_bytes!(concat!("../../tests/fixtures/bellman-golden/", $name, ".proof")),
        }
    };
}

const GOLDEN: [Golden; 4] = [golden!("mul2"), golden!("edge_pow2"), golden!("edge_range"), golden!("edge_nopublic")];

#[test]
fn golden_keys_and_witnesses_give_the_golden_proofs() {
    let Some(device) = common::device() else { return };
    for golden in GOLDEN {
        let name = golden.name;
        let r1cs = Arc::new(read_r1cs(golden.r1cs).unwrap().r1cs);
        let z = read_wtns(golden.witness).unwrap();
        let params = read_params(golden.params, Subgroup::Check, Trailer::None).unwrap();
        let key = ProvingKey::import(params, &r1cs, Phase2::Required).unwrap();
        let converted = to_quotient_points(&device, &key, &r1cs).unwrap();
        let loaded = CudaKey::new(&device, Arc::new(converted), r1cs.clone(), 1).unwrap();
        let prover = CudaProver::new(Arc::new(loaded)).unwrap();
        let (publics, aux) = z[1..].split_at(r1cs.public_count as usize);
        let assignment = Assignment::from_values(publics, aux);
        let (r, s) = (Scalar::from(R), Scalar::from(S));
        let proof = prover.prove_with_fixed_blinding_for_tests(&assignment, r, s).unwrap();
        assert!(proof.to_bytes()[..] == *golden.proof, "{name}");
    }
}
