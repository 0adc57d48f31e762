//! Reading a proving key with every point checked for curve and subgroup, in random batches, beside checks one by one
//! (`key_import`), on one core.
//!
//! The file is Zcash's Sapling Spend key, pinned by its digest but not taken as checked before. A bad point must be found
//! and named, or the time means nothing.

use std::path::Path;
use std::time::Duration;
use zkhost_benches::{Measurement, median, timed};
use zkhost_groth16::G1Point;
use zkhost_groth16::formats::{ParamsFile, Problem, Subgroup, Trailer, read_params, sha256};
use zkhost_groth16::points::{Point, PointError};

const RUNS: usize = 3;
/// Points of each query that are checked one by one: time per point does not depend on how many there are.
const POINTS_ONE_BY_ONE: usize = 8192;
/// (0, 2), a point of G1's curve of order 3.
const OF_ORDER_THREE: G1Point = G1Point {
    x: [0; 6],
    y: [
        0x3213_0000_0006_554f,
        0xb93c_0018_d6c4_0005,
        0x5760_5e0d_b0dd_bb51,
        0x8b25_6521_ed1f_9bcb,
        0x6cf2_8d79_0162_2c03,
        0x11eb_ab9d_bb81_e28c,
    ],
};

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/sapling/sapling-spend.params");
    let hint = "run `make sapling-keys` first";
    let mut bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; {hint}", path.display()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread starts");
    pool.install(|| {
        let digest = sha256(&bytes);
        let read = || read_params(&bytes, Subgroup::Check, Trailer::Pinned(digest)).expect("the key reads");
        let key = read();
        let (g1, g2) = ([&key.h[..], &key.l, &key.a, &key.b_g1], [&key.b_g2[..]]);
        let key_bytes = g1.iter().map(|points| 96 * points.len()).sum::<usize>() + 192 * key.b_g2.len();
        let (mut ours, mut peer) = (vec![], vec![]);
        for _ in 0..RUNS {
            ours.push(timed(read));
            peer.push(one_by_one(&g1) + one_by_one(&g2));
        }
        let rate = |time: Duration| key_bytes as f64 / time.as_secs_f64() / 1e6;
        let (ours, peer_value) = (rate(median(ours)), Some(rate(median(peer))));
        let checked = bad_point_is_named(&key, &mut bytes);
        let (bench, peer) = ("key_import", Some("one by one"));
        Measurement { bench, case: "sapling-spend.params", ours, peer, peer_value, unit: "MB/s a core", checked }
            .record()
            .expect("the result is written");
    });
}

/// The time to decode and check every point by itself, as measured on some.
fn one_by_one<P: Point>(queries: &[&[P]]) -> Duration {
    let time = |query: &&[P]| {
        let some = &query[..query.len().min(POINTS_ONE_BY_ONE)];
        let mut encoded = Vec::with_capacity(some.len() * P::ENCODED_BYTES);
        some.iter().for_each(|point| point.encode(&mut encoded));
        let time = timed(|| {
            let good = |bytes| P::decode(bytes).is_ok_and(|point| point.is_in_subgroup());
            assert!(encoded.chunks_exact(P::ENCODED_BYTES).all(good), "the ceremony's points are good");
        });
        time.mul_f64(query.len() as f64 / some.len() as f64)
    };
    queries.iter().map(time).sum()
}

/// Whether a point outside the subgroup, one of H's with a component of order 3 added, is refused by its place.
fn bad_point_is_named(key: &ParamsFile, bytes: &mut [u8]) -> bool {
    // Three points of G1, three of G2 (the verifying key), IC and its count, H's count.
    let first_of_h = 3 * 96 + 3 * 192 + 4 + 96 * key.vk.ic.len() + 4;
    let index = key.h.len() / 2;
    let sum = zkhost_groth16::msm::sum(&[key.h[index], OF_ORDER_THREE], &[0, 1]);
    let mut point = vec![];
    G1Point::normalize(&[sum])[0].encode(&mut point);
    bytes[first_of_h + 96 * index..][..96].copy_from_slice(&point);
    let digest = sha256(bytes);
    let refused = read_params(bytes, Subgroup::Check, Trailer::Pinned(digest)).err();
    refused.is_some_and(|error| {
        error.section == "H query"
            && error.index == Some(index as u64)
            && error.problem == Problem::Point(PointError::NotInSubgroup)
    })
}
