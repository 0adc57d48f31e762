//! What the tests of this crate share.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

mod for_bellman;

pub use for_bellman::ForBellman;

use ff::{Field, PrimeField};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use zkhost_groth16::r1cs::{Counts, MatrixId, R1cs, ShapeLimits, ShapeRecorder};
use zkhost_groth16::scalar::{limbs_to_le_bytes, to_canonical};
use zkhost_groth16::{Proof, Scalar};

/// The bytes of a file made by another tool.
pub fn fixture(path: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/fixtures/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Scalars of 32 little-endian bytes each.
pub fn scalars(bytes: &[u8]) -> Vec<Scalar> {
    assert!(bytes.len().is_multiple_of(32));
    bytes.chunks(32).map(|chunk| Scalar::from_repr(chunk.try_into().unwrap()).unwrap()).collect()
}

/// A proof of the main chain.
pub struct MainChainProof {
    pub circuit: String,
    pub bytes: Vec<u8>,
    pub proof: Proof,
    pub publics: Vec<Scalar>,
}

/// Every Sapling proof of the fixtures.
pub fn main_chain_proofs() -> Vec<MainChainProof> {
    let lines = String::from_utf8(fixture("sapling/mainnet-proofs.jsonl")).unwrap();
    let parse = |line: &str| {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| json[key].as_str().unwrap().to_owned();
        let publics = json["public_inputs_le"].as_array().unwrap();
        let bytes = hex::decode(text("proof")).unwrap();
        MainChainProof {
            circuit: text("circuit"),
            proof: Proof::from_bytes(&bytes).unwrap(),
            bytes,
            publics: publics.iter().flat_map(|x| scalars(&hex::decode(x.as_str().unwrap()).unwrap())).collect(),
        }
    };
    lines.lines().map(parse).collect()
}

/// A term of a test circuit: index into z = [1, publics, aux] and coefficient.
pub type Term = (u32, Scalar);

/// Record constraints of terms as a guest would.
pub fn record(publics: u64, aux: u64, rows: &[[Vec<Term>; 3]]) -> R1cs {
    let mut recorder = ShapeRecorder::new(ShapeLimits::NONE, false);
    for row in rows {
        for (matrix, terms) in MatrixId::ALL.into_iter().zip(row) {
            let limbs: Vec<u64> = terms.iter().flat_map(|(_, c)| to_canonical(c)).collect();
            let first = recorder.add_coefficients(&limbs).unwrap();
            let column = |&(i, _): &Term| if u64::from(i) <= publics { i | 1 << 31 } else { i - 1 - publics as u32 };
            let columns: Vec<u32> = terms.iter().map(column).collect();
            let coefficients: Vec<u32> = (first..).take(terms.len()).collect();
            recorder.add_rows(matrix, &[terms.len() as u32], &columns, &coefficients).unwrap();
        }
    }
    recorder.finish(Counts { publics, aux, constraints: rows.len() as u64 }).unwrap()
}

/// A circuit of random rows in which every aux variable has a term, and z that satisfies it: each row's C is a multiple of
/// the one that makes it so, and a random combination besides.
pub fn random_circuit(seed: u64, publics: u64, aux: u64, constraints: u64) -> (R1cs, Vec<Scalar>) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let variables = 1 + publics + aux;
    let mut z = vec![Scalar::ONE];
    z.extend((1..variables).map(|_| Scalar::random(&mut rng)));
    let value = |terms: &[Term]| terms.iter().map(|&(i, c)| z[i as usize] * c).sum::<Scalar>();
    let mut rows = vec![];
    for row in 0..constraints {
        let mut lc = |len: u64| -> Vec<Term> {
            (0..len).map(|_| ((rng.next_u64() % variables) as u32, Scalar::random(&mut rng))).collect()
        };
        let (mut a, b, mut c) = (lc(1 + row % 3), lc(1 + row % 2), lc(row % 2));
        // Spread the aux variables over the rows, so that none is left without a term.
        a.extend((row..aux).step_by(constraints as usize).map(|i| ((1 + publics + i) as u32, Scalar::from(i + 2))));
        let rest = value(&a) * value(&b) - value(&c);
        c.push((0, rest));
        rows.push([a, b, c]);
    }
    (record(publics, aux, &rows), z)
}

/// A scalar as 32 little-endian bytes.
pub fn le_bytes(scalar: &Scalar) -> [u8; 32] {
    limbs_to_le_bytes(&to_canonical(scalar))
}

/// This many scalars, the same for the same seed.
pub fn random_scalars(seed: u64, count: usize) -> Vec<Scalar> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..count).map(|_| Scalar::random(&mut rng)).collect()
}
