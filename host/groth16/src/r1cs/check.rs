//! Which constraint an assignment breaks.

use super::{MatrixId, R1cs, ROWS_PER_TASK, dot};
use crate::Assignment;
use crate::assignment::Lookup;
use rayon::prelude::*;

/// A constraint that an assignment does not satisfy. It says which, and nothing of the values: they are secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("constraint {index}{} is not satisfied", self.path())]
pub struct Unsatisfied {
    /// Its index in the order of recording, from 0.
    pub index: usize,
    /// Its path in the circuit's source, if the system was recorded with names.
    pub name: Option<String>,
}

impl Unsatisfied {
    fn path(&self) -> String {
        self.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default()
    }
}

/// Why an assignment does not fit or does not satisfy a constraint system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The assignment is one of another circuit.
    #[error(
        "the assignment has {found} {what}, the circuit {expected}: it was made for another circuit or other parameters"
    )]
    Mismatch {
        /// What is counted.
        what: &'static str,
        /// What the constraint system has.
        expected: u64,
        /// What the assignment has.
        found: u64,
    },
    /// A constraint is broken.
    #[error(transparent)]
    Unsatisfied(#[from] Unsatisfied),
}

impl R1cs {
    /// Whether the assignment has this system's dimensions.
    pub fn check_dimensions(&self, assignment: &Assignment) -> Result<(), CheckError> {
        let mismatch = |what, expected: u32, found: u64| match found == u64::from(expected) {
            true => Ok(()),
            false => Err(CheckError::Mismatch { what, expected: expected.into(), found }),
        };
        mismatch("public inputs", self.public_count, assignment.publics().len() as u64)?;
        mismatch("private variables", self.aux_count, assignment.aux_count())
    }

    /// Whether the assignment satisfies every constraint; if not, the first one that it breaks, by name.
    pub fn check(&self, assignment: &Assignment) -> Result<(), CheckError> {
        self.check_dimensions(assignment)?;
        let z = Lookup::new(assignment);
        let coefficients = self.coefficients();
        let broken = |row: &usize| {
            let [a, b, c] = MatrixId::ALL.map(|id| dot(self.matrix(id), *row, &coefficients, &z));
            a * b != c
        };
        let first = (0..self.constraints().div_ceil(ROWS_PER_TASK)).into_par_iter().find_map_first(|task| {
            let rows = task * ROWS_PER_TASK..((task + 1) * ROWS_PER_TASK).min(self.constraints());
            rows.into_iter().find(broken)
        });
        match first {
            None => Ok(()),
            Some(index) => Err(Unsatisfied { index, name: self.names.get(index).cloned() }.into()),
        }
    }
}
