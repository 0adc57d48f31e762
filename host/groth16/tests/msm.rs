//! Multi-scalar multiplication, against the sum term by term.

mod common;

use common::{fixture, random_scalars};
use ff::Field;
use group::Group;
use proptest::prelude::*;
use std::fmt::Debug;
use zkhost_groth16::assignment::Assignment;
use zkhost_groth16::msm::{self, Plan, Query, SecretSignedScalars, Summable, Terms};
use zkhost_groth16::{G1Point, G2Point, Scalar};

/// k G for k = 1, 2, ...: all different, and with opposites and doubles among their sums.
fn points<P: Summable>(count: usize) -> Vec<P> {
    let multiples = std::iter::successors(Some(P::Sum::generator()), |last| Some(*last + P::Sum::generator()));
    P::normalize(&multiples.take(count).collect::<Vec<_>>())
}

fn negative<P: Summable>(point: &P) -> P {
    P::normalize(&[P::multiply(point, &-Scalar::ONE)])[0]
}

fn check<P: Summable<Sum: Debug>>(points: &[P], scalars: &[Scalar], case: &str) {
    let signed = SecretSignedScalars::new(scalars);
    let fast = msm::msm(points, &Terms::in_order(&signed));
    assert_eq!(fast, msm::naive(points, scalars), "{case}, {} terms", points.len());
}

/// Scalars of the most awkward digits.
fn edge_scalars() -> Vec<Scalar> {
    let two = Scalar::from(2);
    let half = -two.invert().unwrap();
    let mut edges =
        vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, two, -two, half, half + Scalar::ONE, half - Scalar::ONE];
    for bit in 0..255 {
        let power = two.pow_vartime([bit]);
        edges.extend([power, power - Scalar::ONE, -power]);
    }
    edges
}

#[test]
fn every_length_up_to_300_is_exact_in_g1() {
    let all = points::<G1Point>(300);
    for length in 0..=300 {
        check(&all[..length], &random_scalars(length as u64, length), "random scalars");
    }
}

#[test]
fn every_length_up_to_80_is_exact_in_g2() {
    let all = points::<G2Point>(80);
    for length in 0..=80 {
        check(&all[..length], &random_scalars(length as u64, length), "random scalars");
    }
}

#[test]
fn lengths_about_powers_of_two_tiles_and_pieces_are_exact() {
    let all = points::<G1Point>((1 << 14) + 1);
    let scalars = random_scalars(1, all.len());
    for length in [511, 512, 513, 2047, 2048, 2049, 4095, 4096, 4097, 16383, 16384, 16385] {
        check(&all[..length], &scalars[..length], "random scalars");
    }
}

#[test]
fn scalars_with_awkward_digits_are_exact() {
    let scalars = edge_scalars();
    for scalar in &scalars {
        check(&points::<G1Point>(3), &[*scalar; 3], "one scalar three times");
    }
    check(&points::<G1Point>(scalars.len()), &scalars, "edge scalars");
    check(&points::<G2Point>(scalars.len()), &scalars, "edge scalars");
}

#[test]
fn skewed_scalars_are_exact() {
    let all = points::<G1Point>(5000);
    let random = Scalar::from(0x1234_5678_9abc_def0).square().square();
    for (scalar, case) in [
        (Scalar::ZERO, "all 0"),
        (Scalar::ONE, "all 1"),
        (-Scalar::ONE, "all r - 1"),
        (Scalar::from(77), "all 77"),
        (random, "all one random value"),
    ] {
        check(&all, &vec![scalar; all.len()], case);
    }
}

/// Points that meet themselves, their opposites and infinity in every bucket.
fn check_awkward_points<P: Summable<Sum: Debug>>() {
    let [p, q] = points::<P>(2)[..] else { unreachable!() };
    let infinity = P::zeroed();
    let patterns: [(&str, &[P]); 7] = [
        ("all equal", &[p]),
        ("opposites", &[p, negative(&p)]),
        ("all infinity", &[infinity]),
        ("infinity between", &[infinity, p, infinity, q]),
        ("infinity last", &[p, q, p, infinity]),
        ("doubles and opposites", &[p, p, negative(&p), negative(&p), q]),
        ("a sum and its opposite", &[p, q, negative(&q), negative(&p)]),
    ];
    for (case, pattern) in patterns {
        for length in [1, 2, 3, 4, 7, 64, 301] {
            let points: Vec<P> = pattern.iter().copied().cycle().take(length).collect();
            check(&points, &vec![Scalar::from(5); length], case);
            check(&points, &random_scalars(3, length), case);
            let indices: Vec<u32> = (0..length as u32).collect();
            assert_eq!(msm::sum(&points, &indices), msm::naive(&points, &vec![Scalar::ONE; length]), "sum of {case}");
        }
    }
}

/// The points of EIP-2537: coordinates of 64 bytes, big-endian, in G2 c0 before c1; infinity is all zero.
fn eip2537_point<P: Summable>(bytes: &[u8]) -> P {
    let mut coordinates: Vec<&[u8]> = bytes.chunks(64).map(|coordinate| &coordinate[16..]).collect();
    if coordinates.concat().iter().all(|&byte| byte == 0) {
        return P::zeroed();
    }
    // Zcash's encoding, which `decode` reads, has c1 before c0.
    if coordinates.len() == 4 {
        coordinates.swap(0, 1);
        coordinates.swap(2, 3);
    }
    P::decode(&coordinates.concat()).unwrap()
}

/// The scalars of EIP-2537: 32 bytes, big-endian, not always reduced.
fn eip2537_scalar(bytes: &[u8]) -> Scalar {
    bytes.iter().fold(Scalar::ZERO, |value, &byte| value * Scalar::from(256) + Scalar::from(u64::from(byte)))
}

/// Every product of a file of EIP-2537's vectors, and all of them as one product.
fn check_eip2537<P: Summable<Sum: Debug + PartialEq>>(path: &str) {
    let vectors: serde_json::Value = serde_json::from_slice(&fixture(path)).unwrap();
    let bytes = |vector: &serde_json::Value, key: &str| hex::decode(vector[key].as_str().unwrap()).unwrap();
    let coordinates_bytes = bytes(&vectors[0], "Expected").len();
    let (mut all_points, mut all_scalars, mut all_expected) = (vec![], vec![], P::Sum::identity());
    for vector in vectors.as_array().unwrap() {
        let input = bytes(vector, "Input");
        let (points, scalars): (Vec<P>, Vec<Scalar>) = input
            .chunks(coordinates_bytes + 32)
            .map(|term| term.split_at(coordinates_bytes))
            .map(|(point, scalar)| (eip2537_point::<P>(point), eip2537_scalar(scalar)))
            .unzip();
        let expected = msm::sum(&[eip2537_point::<P>(&bytes(vector, "Expected"))], &[0]);
        let product = msm::msm(&points, &Terms::in_order(&SecretSignedScalars::new(&scalars)));
        assert_eq!(product, expected, "{}", vector["Name"]);
        all_points.extend(points);
        all_scalars.extend(scalars);
        all_expected += expected;
    }
    let product = msm::msm(&all_points, &Terms::in_order(&SecretSignedScalars::new(&all_scalars)));
    assert_eq!(product, all_expected, "all of {path}");
}

/// Implementations that treat infinity differently. The public vectors for products of this curve.
#[test]
fn bls12_381_tests_p17_public_vectors() {
    check_eip2537::<G1Point>("eip-2537/msm_G1.json");
    check_eip2537::<G2Point>("eip-2537/mul_G2.json");
}

/// Results that were wrong below 2^14.
#[test]
fn gpusnarks_i15_sizes_from_1_to_2_to_the_14() {
    let all = points::<G1Point>(1 << 14);
    let scalars = random_scalars(6, all.len());
    for log2 in 0..=14 {
        check(&all[..1 << log2], &scalars[..1 << log2], "random scalars");
    }
}

/// Formulas wrong for infinity and for equal points, which random tests missed.
#[test]
fn snarkvm_p548_equal_and_opposite_points() {
    check_awkward_points::<G1Point>();
    check_awkward_points::<G2Point>();
}

/// Points at infinity gave a zero result.
#[test]
fn icicle_i169_infinity_among_the_points() {
    let mut all = points::<G1Point>(300);
    for position in [0, 150, 299] {
        all[position] = G1Point::INFINITY;
        check(&all, &random_scalars(9, all.len()), "infinities among the points");
    }
}

/// Lengths that are no multiple of 32, in G1 and in G2, with ones, zeros and full scalars mixed.
#[test]
fn sppark_i1_lengths_that_fill_no_block() {
    for length in [1, 31, 33, 63, 65, 95, 97, 127, 129, 299] {
        let mut scalars = random_scalars(4, length);
        scalars.iter_mut().step_by(3).for_each(|scalar| *scalar = Scalar::ONE);
        scalars.iter_mut().step_by(5).for_each(|scalar| *scalar = Scalar::ZERO);
        check(&points::<G1Point>(length), &scalars, "mixed scalars");
        check(&points::<G2Point>(length), &scalars, "mixed scalars");
    }
}

/// A task on a shared pool stole one that held the lock it needed. There is no lock: products nested in
/// tasks of one small pool end.
#[test]
fn aptos_p19541_products_nested_in_tasks_of_one_pool() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let (all, scalars) = (points::<G1Point>(400), random_scalars(2, 400));
    let expected = msm::naive(&all, &scalars);
    pool.install(|| {
        rayon::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|_| {
                    assert_eq!(msm::msm(&all, &Terms::in_order(&SecretSignedScalars::new(&scalars))), expected)
                });
            }
        });
    });
}

fn value() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        4 => Just(Scalar::ZERO),
        4 => Just(Scalar::ONE),
        1 => Just(-Scalar::ONE),
        2 => any::<u64>().prop_map(Scalar::from),
        2 => any::<[u64; 2]>().prop_map(|[a, b]| Scalar::from(a) * Scalar::from(b).square()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_plan_serves_dense_and_sparse_queries(
        publics in prop::collection::vec(value(), 0..70),
        aux in prop::collection::vec(value(), 0..200),
        marks in prop::collection::vec(any::<u64>(), 5),
    ) {
        let assignment = Assignment::from_values(&publics, &aux);
        let (plan, z) = (Plan::new(&assignment), assignment.z());
        let all = points::<G1Point>(z.len());
        for first in [0, 1 + publics.len()] {
            let query = Query::from_variable(first as u32);
            prop_assert_eq!(plan.combine(&all, &query), msm::naive(&all, &z[first..]));
        }
        let marked: Vec<Scalar> =
            z.iter().enumerate().filter(|(i, _)| marks[i / 64] >> (i % 64) & 1 == 1).map(|(_, z)| *z).collect();
        prop_assert_eq!(plan.combine(&all, &Query::sparse(marks)), msm::naive(&all, &marked));
    }
}
