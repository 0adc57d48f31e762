//! A constraint system as a circuit for bellman: how the `groth16` crate proves the very same rows and values.

use bellman::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use zkhost_groth16::Scalar;
use zkhost_groth16::r1cs::{MatrixId, R1cs};
use zkhost_groth16::scalar::to_canonical;

/// A constraint system, with or without an assignment.
pub struct ForBellman<'a> {
    /// The rows.
    pub r1cs: &'a R1cs,
    /// z = [1, publics, aux].
    pub z: Option<&'a [Scalar]>,
}

fn other(scalar: &Scalar) -> bls12_381::Scalar {
    bls12_381::Scalar::from_raw(to_canonical(scalar))
}

impl Circuit<bls12_381::Scalar> for ForBellman<'_> {
    fn synthesize<CS: ConstraintSystem<bls12_381::Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let Self { r1cs, z } = self;
        let value = |i: usize| z.map(|z| other(&z[i])).ok_or(SynthesisError::AssignmentMissing);
        let publics = r1cs.public_count as usize;
        let mut variables = vec![Variable::new_unchecked(Index::Input(0))];
        for i in 1..=publics {
            variables.push(cs.alloc_input(|| "", || value(i))?);
        }
        for i in 1 + publics..r1cs.variables() {
            variables.push(cs.alloc(|| "", || value(i))?);
        }
        let coefficients: Vec<_> = r1cs.coefficients().iter().map(other).collect();
        for row in 0..r1cs.constraints() {
            let lc = |id: MatrixId| {
                let terms = r1cs.matrix(id).row(row);
                terms.fold(LinearCombination::zero(), |lc, (column, coefficient)| {
                    lc + (coefficients[coefficient as usize], variables[column as usize])
                })
            };
            cs.enforce(|| "", |_| lc(MatrixId::A), |_| lc(MatrixId::B), |_| lc(MatrixId::C));
        }
        Ok(())
    }
}
