//! The shape's hash.

use super::{Matrix, R1cs, ShapeHash};
use crate::scalar::{Limbs, limbs_to_le_bytes};

/// Separates this hash from every other use of BLAKE3. A change of the format is a change of this string.
const CONTEXT: &str = "zkhost R1CS over BLS12-381, version 1";

/// Bytes gathered before they are hashed: BLAKE3 is fastest on long inputs.
const BUFFER_BYTES: usize = 1 << 18;

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

fn hash_rows(hasher: &mut blake3::Hasher, matrix: &Matrix, dictionary: &[Limbs]) {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES + 64);
    for row in 0..matrix.rows() {
        buffer.extend_from_slice(&(matrix.row_range(row).len() as u32).to_le_bytes());
        for (column, coefficient) in matrix.row(row) {
            buffer.extend_from_slice(&column.to_le_bytes());
            buffer.extend_from_slice(&limbs_to_le_bytes(&dictionary[coefficient as usize]));
            if buffer.len() >= BUFFER_BYTES {
                hasher.update_rayon(&buffer);
                buffer.clear();
            }
        }
    }
    hasher.update_rayon(&buffer);
}
