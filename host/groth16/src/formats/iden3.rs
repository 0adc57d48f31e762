//! iden3's binary formats, as circom and snarkjs write them: `.r1cs` (constraint system) and `.wtns` (witness).
//!
//! Sections (see [`super::sections`]) of little-endian words; values are canonical. Source: the specification in iden3's
//! `r1csfile` and files written by circom 2.2.3.

use super::sections::{Format, Sections, check_field, field_bytes, write_sections};
use super::{DecodeError, Problem, Reader};
use crate::r1cs::{Counts, MAX_VARIABLES, MatrixId, R1cs, ShapeError, ShapeLimits, ShapeRecorder};
use crate::scalar::{
    Limbs, Scalar, SecretScalars, from_canonical, is_reduced, limbs_from_le_bytes, limbs_to_le_bytes, to_canonical,
};
use ff::Field;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use zeroize::Zeroizing;

const R1CS: Format = Format {
    name: "iden3 constraint system (.r1cs)",
    tag: b"r1cs",
    version: 1,
    sections: &[
        (1, "header section"),
        (2, "constraints section"),
        (3, "labels section"),
        (4, "list of custom gates"),
        (5, "uses of custom gates"),
    ],
};
const WTNS: Format = Format {
    name: "iden3 witness (.wtns)",
    tag: b"wtns",
    version: 2,
    sections: &[(1, "header section"), (2, "values section")],
};

const HEADER: u32 = 1;
/// Section 3 of a `.r1cs`: the label of each wire, by which `.sym` names it.
const LABELS: u32 = 3;
/// Section 2: the constraints of a `.r1cs`, the values of a `.wtns`.
const BODY: u32 = 2;
/// Sections 4 and 5 of a `.r1cs` describe custom gates, which Groth16 does not have.
const CUSTOM_GATES: [u32; 2] = [4, 5];

/// Bytes of a term of a constraint: its wire and its value.
const TERM_BYTES: u64 = 36;
/// Constraints recorded together.
const ROWS_PER_CALL: u64 = 1024;
/// Terms of a matrix that are kept before they are recorded, those of one constraint beyond it.
const TERMS_PER_CALL: usize = 1 << 16;
/// Coefficients that are found without hashing.
const NEAR_ENTRIES: usize = 1024;

/// A `.r1cs` file. Wire i is variable i of z: the one, public outputs, public inputs, then private ones.
pub struct R1csFile {
    /// The constraint system, its publics being the outputs and the public inputs.
    pub r1cs: R1cs,
    /// How many of the publics are outputs; they come first.
    pub public_outputs: u32,
    /// How many private variables are inputs; they come first of them.
    pub private_inputs: u32,
}

impl R1csFile {
    /// The wires of the input signals: public ones, then private ones.
    pub fn input_wires(&self) -> Range<u32> {
        1 + self.public_outputs..1 + self.r1cs.public_count + self.private_inputs
    }
}

/// Read a constraint system.
pub fn read_r1cs(bytes: &[u8]) -> Result<R1csFile, DecodeError> {
    let sections = Sections::read(&R1CS, bytes)?;
    for id in CUSTOM_GATES {
        if let Some(section) = sections.find(id)? {
            // An empty list is a count of zero.
            section.expect("the use of custom gates", false, section.rest().iter().any(|&byte| byte != 0))?;
        }
    }
    let mut header = sections.require(HEADER)?;
    check_field(&mut header)?;
    let wires = u64::from(header.u32_le()?);
    let public_outputs = header.u32_le()?;
    let publics = u64::from(public_outputs) + u64::from(header.u32_le()?);
    let private_inputs = header.u32_le()?;
    let _labels = header.u64_le()?;
    let constraints = u64::from(header.u32_le()?);
    header.end()?;
    if wires > MAX_VARIABLES || 1 + publics + u64::from(private_inputs) > wires {
        let expected = format!("{} to {MAX_VARIABLES}", 1 + publics + u64::from(private_inputs));
        return Err(
            header.error(None, Problem::Unexpected { what: "the count of wires", expected, found: wires.to_string() })
        );
    }
    let counts = Counts { publics, aux: wires - 1 - publics, constraints };
    let body = sections.require(BODY)?;
    Ok(R1csFile { r1cs: read_constraints(body, counts)?, public_outputs, private_inputs })
}

fn read_constraints(mut body: Reader, counts: Counts) -> Result<R1cs, DecodeError> {
    // Each constraint takes three counts and each term a wire and a value, so the section bounds what is recorded.
    let terms = body.rest().len() as u64 / TERM_BYTES;
    let limits = ShapeLimits {
        publics: counts.publics,
        aux: counts.aux,
        constraints: counts.constraints,
        terms,
        coefficients: terms,
        name_bytes: 0,
    };
    let mut recorder = ShapeRecorder::new(limits, false);
    let mut dictionary = Dictionary::new();
    let mut pending: [Rows; 3] = Default::default();
    for constraint in 0..counts.constraints {
        for rows in &mut pending {
            let length = body.u32_le()?;
            rows.lengths.push(length);
            let (terms, _) = body.take(TERM_BYTES * u64::from(length))?.as_chunks::<{ TERM_BYTES as usize }>();
            for term in terms {
                let (wire, value) = term.split_first_chunk::<4>().expect("a term is longer");
                rows.columns.push(column(&body, u32::from_le_bytes(*wire), constraint, counts)?);
                let value = limbs_from_le_bytes(value.try_into().expect("a term ends with a value"));
                let index = dictionary.index(&value, &mut recorder).map_err(|e| body.error(Some(constraint), e))?;
                rows.coefficients.push(index);
            }
        }
        let last = constraint + 1 == counts.constraints;
        let many = pending.iter().any(|rows| rows.columns.len() >= TERMS_PER_CALL);
        if last || many || (constraint + 1) % ROWS_PER_CALL == 0 {
            for (id, rows) in MatrixId::ALL.into_iter().zip(&mut pending) {
                let added = recorder.add_rows(id, &rows.lengths, &rows.columns, &rows.coefficients);
                // What is wrong with a row was found when it was read; here it is the whole that fails.
                added.map_err(|e| body.error(None, e))?;
                rows.clear();
            }
        }
    }
    body.end()?;
    recorder.finish(counts).map_err(|e| body.error(None, e))
}

/// Rows of one matrix that have been read and not yet recorded.
#[derive(Default)]
struct Rows {
    lengths: Vec<u32>,
    columns: Vec<u32>,
    coefficients: Vec<u32>,
}

impl Rows {
    fn clear(&mut self) {
        self.lengths.clear();
        self.columns.clear();
        self.coefficients.clear();
    }
}

/// What has been recorded of coefficients: a circuit of a million terms has tens of different ones.
struct Dictionary {
    indices: HashMap<Limbs, u32>,
    /// Some of them, each where its limbs say, for who would not wait for the map's hash, which no file can make collide.
    near: Box<[Option<(Limbs, u32)>; NEAR_ENTRIES]>,
}

impl Dictionary {
    fn new() -> Self {
        Self { indices: HashMap::new(), near: Box::new([None; NEAR_ENTRIES]) }
    }

    /// The index of a value, which is recorded the first time it is asked for.
    #[inline]
    fn index(&mut self, value: &Limbs, recorder: &mut ShapeRecorder) -> Result<u32, Problem> {
        // Powers of two and their opposites fall into places of their own.
        let mixed = value.iter().fold(0u64, |mixed, limb| (mixed ^ limb).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let near = &mut self.near[(mixed >> 32) as usize % NEAR_ENTRIES];
        if let Some((known, index)) = near
            && known == value
        {
            return Ok(*index);
        }
        let index = match self.indices.get(value) {
            Some(index) => *index,
            None if !is_reduced(value) => return Err(Problem::Unreduced),
            None => {
                self.indices.try_reserve(1).map_err(|_| ShapeError::Memory { what: "coefficients" })?;
                let index = recorder.add_coefficients(value)?;
                self.indices.insert(*value, index);
                index
            }
        };
        *near = Some((*value, index));
        Ok(index)
    }
}

/// A wire as a column of what is recorded.
#[inline]
fn column(body: &Reader, wire: u32, constraint: u64, counts: Counts) -> Result<u32, DecodeError> {
    const PUBLIC_BIT: u32 = 1 << 31;
    let variables = 1 + counts.publics + counts.aux;
    match u64::from(wire) {
        index if index <= counts.publics => Ok(wire | PUBLIC_BIT),
        index if index < variables => Ok((index - 1 - counts.publics) as u32),
        index => {
            let (expected, found) = (format!("below {variables}"), index.to_string());
            Err(body.error(Some(constraint), Problem::Unexpected { what: "a wire", expected, found }))
        }
    }
}

/// Read a witness: z = [1, publics, aux] in the order of the circuit's wires.
pub fn read_wtns(bytes: &[u8]) -> Result<SecretScalars, DecodeError> {
    let sections = Sections::read(&WTNS, bytes)?;
    let mut header = sections.require(HEADER)?;
    check_field(&mut header)?;
    let count = u64::from(header.u32_le()?);
    header.end()?;
    let mut body = sections.require(BODY)?;
    body.expect("the length in bytes", 32 * count, body.rest().len() as u64)?;
    let mut z = SecretScalars::zeros(count as usize);
    for (index, value) in (0..).zip(z.iter_mut()) {
        let limbs = limbs_from_le_bytes(&body.array()?);
        *value = from_canonical(&limbs).ok_or_else(|| body.error(Some(index), Problem::Unreduced))?;
    }
    if z.first() != Some(&Scalar::ONE) {
        let (expected, found) = ("1".into(), "missing or another value".into());
        return Err(body.error(Some(0), Problem::Unexpected { what: "the constant one", expected, found }));
    }
    Ok(z)
}

/// Write a constraint system, with each wire as its own label.
pub fn write_r1cs(file: &R1csFile, out: impl Write) -> io::Result<()> {
    let R1csFile { r1cs, public_outputs, private_inputs } = file;
    let wires = r1cs.variables() as u32;
    let mut header = field_bytes().to_vec();
    for word in [wires, *public_outputs, r1cs.public_count - public_outputs, *private_inputs] {
        header.extend(word.to_le_bytes());
    }
    header.extend(u64::from(wires).to_le_bytes());
    header.extend((r1cs.constraints() as u32).to_le_bytes());
    let mut body = vec![];
    for constraint in 0..r1cs.constraints() {
        for matrix in MatrixId::ALL {
            let matrix = r1cs.matrix(matrix);
            body.extend((matrix.row_range(constraint).len() as u32).to_le_bytes());
            for (wire, coefficient) in matrix.row(constraint) {
                body.extend(wire.to_le_bytes());
                body.extend(limbs_to_le_bytes(&r1cs.dictionary[coefficient as usize]));
            }
        }
    }
    let labels: Vec<u8> = (0..u64::from(wires)).flat_map(u64::to_le_bytes).collect();
    write_sections(&R1CS, &[(HEADER, &header), (BODY, &body), (LABELS, &labels)], out)
}

/// Write a witness z = [1, publics, aux]. The file is as secret as the witness.
pub fn write_wtns(z: &[Scalar], out: impl Write) -> io::Result<()> {
    let header = [&field_bytes()[..], &(z.len() as u32).to_le_bytes()].concat();
    let mut body = Zeroizing::new(vec![0; 32 * z.len()]);
    for (bytes, value) in body.chunks_exact_mut(32).zip(z) {
        bytes.copy_from_slice(&limbs_to_le_bytes(&to_canonical(value)));
    }
    write_sections(&WTNS, &[(HEADER, &header), (BODY, &body)], out)
}
