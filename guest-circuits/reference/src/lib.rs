//! Plain synthesis of a circuit, row by row in memory: the naive twin that tests compare the SDK with.
//!
//! There is one pass: every value is taken and every constraint evaluated. Nothing is packed, streamed, generated or
//! shared, and no coefficient is looked up.

use std::marker::PhantomData;

use zkhost_guest::Fr;
use zkhost_guest::gadgets::{WitnessWriter, WordPass};
use zkhost_guest::native::{Assignment, Row, Shape};
use zkhost_guest::sink::PUBLIC_COLUMN;

/// A constraint system of either dialect that keeps everything.
pub struct Reference<F> {
    /// The rows of A, B and C.
    pub rows: [Vec<Row>; 3],
    /// The path of each row.
    pub names: Vec<String>,
    /// Public inputs, the constant one excluded.
    pub publics: Vec<Fr>,
    /// Aux variables.
    pub aux: Vec<Fr>,
    path: Vec<String>,
    field: PhantomData<fn() -> F>,
}

impl<F> Default for Reference<F> {
    fn default() -> Self {
        Reference {
            rows: Default::default(),
            names: Vec::new(),
            publics: Vec::new(),
            aux: Vec::new(),
            path: Vec::new(),
            field: PhantomData,
        }
    }
}

impl<F> Reference<F> {
    /// Panics unless a recorded shape and a written assignment say the same as this synthesis, to the last term.
    pub fn assert_equals(&self, shape: &Shape, assignment: &Assignment) {
        assert_eq!(shape.counts.publics as usize, self.publics.len());
        assert_eq!(shape.counts.aux as usize, self.aux.len());
        assert_eq!(shape.counts.constraints as usize, self.names.len());
        assert_eq!(shape.names, self.names);
        for (matrix, name) in ["A", "B", "C"].iter().enumerate() {
            assert_eq!(shape.rows[matrix].len(), self.rows[matrix].len(), "rows of {name}");
            for (row, (recorded, expected)) in shape.rows[matrix].iter().zip(&self.rows[matrix]).enumerate() {
                assert_eq!(recorded, expected, "row {row} of {name}: {}", self.names[row]);
            }
        }
        assert_eq!(assignment.publics, self.publics);
        if let Some(i) = (0..self.aux.len()).find(|&i| assignment.aux.get(i) != Some(&self.aux[i])) {
            panic!("aux {i} is {:?}, not {:?}", assignment.aux.get(i), self.aux[i]);
        }
    }
}

/// Every variable comes by itself: gadgets of the SDK are then the published ones.
impl<F> WordPass for Reference<F> {
    fn write_words<R>(&mut self, _write: impl FnOnce(&mut WitnessWriter<'_>) -> R) -> Option<R> {
        None
    }
}

macro_rules! dialect {
    ($module:ident, $dialect:ident, $ff:ident, |$lc:ident| $terms:expr) => {
        mod $module {
            use $dialect::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
            use $ff::PrimeField;

            use super::*;

            fn element<F: PrimeField<Repr = [u8; 32]>>(value: F) -> Fr {
                Fr::from_le_bytes(&value.to_repr()).expect("an element of the same field")
            }

            fn row<F: PrimeField<Repr = [u8; 32]>>($lc: LinearCombination<F>) -> Row {
                let column = |variable: Variable| match variable.get_unchecked() {
                    Index::Input(index) => index as u32 | PUBLIC_COLUMN,
                    Index::Aux(index) => index as u32,
                };
                $terms.map(|(variable, coefficient)| (column(variable), element(*coefficient))).collect()
            }

            impl<F: PrimeField<Repr = [u8; 32]>> ConstraintSystem<F> for Reference<F> {
                type Root = Self;

                fn alloc<V, A, AR>(&mut self, _annotation: A, value: V) -> Result<Variable, SynthesisError>
                where
                    V: FnOnce() -> Result<F, SynthesisError>,
                    A: FnOnce() -> AR,
                    AR: Into<String>,
                {
                    self.aux.push(element(value()?));
                    Ok(Variable::new_unchecked(Index::Aux(self.aux.len() - 1)))
                }

                fn alloc_input<V, A, AR>(&mut self, _annotation: A, value: V) -> Result<Variable, SynthesisError>
                where
                    V: FnOnce() -> Result<F, SynthesisError>,
                    A: FnOnce() -> AR,
                    AR: Into<String>,
                {
                    self.publics.push(element(value()?));
                    Ok(Variable::new_unchecked(Index::Input(self.publics.len())))
                }

                fn enforce<A, AR, LA, LB, LC>(&mut self, annotation: A, a: LA, b: LB, c: LC)
                where
                    A: FnOnce() -> AR,
                    AR: Into<String>,
                    LA: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
                    LB: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
                    LC: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
                {
                    self.rows[0].push(row(a(LinearCombination::zero())));
                    self.rows[1].push(row(b(LinearCombination::zero())));
                    self.rows[2].push(row(c(LinearCombination::zero())));
                    let mut path = self.path.clone();
                    path.push(annotation().into());
                    self.names.push(path.join("/"));
                }

                fn push_namespace<NR, N>(&mut self, name: N)
                where
                    NR: Into<String>,
                    N: FnOnce() -> NR,
                {
                    self.path.push(name().into());
                }

                fn pop_namespace(&mut self) {
                    self.path.pop();
                }

                fn get_root(&mut self) -> &mut Self {
                    self
                }
            }
        }
    };
}

dialect!(with_bellman, bellman, ff014, |lc| lc.as_ref().iter().map(|(variable, coefficient)| (*variable, coefficient)));
dialect!(with_bellpepper, bellpepper_core, ff013, |lc| lc.iter());
