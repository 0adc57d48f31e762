//! Matrices of a constraint system on the device, and their products with z.
//!
//! A term is its column and an index into a dictionary of coefficients, of one, two or four bytes: mostly five bytes in
//! all. See `kernels/r1cs.cu`.

use cudarc::driver::PushKernelArg;
use ff::Field;
use zkhost_groth16::{
    R1cs, Scalar,
    r1cs::{Matrix, MatrixId},
    scalar::{Limbs, to_montgomery},
};

use crate::{
    device::{Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Buffer, Plain, Slice},
};

/// Terms of a row that one thread adds up; longer rows are shared by a warp.
pub(crate) const SHORT_TERMS_MAX: u32 = 32;
/// Terms that one warp adds up.
pub(crate) const UNIT_TERMS_MAX: u32 = 1024;
const THREADS: u32 = 128;
const WARP: usize = 32;

/// Indices into the dictionary.
enum Coefficients {
    U8(Buffer<u8>),
    U16(Buffer<u16>),
    U32(Buffer<u32>),
}

/// One matrix, its long rows cut into units.
struct DeviceMatrix {
    rows: u32,
    // Whether the rows that bind the one and the publics follow.
    binds_publics: bool,
    row_ends: Buffer<u32>,
    columns: Buffer<u32>,
    coefficients: Coefficients,
    long_rows: Buffer<u32>,
    first_units: Buffer<u32>,
    unit_starts: Buffer<u32>,
    unit_ends: Buffer<u32>,
}

/// Some of the matrices of a constraint system.
pub struct DeviceCircuit {
    variables: usize,
    bound: u32,
    dictionary: Buffer<Limbs>,
    matrices: Vec<DeviceMatrix>,
}

impl DeviceCircuit {
    /// Copies A and B to the device, which is what proving takes.
    pub fn new(stream: &Stream, r1cs: &R1cs) -> Result<Self, CudaError> {
        Self::with_matrices(stream, r1cs, &[MatrixId::A, MatrixId::B])
    }

    /// Copies these matrices to the device.
    pub fn with_matrices(stream: &Stream, r1cs: &R1cs, ids: &[MatrixId]) -> Result<Self, CudaError> {
        let (order, dictionary) = dictionary(r1cs);
        let limbs: Vec<Limbs> = dictionary.iter().map(to_montgomery).collect();
        let matrix = |id| DeviceMatrix::new(stream, r1cs.matrix(id), &order, dictionary.len(), id == MatrixId::A);
        Ok(Self {
            variables: r1cs.variables(),
            bound: r1cs.public_count + 1,
            matrices: ids.iter().map(|&id| matrix(id)).collect::<Result<_, _>>()?,
            dictionary: upload(stream, &limbs)?,
        })
    }

    /// Scratch that [`Self::evaluate`] takes.
    pub fn scratch_bytes(&self) -> usize {
        self.matrices.iter().map(|m| Arena::bytes_for::<Limbs>(m.unit_starts.as_slice().len())).sum()
    }

    /// Each matrix times z, Montgomery, on `out`'s equal parts: each part is the rows of a domain, with A's rows
    /// "public * 0 = 0" after the constraints if there is room, padded with zeros. `z` is [1, publics, aux], Montgomery.
    pub fn evaluate(
        &self,
        stream: &Stream,
        arena: &mut Arena<'_>,
        z: Slice<'_, Limbs>,
        out: Slice<'_, Limbs>,
    ) -> Result<(), CudaError> {
        if z.len() != self.variables {
            return Err(CudaError::Unsupported(format!("{} values for {} variables", z.len(), self.variables)));
        }
        let domain = out.len() / self.matrices.len();
        let mut scratch = arena.rest();
        for (i, matrix) in self.matrices.iter().enumerate() {
            let partials = scratch.take::<Limbs>(matrix.unit_starts.as_slice().len())?;
            let bound = if matrix.binds_publics { self.bound } else { 0 };
            matrix.evaluate(stream, partials, self.dictionary.as_slice(), z, out.slice(i * domain, domain)?, bound)?;
        }
        Ok(())
    }
}

/// The dictionary with 1 and -1 in front, and where each entry of the circuit's went.
fn dictionary(r1cs: &R1cs) -> (Vec<u32>, Vec<Scalar>) {
    let mut dictionary = vec![Scalar::ONE, -Scalar::ONE];
    let order = r1cs
        .coefficients()
        .into_iter()
        .map(|coefficient| match dictionary[..2].iter().position(|special| *special == coefficient) {
            Some(index) => index as u32,
            None => {
                dictionary.push(coefficient);
                dictionary.len() as u32 - 1
            }
        })
        .collect();
    (order, dictionary)
}

fn upload<T: Plain>(stream: &Stream, values: &[T]) -> Result<Buffer<T>, CudaError> {
    let buffer = stream.device().allocate(values.len())?;
    stream.upload(buffer.as_slice(), values)?;
    Ok(buffer)
}

impl DeviceMatrix {
    fn new(
        stream: &Stream,
        matrix: &Matrix,
        order: &[u32],
        entries: usize,
        binds_publics: bool,
    ) -> Result<Self, CudaError> {
        if matrix.terms() > u32::MAX as usize {
            return Err(CudaError::Unsupported(format!(
                "a matrix of {} terms; the device takes up to {}: use --device cpu",
                matrix.terms(),
                u32::MAX
            )));
        }
        let row_ends: Vec<u32> = matrix.row_ends.iter().map(|&end| end as u32).collect();
        let (mut long_rows, mut first_units, mut starts, mut ends) = (vec![], vec![0], vec![], vec![]);
        for (row, &end) in row_ends.iter().enumerate() {
            let start = if row == 0 { 0 } else { row_ends[row - 1] };
            if end - start > SHORT_TERMS_MAX {
                long_rows.push(row as u32);
                for unit in (start..end).step_by(UNIT_TERMS_MAX as usize) {
                    starts.push(unit);
                    ends.push(end.min(unit.saturating_add(UNIT_TERMS_MAX)));
                }
                first_units.push(starts.len() as u32);
            }
        }
        let indices = matrix.coefficients.iter().map(|&index| order[index as usize]);
        let coefficients = if entries <= 1 << 8 {
            Coefficients::U8(upload(stream, &indices.map(|i| i as u8).collect::<Vec<_>>())?)
        } else if entries <= 1 << 16 {
            Coefficients::U16(upload(stream, &indices.map(|i| i as u16).collect::<Vec<_>>())?)
        } else {
            Coefficients::U32(upload(stream, &indices.collect::<Vec<_>>())?)
        };
        Ok(Self {
            rows: row_ends.len() as u32,
            binds_publics,
            row_ends: upload(stream, &row_ends)?,
            columns: upload(stream, &matrix.columns)?,
            coefficients,
            long_rows: upload(stream, &long_rows)?,
            first_units: upload(stream, &first_units)?,
            unit_starts: upload(stream, &starts)?,
            unit_ends: upload(stream, &ends)?,
        })
    }

    fn evaluate(
        &self,
        stream: &Stream,
        partials: Slice<'_, Limbs>,
        dictionary: Slice<'_, Limbs>,
        z: Slice<'_, Limbs>,
        out: Slice<'_, Limbs>,
        bound: u32,
    ) -> Result<(), CudaError> {
        let (names, coefficients) = match &self.coefficients {
            Coefficients::U8(buffer) => (("r1cs_rows_u8", "r1cs_unit_u8"), buffer.as_slice().address()),
            Coefficients::U16(buffer) => (("r1cs_rows_u16", "r1cs_unit_u16"), buffer.as_slice().address()),
            Coefficients::U32(buffer) => (("r1cs_rows_u32", "r1cs_unit_u32"), buffer.as_slice().address()),
        };
        let device = stream.device();
        let domain = out.len() as u32;
        let (row_ends, columns) = (self.row_ends.as_slice(), self.columns.as_slice());
        let kernel = device.kernel(names.0)?;
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&row_ends).arg(&columns).arg(&coefficients).arg(&dictionary).arg(&z).arg(&out);
        launch.arg(&self.rows).arg(&bound).arg(&domain).arg(&SHORT_TERMS_MAX);
        // SAFETY: a thread for each of `out`'s elements; rows, terms and columns are those of one R1CS, whose columns are
        // below its number of variables, which is z's length, and whose dictionary is this one.
        unsafe { launch.launch(grid(out.len().div_ceil(THREADS as usize), THREADS, 0)) }
            .doing("evaluating constraints")?;

        let (long_rows, first_units) = (self.long_rows.as_slice(), self.first_units.as_slice());
        if long_rows.is_empty() {
            return Ok(());
        }
        let (starts, ends) = (self.unit_starts.as_slice(), self.unit_ends.as_slice());
        let units = starts.len() as u32;
        let kernel = device.kernel(names.1)?;
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&columns).arg(&coefficients).arg(&dictionary).arg(&z);
        launch.arg(&starts).arg(&ends).arg(&units).arg(&partials);
        // SAFETY: a warp for each unit, whose terms are of one row of the same matrix; one partial sum for each.
        unsafe { launch.launch(grid((starts.len() * WARP).div_ceil(THREADS as usize), THREADS, 0)) }
            .doing("evaluating long constraints")?;
        let count = long_rows.len() as u32;
        let kernel = device.kernel("r1cs_join")?;
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&partials).arg(&long_rows).arg(&first_units).arg(&count).arg(&out);
        // SAFETY: a thread for each long row, whose units follow one another.
        unsafe { launch.launch(grid(long_rows.len().div_ceil(THREADS as usize), THREADS, 0)) }
            .doing("joining long constraints")?;
        Ok(())
    }
}
