//! Transforms and the quotient's pipeline, beside sppark's in the same run.
//!
//! `SPPARK_BENCH` names the program of `benches/peers/sppark`; without it our times are printed alone. Times are medians
//! of device events, in milliseconds, of data that stays on the device.

use std::{collections::HashMap, env, process::Command, sync::Arc};

use ff::Field;
use zkhost_cuda::{
    Device, DeviceChoice, Slice, Stream,
    ntt::{Direction, Domain, FactorTable, Order, Transform},
};
use zkhost_groth16::{
    Scalar,
    key::RootGenerator,
    scalar::{Limbs, from_canonical, from_montgomery, to_montgomery},
};

const RUNS: usize = 9;
const ROOT_LOG: u32 = 32;

/// Results (name, log2 of the size) to milliseconds, of one run of the peer.
fn peer_times(log_low: u32, log_high: u32) -> HashMap<(String, u32), f64> {
    let Some(program) = env::var_os("SPPARK_BENCH") else { return HashMap::new() };
    let mut times = HashMap::new();
    for (mode, name) in [("ntt", "ntt_fwd_NR"), ("h", "h")] {
        let output = Command::new(&program)
            .args([mode, &log_low.to_string(), &log_high.to_string(), &RUNS.to_string()])
            .output()
            .expect("the peer's program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        for line in text.lines().filter(|line| line.starts_with("R,")) {
            let fields: Vec<&str> = line.split(',').collect();
            if fields[1].starts_with(name) && fields[5] != "BAD" {
                times.insert((mode.into(), fields[2].parse().unwrap()), fields[3].parse().unwrap());
            }
        }
    }
    times
}

fn median_ms(stream: &Stream, mut run: impl FnMut()) -> f64 {
    run();
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = stream.timestamp().unwrap();
            run();
            let end = stream.timestamp().unwrap();
            f64::from(start.milliseconds_to(&end).unwrap())
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn report(device: &Device, bench: &str, log_n: u32, ours: f64, peer: Option<&f64>, checked: bool) {
    let peer = peer.map_or("null".into(), |ms| ms.to_string());
    let (date, commit) = (env::var("BENCH_DATE").unwrap_or_default(), env::var("BENCH_COMMIT").unwrap_or_default());
    println!(
        r#"{{"bench":"{bench}","case":"2^{log_n}","ours":{ours:.4},"peer":"sppark 0.1.16","peer_value":{peer},"unit":"ms","checked":{checked},"machine":"{}","date":"{date}","commit":"{commit}"}}"#,
        device.describe(),
    );
}

/// A vector with one non-zero coefficient: its values are known.
fn check_forward(stream: &Stream, domain: &Domain, data: Slice<'_, Limbs>) -> bool {
    let (log_n, n, at, f) = (domain.log_n(), domain.len(), domain.len() / 3 + 1, domain.len() / 5 + 2);
    stream.clear(data).unwrap();
    stream.upload(data.slice(at, 1).unwrap(), &[to_montgomery(&Scalar::ONE)]).unwrap();
    transform(stream, domain, data);
    let mut got = [[0; 4]];
    stream.download(&mut got, data.slice(f.reverse_bits() >> (usize::BITS - log_n), 1).unwrap()).unwrap();
    let w = RootGenerator::Seven.root_of_unity(log_n);
    from_montgomery(&got[0]) == Some(w.pow_vartime([(at as u64 * f as u64) % n as u64]))
}

fn transform(stream: &Stream, domain: &Domain, data: Slice<'_, Limbs>) {
    let (input, output) = (Order::Natural, Order::BitReversed);
    let forward = Transform { direction: Direction::Forward, input, output, before: None, after: None };
    domain.transform(stream, data, &forward).unwrap();
}

/// Values of x and of x^2 on the domain: on the coset their product is x^3.
fn check_quotient(stream: &Stream, domain: &Domain, data: Slice<'_, Limbs>, shift: &FactorTable) -> bool {
    let (log_n, n, j) = (domain.log_n(), domain.len(), domain.len() / 7 + 1);
    let w = RootGenerator::Seven.root_of_unity(log_n);
    for (k, base) in [(0, w), (1, w.square())] {
        let values: Vec<Limbs> = std::iter::successors(Some(Scalar::ONE), |power| Some(power * base))
            .take(n)
            .map(|x| to_montgomery(&x))
            .collect();
        stream.upload(data.slice(k * n, n).unwrap(), &values).unwrap();
    }
    domain.coset_product(stream, data, shift).unwrap();
    let mut got = [[0; 4]];
    stream.download(&mut got, data.slice(j, 1).unwrap()).unwrap();
    let x = RootGenerator::Seven.root_of_unity(log_n + 1) * w.pow_vartime([j as u64]);
    from_canonical(&got[0]) == Some(x * x.square())
}

fn run(device: &Arc<Device>) {
    let stream = device.stream().unwrap();
    let root = RootGenerator::Seven.root_of_unity(ROOT_LOG);
    let peers = peer_times(16, 26);
    for log_n in [16, 18, 20, 22, 24, 26] {
        let domain = Domain::new(&stream, &root, log_n).unwrap();
        let buffer = device.allocate::<Limbs>(2 << log_n).unwrap();
        let (data, one) = (buffer.as_slice(), buffer.as_slice().slice(0, 1 << log_n).unwrap());
        stream.clear(data).unwrap();
        let checked = check_forward(&stream, &domain, one);
        // What is in `one` now are full-size values.
        let ms = median_ms(&stream, || transform(&stream, &domain, one));
        report(device, "ntt", log_n, ms, peers.get(&("ntt".into(), log_n)), checked);
        let inverse_n = Scalar::from(1u64 << log_n).invert().unwrap();
        let eta = RootGenerator::Seven.root_of_unity(log_n + 1);
        let shift = FactorTable::powers_reversed(&stream, log_n, &inverse_n, &eta).unwrap();
        let checked = check_quotient(&stream, &domain, data, &shift);
        let ms = median_ms(&stream, || domain.coset_product(&stream, data, &shift).unwrap());
        report(device, "quotient", log_n, ms, peers.get(&("h".into(), log_n)), checked);
    }
}

fn main() {
    match DeviceChoice::Auto.open() {
        (Some(device), _) => run(&device),
        (None, why) => eprintln!("skipped: {}", why.unwrap_or_default()),
    }
}
