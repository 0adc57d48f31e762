//! Writes the constants of Poseidon, as neptune makes them, to `src/gadgets/poseidon/constants`.
//!
//! Canonical elements of 32 little-endian bytes: round keys in order of use; the matrix of full rounds and that of the last
//! full round before the partial ones, column by column; for each partial round the first column of its sparse matrix and
//! the rest of its first row.

use generic_array::typenum::{U2, U4, U8, U11};
use neptune::Arity;
use neptune::poseidon::PoseidonConstants;
use zkhost_guest::Fr;

fn main() -> std::io::Result<()> {
    write::<U2>()?;
    write::<U4>()?;
    write::<U8>()?;
    write::<U11>()
}

fn write<A: Arity<Fr>>() -> std::io::Result<()> {
    let constants = PoseidonConstants::<Fr, A>::new();
    let columns = |matrix: &Vec<Vec<Fr>>| -> Vec<Fr> {
        (0..matrix.len()).flat_map(|column| matrix.iter().map(move |row| row[column])).collect()
    };
    let mut elements = constants.compressed_round_constants.clone();
    elements.extend(columns(&constants.mds_matrices.m));
    elements.extend(columns(&constants.pre_sparse_matrix));
    for matrix in &constants.sparse_matrixes {
        elements.extend(matrix.w_hat.iter().chain(&matrix.v_rest));
    }
    let bytes: Vec<u8> = elements.into_iter().flat_map(Fr::to_le_bytes).collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gadgets/poseidon/constants");
    std::fs::create_dir_all(folder)?;
    std::fs::write(format!("{folder}/arity-{}.bin", constants.arity()), bytes)
}
