//! Multi-scalar multiplication on the device against sums over known discrete logarithms.
//!
//! Every base is a known multiple of the generator, so that the CPU's twin is one product in the scalar field per term
//! and one point at the end; small cases are also summed term by term.

mod common;

use blst::{blst_p1, blst_p1_affine, blst_p2, blst_p2_affine, p1_affines, p2_affines};
use blstrs::{G1Projective, G2Projective};
use ff::Field;
use group::Group as _;
use rand_core::RngCore;
use zkhost_cuda::{
    Arena, Stream,
    msm::{G1, G2, Group, Packed, Plan, Scalars, Table, Windows, sum, sum_scratch_bytes},
};
use zkhost_groth16::{
    Scalar,
    points::{G1Point, G2Point},
    scalar::{Limbs, to_canonical},
};

/// A group with multiples of its generator.
trait Multiples: Group<Sum: group::Group<Scalar = Scalar>> {
    /// 0, 1, ..., len - 1 times the generator.
    fn multiples(len: usize) -> Vec<Self::Affine>;
    /// Point times scalar, summed term by term.
    fn naive(points: &[Self::Affine], scalars: &[Scalar]) -> Self::Sum;
    fn negated(point: Self::Affine) -> Self::Affine;
}

/// 1, 2, ... times the generator.
fn running_sums<P: group::Group>(len: usize) -> Vec<P> {
    std::iter::successors(Some(P::generator()), |p| Some(*p + P::generator())).take(len).collect()
}

macro_rules! multiples {
    ($group:ty, $sum:ty, $affine:ty, $raw:ty, $point:ty, $affines:ty, $cneg:path, $host:ty) => {
        impl Multiples for $group {
            fn multiples(len: usize) -> Vec<$point> {
                let mut points = vec![<$point>::INFINITY; len.min(1)];
                if len > 1 {
                    let sums: Vec<$raw> = running_sums::<$sum>(len - 1).iter().map(|p| *p.as_ref()).collect();
                    points.extend(<$affines>::from(&sums).as_slice().iter().map(|&p| <$point>::from(p)));
                }
                points
            }

            fn naive(points: &[$point], scalars: &[Scalar]) -> $sum {
                let term = |(point, scalar): (&$point, &Scalar)| <$sum>::from(<$host>::from(*point)) * scalar;
                points.iter().zip(scalars).map(term).sum()
            }

            fn negated(point: $point) -> $point {
                let mut affine = <$affine>::from(point);
                // SAFETY: a plain value, in and out.
                unsafe { $cneg(&mut affine.y, &affine.y.clone(), true) };
                affine.into()
            }
        }
    };
}
multiples!(G1, G1Projective, blst_p1_affine, blst_p1, G1Point, p1_affines, blst::blst_fp_cneg, blstrs::G1Affine);
multiples!(G2, G2Projective, blst_p2_affine, blst_p2, G2Point, p2_affines, blst::blst_fp2_cneg, blstrs::G2Affine);

/// Bases that all are multiples of the generator: a choice among the first few, with their logarithms.
struct Bases<G: Multiples> {
    points: Vec<G::Affine>,
    logs: Vec<Scalar>,
}

impl<G: Multiples> Bases<G> {
    fn distinct(len: usize) -> Self {
        Self { points: G::multiples(len + 1)[1..].to_vec(), logs: (1..=len as u64).map(Scalar::from).collect() }
    }

    fn of(multiples: &[i64]) -> Self {
        let all = G::multiples(1 + multiples.iter().map(|k| k.unsigned_abs()).max().unwrap_or(0) as usize);
        let point = |&k: &i64| {
            let point = all[k.unsigned_abs() as usize];
            if k < 0 { G::negated(point) } else { point }
        };
        let log = |&k: &i64| {
            let size = Scalar::from(k.unsigned_abs());
            if k < 0 { -size } else { size }
        };
        Self { points: multiples.iter().map(point).collect(), logs: multiples.iter().map(log).collect() }
    }

    fn expected(&self, scalars: &[Scalar]) -> G::Sum {
        let log: Scalar = self.logs.iter().zip(scalars).map(|(log, s)| *log * s).sum();
        G::Sum::generator() * log
    }
}

/// What the device makes of dense scalars and a table of `windows`.
fn on_device<G: Multiples>(stream: &Stream, points: &[G::Affine], scalars: &[Scalar], windows: Windows) -> G::Sum {
    let device = stream.device();
    let limbs: Vec<Limbs> = scalars.iter().map(to_canonical).collect();
    let on_card = device.allocate::<Limbs>(limbs.len()).unwrap();
    stream.upload(on_card.as_slice(), &limbs).unwrap();
    let table = Table::<G>::allocate(device, points.len(), windows).unwrap();
    stream.upload(table.bases(), points).unwrap();
    let bytes = Table::<G>::scratch_bytes(points.len())
        .max(Plan::scratch_bytes(limbs.len(), windows) + sum_scratch_bytes::<G>(device, limbs.len(), windows).unwrap());
    let memory = device.allocate::<u8>(bytes).unwrap();
    table.fill(stream, &mut Arena::new(&memory)).unwrap();
    let mut arena = Arena::new(&memory);
    let plan = Plan::new(stream, &mut arena, &Scalars::dense(on_card.as_slice()), windows, points.len()).unwrap();
    sum::<G>(stream, &mut arena, &plan, table.points()).unwrap().finish(stream).unwrap()
}

fn check<G: Multiples>(stream: &Stream, what: &str, bases: &Bases<G>, scalars: &[Scalar], windows: Windows) {
    let expected = bases.expected(scalars);
    if scalars.len() <= 16 {
        assert_eq!(expected, G::naive(&bases.points, scalars), "{what}: the test's own logarithms");
    }
    let got = on_device::<G>(stream, &bases.points, scalars, windows);
    assert!(got == expected, "{what}: {} terms, {windows:?}", scalars.len());
}

fn full_size(len: usize, rng: &mut impl RngCore) -> Vec<Scalar> {
    (0..len).map(|_| Scalar::random(&mut *rng)).collect()
}

fn every_length_of<G: Multiples>() {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    let mut rng = common::random(1);
    let (all, scalars) = (Bases::<G>::distinct(300), full_size(300, &mut rng));
    for len in 0..=300 {
        let bases = Bases { points: all.points[..len].to_vec(), logs: all.logs[..len].to_vec() };
        // Few of these lengths are worth all copies' doublings.
        let copies = if len % 37 == 0 { 64 } else { 1 };
        check::<G>(&stream, "every length", &bases, &scalars[..len], Windows::for_len(len, copies));
    }
}

#[test]
fn g1_is_right_at_every_length_up_to_300() {
    every_length_of::<G1>();
}

#[test]
fn g2_is_right_at_every_length_up_to_300() {
    every_length_of::<G2>();
}

fn around_powers_of_two<G: Multiples>(log_max: u32) {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    let mut rng = common::random(2);
    let max = (1 << log_max) + 1;
    let (all, scalars) = (Bases::<G>::distinct(max), full_size(max, &mut rng));
    for log in 9..=log_max {
        for len in [(1 << log) - 1, 1 << log, (1 << log) + 1] {
            let bases = Bases { points: all.points[..len].to_vec(), logs: all.logs[..len].to_vec() };
            for copies in if len == 1 << log { vec![1, 4, 64] } else { vec![1] } {
                check::<G>(&stream, "around a power", &bases, &scalars[..len], Windows::for_len(len, copies));
            }
        }
    }
}

#[test]
fn g1_is_right_around_powers_of_two() {
    around_powers_of_two::<G1>(20);
}

#[test]
fn g2_is_right_around_powers_of_two() {
    around_powers_of_two::<G2>(17);
}

fn meetings_of<G: Multiples>() {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    let mut rng = common::random(3);
    const LEN: usize = 2000;
    let mut small = |bound: u32| (rng.next_u32() % bound) as i64;
    let cases: Vec<(&str, Vec<i64>)> = vec![
        ("infinity first", (0..LEN as i64).collect()),
        ("infinity last", (1..=LEN as i64).map(|k| k % LEN as i64).collect()),
        ("infinity everywhere", vec![0; LEN]),
        ("infinity every other", (0..LEN as i64).map(|k| k * (k % 2)).collect()),
        ("equal points", vec![7; LEN]),
        ("duplicates", (0..LEN).map(|_| small(5)).collect()),
        ("P with -P", (0..LEN as i64).map(|k| if k % 2 == 0 { k + 1 } else { -k }).collect()),
        ("few points and their opposites", (0..LEN).map(|_| small(7) - 3).collect()),
    ];
    let equal = vec![Scalar::random(&mut rng); LEN];
    let full = full_size(LEN, &mut rng);
    let tiny: Vec<Scalar> = (0..LEN as u64).map(|i| Scalar::from(i % 3)).collect();
    for (what, multiples) in cases {
        let bases = Bases::<G>::of(&multiples);
        for scalars in [&equal, &full, &tiny] {
            for windows in [Windows::for_len(LEN, 1), Windows::new(7, 64).unwrap()] {
                check::<G>(&stream, what, &bases, scalars, windows);
            }
        }
    }
}

#[test]
fn g1_takes_infinities_duplicates_and_opposites() {
    meetings_of::<G1>();
}

#[test]
fn g2_takes_infinities_duplicates_and_opposites() {
    meetings_of::<G2>();
}

fn skewed_scalars_of<G: Multiples>(len: usize) {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    let mut rng = common::random(4);
    let bases = Bases::<G>::distinct(len);
    let half = (-Scalar::ONE) * Scalar::from(2).invert().unwrap();
    let mostly_bits =
        (0..len).map(|i| if i % 100 == 0 { Scalar::random(&mut rng) } else { Scalar::from(u64::from(i % 3 == 0)) });
    let cases: Vec<(&str, Vec<Scalar>)> = vec![
        ("99 % boolean", mostly_bits.collect()),
        ("zeros", vec![Scalar::ZERO; len]),
        ("ones", vec![Scalar::ONE; len]),
        ("r - 1", vec![-Scalar::ONE; len]),
        ("(r - 1) / 2", vec![half; len]),
        ("(r + 1) / 2", vec![half + Scalar::ONE; len]),
        ("all equal", vec![Scalar::from(0x1234_5678_9abc_def0); len]),
        ("bytes", (0..len as u64).map(|i| Scalar::from(i % 256)).collect()),
        ("powers of two", (0..len as u64).map(|i| Scalar::from(2).pow_vartime([i % 255])).collect()),
    ];
    for (what, scalars) in cases {
        for copies in [1, 64] {
            check::<G>(&stream, what, &bases, &scalars, Windows::for_len(len, copies));
        }
    }
}

#[test]
fn g1_takes_skewed_scalars() {
    skewed_scalars_of::<G1>(65_537);
}

#[test]
fn g2_takes_skewed_scalars() {
    skewed_scalars_of::<G2>(65_535);
}

/// Scalars as an assignment carries them: masks, ranks and elements.
fn packed(scalars: &[Scalar]) -> (Vec<[u64; 2]>, Vec<u32>, Vec<Limbs>) {
    let (mut masks, mut ranks, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    for group in scalars.chunks(64) {
        let mut mask = [0, 0];
        ranks.push(elements.len() as u32);
        for (bit, scalar) in group.iter().enumerate() {
            if *scalar == Scalar::ONE {
                mask[1] |= 1 << bit;
            } else if *scalar != Scalar::ZERO {
                mask[0] |= 1 << bit;
                elements.push(to_canonical(scalar));
            }
        }
        masks.push(mask);
    }
    (masks, ranks, elements)
}

#[test]
fn one_plan_of_a_packed_assignment_serves_queries_of_both_groups() {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    let mut rng = common::random(5);
    for (dense_len, packed_len) in [(0, 1), (3, 64), (2, 1000), (17, 40_001)] {
        let len = dense_len + packed_len;
        let scalars: Vec<Scalar> = (0..len)
            .map(|i| match rng.next_u32() % 4 {
                _ if i < dense_len => Scalar::random(&mut rng),
                0 => Scalar::ZERO,
                1 => Scalar::ONE,
                2 => Scalar::from(u64::from(rng.next_u32())),
                _ => Scalar::random(&mut rng),
            })
            .collect();
        // Every third scalar has no point; the others' points are in another order.
        let chosen: Vec<usize> = (0..len).filter(|i| i % 3 != 1).rev().collect();
        let mut positions = vec![u32::MAX; len];
        chosen.iter().enumerate().for_each(|(position, &i)| positions[i] = position as u32);
        let terms: Vec<Scalar> = chosen.iter().map(|&i| scalars[i]).collect();

        let upload_u32 = |values: &[u32]| {
            let buffer = device.allocate::<u32>(values.len()).unwrap();
            stream.upload(buffer.as_slice(), values).unwrap();
            buffer
        };
        let upload_limbs = |values: &[Limbs]| {
            let buffer = device.allocate::<Limbs>(values.len()).unwrap();
            stream.upload(buffer.as_slice(), values).unwrap();
            buffer
        };
        let (masks, ranks, elements) = packed(&scalars[dense_len..]);
        let masks_on_card = device.allocate::<[u64; 2]>(masks.len()).unwrap();
        stream.upload(masks_on_card.as_slice(), &masks).unwrap();
        let (ranks, elements) = (upload_u32(&ranks), upload_limbs(&elements));
        let dense = upload_limbs(&scalars[..dense_len].iter().map(to_canonical).collect::<Vec<_>>());
        let positions = upload_u32(&positions);
        let input = Scalars {
            dense: dense.as_slice(),
            packed: Some(Packed {
                len: packed_len,
                masks: masks_on_card.as_slice(),
                ranks: ranks.as_slice(),
                elements: elements.as_slice(),
            }),
            positions: Some(positions.as_slice()),
        };
        let windows = Windows::for_len(len, 1);
        let scratch = Plan::scratch_bytes(len, windows)
            + sum_scratch_bytes::<G1>(&device, len, windows).unwrap()
            + sum_scratch_bytes::<G2>(&device, len, windows).unwrap();
        let memory = device.allocate::<u8>(scratch).unwrap();
        let mut arena = Arena::new(&memory);
        let plan = Plan::new(&stream, &mut arena, &input, windows, terms.len()).unwrap();
        let first = Bases::<G1>::distinct(terms.len());
        let second = Bases::<G1>::of(&(0..terms.len() as i64).map(|k| k % 50 - 20).collect::<Vec<_>>());
        let third = Bases::<G2>::distinct(terms.len());
        let points = |bases: &Bases<G1>| {
            let buffer = device.allocate::<G1Point>(bases.points.len()).unwrap();
            stream.upload(buffer.as_slice(), &bases.points).unwrap();
            buffer
        };
        let (first_points, second_points) = (points(&first), points(&second));
        let third_points = device.allocate::<G2Point>(terms.len()).unwrap();
        stream.upload(third_points.as_slice(), &third.points).unwrap();
        let sums = (
            sum::<G1>(&stream, &mut arena, &plan, first_points.as_slice()).unwrap(),
            sum::<G1>(&stream, &mut arena, &plan, second_points.as_slice()).unwrap(),
            sum::<G2>(&stream, &mut arena, &plan, third_points.as_slice()).unwrap(),
        );
        assert_eq!(sums.0.finish(&stream).unwrap(), first.expected(&terms), "{packed_len} packed, first");
        assert_eq!(sums.1.finish(&stream).unwrap(), second.expected(&terms), "{packed_len} packed, second");
        assert_eq!(sums.2.finish(&stream).unwrap(), third.expected(&terms), "{packed_len} packed, third");
    }
}

#[test]
fn wrong_lengths_are_refused_in_a_sentence() {
    let Some(device) = common::device() else { return };
    let stream = device.stream().unwrap();
    let scalars = device.allocate::<Limbs>(10).unwrap();
    let windows = Windows::for_len(10, 1);
    let memory = device.allocate::<u8>(1 << 24).unwrap();
    let mut arena = Arena::new(&memory);
    let input = Scalars::dense(scalars.as_slice());
    let error = Plan::new(&stream, &mut arena, &input, windows, 9).unwrap_err();
    assert_eq!(error.to_string(), "10 scalars for 9 bases");
    stream.clear(scalars.as_slice()).unwrap();
    let plan = Plan::new(&stream, &mut arena, &input, windows, 10).unwrap();
    let bases = device.allocate::<G1Point>(9).unwrap();
    let error = sum::<G1>(&stream, &mut arena, &plan, bases.as_slice()).unwrap_err();
    assert!(error.to_string().contains("only 9 points are given"), "{error}");
}

#[test]
fn windows_cover_every_scalar() {
    for len in [0, 1, 300, 1 << 16, 1 << 20, 1 << 24, 1 << 28] {
        for copies in [1, 2, 4, 12, 64] {
            let windows = Windows::for_len(len, copies);
            assert!(windows.bits() * windows.count() >= 255 && windows.copies() <= copies, "{windows:?}");
            assert!(windows.copies() as u32 * windows.sets() >= windows.count(), "{windows:?}");
        }
    }
    assert!(Windows::new(6, 1).is_err() && Windows::new(8, 0).is_err());
}
