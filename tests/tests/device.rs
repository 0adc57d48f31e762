//! Sapling under the ceremony's keys on a CUDA device: the bytes of the CPU's proofs, and with them of the `groth16` crate's.

use std::sync::Arc;
use zkhost_cuda::{CudaKey, CudaProver, DeviceChecker, DeviceChoice, to_quotient_points};
use zkhost_groth16::formats::{Subgroup, Trailer, known_params, read_params};
use zkhost_groth16::key::Phase2;
use zkhost_groth16::{Assignment, CpuProver, Prover, ProvingKey, R1cs, Scalar};
use zkhost_runtime::{Compiler, Input, Limits, Runtime, Synthesis};
use zkhost_tests::{ceremony_key, component, example_input, fixture};

/// The blinding of the golden proof.
const R: u64 = 27134;
const S: u64 = 17146;

/// What a component makes of its example input: its constraint system and the assignment of its one partition.
fn run(name: &str) -> (Arc<R1cs>, Assignment) {
    let runtime = Runtime::new(Compiler::InProcess, None).unwrap();
    let circuit = runtime.load(name, &component(name), Limits::default()).unwrap();
    let input = Input::from(example_input(name));
    let layout = circuit.plan(b"").unwrap();
    let shape = circuit.record_shape(b"", false).unwrap();
    let job = Synthesis { params: b"", input: &input, layout: &layout, shape: &shape };
    let mut assignments = circuit.synthesise(job, 0..1, 2).unwrap();
    (Arc::new(shape), assignments.remove(0))
}

/// The device's proof by the ceremony's key, converted on the device, with R and S; the CPU's is the same, from the key as it
/// came. With r = s = 0 likewise, and randomised proofs verify.
fn check(name: &str) -> Option<Vec<u8>> {
    let (device, why) = DeviceChoice::Cuda(0).open();
    let Some(device) = device else {
        eprintln!("skipped: {}", why.unwrap_or_default());
        return None;
    };
    let (r1cs, assignment) = run(name);
    assert_eq!(DeviceChecker::new(&device, r1cs.clone()).unwrap().first_broken(&assignment).unwrap(), None);

    let bytes = ceremony_key(name);
    let known = known_params(bytes.len() as u64).expect("the key is the ceremony's");
    let params = read_params(&bytes, Subgroup::CheckedBefore, Trailer::Pinned(known.sha256)).unwrap();
    let key = Arc::new(ProvingKey::import(params, &r1cs, Phase2::Required).unwrap());
    let converted = Arc::new(to_quotient_points(&device, &key, &r1cs).unwrap());
    let gpu = CudaProver::new(Arc::new(CudaKey::new(&device, converted, r1cs.clone(), 1).unwrap())).unwrap();
    let cpu = CpuProver::new(key, r1cs).unwrap();
    for (r, s) in [(0, 0), (R, S)] {
        let (r, s) = (Scalar::from(r), Scalar::from(s));
        let expected = cpu.prove_with_fixed_blinding_for_tests(&assignment, r, s).unwrap().to_bytes();
        let found = gpu.prove_with_fixed_blinding_for_tests(&assignment, r, s).unwrap().to_bytes();
        assert_eq!(hex::encode(found), hex::encode(expected), "{name}");
    }
    assert_ne!(gpu.prove(&assignment).unwrap(), gpu.prove(&assignment).unwrap(), "randomised");
    Some(gpu.prove_with_fixed_blinding_for_tests(&assignment, R.into(), S.into()).unwrap().to_bytes().into())
}

#[test]
fn sapling_spend_on_a_device_has_the_bytes_of_the_cpu() {
    check("sapling-spend");
}

#[test]
fn sapling_output_on_a_device_is_the_golden_proof() {
    if let Some(proof) = check("sapling-output") {
        assert_eq!(hex::encode(proof), hex::encode(fixture("sapling/golden-output.proof")));
    }
}
