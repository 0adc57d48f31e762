//! Field arithmetic on the device against blst's.

mod common;

use blst::{blst_fp, blst_fr};
use cudarc::driver::PushKernelArg;
use rand_core::RngCore;
use zkhost_cuda::{Device, device::grid};
use zkhost_groth16::scalar::is_reduced;

const THREADS: usize = 256;
const BLOCKS: usize = 4;
const P_TOP: u64 = 0x1a01_11ea_397f_e69a;

/// Runs a kernel of field.cu over pairs.
fn run<const N: usize>(device: &std::sync::Arc<Device>, name: &'static str, pairs: &mut [[[u64; N]; 2]], rounds: u32)
where
    [[u64; N]; 2]: bytemuck::Pod,
{
    let stream = device.stream().unwrap();
    let memory = device.allocate::<[[u64; N]; 2]>(pairs.len()).unwrap();
    stream.upload(memory.as_slice(), pairs).unwrap();
    let kernel = device.kernel(name).unwrap();
    let slice = memory.as_slice();
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&slice).arg(&rounds);
    // SAFETY: a pair for each thread.
    unsafe { launch.launch(grid(BLOCKS, THREADS as u32, 0)) }.unwrap();
    stream.download(pairs, memory.as_slice()).unwrap();
}

/// Words that make carries run far: zeros, ones, and everything between.
fn word(rng: &mut impl RngCore) -> u64 {
    match rng.next_u32() % 4 {
        0 => 0,
        1 => u64::MAX,
        2 => u64::from(rng.next_u32()) << 32,
        _ => rng.next_u64(),
    }
}

fn fp_pairs() -> Vec<[[u64; 6]; 2]> {
    let mut rng = common::random(11);
    let mut element = || {
        let mut limbs: [u64; 6] = std::array::from_fn(|_| word(&mut rng));
        limbs[5] %= P_TOP;
        limbs
    };
    (0..THREADS * BLOCKS).map(|_| [element(), element()]).collect()
}

#[test]
fn fp_products_and_squares_are_blsts() {
    let Some(device) = common::device() else { return };
    for rounds in [0, 1, 2, 17] {
        let before = fp_pairs();
        let (mut products, mut squares) = (before.clone(), before.clone());
        run(&device, "field_fp_products", &mut products, rounds);
        run(&device, "field_fp_squares", &mut squares, rounds);
        for (i, pair) in before.iter().enumerate() {
            let [mut x, mut y] = pair.map(|l| blst_fp { l });
            let (mut u, mut v) = (x, y);
            for _ in 0..rounds {
                // SAFETY: all pointers are to values of this frame.
                unsafe {
                    blst::blst_fp_mul(&mut x, &x.clone(), &y);
                    blst::blst_fp_mul(&mut y, &y.clone(), &x);
                    blst::blst_fp_sqr(&mut u, &u.clone());
                    blst::blst_fp_sqr(&mut v, &v.clone());
                }
            }
            assert_eq!(products[i], [x.l, y.l], "products of pair {i}, {rounds} rounds");
            assert_eq!(squares[i], [u.l, v.l], "squares of pair {i}, {rounds} rounds");
        }
    }
}

#[test]
fn fr_products_are_blsts() {
    let Some(device) = common::device() else { return };
    let mut rng = common::random(12);
    let mut element = || loop {
        let limbs: [u64; 4] = std::array::from_fn(|_| word(&mut rng));
        if is_reduced(&limbs) {
            return limbs;
        }
    };
    let before: Vec<[[u64; 4]; 2]> = (0..THREADS * BLOCKS).map(|_| [element(), element()]).collect();
    let mut products = before.clone();
    run(&device, "field_fr_products", &mut products, 9);
    for (i, pair) in before.iter().enumerate() {
        let [mut x, mut y] = pair.map(|l| blst_fr { l });
        for _ in 0..9 {
            // SAFETY: all pointers are to values of this frame.
            unsafe {
                blst::blst_fr_mul(&mut x, &x.clone(), &y);
                blst::blst_fr_mul(&mut y, &y.clone(), &x);
            }
        }
        assert_eq!(products[i], [x.l, y.l], "pair {i}");
    }
}
