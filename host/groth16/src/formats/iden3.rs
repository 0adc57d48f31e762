//! iden3's binary formats, as circom and snarkjs write them: `.r1cs` (constraint system) and `.wtns` (witness).
//!
//! Sections (see [`super::sections`]) of little-endian words; values are canonical. Source: the specification in iden3's
//! `r1csfile` and files written by circom 2.2.3.

use super::sections::{Format, Sections, check_field};
use super::{DecodeError, Problem, Reader};
use crate::r1cs::{Counts, MAX_VARIABLES, MatrixId, R1cs, ShapeLimits, ShapeRecorder};
use crate::scalar::{SecretScalars, from_canonical, limbs_from_le_bytes};
use ff::Field;

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
    /// How many private variables are inputs; they come first of them.
    pub private_inputs: u32,
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
    if z.first() != Some(&crate::Scalar::ONE) {
        let (expected, found) = ("1".into(), "missing or another value".into());
        return Err(body.error(Some(0), Problem::Unexpected { what: "the constant one", expected, found }));
    }
    Ok(z)
}
