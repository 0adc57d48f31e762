//! The constraint system, and how it can be recorded wrongly.

use zkhost_guest::export::bindings::exports::zkhost::circuit::circuit::Counts;
use zkhost_guest::export::bindings::zkhost::circuit::sink::{Matrix, Shape};

use crate::params::{Act, Params};
use crate::{MODULUS, SEGMENT_AUX};

const PUBLIC: u32 = 1 << 31;
/// The index of the coefficient 1 in the dictionary.
const ONE: u32 = 0;

pub(crate) fn record(params: &Params, names: bool, out: &Shape) -> Counts {
    let aux = u64::from(params.segments) * SEGMENT_AUX;
    let constraints = aux - 1;
    match params.act {
        Act::UnreducedCoefficient => out.add_coefficients(&MODULUS),
        Act::PartialCoefficient => out.add_coefficients(&[1, 0, 0]),
        _ => out.add_coefficients(&[1, 0, 0, 0]),
    };
    if params.act == Act::CoefficientFlood {
        for value in 1.. {
            out.add_coefficients(&[value, 0, 0, 0].repeat(2048));
        }
    }
    for matrix in [Matrix::A, Matrix::B, Matrix::C] {
        add_rows(params, matrix, constraints as u32, out);
    }
    name_rows(params, names, constraints, out);
    let mut counts = Counts { publics: 1, aux, constraints };
    match params.act {
        Act::LyingPublics => counts.publics += 1,
        Act::LyingAux => counts.aux += 1 << 40,
        Act::LyingConstraints => counts.constraints += 1,
        _ => {}
    }
    counts
}

/// Rows of one term: of constraint 0, aux 0 · aux 1 = public 1; of constraint i, (aux i + 1)² = aux i + 1.
fn add_rows(params: &Params, matrix: Matrix, constraints: u32, out: &Shape) {
    let first = match matrix {
        Matrix::A => 0,
        Matrix::B => 1,
        Matrix::C => PUBLIC + 1,
    };
    let mut row_lengths = vec![1; constraints as usize];
    let mut columns: Vec<u32> = std::iter::once(first).chain(2..=constraints).collect();
    let mut coefficients = vec![ONE; columns.len()];
    if params.act == Act::RowFlood && matrix == Matrix::C {
        loop {
            out.add_rows(matrix, &row_lengths, &columns, &coefficients);
        }
    }
    match (params.act, matrix) {
        (Act::RowsDiffer, Matrix::C) => {
            row_lengths.pop();
            columns.pop();
            coefficients.pop();
        }
        (Act::BadColumn, Matrix::B) => columns[7] = PUBLIC - 1,
        (Act::BadPublicColumn, Matrix::B) => columns[7] = PUBLIC + 2,
        (Act::BadCoefficientIndex, Matrix::B) => coefficients[7] = 1,
        (Act::BadRowLengths, Matrix::B) => row_lengths[7] = 2,
        (Act::FewerCoefficients, Matrix::B) => {
            coefficients.pop();
        }
        (Act::RowLengthsOverflow, Matrix::B) => row_lengths[7..9].fill(u32::MAX),
        _ => {}
    }
    out.add_rows(matrix, &row_lengths, &columns, &coefficients);
}

fn name_rows(params: &Params, names: bool, constraints: u64, out: &Shape) {
    if params.act == Act::NameFlood {
        loop {
            out.name_rows("a name that comes again and again\n");
        }
    }
    if params.act == Act::NameUnasked && !names {
        out.name_rows("a name nobody asked for\n");
    }
    if names {
        let rows = match params.act {
            Act::NameFewer => constraints - 1,
            Act::NameMore => constraints + 1,
            _ => constraints,
        };
        let paths: String = (0..rows)
            .map(|row| match row {
                0 if params.act == Act::NameControls => "\u{1b}[2Jprod\ruct\u{202e}\u{9b}31m\n".into(),
                0 => "product\n".into(),
                _ => format!("bits/aux {} is a bit\n", row + 1),
            })
            .collect();
        out.name_rows(&paths);
    }
}
