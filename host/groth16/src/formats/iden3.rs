//! iden3's binary formats, as circom and snarkjs write them: `.r1cs` (constraint system) and `.wtns` (witness).
//!
//! Little-endian: a four-byte tag, u32 version, u32 count of sections, then sections in any order, each u32 id, u64 length
//! and its bytes. Values are canonical. Source: the specification in iden3's `r1csfile` and files written by circom 2.2.3.

use super::{DecodeError, Problem, Reader};
use crate::r1cs::{Counts, MAX_VARIABLES, MatrixId, R1cs, ShapeLimits, ShapeRecorder};
use crate::scalar::{Limbs, MODULUS, SecretScalars, from_canonical, limbs_from_le_bytes};
use ff::Field;

const R1CS: &str = "iden3 constraint system (.r1cs)";
const WTNS: &str = "iden3 witness (.wtns)";

const HEADER: u32 = 1;
/// Section 2: the constraints of a `.r1cs`, the values of a `.wtns`.
const BODY: u32 = 2;
/// Sections 4 and 5 of a `.r1cs` describe custom gates, which Groth16 does not have.
const CUSTOM_GATES: [u32; 2] = [4, 5];

/// A `.r1cs` file. Wire i is variable i of z: the one, public outputs, public inputs, then private ones.
pub struct R1csFile {
    /// The constraint system, its publics being the outputs and the public inputs.
    pub r1cs: R1cs,
    /// How many of the publics are outputs; they come first.
    pub public_outputs: u32,
}

/// Read a constraint system.
pub fn read_r1cs(bytes: &[u8]) -> Result<R1csFile, DecodeError> {
    let sections = Sections::read(R1CS, b"r1cs", 1, bytes)?;
    for id in CUSTOM_GATES {
        if let Some(section) = sections.find(id, "custom gates")? {
            // An empty list is a count of zero.
            section.expect("the use of custom gates", false, section.rest().iter().any(|&byte| byte != 0))?;
        }
    }
    let mut header = sections.require(HEADER, "header section")?;
    check_field(&mut header)?;
    let wires = u64::from(header.u32_le()?);
    let public_outputs = header.u32_le()?;
    let publics = u64::from(public_outputs) + u64::from(header.u32_le()?);
    let private_inputs = u64::from(header.u32_le()?);
    let _labels = header.u64_le()?;
    let constraints = u64::from(header.u32_le()?);
    header.end()?;
    if wires > MAX_VARIABLES || 1 + publics + private_inputs > wires {
        let expected = format!("{} to {MAX_VARIABLES}", 1 + publics + private_inputs);
        return Err(
            header.error(None, Problem::Unexpected { what: "the count of wires", expected, found: wires.to_string() })
        );
    }
    let counts = Counts { publics, aux: wires - 1 - publics, constraints };
    let body = sections.require(BODY, "constraints section")?;
    Ok(R1csFile { r1cs: read_constraints(body, counts)?, public_outputs })
}

fn read_constraints(mut body: Reader, counts: Counts) -> Result<R1cs, DecodeError> {
    // Each constraint takes three counts and each term a wire and a value, so the section bounds what is recorded.
    let terms = body.rest().len() as u64 / 36;
    let limits = ShapeLimits {
        publics: counts.publics,
        aux: counts.aux,
        constraints: counts.constraints,
        terms,
        coefficients: terms,
        name_bytes: 0,
    };
    let mut recorder = ShapeRecorder::new(limits, false);
    let (mut columns, mut values, mut indices) = (vec![], vec![], vec![]);
    for constraint in 0..counts.constraints {
        for matrix in MatrixId::ALL {
            let length = body.u32_le()?;
            columns.clear();
            values.clear();
            indices.clear();
            for _ in 0..length {
                columns.push(column(&mut body, constraint, counts)?);
                let limbs = limbs_from_le_bytes(&body.array()?);
                from_canonical(&limbs).ok_or_else(|| body.error(Some(constraint), Problem::Unreduced))?;
                values.extend_from_slice(&limbs);
            }
            let first = recorder.add_coefficients(&values).map_err(|e| body.error(Some(constraint), e))?;
            indices.extend(first..first + length);
            recorder.add_rows(matrix, &[length], &columns, &indices).map_err(|e| body.error(Some(constraint), e))?;
        }
    }
    body.end()?;
    recorder.finish(counts).map_err(|e| body.error(None, e))
}

/// The next wire, as a column of what is recorded.
fn column(body: &mut Reader, constraint: u64, counts: Counts) -> Result<u32, DecodeError> {
    const PUBLIC_BIT: u32 = 1 << 31;
    let wire = body.u32_le()?;
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
    let sections = Sections::read(WTNS, b"wtns", 2, bytes)?;
    let mut header = sections.require(HEADER, "header section")?;
    check_field(&mut header)?;
    let count = u64::from(header.u32_le()?);
    header.end()?;
    let mut body = sections.require(BODY, "values section")?;
    body.expect("the length in bytes", 32 * count, body.rest().len() as u64)?;
    let mut z = SecretScalars::zeros(count as usize);
    for (index, value) in (0..).zip(z.iter_mut()) {
        let limbs = limbs_from_le_bytes(&body.array()?);
        *value = from_canonical(&limbs).ok_or_else(|| body.error(Some(index), Problem::Unreduced))?;
    }
    if z.first() != Some(&crate::Scalar::ONE) {
        let (expected, found) = ("1".into(), "missing or another value".into());
        return Err(body.error(Some(0), Problem::Unexpected { what: "the constant one", expected, found }));
    }
    Ok(z)
}

/// The size and the modulus of the field, at the start of a header.
fn check_field(header: &mut Reader) -> Result<(), DecodeError> {
    let bytes = header.u32_le()?;
    if bytes != 32 {
        return Err(header.error(None, Problem::OtherField));
    }
    let prime: Limbs = limbs_from_le_bytes(&header.array()?);
    if prime != MODULUS { Err(header.error(None, Problem::OtherField)) } else { Ok(()) }
}

/// The sections of a file.
struct Sections<'a> {
    format: &'static str,
    sections: Vec<(u32, &'a [u8])>,
}

impl<'a> Sections<'a> {
    fn read(format: &'static str, tag: &[u8; 4], version: u32, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(format, "preamble", bytes);
        let found = reader.array::<4>()?.escape_ascii().to_string();
        reader.expect("the tag", tag.escape_ascii().to_string(), found)?;
        let found = reader.u32_le()?;
        reader.expect("the version", version, found)?;
        let count = reader.u32_le()?;
        reader.section = "table of sections";
        let mut sections = vec![];
        for _ in 0..count {
            let id = reader.u32_le()?;
            let length = reader.u64_le()?;
            sections.push((id, reader.take(length)?));
        }
        reader.end()?;
        Ok(Self { format, sections })
    }

    /// A section, if it is there; it may be there once.
    fn find(&self, id: u32, name: &'static str) -> Result<Option<Reader<'a>>, DecodeError> {
        let mut found = self.sections.iter().filter(|(section, _)| *section == id);
        let Some((_, bytes)) = found.next() else { return Ok(None) };
        let reader = Reader::new(self.format, name, bytes);
        reader.expect("the number of such sections", 1, 1 + found.count())?;
        Ok(Some(reader))
    }

    fn require(&self, id: u32, name: &'static str) -> Result<Reader<'a>, DecodeError> {
        self.find(id, name)?.ok_or_else(|| Reader::new(self.format, name, &[]).error(None, Problem::NoSection))
    }
}
