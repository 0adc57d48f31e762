//! A circuit written for bellman as a constraint system: native synthesis, without the guests' SDK.

use bellman::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use bls12_381::Scalar;
use zkhost_groth16::r1cs::{Counts, MatrixId, R1cs, ShapeLimits, ShapeRecorder};
use zkhost_groth16::scalar::limbs_from_le_bytes;

/// The bit that marks a column as a public input.
const PUBLIC: u32 = 1 << 31;

/// Synthesise a circuit without values and record its rows.
pub fn record(circuit: impl Circuit<Scalar>) -> R1cs {
    let counts = Counts { publics: 0, aux: 0, constraints: 0 };
    let mut recorder = Recorder { shape: ShapeRecorder::new(ShapeLimits::NONE, false), counts };
    circuit.synthesize(&mut recorder).expect("a shape needs no values");
    recorder.shape.finish(recorder.counts).expect("bellman's rows are a constraint system")
}

struct Recorder {
    shape: ShapeRecorder,
    counts: Counts,
}

impl Recorder {
    fn add_row(&mut self, matrix: MatrixId, row: &LinearCombination<Scalar>) {
        let terms = row.as_ref();
        let limbs: Vec<u64> = terms.iter().flat_map(|(_, value)| limbs_from_le_bytes(&value.to_bytes())).collect();
        let first = self.shape.add_coefficients(&limbs).expect("coefficients are reduced");
        let column = |(variable, _): &(Variable, Scalar)| match variable.get_unchecked() {
            Index::Input(index) => index as u32 | PUBLIC,
            Index::Aux(index) => index as u32,
        };
        let columns: Vec<u32> = terms.iter().map(column).collect();
        let coefficients: Vec<u32> = (first..).take(terms.len()).collect();
        self.shape.add_rows(matrix, &[terms.len() as u32], &columns, &coefficients).expect("the lists fit together");
    }
}

impl ConstraintSystem<Scalar> for Recorder {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.counts.aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.counts.aux as usize - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.counts.publics += 1;
        Ok(Variable::new_unchecked(Index::Input(self.counts.publics as usize)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        self.counts.constraints += 1;
        self.add_row(MatrixId::A, &a(LinearCombination::zero()));
        self.add_row(MatrixId::B, &b(LinearCombination::zero()));
        self.add_row(MatrixId::C, &c(LinearCombination::zero()));
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
