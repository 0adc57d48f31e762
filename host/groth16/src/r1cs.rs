//! A rank-1 constraint system in compressed rows: <A,z> * <B,z> = <C,z> over z = [1, publics, aux].

use crate::scalar::Limbs;

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

/// A constraint system. The rows "public * 0 = 0" that Groth16 adds are not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct R1cs {
    /// Public inputs, the constant one excluded.
    pub public_count: u32,
    /// Private variables.
    pub aux_count: u32,
    /// The distinct coefficients, canonical.
    pub dictionary: Vec<Limbs>,
    /// A, B and C; each has one row per constraint.
    pub matrices: [Matrix; 3],
    /// The path of each constraint in the circuit's source; empty if it was recorded without names.
    pub names: Vec<String>,
}

/// The BLAKE3 hash of a constraint system's canonical form: the name of a circuit. See [`R1cs::hash`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeHash(pub [u8; 32]);
