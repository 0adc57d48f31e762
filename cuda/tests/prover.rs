//! Proofs of the device against those of the CPU.

#[path = "common/circuits.rs"]
mod circuits;
mod common;

use std::{cell::Cell, collections::HashSet, sync::Arc};

use ff::Field;
use zkhost_cuda::{
    CudaError, CudaKey, CudaProver, Device, DeviceMultiples, Slot, device::MemoryLimits, to_quotient_points,
};
use zkhost_groth16::{
    Assignment, CpuProver, Encoding, HBasis, Prover, ProvingKey, R1cs, Scalar,
    assignment::{SegmentLimits, SegmentSink, SegmentWriter},
    scalar::{Limbs, to_canonical, to_montgomery},
    setup::{ToxicWaste, setup, setup_with},
};

type Circuit = (R1cs, Vec<Scalar>, Vec<Scalar>);

/// The circuits that every property is looked at with: degenerate, small, and larger than a block of any kernel.
fn circuits() -> Vec<(String, Circuit)> {
    let mut all = vec![];
    for steps in [1, 2, 3, 5, 6, 7, 14, 100, 1000] {
        all.push((format!("{steps} squarings"), circuits::squarings(steps)));
    }
    for bits in [1, 40, 700, 20_000] {
        all.push((format!("{bits} bits"), circuits::booleans(bits, &mut common::random(bits as u64))));
    }
    let mut linear = circuits::Builder::new(vec![Scalar::from(5)]);
    let x = linear.aux(Scalar::from(5));
    linear.enforce([&[(x, Scalar::ONE)], &[(0, Scalar::ONE)], &[(1, Scalar::ONE)]]);
    all.push(("one linear constraint".into(), linear.finish()));
    let mut two = circuits::Builder::new(vec![]);
    let (x, y) = (two.aux(Scalar::from(3)), two.aux(Scalar::from(9)));
    two.enforce([&[(x, Scalar::ONE)], &[(x, Scalar::ONE)], &[(y, Scalar::ONE)]]);
    all.push(("no public input, a domain of two".into(), two.finish()));
    all
}

/// The aux values in segments of a length that is no multiple of 64, canonical.
fn segmented(publics: &[Scalar], aux: &[Scalar], length: usize) -> Assignment {
    let mut segments = vec![];
    for (i, values) in aux.chunks(length).enumerate() {
        let public_count = if i == 0 { publics.len() as u64 } else { 0 };
        let limits = SegmentLimits { aux_count: values.len() as u64, full_max: values.len() as u64, public_count };
        let mut writer = SegmentWriter::on_heap(Encoding::Canonical, limits).unwrap();
        if i == 0 {
            let limbs: Vec<u64> = publics.iter().flat_map(to_canonical).collect();
            writer.write_public(&limbs).unwrap();
        }
        for group in values.chunks(64) {
            let mut masks = [0u64; 2];
            let mut elements: Vec<Limbs> = vec![];
            for (bit, value) in group.iter().enumerate() {
                if *value == Scalar::ONE && bit % 5 != 0 {
                    masks[1] |= 1 << bit;
                } else if *value != Scalar::ZERO {
                    // A one may travel in full too.
                    masks[0] |= 1 << bit;
                    elements.push(to_canonical(value));
                }
            }
            writer.write_groups(&masks, elements.as_flattened()).unwrap();
        }
        segments.push(writer.finish().unwrap());
    }
    Assignment::new(segments)
}

fn prover(device: &Arc<Device>, key: &Arc<ProvingKey>, r1cs: &Arc<R1cs>) -> CudaProver {
    CudaProver::new(Arc::new(CudaKey::new(device, key.clone(), r1cs.clone(), 1).unwrap())).unwrap()
}

#[test]
fn the_smallest_domains_are_among_the_circuits() {
    let domains: Vec<u32> = circuits().iter().map(|(_, (r1cs, ..))| r1cs.log2_domain()).collect();
    assert!([1, 2, 3].iter().all(|log2| domains.contains(log2)), "{domains:?}");
}

#[test]
fn keys_made_on_the_device_are_those_of_the_cpu() {
    let Some(device) = common::device() else { return };
    let multiples = DeviceMultiples::new(&device).unwrap();
    for (name, (r1cs, ..)) in circuits() {
        for basis in [HBasis::Monomial, HBasis::QuotientPoints] {
            let waste = ToxicWaste::insecure_from_seed(3);
            let ours = setup_with(&r1cs, &waste, basis, &multiples).unwrap();
            let cpu = setup(&r1cs, &waste, basis).unwrap();
            assert!(ours.vk == cpu.vk, "{name}, {basis:?}");
            assert!(*ours.a == *cpu.a && *ours.b_g1 == *cpu.b_g1 && *ours.b_g2 == *cpu.b_g2, "{name}, {basis:?}");
            assert!(*ours.h == *cpu.h && *ours.l == *cpu.l, "{name}, {basis:?}");
        }
    }
}

#[test]
fn proofs_are_those_of_the_cpu_byte_for_byte() {
    let Some(device) = common::device() else { return };
    for (name, (r1cs, publics, aux)) in circuits() {
        let r1cs = Arc::new(r1cs);
        let key = Arc::new(setup(&r1cs, &ToxicWaste::insecure_from_seed(9), HBasis::QuotientPoints).unwrap());
        let cpu = CpuProver::new(key.clone(), r1cs.clone()).unwrap();
        let gpu = prover(&device, &key, &r1cs);
        let (r, s) = (Scalar::from(17).square(), Scalar::from(23));
        let whole = Assignment::from_values(&publics, &aux);
        let want = cpu.prove_with_fixed_blinding_for_tests(&whole, r, s).unwrap_or_else(|e| panic!("{name}: {e}"));
        for assignment in [whole, segmented(&publics, &aux, 1_000), segmented(&publics, &aux, 77)] {
            let got =
                gpu.prove_with_fixed_blinding_for_tests(&assignment, r, s).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(got.to_bytes() == want.to_bytes(), "{name}");
            let zero = Scalar::ZERO;
            let got = gpu.prove_with_fixed_blinding_for_tests(&assignment, zero, zero).unwrap();
            let want = cpu.prove_with_fixed_blinding_for_tests(&assignment, zero, zero).unwrap();
            assert!(got.to_bytes() == want.to_bytes(), "{name}, r = s = 0");
            gpu.prove(&assignment).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

#[test]
fn a_converted_key_gives_the_proofs_of_its_original() {
    let Some(device) = common::device() else { return };
    for (name, (r1cs, publics, aux)) in circuits() {
        let r1cs = Arc::new(r1cs);
        for basis in [HBasis::Monomial, HBasis::OddCoset] {
            let key = Arc::new(setup(&r1cs, &ToxicWaste::insecure_from_seed(6), basis).unwrap());
            let cpu = CpuProver::new(key.clone(), r1cs.clone()).unwrap();
            let converted = to_quotient_points(&device, &key, &r1cs).unwrap_or_else(|e| panic!("{name}: {e}"));
            let gpu = prover(&device, &Arc::new(converted), &r1cs);
            let assignment = Assignment::from_values(&publics, &aux);
            let (r, s) = (Scalar::from(5), Scalar::from(11).square());
            let want = cpu.prove_with_fixed_blinding_for_tests(&assignment, r, s).unwrap();
            let got = gpu
                .prove_with_fixed_blinding_for_tests(&assignment, r, s)
                .unwrap_or_else(|e| panic!("{name}, {basis:?}: {e}"));
            assert!(got.to_bytes() == want.to_bytes(), "{name}, {basis:?}");
        }
    }
}

#[test]
fn a_false_witness_is_blamed_and_gives_no_proof() {
    let Some(device) = common::device() else { return };
    let (r1cs, publics, mut aux) = circuits::squarings(50);
    let r1cs = Arc::new(r1cs);
    let key = Arc::new(setup(&r1cs, &ToxicWaste::insecure_from_seed(1), HBasis::QuotientPoints).unwrap());
    let gpu = prover(&device, &key, &r1cs);
    aux[20] += Scalar::ONE;
    let error = gpu.prove(&Assignment::from_values(&publics, &aux)).unwrap_err().to_string();
    assert!(error.contains("no witness"), "{error}");
    aux.pop();
    assert!(gpu.prove(&Assignment::from_values(&publics, &aux)).is_err());
}

#[test]
fn two_hundred_proofs_leave_device_memory_as_it_was() {
    let Some(device) = common::device() else { return };
    let (r1cs, publics, aux) = circuits::booleans(3_000, &mut common::random(5));
    let r1cs = Arc::new(r1cs);
    let key = Arc::new(setup(&r1cs, &ToxicWaste::insecure_from_seed(1), HBasis::QuotientPoints).unwrap());
    let base = device.used_bytes();
    let gpu = prover(&device, &key, &r1cs);
    let assignment = Assignment::from_values(&publics, &aux);
    gpu.prove(&assignment).unwrap();
    let (used, free) = (device.used_bytes(), device.memory().unwrap().0);
    for _ in 0..200 {
        gpu.prove(&assignment).unwrap();
    }
    assert_eq!((device.used_bytes(), device.memory().unwrap().0), (used, free));
    drop(gpu);
    assert_eq!(device.used_bytes(), base);
}

#[test]
fn a_key_too_large_for_the_card_is_streamed() {
    let Some(device) = common::device() else { return };
    let (r1cs, publics, aux) = circuits::booleans(30_000, &mut common::random(8));
    let r1cs = Arc::new(r1cs);
    let key = Arc::new(setup(&r1cs, &ToxicWaste::insecure_from_seed(1), HBasis::QuotientPoints).unwrap());
    let assignment = Assignment::from_values(&publics, &aux);
    let (r, s) = (Scalar::from(2), Scalar::from(3));
    let cpu = CpuProver::new(key.clone(), r1cs.clone()).unwrap();
    let want = cpu.prove_with_fixed_blinding_for_tests(&assignment, r, s).unwrap().to_bytes();
    // From too little for anything to enough for all multiples, in steps.
    let (mut refused, mut streamed, mut resident) = (0, 0, 0);
    for mebibytes in [64, 270, 300, 320, 340, 360, 380, 400, 450, 500, 600, 800, 2_000] {
        device.set_memory_limits(MemoryLimits { bytes_max: mebibytes << 20, ..Default::default() });
        let loaded = match CudaKey::new(&device, key.clone(), r1cs.clone(), 1) {
            Ok(loaded) => Arc::new(loaded),
            Err(error) => {
                assert!(error.to_string().contains("out of device memory"), "{error}");
                refused += 1;
                continue;
            }
        };
        *(if loaded.is_resident() { &mut resident } else { &mut streamed }) += 1;
        let gpu = CudaProver::new(loaded).unwrap();
        let got = gpu.prove_with_fixed_blinding_for_tests(&assignment, r, s).unwrap();
        assert!(got.to_bytes() == want, "{mebibytes} MiB");
    }
    device.set_memory_limits(MemoryLimits::default());
    assert!(refused > 0 && streamed > 0 && resident > 0, "{refused} refused, {streamed} streamed, {resident} resident");
}

#[test]
fn a_refused_allocation_is_an_error_and_leaks_nothing() {
    let Some(device) = common::device() else { return };
    let (r1cs, publics, aux) = circuits::squarings(40);
    let r1cs = Arc::new(r1cs);
    let key = Arc::new(setup(&r1cs, &ToxicWaste::insecure_from_seed(1), HBasis::QuotientPoints).unwrap());
    let assignment = Assignment::from_values(&publics, &aux);
    let base = device.used_bytes();
    let mut refused = 0;
    for allocations_max in 0.. {
        device.set_memory_limits(MemoryLimits { allocations_max, ..Default::default() });
        let opened = CudaKey::new(&device, key.clone(), r1cs.clone(), 1).and_then(|key| CudaProver::new(Arc::new(key)));
        match opened {
            Ok(gpu) => {
                gpu.prove(&assignment).unwrap();
                break;
            }
            Err(error) => {
                assert!(error.to_string().contains("out of device memory"), "{error}");
                refused += 1;
            }
        }
        assert_eq!(device.used_bytes(), base, "after {allocations_max} allocations");
    }
    device.set_memory_limits(MemoryLimits::default());
    assert!(refused > 10);
}

#[test]
fn nothing_of_a_witness_is_left_in_a_slot_nor_in_memory_that_is_freed() {
    let Some(device) = common::device() else { return };
    let (r1cs, publics, aux) = circuits::squarings(1000);
    let key = setup(&r1cs, &ToxicWaste::insecure_from_seed(1), HBasis::QuotientPoints).unwrap();
    let key = CudaKey::new(&device, Arc::new(key), Arc::new(r1cs), 1).unwrap();
    let mut slot = Slot::new(&device, key.scratch_bytes()).unwrap();
    let assignment = Assignment::from_values(&publics, &aux);
    // To the end, and stopped when it is asked for the first time, the second time and so on.
    for asked_max in [u32::MAX, 0, 1, 2, 3, 5, 8] {
        let asked = Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) >= asked_max;
        match slot.prove(&key, &assignment, &stop) {
            Ok(_) => assert!(asked.get() <= asked_max, "it was told to stop"),
            Err(error) => assert!(matches!(error, CudaError::Stopped), "{error}"),
        }
        assert_eq!(slot.dirty_bytes().unwrap(), 0, "after being asked {} times", asked.get());
    }
    drop(slot);
    let secrets: HashSet<Limbs> = aux.iter().flat_map(|value| [to_canonical(value), to_montgomery(value)]).collect();
    let freed = device.allocate::<u64>(key.scratch_bytes() / size_of::<u64>()).unwrap();
    let found = device.stream().unwrap().to_vec(freed.as_slice()).unwrap();
    assert!(!found.windows(4).any(|limbs| secrets.contains(limbs)), "a value of the witness is in free memory");
}
