//! A rank-1 constraint system in compressed rows: <A,z> * <B,z> = <C,z> over z = [1, publics, aux].
//!
//! [`ShapeRecorder`] makes one from what a guest records, [`R1cs::hash`] names it, [`R1cs::check`] says which constraint an
//! assignment breaks.

mod check;
mod hash;
mod recorder;

pub use check::{CheckError, Unsatisfied};
pub use recorder::{Counts, NAME_OVERHEAD_BYTES, ShapeError, ShapeLimits, ShapeRecorder};

use crate::scalar::{Limbs, Scalar, from_canonical};
use ff::Field;
use rayon::prelude::*;

/// The most variables of one kind: a guest marks public columns with bit 31.
pub const MAX_VARIABLES: u64 = 1 << 31;

/// The largest domain: r - 1 is divisible by 2^32 and no more.
pub const MAX_LOG2_DOMAIN: u32 = 32;

/// Rows that one task evaluates: enough to hide what a task costs, few enough to share out evenly.
const ROWS_PER_TASK: usize = 4096;

/// One of the three matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixId {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The product.
    C,
}

impl MatrixId {
    /// All three, in order.
    pub const ALL: [Self; 3] = [Self::A, Self::B, Self::C];
}

/// A sparse matrix in compressed rows, columns ascending and without repeats, no zero coefficient.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// Where each row ends in `columns`; row i starts where row i - 1 ends.
    pub row_ends: Vec<u64>,
    /// Index into z of each term: 0 is the one, then the publics, then aux.
    pub columns: Vec<u32>,
    /// Index into the dictionary of coefficients of each term.
    pub coefficients: Vec<u32>,
}

impl Matrix {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.row_ends.len()
    }

    /// The number of terms of all rows.
    pub fn terms(&self) -> usize {
        self.columns.len()
    }

    /// Where the terms of a row lie in `columns` and `coefficients`.
    pub fn row_range(&self, row: usize) -> std::ops::Range<usize> {
        let start = if row == 0 { 0 } else { self.row_ends[row - 1] };
        start as usize..self.row_ends[row] as usize
    }

    /// The terms (column, index of coefficient) of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.row_range(row);
        self.columns[range.clone()].iter().copied().zip(self.coefficients[range].iter().copied())
    }
}

/// A constraint system. The rows "public * 0 = 0" that Groth16 adds are not part of it.
///
/// It is canonical: two recordings of the same rows are equal, whatever repeats, zeros or dictionary they came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct R1cs {
    /// Public inputs, the constant one excluded.
    pub public_count: u32,
    /// Private variables.
    pub aux_count: u32,
    /// The distinct coefficients, canonical, ascending.
    pub dictionary: Vec<Limbs>,
    /// A, B and C; each has one row per constraint.
    pub matrices: [Matrix; 3],
    /// The path of each constraint in the circuit's source; empty if it was recorded without names.
    pub names: Vec<String>,
}

/// The values of z = [1, publics, aux], up to a factor that all of them have in common.
pub trait Variables: Sync {
    /// The length of z.
    fn count(&self) -> usize;
    /// The value of a variable, times the factor.
    fn value(&self, variable: usize) -> Scalar;
    /// A sum of values, given that sum of values times the factor.
    fn restore(&self, sum: Scalar) -> Scalar;
}

impl Variables for [Scalar] {
    fn count(&self) -> usize {
        self.len()
    }

    fn value(&self, variable: usize) -> Scalar {
        self[variable]
    }

    fn restore(&self, sum: Scalar) -> Scalar {
        sum
    }
}

/// The BLAKE3 hash of a constraint system's canonical form: the name of a circuit. See [`R1cs::hash`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeHash(pub [u8; 32]);

impl std::fmt::Display for ShapeHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for ShapeHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShapeHash({self})")
    }
}

impl R1cs {
    /// One of the matrices.
    pub fn matrix(&self, id: MatrixId) -> &Matrix {
        &self.matrices[id as usize]
    }

    /// The number of constraints, without the rows that bind the publics.
    pub fn constraints(&self) -> usize {
        self.matrices[0].rows()
    }

    /// The length of z = [1, publics, aux].
    pub fn variables(&self) -> usize {
        1 + self.public_count as usize + self.aux_count as usize
    }

    /// log2 of the evaluation domain: the smallest power of two that holds every constraint and one row more for the one
    /// and for each public input.
    pub fn log2_domain(&self) -> u32 {
        let rows = self.constraints() as u64 + u64::from(self.public_count) + 1;
        rows.next_power_of_two().trailing_zeros()
    }

    /// One bit per variable of z (bit i mod 64 of word i / 64): whether the A query has a point for it. The rows that bind
    /// the publics give the one and every public input a point.
    pub fn a_density(&self) -> Vec<u64> {
        let mut density = self.used_columns(MatrixId::A);
        for i in 0..=self.public_count as usize {
            density[i / 64] |= 1 << (i % 64);
        }
        density
    }

    /// One bit per variable of z, as in [`Self::a_density`]: whether the B queries have a point for it.
    pub fn b_density(&self) -> Vec<u64> {
        self.used_columns(MatrixId::B)
    }

    fn used_columns(&self, id: MatrixId) -> Vec<u64> {
        let mut density = vec![0u64; self.variables().div_ceil(64)];
        for &column in &self.matrix(id).columns {
            density[column as usize / 64] |= 1 << (column % 64);
        }
        density
    }

    /// The dictionary as field elements.
    pub fn coefficients(&self) -> Vec<Scalar> {
        self.dictionary
            .iter()
            .map(|limbs| from_canonical(limbs).expect("a dictionary holds reduced elements"))
            .collect()
    }

    /// The product of a matrix and z, one element per constraint; the result is as secret as z.
    ///
    /// Panics if z has another length than [`Self::variables`].
    pub fn evaluate(&self, id: MatrixId, z: &[Scalar]) -> Vec<Scalar> {
        let mut out = vec![Scalar::ZERO; self.constraints()];
        self.evaluate_into(id, z, &mut out);
        out
    }

    /// As [`Self::evaluate`], into the first elements of a buffer, which may be longer (a domain's); others are untouched.
    ///
    /// Panics if z has another length than [`Self::variables`] or the buffer is shorter than the rows.
    pub fn evaluate_into<Z: Variables + ?Sized>(&self, id: MatrixId, z: &Z, out: &mut [Scalar]) {
        assert_eq!(z.count(), self.variables(), "z has one element for each variable");
        let (matrix, coefficients) = (self.matrix(id), self.coefficients());
        let out = &mut out[..matrix.rows()];
        out.par_chunks_mut(ROWS_PER_TASK).enumerate().for_each(|(task, out)| {
            for (row, out) in (task * ROWS_PER_TASK..).zip(out) {
                *out = dot(matrix, row, &coefficients, z);
            }
        });
    }

    /// (A z)(B z), row by row, as [`Self::evaluate_into`] writes one of them: without memory for either factor.
    ///
    /// Panics as that does.
    pub fn evaluate_products_into<Z: Variables + ?Sized>(&self, z: &Z, out: &mut [Scalar]) {
        assert_eq!(z.count(), self.variables(), "z has one element for each variable");
        let (a, b, coefficients) = (self.matrix(MatrixId::A), self.matrix(MatrixId::B), self.coefficients());
        let out = &mut out[..self.constraints()];
        out.par_chunks_mut(ROWS_PER_TASK).enumerate().for_each(|(task, out)| {
            for (row, out) in (task * ROWS_PER_TASK..).zip(out) {
                *out = dot(a, row, &coefficients, z) * dot(b, row, &coefficients, z);
            }
        });
    }
}

/// The product of one row and z.
fn dot<Z: Variables + ?Sized>(matrix: &Matrix, row: usize, coefficients: &[Scalar], z: &Z) -> Scalar {
    let mut sum = Scalar::ZERO;
    for (column, coefficient) in matrix.row(row) {
        let coefficient = coefficients[coefficient as usize];
        let variable = z.value(column as usize);
        // Most coefficients of real circuits are one; an addition is ten times cheaper than a product.
        if coefficient == Scalar::ONE {
            sum += variable;
        } else {
            sum += coefficient * variable;
        }
    }
    z.restore(sum)
}
