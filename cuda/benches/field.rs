//! Field products on the device, beside sppark's in the same run: the ceiling of everything else.
//!
//! `SPPARK_BENCH` names the program of `benches/peers/sppark`; without it our rates are printed alone. Rates are billions
//! of operations a second, the best of several occupancies, as the peer's are. The first pair is checked against blst.

use std::{collections::HashMap, env, process::Command, sync::Arc};

use blst::{blst_fp, blst_fr};
use cudarc::driver::PushKernelArg;
use zkhost_cuda::{Device, DeviceChoice, device::grid};

const RUNS: usize = 5;
const ROUNDS: u32 = 4000;
const THREADS: usize = 256;
const BLOCKS_PER_MULTIPROCESSOR: [usize; 3] = [1, 2, 4];

/// The peer's best rates by name.
fn peer_rates() -> HashMap<String, f64> {
    let Some(program) = env::var_os("SPPARK_BENCH") else { return HashMap::new() };
    let output = Command::new(program).arg("micro").output().expect("the peer's program starts");
    let mut rates = HashMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let rate =
            fields.get(3).and_then(|field| field.strip_suffix(" Gop/s")).and_then(|rate| rate.parse::<f64>().ok());
        if let (Some(rate), Some(name)) = (rate, fields.get(1)) {
            let best = rates.entry((*name).to_owned()).or_insert(0.0);
            *best = rate.max(*best);
        }
    }
    rates
}

/// Bytes as words, aligned.
fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
}

/// What a round does to a pair, by blst.
type Twin = fn(&mut [u8]);

fn fp_twin(pair: &mut [u8], step: unsafe extern "C" fn(*mut blst_fp, *const blst_fp, *const blst_fp), squares: bool) {
    let limbs: &mut [[u64; 6]] = bytemuck::cast_slice_mut(pair);
    let (mut x, mut y) = (blst_fp { l: limbs[0] }, blst_fp { l: limbs[1] });
    let (x_before, y_before) = (x, y);
    // SAFETY: all pointers are to values of this frame.
    unsafe { step(&mut x, &x_before, if squares { &x_before } else { &y_before }) };
    let x_after = x;
    // SAFETY: as above.
    unsafe { step(&mut y, &y_before, if squares { &y_before } else { &x_after }) };
    (limbs[0], limbs[1]) = (x.l, y.l);
}

fn fp_products(pair: &mut [u8]) {
    fp_twin(pair, blst::blst_fp_mul, false);
}

fn fp_squares(pair: &mut [u8]) {
    fp_twin(pair, blst::blst_fp_mul, true);
}

fn fr_products(pair: &mut [u8]) {
    let limbs: &mut [[u64; 4]] = bytemuck::cast_slice_mut(pair);
    let (mut x, mut y) = (blst_fr { l: limbs[0] }, blst_fr { l: limbs[1] });
    // SAFETY: all pointers are to values of this frame.
    unsafe {
        blst::blst_fr_mul(&mut x, &x.clone(), &y);
        blst::blst_fr_mul(&mut y, &y.clone(), &x);
    }
    (limbs[0], limbs[1]) = (x.l, y.l);
}

/// Billions of operations a second, each thread making two in a round; and whether the first pair is right.
fn rate(device: &Arc<Device>, kernel: &'static str, pair_bytes: usize, twin: Twin) -> (f64, bool) {
    let stream = device.stream().unwrap();
    let kernel = device.kernel(kernel).unwrap();
    let mut right = true;
    let rates = BLOCKS_PER_MULTIPROCESSOR.map(|blocks| {
        let blocks = blocks * device.multiprocessors() as usize;
        let memory = device.allocate::<u8>(blocks * THREADS * pair_bytes).unwrap();
        // Below both moduli, and not regular.
        let values: Vec<u8> = (0..memory.as_slice().len() as u64)
            .map(|i| if i % 16 == 15 { 5 } else { (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8 })
            .collect();
        stream.upload(memory.as_slice(), &values).unwrap();
        let slice = memory.as_slice();
        let run = || {
            let before = stream.timestamp().unwrap();
            let mut launch = stream.launch_builder(&kernel);
            launch.arg(&slice).arg(&ROUNDS);
            // SAFETY: a pair for each thread.
            unsafe { launch.launch(grid(blocks, THREADS as u32, 0)) }.unwrap();
            let after = stream.timestamp().unwrap();
            f64::from(before.milliseconds_to(&after).unwrap())
        };
        run();
        let mut expected = words(&values[..pair_bytes]);
        (0..ROUNDS).for_each(|_| twin(bytemuck::cast_slice_mut(&mut expected)));
        let mut got = vec![0; pair_bytes];
        stream.download(&mut got, slice.slice(0, pair_bytes).unwrap()).unwrap();
        right &= got == bytemuck::cast_slice::<u64, u8>(&expected);
        let mut times: Vec<f64> = (0..RUNS).map(|_| run()).collect();
        times.sort_by(f64::total_cmp);
        2.0 * f64::from(ROUNDS) * (blocks * THREADS) as f64 / times[RUNS / 2] / 1e6
    });
    (rates.into_iter().fold(0.0, f64::max), right)
}

fn main() {
    let device = match DeviceChoice::Auto.open() {
        (Some(device), _) => device,
        (None, why) => return eprintln!("skipped: {}", why.unwrap_or_default()),
    };
    let peers = peer_rates();
    let (date, commit) = (env::var("BENCH_DATE").unwrap_or_default(), env::var("BENCH_COMMIT").unwrap_or_default());
    let cases: [(&str, &'static str, usize, Twin); 3] = [
        ("fp_mul", "field_fp_products", 96, fp_products),
        ("fp_sqr", "field_fp_squares", 96, fp_squares),
        ("fr_mul", "field_fr_products", 64, fr_products),
    ];
    for (case, kernel, pair_bytes, twin) in cases {
        let (ours, checked) = rate(&device, kernel, pair_bytes, twin);
        let peer = peers.get(case).map_or("null".into(), |rate| rate.to_string());
        println!(
            r#"{{"bench":"field","case":"{case}","ours":{ours:.3},"peer":"sppark 0.1.16","peer_value":{peer},"unit":"G/s","checked":{checked},"machine":"{}","date":"{date}","commit":"{commit}"}}"#,
            device.describe(),
        );
    }
}
