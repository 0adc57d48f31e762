//! The first pass: records the constraint system.

use std::collections::BTreeMap;

use crate::sink::{Matrix, PUBLIC_COLUMN, ShapeSink};
use crate::{Counts, Error};

/// Terms that one matrix collects before they are sent: 64 KiB of columns.
const CHUNK_TERMS: usize = 16 * 1024;
/// Row lengths that one matrix collects before they are sent: 64 KiB.
const CHUNK_ROWS: usize = 16 * 1024;
/// Bytes of row names collected before they are sent.
const CHUNK_NAME_BYTES: usize = 64 * 1024;
/// Coefficients the dictionary remembers. Beyond them it starts again, and repeats are sent twice; this bounds memory.
const DICTIONARY_COEFFICIENTS: usize = 1 << 18;
/// Variables of one kind that a column can name.
const COLUMN_VARIABLES: u64 = PUBLIC_COLUMN as u64;

type Limbs = [u64; 4];

/// The rows of one matrix that are not sent yet.
#[derive(Default)]
struct Rows {
    row_lengths: Vec<u32>,
    columns: Vec<u32>,
    coefficients: Vec<u32>,
}

/// Streams a constraint system to a [`ShapeSink`]. Knows nothing of dialects or field types.
pub(crate) struct ShapeRecorder<'a> {
    sink: &'a mut dyn ShapeSink,
    matrices: [Rows; 3],
    dictionary: BTreeMap<Limbs, u32>,
    /// Coefficients that are in the dictionary and not yet sent.
    unsent: Vec<u64>,
    coefficients: u32,
    /// Namespaces around the next row and the names not sent yet, if names are wanted.
    names: Option<Names>,
    counts: Counts,
    error: Option<Error>,
}

#[derive(Default)]
struct Names {
    path: Vec<String>,
    lines: String,
}

impl<'a> ShapeRecorder<'a> {
    pub(crate) fn new(sink: &'a mut dyn ShapeSink, names: bool) -> Self {
        ShapeRecorder {
            sink,
            matrices: Default::default(),
            dictionary: BTreeMap::new(),
            unsent: Vec::new(),
            coefficients: 0,
            names: names.then(Names::default),
            counts: Counts::default(),
            error: None,
        }
    }

    /// Allocate an aux variable; returns its index.
    pub(crate) fn alloc_aux(&mut self) -> usize {
        self.counts.aux += 1;
        self.limit(self.counts.aux, "aux variables");
        (self.counts.aux - 1) as usize
    }

    /// Allocate a public input; returns its index, the constant one being 0.
    pub(crate) fn alloc_public(&mut self) -> usize {
        self.counts.publics += 1;
        self.limit(self.counts.publics, "public inputs");
        self.counts.publics as usize
    }

    fn limit(&mut self, count: u64, what: &str) {
        if count >= COLUMN_VARIABLES && self.error.is_none() {
            self.error = Some(Error::Unsupported(format!(
                "the circuit has {COLUMN_VARIABLES} {what} or more; divide it into partitions of fewer"
            )));
        }
    }

    /// Append the next row of one matrix.
    pub(crate) fn row(&mut self, matrix: Matrix, terms: impl Iterator<Item = (u32, Limbs)>) {
        let before = self.matrices[matrix as usize].columns.len();
        for (column, coefficient) in terms {
            let index = self.coefficient(coefficient);
            let rows = &mut self.matrices[matrix as usize];
            rows.columns.push(column);
            rows.coefficients.push(index);
        }
        let rows = &mut self.matrices[matrix as usize];
        rows.row_lengths.push((rows.columns.len() - before) as u32);
        if rows.columns.len() >= CHUNK_TERMS || rows.row_lengths.len() >= CHUNK_ROWS {
            self.flush(matrix);
        }
    }

    fn coefficient(&mut self, limbs: Limbs) -> u32 {
        if let Some(&index) = self.dictionary.get(&limbs) {
            return index;
        }
        if self.dictionary.len() >= DICTIONARY_COEFFICIENTS {
            self.dictionary.clear();
        }
        let index = self.coefficients;
        self.coefficients += 1;
        self.dictionary.insert(limbs, index);
        self.unsent.extend_from_slice(&limbs);
        index
    }

    fn flush(&mut self, matrix: Matrix) {
        if !self.unsent.is_empty() {
            self.sink.add_coefficients(&self.unsent);
            self.unsent.clear();
        }
        let rows = &mut self.matrices[matrix as usize];
        if !rows.row_lengths.is_empty() {
            self.sink.add_rows(matrix, &rows.row_lengths, &rows.columns, &rows.coefficients);
            rows.row_lengths.clear();
            rows.columns.clear();
            rows.coefficients.clear();
        }
    }

    /// End a constraint, whose three rows were appended.
    pub(crate) fn end_constraint(&mut self, name: impl FnOnce() -> String) {
        self.counts.constraints += 1;
        let Some(names) = &mut self.names else { return };
        let start = names.lines.len();
        for part in &names.path {
            names.lines.push_str(part);
            names.lines.push('/');
        }
        names.lines.push_str(&name());
        if names.lines[start..].contains('\n') {
            let line = names.lines.split_off(start).replace('\n', " ");
            names.lines.push_str(&line);
        }
        names.lines.push('\n');
        if names.lines.len() >= CHUNK_NAME_BYTES {
            self.sink.name_rows(&names.lines);
            names.lines.clear();
        }
    }

    pub(crate) fn push_namespace(&mut self, name: impl FnOnce() -> String) {
        if let Some(names) = &mut self.names {
            names.path.push(name());
        }
    }

    pub(crate) fn pop_namespace(&mut self) {
        if let Some(names) = &mut self.names {
            names.path.pop();
        }
    }

    /// Send what is left.
    pub(crate) fn finish(mut self) -> Result<Counts, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for matrix in [Matrix::A, Matrix::B, Matrix::C] {
            self.flush(matrix);
        }
        if let Some(names) = &self.names
            && !names.lines.is_empty()
        {
            self.sink.name_rows(&names.lines);
        }
        Ok(self.counts)
    }
}
