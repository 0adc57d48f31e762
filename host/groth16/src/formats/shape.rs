//! This project's own file of a constraint system: what recording it once leaves behind.
//!
//! Little-endian: a tag, u32 version, u32 publics, u32 aux, u32 dictionary entries, u64 constraints, u64 terms of A, B and C,
//! u64 bytes of names; the dictionary; for each matrix the row ends (u64), columns (u32) and coefficients (u32); the names,
//! one a line; and the BLAKE3 hash of all of it.

use super::{DecodeError, Problem, Reader};
use crate::r1cs::{MAX_LOG2_DOMAIN, MAX_VARIABLES, Matrix, R1cs};
use crate::scalar::{Limbs, first_unreduced};
use bytemuck::Pod;
use std::io::{self, Write};

const FORMAT: &str = "recorded shape";
const TAG: &[u8; 16] = b"zkhost R1CS file";
const VERSION: u32 = 1;
const HASH_BYTES: usize = 32;

/// Write a constraint system.
pub fn write_shape(r1cs: &R1cs, out: impl Write) -> io::Result<()> {
    let mut out = Hashing { out, hasher: blake3::Hasher::new() };
    let names: String = r1cs.names.iter().flat_map(|name| [name, "\n"]).collect();
    out.put(TAG)?;
    for word in [VERSION, r1cs.public_count, r1cs.aux_count, r1cs.dictionary.len() as u32] {
        out.put(&word.to_le_bytes())?;
    }
    out.put(&(r1cs.constraints() as u64).to_le_bytes())?;
    r1cs.matrices.iter().try_for_each(|matrix| out.put(&(matrix.terms() as u64).to_le_bytes()))?;
    out.put(&(names.len() as u64).to_le_bytes())?;
    out.put(bytemuck::cast_slice(&r1cs.dictionary))?;
    for matrix in &r1cs.matrices {
        out.put(bytemuck::cast_slice(&matrix.row_ends))?;
        out.put(bytemuck::cast_slice(&matrix.columns))?;
        out.put(bytemuck::cast_slice(&matrix.coefficients))?;
    }
    out.put(names.as_bytes())?;
    let hash = out.hasher.finalize();
    out.out.write_all(hash.as_bytes())?;
    out.out.flush()
}

/// Writes and hashes.
struct Hashing<W> {
    out: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Hashing<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update_rayon(bytes);
        self.out.write_all(bytes)
    }
}

/// Read a constraint system; every property that [`R1cs`] promises is checked.
pub fn read_shape(bytes: &[u8]) -> Result<R1cs, DecodeError> {
    let mut reader = Reader::new(FORMAT, "header", bytes);
    let tag = reader.array::<16>()?.escape_ascii().to_string();
    reader.expect("the tag", TAG.escape_ascii().to_string(), tag)?;
    let version = reader.u32_le()?;
    reader.expect("the version (shapes of other versions are recorded again)", VERSION, version)?;
    let (public_count, aux_count) = (reader.u32_le()?, reader.u32_le()?);
    let entries = u64::from(reader.u32_le()?);
    let constraints = reader.u64_le()?;
    let terms = [reader.u64_le()?, reader.u64_le()?, reader.u64_le()?];
    let name_bytes = reader.u64_le()?;
    let rows = constraints.saturating_add(u64::from(public_count) + 1);
    if rows > 1 << MAX_LOG2_DOMAIN || u64::from(public_count.max(aux_count)) >= MAX_VARIABLES {
        return Err(reader.error(None, Problem::DamagedShape));
    }

    reader.section = "dictionary";
    let dictionary: Vec<Limbs> = list(&mut reader, entries)?;
    reader.section = "matrices";
    let matrices = [
        matrix(&mut reader, constraints, terms[0])?,
        matrix(&mut reader, constraints, terms[1])?,
        matrix(&mut reader, constraints, terms[2])?,
    ];
    reader.section = "names";
    let names = str::from_utf8(reader.take(name_bytes)?).map_err(|_| reader.error(None, Problem::DamagedShape))?;
    // A name may end in any character, a carriage return too.
    let names: Vec<String> = names.split_terminator('\n').map(String::from).collect();

    reader.section = "hash";
    let hash: [u8; HASH_BYTES] = reader.array()?;
    reader.end()?;
    if blake3::Hasher::new().update_rayon(&bytes[..bytes.len() - HASH_BYTES]).finalize() != hash {
        return Err(reader.error(None, Problem::DamagedShape));
    }
    let r1cs = R1cs { public_count, aux_count, dictionary, matrices, names };
    if !is_canonical(&r1cs) {
        reader.section = "matrices";
        return Err(reader.error(None, Problem::DamagedShape));
    }
    Ok(r1cs)
}

/// The next entries of a list.
fn list<T: Pod>(reader: &mut Reader, entries: u64) -> Result<Vec<T>, DecodeError> {
    let bytes = entries.checked_mul(size_of::<T>() as u64).ok_or_else(|| reader.error(None, Problem::DamagedShape))?;
    let bytes = reader.take(bytes)?;
    let mut list = vec![T::zeroed(); entries as usize];
    bytemuck::cast_slice_mut(&mut list).copy_from_slice(bytes);
    Ok(list)
}

fn matrix(reader: &mut Reader, constraints: u64, terms: u64) -> Result<Matrix, DecodeError> {
    Ok(Matrix {
        row_ends: list(reader, constraints)?,
        columns: list(reader, terms)?,
        coefficients: list(reader, terms)?,
    })
}

/// Whether rows tile their terms, columns ascend within z, coefficients are in the dictionary, which ascends, is reduced
/// and has no zero, and every row or none has a name.
fn is_canonical(r1cs: &R1cs) -> bool {
    let value = |limbs: &Limbs| limbs.iter().rev().copied().collect::<Vec<u64>>();
    let dictionary = first_unreduced(&r1cs.dictionary).is_none()
        && r1cs.dictionary.first() != Some(&[0; 4])
        && r1cs.dictionary.is_sorted_by(|a, b| value(a) < value(b));
    let matrix = |matrix: &Matrix| {
        let tiled =
            matrix.row_ends.is_sorted() && matrix.row_ends.last().map_or(0, |&end| end) == matrix.terms() as u64;
        tiled
            && (0..matrix.rows()).all(|row| matrix.columns[matrix.row_range(row)].is_sorted_by(|a, b| a < b))
            && matrix.columns.iter().all(|&column| (column as usize) < r1cs.variables())
            && matrix.coefficients.iter().all(|&entry| (entry as usize) < r1cs.dictionary.len())
    };
    let names = r1cs.names.is_empty() || r1cs.names.len() == r1cs.constraints();
    dictionary && names && r1cs.matrices.iter().all(matrix)
}
