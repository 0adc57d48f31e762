//! The shape's hash.

use super::{Matrix, R1cs, ShapeHash};
use crate::scalar::{Limbs, limbs_to_le_bytes};
use rayon::prelude::*;
use std::ops::Range;

/// Separates this hash from every other use of BLAKE3. A change of the format is a change of this string.
const CONTEXT: &str = "zkhost R1CS over BLS12-381, version 1";

/// Rows that one task writes down.
const ROWS_PER_TASK: usize = 1 << 14;

/// Rows and terms that are written down before they are hashed, at most: some 40 MB.
const ROWS_PER_ROUND: usize = 1 << 20;
const TERMS_PER_ROUND: u64 = 1 << 20;

/// Bytes of a row of more terms than a round has that are written down before they are hashed.
const LONG_ROW_BYTES: usize = 1 << 20;

impl R1cs {
    /// The name of the circuit: BLAKE3 in key-derivation mode, context [`CONTEXT`], over its canonical form.
    ///
    /// All integers little-endian: u64 publics (the one excluded), u64 aux, u64 constraints; then for A, B and C, for each
    /// row, u32 number of terms and for each term u32 column and 32 bytes canonical coefficient. Row names and the order of
    /// the dictionary have no part in it.
    pub fn hash(&self) -> ShapeHash {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        for count in [self.public_count.into(), self.aux_count.into(), self.constraints() as u64] {
            hasher.update(&count.to_le_bytes());
        }
        for matrix in &self.matrices {
            hash_rows(&mut hasher, matrix, &self.dictionary);
        }
        ShapeHash(hasher.finalize().into())
    }
}

/// BLAKE3 is as fast as memory on long inputs; writing them down takes longer, so tasks share it.
fn hash_rows(hasher: &mut blake3::Hasher, matrix: &Matrix, dictionary: &[Limbs]) {
    let mut first = 0;
    while first < matrix.rows() {
        let terms = matrix.row_range(first).start as u64 + TERMS_PER_ROUND;
        let ends = &matrix.row_ends[first..];
        let ends = &ends[..ends.len().min(ROWS_PER_ROUND)];
        let rows = ends.partition_point(|&end| end <= terms);
        if rows == 0 {
            hash_long_row(hasher, matrix, first, dictionary);
            first += 1;
            continue;
        }
        let written = |(task, ends): (usize, &[u64])| {
            let from = first + task * ROWS_PER_TASK;
            written_rows(matrix, from..from + ends.len(), dictionary)
        };
        let pieces: Vec<_> = ends[..rows].par_chunks(ROWS_PER_TASK).enumerate().map(written).collect();
        for piece in &pieces {
            hasher.update_rayon(piece);
        }
        first += rows;
    }
}

/// A row that a guest made as long as it liked: in pieces, and not in one list of 36 bytes a term.
fn hash_long_row(hasher: &mut blake3::Hasher, matrix: &Matrix, row: usize, dictionary: &[Limbs]) {
    hasher.update(&(matrix.row_range(row).len() as u32).to_le_bytes());
    let mut bytes = Vec::with_capacity(LONG_ROW_BYTES + 36);
    for (column, coefficient) in matrix.row(row) {
        bytes.extend_from_slice(&column.to_le_bytes());
        bytes.extend_from_slice(&limbs_to_le_bytes(&dictionary[coefficient as usize]));
        if bytes.len() >= LONG_ROW_BYTES {
            hasher.update_rayon(&bytes);
            bytes.clear();
        }
    }
    hasher.update_rayon(&bytes);
}

fn written_rows(matrix: &Matrix, rows: Range<usize>, dictionary: &[Limbs]) -> Vec<u8> {
    let terms = matrix.row_range(rows.end - 1).end - matrix.row_range(rows.start).start;
    let mut bytes = Vec::with_capacity(4 * rows.len() + 36 * terms);
    for row in rows {
        bytes.extend_from_slice(&(matrix.row_range(row).len() as u32).to_le_bytes());
        for (column, coefficient) in matrix.row(row) {
            bytes.extend_from_slice(&column.to_le_bytes());
            bytes.extend_from_slice(&limbs_to_le_bytes(&dictionary[coefficient as usize]));
        }
    }
    bytes
}
