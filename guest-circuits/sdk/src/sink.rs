//! Where a circuit's two passes write: the host in a component, memory in a native test.
//!
//! Limbs are canonical field elements, four `u64` each, least significant first.

/// One of the three matrices of ⟨A, z⟩ · ⟨B, z⟩ = ⟨C, z⟩.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The product.
    C,
}

/// The bit that marks a column as a public input; the rest of the column is its index, 0 being the constant one.
pub const PUBLIC_COLUMN: u32 = 1 << 31;

/// Receives a constraint system, once per circuit and parameters.
pub trait ShapeSink: Send {
    /// Append to the dictionary of coefficients. Indices count from 0 in the order of arrival.
    fn add_coefficients(&mut self, limbs: &[u64]);
    /// Append rows to one matrix: the number of terms of each row, then the columns and coefficient indices of all terms.
    fn add_rows(&mut self, matrix: Matrix, row_lengths: &[u32], columns: &[u32], coefficients: &[u32]);
    /// Append the paths of the next rows, one a line.
    fn name_rows(&mut self, paths: &str);
}

/// Receives the assignment of one segment, once per proof.
pub trait WitnessSink: Send {
    /// Append groups of 64 aux variables: words (full, one) a group, and the full elements densely.
    fn write_groups(&mut self, masks: &[u64], elements: &[u64]);
    /// Append public inputs, the constant one excluded.
    fn write_public(&mut self, elements: &[u64]);
    /// Tell how many aux variables of the segment are written. False asks the circuit to stop.
    fn progress(&mut self, aux_written: u64) -> bool;
}
