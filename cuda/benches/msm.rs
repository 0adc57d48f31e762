//! Multi-scalar multiplications in G1 and G2, beside sppark's in the same run.
//!
//! `SPPARK_BENCH` names the program of `benches/peers/sppark`; without it our times are printed alone. Times are medians
//! of the wall clock from the first launch to the point on the host, in milliseconds; bases and scalars (full-size, random)
//! are on the device. Every result is checked against the bases' discrete logarithms.

use std::{collections::HashMap, env, process::Command, sync::Arc, time::Instant};

use blst::{p1_affines, p2_affines};
use blstrs::{G1Projective, G2Projective};
use ff::Field;
use group::Group as _;
use rayon::prelude::*;
use zkhost_cuda::{
    Arena, Device, DeviceChoice, Slice, Stream,
    msm::{G1, G2, Group, Plan, Scalars, Table, Windows, points, sum, sum_scratch_bytes},
};
use zkhost_groth16::{
    Scalar,
    points::{G1Point, G2Point},
    scalar::{Limbs, is_reduced},
};

const RUNS: usize = 7;
/// log2 of the bases that the CPU makes; the device makes more from them.
const SEED_LOG: u32 = 14;

/// Results of one run of the peer: (mode, log2 of the size) to milliseconds.
fn peer_times(modes: &[(&'static str, u32)]) -> HashMap<(&'static str, u32), f64> {
    let Some(program) = env::var_os("SPPARK_BENCH") else { return HashMap::new() };
    let mut times = HashMap::new();
    for &(mode, log_max) in modes {
        let output = Command::new(&program)
            .args([mode, "16", &log_max.to_string(), "5"])
            .output()
            .expect("the peer's program starts");
        for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("R,")) {
            let fields: Vec<&str> = line.split(',').collect();
            if fields[5] == "ok" {
                times.insert((mode, fields[2].parse().unwrap()), fields[3].parse().unwrap());
            }
        }
    }
    times
}

/// Uniform scalars below r, the same at each run.
fn scalar(index: u64) -> Limbs {
    let mut state = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    loop {
        let limbs = [next(), next(), next(), next() >> 1];
        if is_reduced(&limbs) {
            return limbs;
        }
    }
}

trait BenchGroup: Group<Sum: group::Group<Scalar = Scalar>> {
    /// Odd multiples of the generator: 1, 3, 5, ...
    fn odd_multiples(len: usize) -> Vec<Self::Affine>;
}

fn odd_sums<P: group::Group>(len: usize) -> Vec<P> {
    let two = P::generator().double();
    std::iter::successors(Some(P::generator()), |p| Some(*p + two)).take(len).collect()
}

impl BenchGroup for G1 {
    fn odd_multiples(len: usize) -> Vec<G1Point> {
        let sums: Vec<_> = odd_sums::<G1Projective>(len).iter().map(|p| *p.as_ref()).collect();
        p1_affines::from(&sums).as_slice().iter().map(|&p| p.into()).collect()
    }
}

impl BenchGroup for G2 {
    fn odd_multiples(len: usize) -> Vec<G2Point> {
        let sums: Vec<_> = odd_sums::<G2Projective>(len).iter().map(|p| *p.as_ref()).collect();
        p2_affines::from(&sums).as_slice().iter().map(|&p| p.into()).collect()
    }
}

/// Distinct bases: base i + 2^(SEED_LOG + k) is 2^(2^k) times base i.
fn fill_bases<G: BenchGroup>(stream: &Stream, memory: &zkhost_cuda::Buffer<u8>, bases: Slice<'_, G::Affine>) {
    const PIECE: usize = 1 << 19;
    stream.upload(bases, &G::odd_multiples(bases.len().min(1 << SEED_LOG))).unwrap();
    let mut arena = Arena::new(memory);
    let (multiples, products) = (arena.take::<G::Xyzz>(PIECE).unwrap(), arena.take::<G::Coordinate>(PIECE).unwrap());
    let mut len = 1 << SEED_LOG;
    let mut doublings = 1;
    while len < bases.len() {
        for first in (0..len).step_by(PIECE) {
            let piece = PIECE.min(len - first);
            let from = bases.slice(first, piece).unwrap();
            points::double::<G>(stream, from, doublings, multiples).unwrap();
            let to = bases.slice(len + first, piece).unwrap();
            points::normalise::<G>(stream, multiples.slice(0, piece).unwrap(), products, to).unwrap();
        }
        (len, doublings) = (2 * len, 2 * doublings);
    }
    stream.synchronize().unwrap();
}

/// The sum's discrete logarithm.
fn expected_log(len: usize) -> Scalar {
    let two = Scalar::from(2);
    let power = |i: usize| two.pow_vartime([(i >> SEED_LOG) as u64]);
    let seed_mask = (1 << SEED_LOG) - 1;
    (0..len)
        .into_par_iter()
        .chunks(1 << SEED_LOG)
        .map(|chunk| {
            let term = |&i: &usize| {
                Scalar::from_u64s_le(&scalar(i as u64)).unwrap() * Scalar::from(2 * (i & seed_mask) as u64 + 1)
            };
            power(chunk[0]) * chunk.iter().map(term).sum::<Scalar>()
        })
        .reduce(|| Scalar::ZERO, |a, b| a + b)
}

fn report(device: &Device, bench: &str, log_n: u32, ours: f64, peer: Option<&f64>, checked: bool) {
    let peer = peer.map_or("null".into(), |ms| ms.to_string());
    let (date, commit) = (env::var("BENCH_DATE").unwrap_or_default(), env::var("BENCH_COMMIT").unwrap_or_default());
    println!(
        r#"{{"bench":"{bench}","case":"2^{log_n}","ours":{ours:.4},"peer":"sppark 0.1.16","peer_value":{peer},"unit":"ms","checked":{checked},"machine":"{}","date":"{date}","commit":"{commit}"}}"#,
        device.describe(),
    );
}

/// Median of the whole, and of planning alone, in milliseconds; and whether the result is right.
fn measure<G: BenchGroup>(
    stream: &Stream,
    memory: &zkhost_cuda::Buffer<u8>,
    scalars: Slice<'_, Limbs>,
    table: &Table<G>,
    expected: &G::Sum,
) -> (f64, f64, bool) {
    let run = || {
        let mut arena = Arena::new(memory);
        let start = Instant::now();
        let before = stream.timestamp().unwrap();
        let plan = Plan::new(stream, &mut arena, &Scalars::dense(scalars), table.windows(), table.len()).unwrap();
        let planned = stream.timestamp().unwrap();
        let result = sum::<G>(stream, &mut arena, &plan, table.points()).unwrap().finish(stream).unwrap();
        let all = start.elapsed().as_secs_f64() * 1e3;
        (all, f64::from(before.milliseconds_to(&planned).unwrap()), result == *expected)
    };
    run();
    let runs: Vec<_> = (0..RUNS).map(|_| run()).collect();
    let median = |values: Vec<f64>| {
        let mut values = values;
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let whole = median(runs.iter().map(|r| r.0).collect());
    (whole, median(runs.iter().map(|r| r.1).collect()), runs.iter().all(|r| r.2))
}

fn bench<G: BenchGroup>(
    device: &Arc<Device>,
    name: &str,
    peers: &HashMap<(&'static str, u32), f64>,
    mode: &'static str,
    logs: &[u32],
    copies_max: usize,
) {
    let stream = device.stream().unwrap();
    let max = 1usize << logs.iter().max().expect("there are sizes");
    let all: Vec<Limbs> = (0..max as u64).into_par_iter().map(scalar).collect();
    let scalars = device.allocate::<Limbs>(max).unwrap();
    stream.upload(scalars.as_slice(), &all).unwrap();
    for &log_n in logs {
        let len = 1usize << log_n;
        let windows = Windows::for_len(len, copies_max);
        let scratch = Plan::scratch_bytes(len, windows) + sum_scratch_bytes::<G>(device, len, windows).unwrap();
        let memory = device.allocate::<u8>(scratch.max(Table::<G>::scratch_bytes(1 << 19))).unwrap();
        let table = Table::<G>::allocate(device, len, windows).unwrap();
        fill_bases::<G>(&stream, &memory, table.bases());
        let start = Instant::now();
        table.fill(&stream, &mut Arena::new(&memory)).unwrap();
        stream.synchronize().unwrap();
        let fill_ms = start.elapsed().as_secs_f64() * 1e3;
        let expected = G::Sum::generator() * expected_log(len);
        let input = scalars.as_slice().slice(0, len).unwrap();
        let (whole, planning, checked) = measure::<G>(&stream, &memory, input, &table, &expected);
        report(device, name, log_n, whole, peers.get(&(mode, log_n)), checked);
        eprintln!("# {name} 2^{log_n}: {windows:?}, planning {planning:.3} ms, filling the table {fill_ms:.1} ms");
    }
}

fn main() {
    let device = match DeviceChoice::Auto.open() {
        (Some(device), _) => device,
        (None, why) => return eprintln!("skipped: {}", why.unwrap_or_default()),
    };
    let peers = peer_times(&[("msm1", 24), ("msm2", 22)]);
    bench::<G1>(&device, "msm_g1", &peers, "msm1", &[16, 18, 20, 22, 24], 64);
    bench::<G1>(&device, "msm_g1_notable", &peers, "msm1", &[16, 18, 20, 22, 24], 1);
    bench::<G2>(&device, "msm_g2", &peers, "msm2", &[16, 18, 20, 22], 64);
    bench::<G2>(&device, "msm_g2_notable", &peers, "msm2", &[18, 20, 22], 1);
}
