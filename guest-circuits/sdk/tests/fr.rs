//! The field against two independent implementations, on random and edge values.

use bls12_381::Scalar;
use ff014::{Field as _, PrimeField as _, PrimeFieldBits as _};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use zkhost_guest::Fr;
use zkhost_guest::fr::MODULUS;

/// Edge values, and as many random ones.
fn samples() -> Vec<Fr> {
    let mut samples: Vec<Fr> = [0, 1, 2, 3, 7, u64::MAX].map(Fr::from).to_vec();
    samples.extend(samples.clone().iter().map(|x| -*x));
    let [a, b, c, d] = MODULUS;
    let half = [a >> 1 | b << 63, b >> 1 | c << 63, c >> 1 | d << 63, d >> 1];
    let all_ones_below = [u64::MAX, u64::MAX, u64::MAX, d - 1];
    let top_bit = [0, 0, 0, 1 << 62];
    let r_squared = Fr::from_montgomery([1, 0, 0, 0]);
    samples.extend([half, all_ones_below, top_bit].map(|limbs| Fr::from_canonical(limbs).expect("below r")));
    samples.extend(r_squared);
    samples.extend(
        (0..64).flat_map(|i| Fr::from_canonical(std::array::from_fn(|k| u64::from(i / 16 == k) << (i % 16 * 4)))),
    );
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    samples.extend((0..64).map(|_| Fr::from_wide(std::array::from_fn(|_| rng.next_u64()))));
    samples
}

fn scalar(x: &Fr) -> Scalar {
    Option::from(Scalar::from_bytes(&x.to_le_bytes())).expect("canonical bytes")
}

fn blst(x: &Fr) -> blstrs::Scalar {
    Option::from(blstrs::Scalar::from_bytes_le(&x.to_le_bytes())).expect("canonical bytes")
}

/// A binary operation gives what both other implementations give, for all pairs.
fn check_binary(
    ours: impl Fn(Fr, Fr) -> Fr,
    theirs: impl Fn(Scalar, Scalar) -> Scalar,
    blsts: impl Fn(blstrs::Scalar, blstrs::Scalar) -> blstrs::Scalar,
) {
    for x in &samples() {
        for y in &samples() {
            let result = ours(*x, *y);
            assert_eq!(result.to_le_bytes(), theirs(scalar(x), scalar(y)).to_bytes(), "{x:?}, {y:?}");
            assert_eq!(result.to_le_bytes(), blsts(blst(x), blst(y)).to_bytes_le(), "{x:?}, {y:?}");
        }
    }
}

/// A unary operation gives what the other implementation gives, for all samples.
fn check_unary(ours: impl Fn(Fr) -> Fr, theirs: impl Fn(Scalar) -> Scalar) {
    for x in &samples() {
        assert_eq!(ours(*x).to_le_bytes(), theirs(scalar(x)).to_bytes(), "{x:?}");
    }
}

#[test]
fn sums_differences_and_products_equal_two_other_implementations() {
    check_binary(|x, y| x + y, |x, y| x + y, |x, y| x + y);
    check_binary(|x, y| x - y, |x, y| x - y, |x, y| x - y);
    check_binary(|x, y| x * y, |x, y| x * y, |x, y| x * y);
}

#[test]
fn negatives_squares_doubles_and_powers_equal_another_implementation() {
    check_unary(|x| -x, |x| -x);
    check_unary(|x| x.square(), |x| x.square());
    check_unary(|x| x.double(), |x| x.double());
    check_unary(|x| x.pow(&[u64::MAX, 3, 2, 1]), |x| x.pow_vartime(&[u64::MAX, 3, 2, 1]));
}

#[test]
fn inverses_and_square_roots_equal_another_implementation() {
    for x in &samples() {
        let ours = x.invert().map(|inverse| inverse.to_le_bytes());
        let theirs = Option::<Scalar>::from(scalar(x).invert()).map(|inverse| inverse.to_bytes());
        assert_eq!(ours, theirs, "{x:?}");
        let ours = Option::<Fr>::from(ff014::Field::sqrt(x)).map(|root| root.square());
        let theirs = Option::<Scalar>::from(scalar(x).sqrt()).map(|_| *x);
        assert_eq!(ours, theirs, "{x:?}");
    }
}

#[test]
fn canonical_and_montgomery_forms_are_exact_inverses_and_refuse_the_modulus() {
    for x in samples() {
        assert_eq!(Fr::from_canonical(x.to_canonical()), Some(x));
        assert_eq!(Fr::from_montgomery(x.to_montgomery()), Some(x));
        assert_eq!(Fr::from_le_bytes(&x.to_le_bytes()), Some(x));
    }
    let [a, b, c, d] = MODULUS;
    for limbs in [[a, b, c, d], [a + 1, b, c, d], [a, b, c, d + 1], [0, b + 1, c, d], [u64::MAX; 4]] {
        assert_eq!(Fr::from_canonical(limbs), None);
        assert_eq!(Fr::from_montgomery(limbs), None);
    }
    assert_eq!(Fr::from_canonical([a - 1, b, c, d]), Some(-Fr::ONE));
}

#[test]
fn wide_reduction_equals_another_implementation() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut words: Vec<[u64; 8]> = (0..64).map(|_| std::array::from_fn(|_| rng.next_u64())).collect();
    words.extend([[0; 8], [u64::MAX; 8]]);
    for limbs in words {
        let bytes: Vec<u8> = limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
        let theirs = Scalar::from_bytes_wide(&bytes.try_into().expect("64 bytes"));
        assert_eq!(Fr::from_wide(limbs).to_le_bytes(), theirs.to_bytes(), "{limbs:x?}");
    }
}

#[test]
fn constants_of_both_versions_of_ff_equal_those_of_other_implementations() {
    let equal = |ours: Fr, theirs: Scalar| assert_eq!(ours.to_le_bytes(), theirs.to_bytes());
    equal(<Fr as ff014::PrimeField>::TWO_INV, Scalar::TWO_INV);
    equal(<Fr as ff014::PrimeField>::MULTIPLICATIVE_GENERATOR, Scalar::MULTIPLICATIVE_GENERATOR);
    equal(<Fr as ff014::PrimeField>::ROOT_OF_UNITY, Scalar::ROOT_OF_UNITY);
    equal(<Fr as ff014::PrimeField>::ROOT_OF_UNITY_INV, Scalar::ROOT_OF_UNITY_INV);
    equal(<Fr as ff014::PrimeField>::DELTA, Scalar::DELTA);
    assert_eq!(<Fr as ff014::PrimeField>::MODULUS, <Scalar as ff014::PrimeField>::MODULUS);
    assert_eq!(<Fr as ff014::PrimeField>::S, Scalar::S);
    assert_eq!(<Fr as ff014::PrimeField>::NUM_BITS, Scalar::NUM_BITS);
    assert_eq!(<Fr as ff014::PrimeField>::CAPACITY, Scalar::CAPACITY);
    assert_eq!(<Fr as ff013::PrimeField>::MODULUS, <blstrs::Scalar as ff013::PrimeField>::MODULUS);
    assert_eq!(<Fr as ff013::PrimeField>::S, <blstrs::Scalar as ff013::PrimeField>::S);
    let blst_root = <blstrs::Scalar as ff013::PrimeField>::ROOT_OF_UNITY;
    assert_eq!(<Fr as ff013::PrimeField>::ROOT_OF_UNITY.to_le_bytes(), blst_root.to_bytes_le());
}

#[test]
fn bits_and_parity_equal_another_implementation() {
    for x in &samples() {
        let theirs: Vec<bool> = scalar(x).to_le_bits().into_iter().collect();
        assert_eq!(ff014::PrimeFieldBits::to_le_bits(x).into_iter().collect::<Vec<_>>(), theirs);
        assert_eq!(ff013::PrimeFieldBits::to_le_bits(x).into_iter().collect::<Vec<_>>(), theirs);
        assert_eq!(bool::from(ff014::PrimeField::is_odd(x)), theirs[0]);
    }
    let characteristic: Vec<bool> = Scalar::char_le_bits().into_iter().collect();
    assert_eq!(<Fr as ff014::PrimeFieldBits>::char_le_bits().into_iter().collect::<Vec<_>>(), characteristic);
}

#[test]
fn random_elements_of_both_versions_use_the_generator() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let first = <Fr as ff013::Field>::random(&mut rng);
    assert_ne!(first, <Fr as ff013::Field>::random(&mut rng));
    assert_eq!(first, <Fr as ff013::Field>::random(ChaCha8Rng::seed_from_u64(3)));
}

#[test]
fn sums_of_products_are_the_sums_of_the_products() {
    let samples = samples();
    for length in (0..=40).chain([samples.len()]) {
        for shift in [0, 1, 17] {
            let left: Vec<Fr> = samples.iter().cycle().skip(shift).take(length).copied().collect();
            let right: Vec<Fr> = samples.iter().rev().cycle().take(length).copied().collect();
            let expected: Fr = left.iter().zip(&right).map(|(a, b)| a * b).sum();
            assert_eq!(Fr::dot(&left, &right), expected, "{length} terms");
        }
        // The largest sum that a list of this length can have.
        let largest = vec![-Fr::ONE; length];
        assert_eq!(Fr::dot(&largest, &largest), Fr::from(length as u64), "{length} largest terms");
        let montgomery = Fr::from_montgomery([MODULUS[0] - 1, MODULUS[1], MODULUS[2], MODULUS[3]]).expect("below r");
        let largest = vec![montgomery; length];
        assert_eq!(Fr::dot(&largest, &largest), Fr::from(length as u64) * montgomery.square(), "{length} terms r - 1");
    }
}

#[test]
fn inversion_in_a_batch_is_that_of_each() {
    let samples = samples();
    for length in (0..=20).chain([samples.len()]) {
        let mut batch = samples[..length].to_vec();
        Fr::invert_batch(&mut batch);
        let expected: Vec<Fr> = samples[..length].iter().map(|x| x.invert().unwrap_or(Fr::ZERO)).collect();
        assert_eq!(batch, expected, "{length} elements");
    }
    let mut zeros = [Fr::ZERO; 3];
    Fr::invert_batch(&mut zeros);
    assert_eq!(zeros, [Fr::ZERO; 3]);
}
