//! The first broken constraint, by the device and by the CPU.

#[path = "common/circuits.rs"]
mod circuits;
mod common;

use std::sync::Arc;

use ff::Field;
use zkhost_cuda::{Device, DeviceChecker};
use zkhost_groth16::{Assignment, R1cs, Scalar, r1cs::CheckError};

/// The device finds what the CPU finds, for the values as they are and with single ones of them changed.
fn check(device: &Arc<Device>, (r1cs, publics, aux): (R1cs, Vec<Scalar>, Vec<Scalar>)) {
    let r1cs = Arc::new(r1cs);
    let mut checker = DeviceChecker::new(device, r1cs.clone()).unwrap();
    let mut compare = |aux: &[Scalar]| {
        let assignment = Assignment::from_values(&publics, aux);
        let expected = match r1cs.check(&assignment) {
            Ok(()) => None,
            Err(CheckError::Unsatisfied(broken)) => Some(broken.index),
            Err(mismatch) => panic!("{mismatch}"),
        };
        assert_eq!(checker.first_broken(&assignment).unwrap(), expected, "{} constraints", r1cs.constraints());
        expected
    };
    assert_eq!(compare(&aux), None);
    let mut broken = 0;
    for changed in [0, 1, aux.len() / 2, aux.len().saturating_sub(1)] {
        let mut wrong = aux.clone();
        if let Some(value) = wrong.get_mut(changed) {
            *value += Scalar::from(2);
            broken += usize::from(compare(&wrong).is_some());
        }
    }
    assert!(broken > 0 || aux.is_empty(), "no change broke a constraint");
}

#[test]
fn the_first_broken_constraint_is_that_of_the_cpu() {
    let Some(device) = common::device() else { return };
    for steps in [1, 2, 3, 100, 127, 128, 129, 5000] {
        check(&device, circuits::squarings(steps));
    }
    for bits in [1, 40, 20_000] {
        check(&device, circuits::booleans(bits, &mut common::random(bits as u64)));
    }
}

#[test]
fn no_constraints_hold() {
    let Some(device) = common::device() else { return };
    check(&device, circuits::Builder::new(vec![Scalar::from(5)]).finish());
}

#[test]
fn a_witness_of_another_circuit_is_refused() {
    let Some(device) = common::device() else { return };
    let (r1cs, publics, aux) = circuits::squarings(9);
    let mut checker = DeviceChecker::new(&device, Arc::new(r1cs)).unwrap();
    let error = checker.first_broken(&Assignment::from_values(&publics, &[&aux[..], &[Scalar::ONE]].concat()));
    assert!(error.unwrap_err().to_string().contains("another circuit"));
}
