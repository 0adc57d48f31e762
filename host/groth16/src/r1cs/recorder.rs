//! Records a constraint system as a guest reports it, and makes it canonical.

use super::{MAX_LOG2_DOMAIN, MAX_VARIABLES, Matrix, MatrixId, R1cs};
use crate::scalar::{Limbs, Scalar, first_unreduced, from_canonical, to_canonical};
use ff::Field;
use std::collections::HashMap;

/// Marks a column as a public input in what a guest records.
const PUBLIC_BIT: u32 = 1 << 31;

/// What a constraint system may grow to while it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeLimits {
    /// Public inputs, the constant one excluded.
    pub publics: u64,
    /// Private variables.
    pub aux: u64,
    /// Constraints.
    pub constraints: u64,
    /// Terms of all rows of the three matrices together.
    pub terms: u64,
    /// Entries of the dictionary.
    pub coefficients: u64,
    /// Bytes of all row names together, with [`NAME_OVERHEAD_BYTES`] for each.
    pub name_bytes: u64,
}

impl ShapeLimits {
    /// No limits, for a system that comes from no stranger.
    pub const NONE: ShapeLimits = ShapeLimits {
        publics: u64::MAX,
        aux: u64::MAX,
        constraints: u64::MAX,
        terms: u64::MAX,
        coefficients: u64::MAX,
        name_bytes: u64::MAX,
    };
}

/// The dimensions a guest reports at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Public inputs, the constant one excluded.
    pub publics: u64,
    /// Private variables.
    pub aux: u64,
    /// Constraints.
    pub constraints: u64,
}

/// What is wrong with a recording: the fault of who recorded it, except that memory may run out below the limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A list of coefficients that does not divide into elements.
    #[error("a list of coefficients has {limbs} limbs, which is no multiple of four")]
    OddCoefficient {
        /// Its length.
        limbs: usize,
    },
    /// A coefficient that is not reduced.
    #[error("coefficient {index} is not below the modulus r")]
    Unreduced {
        /// Its index in the dictionary.
        index: usize,
    },
    /// Lists of one call that do not belong together.
    #[error(
        "rows of matrix {matrix:?} from row {row} on: the row lengths sum to {lengths}, but {columns} columns and \
         {coefficients} coefficients came with them"
    )]
    Lengths {
        /// Which matrix.
        matrix: MatrixId,
        /// The first row of the call.
        row: usize,
        /// Sum of the row lengths.
        lengths: u64,
        /// Columns given.
        columns: usize,
        /// Coefficients given.
        coefficients: usize,
    },
    /// A coefficient that the dictionary does not have.
    #[error("matrix {matrix:?}, row {row}: coefficient {index} is not in the dictionary, which has {entries} entries")]
    NoCoefficient {
        /// Which matrix.
        matrix: MatrixId,
        /// Which row.
        row: usize,
        /// The index asked for.
        index: u32,
        /// What the dictionary has.
        entries: usize,
    },
    /// A column that the counts do not cover.
    #[error("matrix {matrix:?}, row {row}{}: {kind} {index} is used, but the circuit counts {count}", path(name))]
    NoColumn {
        /// Which matrix.
        matrix: MatrixId,
        /// Which row.
        row: usize,
        /// The row's path, if it was named.
        name: Option<String>,
        /// `public input` or `aux variable`.
        kind: &'static str,
        /// The index used.
        index: u32,
        /// How many there are.
        count: u64,
    },
    /// The matrices do not have the number of rows that was reported.
    #[error("matrix {matrix:?} has {rows} rows, but the circuit counts {constraints} constraints")]
    Rows {
        /// Which matrix.
        matrix: MatrixId,
        /// Its rows.
        rows: usize,
        /// The reported constraints.
        constraints: u64,
    },
    /// Names where none were asked for.
    #[error("rows were named, but no names were asked for")]
    NamesNotAsked,
    /// Another number of names than of rows.
    #[error("{names} rows were named, but the circuit counts {constraints} constraints")]
    NameCount {
        /// Names given.
        names: usize,
        /// The reported constraints.
        constraints: u64,
    },
    /// A limit is exceeded.
    #[error("the circuit has {what} beyond its limit of {limit}")]
    Limit {
        /// What grew.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The host has no memory left for a system that is within its limits.
    #[error(
        "there is no memory for the circuit's {what}; lower the circuit's limits, or use a machine with more memory"
    )]
    Memory {
        /// What grew.
        what: &'static str,
    },
}

fn path(name: &Option<String>) -> String {
    name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default()
}

fn within(what: &'static str, count: u64, limit: u64) -> Result<(), ShapeError> {
    if count > limit { Err(ShapeError::Limit { what, limit }) } else { Ok(()) }
}

/// Make room, without aborting the process if there is none.
fn reserve<T>(what: &'static str, list: &mut Vec<T>, additional: usize) -> Result<(), ShapeError> {
    list.try_reserve(additional).map_err(|_| ShapeError::Memory { what })
}

/// What a row name costs beside its text: the string's header, and the allocator's own.
pub const NAME_OVERHEAD_BYTES: u64 = 40;

/// Records a constraint system, row by row in each matrix.
///
/// Columns are as in the contract: with bit 31 set a public input, 0 of them the constant one, otherwise an aux variable.
pub struct ShapeRecorder {
    limits: ShapeLimits,
    /// As recorded: columns still carry the mark, rows may repeat columns and hold zeros.
    raw: [Matrix; 3],
    dictionary: Vec<Limbs>,
    names: Option<Vec<String>>,
    name_bytes: u64,
}

impl ShapeRecorder {
    /// Start an empty system. With `names`, every row must be named.
    pub fn new(limits: ShapeLimits, names: bool) -> Self {
        Self { limits, raw: Default::default(), dictionary: vec![], names: names.then(Vec::new), name_bytes: 0 }
    }

    /// Append coefficients to the dictionary: canonical, four limbs each. Returns the index of the first one appended.
    pub fn add_coefficients(&mut self, limbs: &[u64]) -> Result<u32, ShapeError> {
        let (elements, rest) = limbs.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(ShapeError::OddCoefficient { limbs: limbs.len() });
        }
        let first = self.dictionary.len();
        within("coefficients", (first + elements.len()) as u64, self.limits.coefficients.min(u32::MAX.into()))?;
        if let Some(index) = first_unreduced(elements) {
            return Err(ShapeError::Unreduced { index: first + index });
        }
        reserve("coefficients", &mut self.dictionary, elements.len())?;
        self.dictionary.extend_from_slice(elements);
        Ok(first as u32)
    }

    /// Append rows to one matrix: the number of terms of each, and the terms of all of them.
    pub fn add_rows(
        &mut self,
        matrix: MatrixId,
        row_lengths: &[u32],
        columns: &[u32],
        coefficients: &[u32],
    ) -> Result<(), ShapeError> {
        let terms: u64 = self.raw.iter().map(|m| m.terms() as u64).sum();
        let entries = self.dictionary.len();
        let raw = &mut self.raw[matrix as usize];
        let first_row = raw.rows();
        let lengths = row_lengths.iter().map(|&length| u64::from(length)).sum();
        if lengths != columns.len() as u64 || columns.len() != coefficients.len() {
            let (columns, coefficients) = (columns.len(), coefficients.len());
            return Err(ShapeError::Lengths { matrix, row: first_row, lengths, columns, coefficients });
        }
        within("constraints", (first_row + row_lengths.len()) as u64, self.limits.constraints)?;
        within("terms", terms + lengths, self.limits.terms)?;

        if let Some(at) = coefficients.iter().position(|&index| index as usize >= entries) {
            let mut end = 0;
            let offset = row_lengths.iter().take_while(|&&length| {
                end += length as usize;
                end <= at
            });
            let row = first_row + offset.count();
            return Err(ShapeError::NoCoefficient { matrix, row, index: coefficients[at], entries });
        }
        reserve("constraints", &mut raw.row_ends, row_lengths.len())?;
        reserve("terms", &mut raw.columns, columns.len())?;
        reserve("terms", &mut raw.coefficients, coefficients.len())?;
        let mut end = raw.terms() as u64;
        raw.row_ends.extend(row_lengths.iter().map(|&length| {
            end += u64::from(length);
            end
        }));
        raw.columns.extend_from_slice(columns);
        raw.coefficients.extend_from_slice(coefficients);
        Ok(())
    }

    /// Append the paths of the next rows, one a line.
    pub fn name_rows(&mut self, paths: &str) -> Result<(), ShapeError> {
        let names = self.names.as_mut().ok_or(ShapeError::NamesNotAsked)?;
        let added = paths.split_terminator('\n').count();
        within("row names", (names.len() + added) as u64, self.limits.constraints)?;
        self.name_bytes += paths.len() as u64 + added as u64 * NAME_OVERHEAD_BYTES;
        within("bytes of row names", self.name_bytes, self.limits.name_bytes)?;
        reserve("row names", names, added)?;
        names.extend(paths.split_terminator('\n').map(String::from));
        Ok(())
    }

    /// The canonical system: repeated columns merged, zeros dropped, columns ascending, the dictionary sorted and no
    /// larger than needed.
    pub fn finish(self, counts: Counts) -> Result<R1cs, ShapeError> {
        self.check_counts(counts)?;
        let Self { limits, mut raw, dictionary, names, .. } = self;
        let names = names.unwrap_or_default();
        let mut dictionary = Dictionary::new(dictionary, limits.coefficients)?;
        for (matrix, id) in raw.iter_mut().zip(MatrixId::ALL) {
            make_canonical(matrix, id, counts, &names, &mut dictionary)?;
        }
        let (dictionary, matrices) = dictionary.sorted(raw);
        let (public_count, aux_count) = (counts.publics as u32, counts.aux as u32);
        Ok(R1cs { public_count, aux_count, dictionary, matrices, names })
    }

    fn check_counts(&self, counts: Counts) -> Result<(), ShapeError> {
        let constraints = counts.constraints;
        within("public inputs", counts.publics, self.limits.publics.min(MAX_VARIABLES - 1))?;
        within("aux variables", counts.aux, self.limits.aux.min(MAX_VARIABLES - 1))?;
        within("constraints", constraints, self.limits.constraints)?;
        for (raw, matrix) in self.raw.iter().zip(MatrixId::ALL) {
            if raw.rows() as u64 != constraints {
                return Err(ShapeError::Rows { matrix, rows: raw.rows(), constraints });
            }
        }
        within("constraints and public inputs", constraints + counts.publics + 1, 1 << MAX_LOG2_DOMAIN)?;
        match &self.names {
            Some(names) if names.len() as u64 != constraints => {
                Err(ShapeError::NameCount { names: names.len(), constraints })
            }
            _ => Ok(()),
        }
    }
}

/// The coefficients in use, each once.
struct Dictionary {
    /// The entry of each recorded index; none for zero.
    recorded: Vec<Option<u32>>,
    values: Vec<Scalar>,
    index: HashMap<Limbs, u32>,
    /// Entries at most.
    limit: u64,
}

impl Dictionary {
    fn new(recorded: Vec<Limbs>, limit: u64) -> Result<Self, ShapeError> {
        let mut dictionary = Self { recorded: vec![], values: vec![], index: HashMap::new(), limit };
        reserve("coefficients", &mut dictionary.recorded, recorded.len())?;
        for limbs in &recorded {
            let entry = dictionary.entry(from_canonical(limbs).expect("checked when it was recorded"))?;
            dictionary.recorded.push(entry);
        }
        Ok(dictionary)
    }

    /// The entry of a value; none for zero. Sums of a row's terms make entries that nobody recorded: they count too.
    fn entry(&mut self, value: Scalar) -> Result<Option<u32>, ShapeError> {
        if value.is_zero_vartime() {
            return Ok(None);
        }
        let limbs = to_canonical(&value);
        if let Some(entry) = self.index.get(&limbs) {
            return Ok(Some(*entry));
        }
        within("coefficients", self.values.len() as u64 + 1, self.limit.min(u32::MAX.into()))?;
        reserve("coefficients", &mut self.values, 1)?;
        self.index.try_reserve(1).map_err(|_| ShapeError::Memory { what: "coefficients" })?;
        let entry = self.values.len() as u32;
        self.values.push(value);
        self.index.insert(limbs, entry);
        Ok(Some(entry))
    }

    /// The entries that the matrices use, ascending, and the matrices referring to them.
    fn sorted(self, mut matrices: [Matrix; 3]) -> (Vec<Limbs>, [Matrix; 3]) {
        let mut used = vec![false; self.values.len()];
        for matrix in &matrices {
            matrix.coefficients.iter().for_each(|&entry| used[entry as usize] = true);
        }
        let mut order: Vec<(Limbs, u32)> = self.index.into_iter().filter(|&(_, entry)| used[entry as usize]).collect();
        order.sort_unstable_by(|(a, _), (b, _)| a.iter().rev().cmp(b.iter().rev()));
        let mut renamed = vec![0; self.values.len()];
        for (new, &(_, old)) in order.iter().enumerate() {
            renamed[old as usize] = new as u32;
        }
        for matrix in &mut matrices {
            matrix.coefficients.iter_mut().for_each(|entry| *entry = renamed[*entry as usize]);
        }
        (order.into_iter().map(|(limbs, _)| limbs).collect(), matrices)
    }
}

/// Give a matrix columns of z, ascending and merged, without zeros. Rows only get shorter, so it is done in place.
fn make_canonical(
    matrix: &mut Matrix,
    id: MatrixId,
    counts: Counts,
    names: &[String],
    dictionary: &mut Dictionary,
) -> Result<(), ShapeError> {
    let mut terms: Vec<(u32, u32)> = vec![];
    let (mut start, mut kept) = (0, 0);
    for row in 0..matrix.rows() {
        let recorded = start..matrix.row_ends[row] as usize;
        start = recorded.end;
        terms.clear();
        reserve("terms", &mut terms, recorded.len())?;
        for i in recorded {
            let column = column_of_z(matrix.columns[i], counts).map_err(|(kind, index, count)| {
                let name = names.get(row).cloned();
                ShapeError::NoColumn { matrix: id, row, name, kind, index, count }
            })?;
            terms.extend(dictionary.recorded[matrix.coefficients[i] as usize].map(|entry| (column, entry)));
        }
        terms.sort_unstable();
        for same in terms.chunk_by(|(a, _), (b, _)| a == b) {
            let entry = match same {
                [(_, entry)] => Some(*entry),
                _ => dictionary.entry(same.iter().map(|&(_, entry)| dictionary.values[entry as usize]).sum())?,
            };
            if let Some(entry) = entry {
                (matrix.columns[kept], matrix.coefficients[kept]) = (same[0].0, entry);
                kept += 1;
            }
        }
        matrix.row_ends[row] = kept as u64;
    }
    matrix.columns.truncate(kept);
    matrix.coefficients.truncate(kept);
    // The system lives as long as its circuit; the room that growing left over need not.
    matrix.columns.shrink_to_fit();
    matrix.coefficients.shrink_to_fit();
    matrix.row_ends.shrink_to_fit();
    Ok(())
}

/// The index into z of a recorded column; otherwise the kind of variable, its index and how many there are.
fn column_of_z(column: u32, counts: Counts) -> Result<u32, (&'static str, u32, u64)> {
    let index = column & !PUBLIC_BIT;
    if column & PUBLIC_BIT != 0 {
        let in_range = u64::from(index) <= counts.publics;
        return if in_range { Ok(index) } else { Err(("public input", index, counts.publics)) };
    }
    if u64::from(index) >= counts.aux {
        return Err(("aux variable", index, counts.aux));
    }
    Ok((1 + counts.publics + u64::from(index)) as u32)
}
