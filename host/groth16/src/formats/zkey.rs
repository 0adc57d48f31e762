//! snarkjs's proving keys (`.zkey`) for BLS12-381.
//!
//! Sections (see [`super::sections`]) of little-endian words. Points are affine with Montgomery coordinates, in the layout of
//! [`crate::points`], infinity all zero; queries are dense, one point for every variable. A coefficient v is stored as v R^2
//! mod r, R = 2^256, so that the product of it and a canonical value, in Montgomery's manner, is a Montgomery value. The root
//! of unity is a power of 5, the H query that of [`HBasis::OddCoset`]. Source: files written by snarkjs 0.7.6.

use super::points::{Progress, checked_points};
use super::sections::{Format, Sections, check_field, field_bytes, write_sections};
use super::{DecodeError, Problem, Reader, Subgroup};
use crate::key::{HBasis, KeyError, ProvingKey, VerifyingKey};
use crate::points::{FP_MODULUS, FpLimbs, G1Point, G2Point, Point, PointError};
use crate::r1cs::{MAX_VARIABLES, MatrixId, R1cs};
use crate::scalar::{Scalar, from_montgomery, limbs_from_le_bytes, limbs_to_le_bytes, to_montgomery};
use crate::subgroup::Cofactored;
use blstrs::G1Affine;
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, SeedableRng};
use rayon::prelude::*;
use std::io::{self, Write};

const ZKEY: Format = Format {
    name: "snarkjs proving key (.zkey)",
    tag: b"zkey",
    version: 1,
    sections: &[
        (PROTOCOL, "protocol section"),
        (HEADER, "header section"),
        (IC, "IC section"),
        (COEFFICIENTS, "coefficients section"),
        (A, "A query"),
        (B_G1, "B query in G1"),
        (B_G2, "B query in G2"),
        (L, "C query"),
        (H, "H query"),
        (CONTRIBUTIONS, "contributions section"),
    ],
};
const PROTOCOL: u32 = 1;
const HEADER: u32 = 2;
const IC: u32 = 3;
const COEFFICIENTS: u32 = 4;
const A: u32 = 5;
const B_G1: u32 = 6;
const B_G2: u32 = 7;
/// L in Groth16's paper; snarkjs calls it C.
const L: u32 = 8;
const H: u32 = 9;
const CONTRIBUTIONS: u32 = 10;

const GROTH16: u32 = 1;
/// Bytes of a coefficient: u32 matrix, u32 row, u32 variable, value.
const TERM_BYTES: usize = 44;
/// Bytes of the hash of the circuit, with which the contributions start.
const CIRCUIT_HASH_BYTES: u64 = 64;

/// A `.zkey` file in memory.
pub struct ZkeyFile {
    /// The verifying key.
    pub vk: VerifyingKey,
    /// log2 of the domain size n.
    pub log2_domain: u32,
    /// Variables, the one included.
    pub variables: u32,
    /// The matrices A and B, rows that bind the publics included, in the order of the file.
    pub terms: Vec<ZkeyTerm>,
    /// A query, one point per variable.
    pub a: Vec<G1Point>,
    /// B query in G1, one point per variable.
    pub b_g1: Vec<G1Point>,
    /// B query in G2, one point per variable.
    pub b_g2: Vec<G2Point>,
    /// L query, one point per private variable.
    pub l: Vec<G1Point>,
    /// H query in the basis of [`HBasis::OddCoset`], n points.
    pub h: Vec<G1Point>,
}

/// A coefficient of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZkeyTerm {
    /// A or B.
    pub matrix: MatrixId,
    /// The row, constraints first, then one for the one and for each public input.
    pub row: u32,
    /// Index into z.
    pub variable: u32,
    /// The value.
    pub coefficient: Scalar,
}

/// Read a proving key. All its points are checked.
pub fn read_zkey(bytes: &[u8]) -> Result<ZkeyFile, DecodeError> {
    read_zkey_watched(bytes, &|_| ())
}

/// As [`read_zkey`], telling how far it is: by the bytes of the sections of points.
pub fn read_zkey_watched(bytes: &[u8], progress: Progress) -> Result<ZkeyFile, DecodeError> {
    let sections = Sections::read(&ZKEY, bytes)?;
    let mut protocol = sections.require(PROTOCOL)?;
    let found = protocol.u32_le()?;
    protocol.expect("the protocol (1 is Groth16)", GROTH16, found)?;
    protocol.end()?;
    let header = Header::read(sections.require(HEADER)?)?;
    let variables = header.variables;
    let publics = header.public_count + 1;
    let domain = 1 << header.log2_domain;
    // Not used, but a file without it lost its end.
    sections.require(CONTRIBUTIONS)?.take(CIRCUIT_HASH_BYTES + 4)?;
    let terms = read_terms(sections.require(COEFFICIENTS)?, &header)?;
    let ic: Vec<G1Point> = read_finite_points(&sections.require(IC)?, publics, "the public inputs", progress)?;
    Ok(ZkeyFile {
        vk: VerifyingKey { ic: ic.into_iter().map(G1Affine::from).collect(), ..header.vk },
        log2_domain: header.log2_domain,
        variables,
        terms,
        a: read_points(&sections.require(A)?, variables, VARIABLES, progress)?,
        b_g1: read_points(&sections.require(B_G1)?, variables, VARIABLES, progress)?,
        b_g2: read_points(&sections.require(B_G2)?, variables, VARIABLES, progress)?,
        l: read_points(&sections.require(L)?, variables - publics, VARIABLES, progress)?,
        h: read_finite_points(&sections.require(H)?, domain, "the domain", progress)?,
    })
}

const VARIABLES: &str = "the header's count of variables";

struct Header {
    /// Without IC.
    vk: VerifyingKey,
    variables: u32,
    public_count: u32,
    log2_domain: u32,
}

impl Header {
    fn read(mut reader: Reader) -> Result<Self, DecodeError> {
        let found = reader.u32_le()?;
        if found as usize != size_of::<FpLimbs>() || reader.take(found.into())? != fp_modulus_bytes() {
            return Err(reader.error(None, Problem::OtherCurve));
        }
        check_field(&mut reader)?;
        let (variables, public_count, domain) = (reader.u32_le()?, reader.u32_le()?, reader.u32_le()?);
        let unexpected = |what, expected: String, found: u32| {
            Err(reader.error(None, Problem::Unexpected { what, expected, found: found.to_string() }))
        };
        if u64::from(variables) > MAX_VARIABLES || variables == 0 {
            return unexpected("the count of variables", format!("1 to {MAX_VARIABLES}"), variables);
        }
        if public_count >= variables {
            return unexpected("the count of public inputs", format!("below {variables}"), public_count);
        }
        if !domain.is_power_of_two() {
            return unexpected("the domain's size", "a power of two".into(), domain);
        }
        let vk = VerifyingKey {
            alpha_g1: read_point::<G1Point>(&mut reader)?.into(),
            beta_g1: read_point::<G1Point>(&mut reader)?.into(),
            beta_g2: read_point::<G2Point>(&mut reader)?.into(),
            gamma_g2: read_point::<G2Point>(&mut reader)?.into(),
            delta_g1: read_point::<G1Point>(&mut reader)?.into(),
            delta_g2: read_point::<G2Point>(&mut reader)?.into(),
            ic: vec![],
        };
        reader.end()?;
        Ok(Self { vk, variables, public_count, log2_domain: domain.trailing_zeros() })
    }
}

fn fp_modulus_bytes() -> [u8; size_of::<FpLimbs>()] {
    bytemuck::cast(FP_MODULUS)
}

/// A point of the header, checked in full; the identity has no place there.
fn read_point<P: Point>(reader: &mut Reader) -> Result<P, DecodeError> {
    let bytes = reader.take(size_of::<P>() as u64)?;
    reader.checked(None, P::from_montgomery_bytes(bytes))
}

/// A section of this many points.
fn read_points<P: Cofactored>(
    section: &Reader,
    count: u32,
    from: &'static str,
    progress: Progress,
) -> Result<Vec<P>, DecodeError> {
    let bytes = section.rest();
    let (expected, found) = (u64::from(count) * size_of::<P>() as u64, bytes.len() as u64);
    if expected != found {
        return Err(section.error(None, Problem::Disagrees { what: "its length in bytes", expected, found, from }));
    }
    checked_points(section, (bytes, size_of::<P>()), P::from_montgomery_bytes, Subgroup::Check, progress)
}

fn read_finite_points<P: Cofactored>(
    section: &Reader,
    count: u32,
    from: &'static str,
    progress: Progress,
) -> Result<Vec<P>, DecodeError> {
    let points: Vec<P> = read_points(section, count, from, progress)?;
    match points.iter().position(P::is_infinity) {
        Some(index) => Err(section.error(Some(index as u64), PointError::Infinity)),
        None => Ok(points),
    }
}

/// The matrices A and B.
fn read_terms(mut section: Reader, header: &Header) -> Result<Vec<ZkeyTerm>, DecodeError> {
    let count = section.u32_le()?;
    let (expected, found) = (u64::from(count) * TERM_BYTES as u64, section.rest().len() as u64);
    if expected != found {
        let what = "the length in bytes of its entries";
        return Err(section.error(None, Problem::Disagrees { what, expected, found, from: "their count" }));
    }
    let r_inverse = montgomery_r().invert().expect("a power of two is not zero");
    let decode = |(index, bytes): (usize, &[u8])| -> Result<ZkeyTerm, DecodeError> {
        let located = |problem| section.error(Some(index as u64), problem);
        let unexpected = |what, expected: String, found: u32| {
            Err(located(Problem::Unexpected { what, expected, found: found.to_string() }))
        };
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let matrix = match word(0) {
            0 => MatrixId::A,
            1 => MatrixId::B,
            other => return unexpected("the matrix", "0 (A) or 1 (B)".into(), other),
        };
        let (row, variable) = (word(4), word(8));
        if row >> header.log2_domain != 0 {
            return unexpected("the row", format!("below the domain's size, 2^{}", header.log2_domain), row);
        }
        if variable >= header.variables {
            return unexpected("the variable", format!("below {}", header.variables), variable);
        }
        let limbs = limbs_from_le_bytes(bytes[12..].try_into().expect("32 bytes"));
        let coefficient = from_montgomery(&limbs).ok_or_else(|| located(Problem::Unreduced))? * r_inverse;
        Ok(ZkeyTerm { matrix, row, variable, coefficient })
    };
    section.rest().par_chunks_exact(TERM_BYTES).enumerate().map(decode).collect()
}

/// R = 2^256.
fn montgomery_r() -> Scalar {
    Scalar::from(2).pow_vartime([256])
}

impl ZkeyFile {
    /// Public inputs, the one excluded.
    pub fn public_count(&self) -> u32 {
        self.vk.public_count() as u32
    }

    /// Whether its matrices are a circuit's, by their products with a random vector: a difference is missed with probability
    /// below 2^-220. The matrix C is not in the file.
    pub(crate) fn check_matrices(&self, r1cs: &R1cs) -> Result<(), KeyError> {
        // Who made the file must not foresee the vector.
        let mut rng = ChaCha20Rng::from_rng(OsRng).expect("the operating system has randomness");
        let z: Vec<Scalar> = (0..r1cs.variables()).map(|_| Scalar::random(&mut rng)).collect();
        let check = |matrix| self.check_matrix(matrix, r1cs, &z);
        let (a, b) = rayon::join(|| check(MatrixId::A), || check(MatrixId::B));
        a.and(b)
    }

    /// Whether the products of one of its matrices and of the circuit's with a vector are equal.
    fn check_matrix(&self, matrix: MatrixId, r1cs: &R1cs, z: &[Scalar]) -> Result<(), KeyError> {
        let mut found = vec![Scalar::ZERO; 1 << self.log2_domain];
        for term in self.terms.iter().filter(|term| term.matrix == matrix) {
            found[term.row as usize] += term.coefficient * z[term.variable as usize];
        }
        let mut expected = vec![Scalar::ZERO; found.len()];
        r1cs.evaluate_into(matrix, z, &mut expected);
        if matrix == MatrixId::A {
            let publics = ..=r1cs.public_count as usize;
            expected[r1cs.constraints()..][publics].copy_from_slice(&z[publics]);
        }
        match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            Some(row) => Err(KeyError::Matrix { matrix, row }),
            None => Ok(()),
        }
    }
}

/// Why a key has no `.zkey` form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZkeyExportError {
    /// The key's quotient query is in another basis.
    #[error(
        "only a key with snarkjs's H query, on the odd coset by root 5, has a .zkey form; make one with `setup`, asking for .zkey"
    )]
    HBasis,
    /// The key is another circuit's.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// More coefficients than the format's 32-bit count.
    #[error("the circuit's matrices have more coefficients than .zkey can count")]
    TooManyCoefficients,
    /// The destination failed.
    #[error("cannot write the key")]
    Io(#[from] io::Error),
}

/// Write a proving key as `.zkey`, by which snarkjs proves.
///
/// It is a key to prove with, not the start of a ceremony: the hash of the circuit, which `snarkjs zkey verify` compares,
/// is left zero and no contribution is listed.
pub fn write_zkey(key: &ProvingKey, r1cs: &R1cs, out: impl Write) -> Result<(), ZkeyExportError> {
    if key.h_basis != HBasis::OddCoset || key.root != HBasis::OddCoset.root() {
        return Err(ZkeyExportError::HBasis);
    }
    key.check_circuit(r1cs)?;
    let ic: Vec<G1Point> = key.vk.ic.iter().map(|p| G1Point::from(*p)).collect();
    let (a, b_g1) = (dense(&key.a, &key.a_density, r1cs), dense(&key.b_g1, &key.b_density, r1cs));
    let b_g2 = dense(&key.b_g2, &key.b_density, r1cs);
    let sections: [(u32, &[u8]); 10] = [
        (PROTOCOL, &GROTH16.to_le_bytes()),
        (HEADER, &header_bytes(key)),
        (IC, bytemuck::cast_slice(&ic)),
        (COEFFICIENTS, &coefficient_bytes(r1cs)?),
        (A, bytemuck::cast_slice(&a)),
        (B_G1, bytemuck::cast_slice(&b_g1)),
        (B_G2, bytemuck::cast_slice(&b_g2)),
        (L, bytemuck::cast_slice(&key.l)),
        (H, bytemuck::cast_slice(&key.h)),
        (CONTRIBUTIONS, &[0; CIRCUIT_HASH_BYTES as usize + 4]),
    ];
    Ok(write_sections(&ZKEY, &sections, out)?)
}

fn header_bytes(key: &ProvingKey) -> Vec<u8> {
    let mut out = vec![];
    out.extend((size_of::<FpLimbs>() as u32).to_le_bytes());
    out.extend(fp_modulus_bytes());
    out.extend(field_bytes());
    for word in [key.variables() as u32, key.public_count, 1 << key.log2_domain] {
        out.extend(word.to_le_bytes());
    }
    let vk = &key.vk;
    out.extend(bytemuck::bytes_of(&G1Point::from(vk.alpha_g1)));
    out.extend(bytemuck::bytes_of(&G1Point::from(vk.beta_g1)));
    out.extend(bytemuck::bytes_of(&G2Point::from(vk.beta_g2)));
    out.extend(bytemuck::bytes_of(&G2Point::from(vk.gamma_g2)));
    out.extend(bytemuck::bytes_of(&G1Point::from(vk.delta_g1)));
    out.extend(bytemuck::bytes_of(&G2Point::from(vk.delta_g2)));
    out
}

/// One point for every variable, infinity for those without one.
fn dense<P: Point>(points: &[P], density: &[u64], r1cs: &R1cs) -> Vec<P> {
    let mut points = points.iter();
    let point = |i: usize| match density[i / 64] >> (i % 64) & 1 {
        0 => P::zeroed(),
        _ => *points.next().expect("a key has a point for every bit of its density"),
    };
    (0..r1cs.variables()).map(point).collect()
}

/// The coefficients of A and B, row by row, and those that bind the publics.
fn coefficient_bytes(r1cs: &R1cs) -> Result<Vec<u8>, ZkeyExportError> {
    let r = montgomery_r();
    let encoded = |value: Scalar| limbs_to_le_bytes(&to_montgomery(&(value * r)));
    let values: Vec<[u8; 32]> = r1cs.coefficients().into_iter().map(encoded).collect();
    let publics = r1cs.public_count as usize + 1;
    let count = r1cs.matrix(MatrixId::A).terms() + r1cs.matrix(MatrixId::B).terms() + publics;
    let count = u32::try_from(count).map_err(|_| ZkeyExportError::TooManyCoefficients)?;
    let mut out = Vec::with_capacity(4 + count as usize * TERM_BYTES);
    out.extend(count.to_le_bytes());
    let mut put = |matrix: u32, row: usize, variable: u32, value: &[u8; 32]| {
        [matrix, row as u32, variable].iter().for_each(|word| out.extend(word.to_le_bytes()));
        out.extend(value);
    };
    for row in 0..r1cs.constraints() {
        for matrix in [MatrixId::A, MatrixId::B] {
            for (variable, coefficient) in r1cs.matrix(matrix).row(row) {
                put(matrix as u32, row, variable, &values[coefficient as usize]);
            }
        }
    }
    let one = encoded(Scalar::ONE);
    (0..publics).for_each(|i| put(MatrixId::A as u32, r1cs.constraints() + i, i as u32, &one));
    Ok(out)
}
