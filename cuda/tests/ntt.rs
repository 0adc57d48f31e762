//! Transforms on the device against sums computed naively on the CPU.

mod common;

use ff::Field;
use rand_core::RngCore;
use zkhost_cuda::{
    Stream,
    ntt::{Direction, Domain, FactorTable, Order, Transform},
};
use zkhost_groth16::{
    Scalar,
    key::RootGenerator,
    scalar::{Limbs, from_canonical, from_montgomery, to_montgomery},
};

const ROOT_LOG: u32 = 32;

/// The value of the polynomial at x.
fn evaluate(coefficients: &[Scalar], x: Scalar) -> Scalar {
    coefficients.iter().rev().fold(Scalar::ZERO, |sum, c| sum * x + c)
}

fn reverse(i: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - bits) }
}

fn run(stream: &Stream, domain: &Domain, values: &[Scalar], transform: Transform<'_>) -> Vec<Scalar> {
    let limbs: Vec<Limbs> = values.iter().map(to_montgomery).collect();
    let data = stream.device().allocate::<Limbs>(values.len()).unwrap();
    stream.upload(data.as_slice(), &limbs).unwrap();
    domain.transform(stream, data.as_slice(), &transform).unwrap();
    let out = stream.to_vec(data.as_slice()).unwrap();
    out.iter().map(|limbs| from_montgomery(limbs).expect("reduced")).collect()
}

/// Positions to look at: all of a small vector, a few of a large one.
fn positions(n: usize, rng: &mut impl RngCore) -> Vec<usize> {
    if n <= 512 {
        (0..n).collect()
    } else {
        [0, 1, n / 2, n - 1].into_iter().chain((0..2).map(|_| rng.next_u64() as usize % n)).collect()
    }
}

fn check(stream: &Stream, log_n: u32, generator: RootGenerator) {
    let mut rng = common::random(u64::from(log_n));
    let n = 1usize << log_n;
    let root = generator.root_of_unity(ROOT_LOG);
    let w = generator.root_of_unity(log_n);
    let domain = Domain::new(stream, &root, log_n).unwrap();
    let x: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut rng)).collect();
    let (first, base) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let factors = FactorTable::powers(stream, log_n, &first, &base).unwrap();
    let inverse_n = Scalar::from(n as u64).invert().unwrap();
    let scale = FactorTable::constant(stream, &inverse_n).unwrap();
    let order = |v: &[Scalar], order| match order {
        Order::Natural => v.to_vec(),
        Order::BitReversed => (0..n).map(|i| v[reverse(i, log_n)]).collect(),
    };
    for input in [Order::Natural, Order::BitReversed] {
        for output in [Order::Natural, Order::BitReversed] {
            let case = format!("2^{log_n}, {generator:?}, {input:?} to {output:?}");
            let forward =
                Transform { direction: Direction::Forward, input, output, before: Some(&factors), after: None };
            let y = order(&run(stream, &domain, &order(&x, input), forward), output);
            for f in positions(n, &mut rng) {
                let want = first * evaluate(&x, base * w.pow_vartime([f as u64]));
                assert!(y[f] == want, "forward, {case}, value {f}");
            }
            let inverse = Transform { direction: Direction::Inverse, input, output, before: None, after: Some(&scale) };
            let back = order(&run(stream, &domain, &order(&y, input), inverse), output);
            let mut power = first;
            for (i, value) in back.iter().enumerate() {
                assert!(*value == x[i] * power, "inverse, {case}, coefficient {i}");
                power *= base;
            }
        }
    }
}

fn check_coset_product(stream: &Stream, log_n: u32, generator: RootGenerator) {
    let mut rng = common::random(100 + u64::from(log_n));
    let n = 1usize << log_n;
    let domain = Domain::new(stream, &generator.root_of_unity(ROOT_LOG), log_n).unwrap();
    let (w, eta) = (generator.root_of_unity(log_n), generator.root_of_unity(log_n + 1));
    let shift = FactorTable::powers_reversed(stream, log_n, &Scalar::from(n as u64).invert().unwrap(), &eta).unwrap();
    let polynomials: [Vec<Scalar>; 2] = std::array::from_fn(|_| (0..n).map(|_| Scalar::random(&mut rng)).collect());
    let plain = |before, after| Transform {
        direction: Direction::Forward,
        input: before,
        output: after,
        before: None,
        after: None,
    };
    let mut limbs = Vec::new();
    for p in &polynomials {
        let values = run(stream, &domain, p, plain(Order::Natural, Order::Natural));
        limbs.extend(values.iter().map(to_montgomery));
    }
    let data = stream.device().allocate::<Limbs>(2 * n).unwrap();
    stream.upload(data.as_slice(), &limbs).unwrap();
    domain.coset_product(stream, data.as_slice(), &shift).unwrap();
    let out = stream.to_vec(data.as_slice().slice(0, n).unwrap()).unwrap();
    for j in positions(n, &mut rng) {
        let x = eta * w.pow_vartime([j as u64]);
        let want = evaluate(&polynomials[0], x) * evaluate(&polynomials[1], x);
        assert!(from_canonical(&out[j]) == Some(want), "2^{log_n}, {generator:?}, value {j}");
    }
}

#[test]
fn transforms_are_the_sums_that_define_them() {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    for log_n in (0..=17).chain([19, 20]) {
        check(&stream, log_n, RootGenerator::Seven);
    }
    for log_n in [1, 5, 11] {
        check(&stream, log_n, RootGenerator::Five);
    }
}

#[test]
fn coset_products_are_products_of_values() {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    for log_n in (0..=13).chain([18, 19, 21]) {
        check_coset_product(&stream, log_n, RootGenerator::Seven);
    }
    check_coset_product(&stream, 9, RootGenerator::Five);
}

#[test]
fn large_transforms_invert_themselves() {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    for log_n in [22, 25, 27, 28] {
        // The data, half as many roots, and what the driver keeps for itself.
        if device.available_bytes().unwrap() < (48 << log_n) + (256 << 20) {
            eprintln!("skipped: 2^{log_n} does not fit this card");
            continue;
        }
        let mut rng = common::random(u64::from(log_n));
        let n = 1usize << log_n;
        let root = RootGenerator::Seven.root_of_unity(ROOT_LOG);
        let domain = Domain::new(&stream, &root, log_n).unwrap();
        let scale = FactorTable::constant(&stream, &Scalar::from(n as u64).invert().unwrap()).unwrap();
        // A vector with few non-zero coefficients has values that are cheap to predict.
        let sparse: Vec<(usize, Scalar)> =
            (0..5).map(|_| (rng.next_u64() as usize % n, Scalar::random(&mut rng))).collect();
        let mut x = vec![[0; 4]; n];
        sparse.iter().for_each(|(i, value)| x[*i] = to_montgomery(value));
        let data = device.allocate::<Limbs>(n).unwrap();
        stream.upload(data.as_slice(), &x).unwrap();
        let (input, output) = (Order::Natural, Order::BitReversed);
        let forward = Transform { direction: Direction::Forward, input, output, before: None, after: None };
        domain.transform(&stream, data.as_slice(), &forward).unwrap();
        let w = RootGenerator::Seven.root_of_unity(log_n);
        for f in [0, 1, n / 3, n - 1] {
            let mut got = [[0; 4]];
            stream.download(&mut got, data.as_slice().slice(reverse(f, log_n), 1).unwrap()).unwrap();
            let want: Scalar = sparse.iter().map(|(i, v)| *v * w.pow_vartime([*i as u64 * f as u64])).sum();
            assert!(from_montgomery(&got[0]) == Some(want), "2^{log_n}, value {f}");
        }
        let back = Transform {
            direction: Direction::Inverse,
            input: output,
            output: input,
            before: None,
            after: Some(&scale),
        };
        domain.transform(&stream, data.as_slice(), &back).unwrap();
        assert!(stream.to_vec(data.as_slice()).unwrap() == x, "2^{log_n}");
    }
}
