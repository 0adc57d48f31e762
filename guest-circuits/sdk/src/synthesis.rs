//! The constraint system that gadgets see: one type for both passes and both dialects.

use std::marker::PhantomData;

use crate::shape::ShapeRecorder;
use crate::witness::WitnessWriter;

/// What `Circuit::synthesize` writes constraints to.
///
/// `&mut Synthesis<F>` implements the `ConstraintSystem<F>` of bellman for every field of ff 0.14, and that of
/// bellpepper-core for every field of ff 0.13, as long as the field is the scalar field of BLS12-381 (checked when the
/// circuit compiles) and its representation is 32 little-endian bytes.
///
/// A circuit is synthesised in one of two passes. When its shape is recorded, constraints are evaluated and the closures
/// that give values are not called. When an assignment is written, values are taken and constraints are skipped: the
/// closures given to `enforce` are never called, so they must not have side effects.
pub struct Synthesis<'a, F> {
    pub(crate) pass: Pass<'a>,
    field: PhantomData<fn() -> F>,
}

/// Which of the two passes runs.
pub(crate) enum Pass<'a> {
    Shape(ShapeRecorder<'a>),
    Witness(WitnessWriter<'a>),
}

impl<'a, F> Synthesis<'a, F> {
    pub(crate) fn new(pass: Pass<'a>) -> Self {
        Synthesis { pass, field: PhantomData }
    }

    /// Whether this pass takes values. Gadgets rarely need to know.
    pub fn has_values(&self) -> bool {
        matches!(self.pass, Pass::Witness(_))
    }
}

/// Implements a dialect's `ConstraintSystem` for [`Synthesis`]. `$terms` turns one of its linear combinations into
/// pairs of a variable and a reference to its coefficient.
macro_rules! dialect {
    ($feature:literal, $module:ident, $dialect:ident, $ff:ident, |$lc:ident| $terms:expr) => {
        #[cfg(feature = $feature)]
        mod $module {
            use $dialect::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
            use $ff::PrimeField;

            use super::{Pass, Synthesis};
            use crate::fr;
            use crate::sink::{Matrix, PUBLIC_COLUMN};

            /// The canonical limbs of an element.
            #[inline]
            fn limbs<F: PrimeField<Repr = [u8; 32]>>(value: &F) -> [u64; 4] {
                const { assert!(fr::is_modulus(F::MODULUS), "zkhost proves over the scalar field of BLS12-381 only") };
                fr::limbs_from_le_bytes(&value.to_repr())
            }

            fn terms<F: PrimeField<Repr = [u8; 32]>>(
                $lc: &LinearCombination<F>,
            ) -> impl Iterator<Item = (u32, [u64; 4])> + '_ {
                $terms.map(|(variable, coefficient)| {
                    let column = match variable.get_unchecked() {
                        Index::Input(index) => index as u32 | PUBLIC_COLUMN,
                        Index::Aux(index) => index as u32,
                    };
                    (column, limbs::<F>(coefficient))
                })
            }

            impl<F: PrimeField<Repr = [u8; 32]>> ConstraintSystem<F> for Synthesis<'_, F> {
                type Root = Self;

                #[inline]
                fn alloc<V, A, AR>(&mut self, _annotation: A, value: V) -> Result<Variable, SynthesisError>
                where
                    V: FnOnce() -> Result<F, SynthesisError>,
                    A: FnOnce() -> AR,
                    AR: Into<String>,
                {
                    let index = match &mut self.pass {
                        Pass::Shape(shape) => shape.alloc_aux(),
                        Pass::Witness(witness) => {
                            if !witness.is_running() {
                                return Err(SynthesisError::AssignmentMissing);
                            }
                            let value = value()?;
                            let index = witness.next_aux();
                            if value.is_zero_vartime() {
                                witness.push_bit(false);
                            } else if value == F::ONE {
                                witness.push_bit(true);
                            } else {
                                witness.push_element(limbs(&value));
                            }
                            index
                        }
                    };
                    Ok(Variable::new_unchecked(Index::Aux(index)))
                }

                fn alloc_input<V, A, AR>(&mut self, _annotation: A, value: V) -> Result<Variable, SynthesisError>
                where
                    V: FnOnce() -> Result<F, SynthesisError>,
                    A: FnOnce() -> AR,
                    AR: Into<String>,
                {
                    let index = match &mut self.pass {
                        Pass::Shape(shape) => shape.alloc_public(),
                        Pass::Witness(witness) => witness.push_public(limbs(&value()?)),
                    };
                    Ok(Variable::new_unchecked(Index::Input(index)))
                }

                #[inline]
                fn enforce<A, AR, LA, LB, LC>(&mut self, annotation: A, a: LA, b: LB, c: LC)
                where
                    A: FnOnce() -> AR,
                    AR: Into<String>,
                    LA: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
                    LB: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
                    LC: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
                {
                    let Pass::Shape(shape) = &mut self.pass else { return };
                    shape.row(Matrix::A, terms(&a(LinearCombination::zero())));
                    shape.row(Matrix::B, terms(&b(LinearCombination::zero())));
                    shape.row(Matrix::C, terms(&c(LinearCombination::zero())));
                    shape.end_constraint(|| annotation().into());
                }

                #[inline]
                fn push_namespace<NR, N>(&mut self, name: N)
                where
                    NR: Into<String>,
                    N: FnOnce() -> NR,
                {
                    if let Pass::Shape(shape) = &mut self.pass {
                        shape.push_namespace(|| name().into());
                    }
                }

                #[inline]
                fn pop_namespace(&mut self) {
                    if let Pass::Shape(shape) = &mut self.pass {
                        shape.pop_namespace();
                    }
                }

                fn get_root(&mut self) -> &mut Self {
                    self
                }
            }
        }
    };
}

dialect!("bellman", with_bellman, bellman, ff014, |lc| lc.as_ref().iter().map(|(v, c)| (*v, c)));
dialect!("bellpepper", with_bellpepper, bellpepper_core, ff013, |lc| lc.iter());
