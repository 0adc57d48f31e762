//! The constraint system that gadgets see: one type for both passes and both dialects.

use crate::shape::ShapeRecorder;
use crate::sink::{Matrix, ShapeSink, WitnessSink};
use crate::witness::WitnessWriter;
use crate::{Counts, Error, Segment};

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
    pass: Pass<'a>,
    /// Room that a gadget asked for and fills without allocating.
    room: Option<Room<F>>,
}

/// Which of the two passes runs.
pub(crate) enum Pass<'a> {
    Shape(Box<ShapeRecorder<'a>>),
    Witness(WitnessWriter<'a>),
}

/// Values of variables in place of allocations: how bellpepper's witness generators skip linear combinations.
#[cfg_attr(not(feature = "bellpepper"), allow(dead_code, reason = "only bellpepper has witness generators"))]
struct Room<F> {
    aux: Vec<F>,
    publics: Vec<F>,
    write: fn(&Room<F>, &mut WitnessWriter<'_>),
}

impl<'a, F> Synthesis<'a, F> {
    pub(crate) fn new(pass: Pass<'a>) -> Self {
        Synthesis { pass, room: None }
    }

    /// The dimensions of what `synthesize` allocates and enforces, recorded nowhere: for a plan that must declare them.
    pub fn count(synthesize: impl FnOnce(&mut Synthesis<'_, F>) -> Result<(), Error>) -> Result<Counts, Error> {
        let mut discard = Discard;
        let mut cs = Synthesis::new(Pass::Shape(Box::new(ShapeRecorder::new(&mut discard, false))));
        synthesize(&mut cs)?;
        match cs.pass {
            Pass::Shape(shape) => shape.finish(),
            Pass::Witness(_) => unreachable!("a synthesis keeps its pass"),
        }
    }

    /// The segment that `synthesize` assigns, from aux variable 0 on, which is written nowhere: for a plan. Much faster than
    /// [`Synthesis::count`] where gadgets write words. The circuit needs values, any at all; if each of them that is not a
    /// bit is neither 0 nor 1, the segment's `max_full` is what any values need.
    pub fn measure(synthesize: impl FnOnce(&mut Synthesis<'_, F>) -> Result<(), Error>) -> Result<Segment, Error> {
        let mut discard = Discard;
        let mut cs = Synthesis::new(Pass::Witness(WitnessWriter::new(&mut discard, true)));
        synthesize(&mut cs)?;
        let Pass::Witness(witness) = cs.into_pass() else { unreachable!("a synthesis keeps its pass") };
        let max_full = witness.full_count();
        let aux_count = witness.finish()?;
        Ok(Segment { first_aux: 0, aux_count, max_full, weight: u32::try_from(aux_count).unwrap_or(u32::MAX) })
    }

    /// The pass, with everything written to it.
    pub(crate) fn into_pass(mut self) -> Pass<'a> {
        self.settle();
        self.pass
    }

    /// Write what a gadget filled in.
    #[inline]
    fn settle(&mut self) {
        if let Some(room) = self.room.take()
            && let Pass::Witness(witness) = &mut self.pass
        {
            (room.write)(&room, witness);
        }
    }

    /// Whether this pass takes values. Gadgets rarely need to know.
    pub fn has_values(&self) -> bool {
        matches!(self.pass, Pass::Witness(_))
    }
}

/// A sink that keeps nothing.
struct Discard;

impl ShapeSink for Discard {
    fn add_coefficients(&mut self, _limbs: &[u64]) {}
    fn add_rows(&mut self, _matrix: Matrix, _row_lengths: &[u32], _columns: &[u32], _coefficients: &[u32]) {}
    fn name_rows(&mut self, _paths: &str) {}
}

impl WitnessSink for Discard {
    fn write_groups(&mut self, _masks: &[u64], _elements: &[u64]) {}
    fn write_public(&mut self, _elements: &[u64]) {}
    fn progress(&mut self, _aux_written: u64) -> bool {
        true
    }
}

/// Implements a dialect's `ConstraintSystem` for [`Synthesis`]. `$terms` turns one of its linear combinations into
/// pairs of a variable and a reference to its coefficient; `$more` are methods that only one of them has.
macro_rules! dialect {
    ($feature:literal, $module:ident, $dialect:ident, $ff:ident, |$lc:ident| $terms:expr, { $($more:item)* }) => {
        #[cfg(feature = $feature)]
        mod $module {
            use $dialect::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
            use $ff::PrimeField;

            #[allow(unused_imports, reason = "`Room` is for the dialect that has witness generators")]
            use super::{Pass, Room, Synthesis};
            use crate::fr;
            use crate::sink::{Matrix, PUBLIC_COLUMN};
            use crate::witness::WitnessWriter;

            /// The canonical limbs of an element.
            #[inline]
            fn limbs<F: PrimeField<Repr = [u8; 32]>>(value: &F) -> [u64; 4] {
                const { assert!(fr::is_modulus(F::MODULUS), "zkhost proves over the scalar field of BLS12-381 only") };
                fr::limbs_from_le_bytes(&value.to_repr())
            }

            #[inline]
            fn write_aux<F: PrimeField<Repr = [u8; 32]>>(value: &F, witness: &mut WitnessWriter<'_>) {
                if value.is_zero_vartime() {
                    witness.push_bit(false);
                } else if *value == F::ONE {
                    witness.push_bit(true);
                } else {
                    witness.push_value(limbs(value));
                }
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
                    self.settle();
                    let index = match &mut self.pass {
                        Pass::Shape(shape) => shape.alloc_aux(),
                        Pass::Witness(witness) => {
                            if !witness.is_running() {
                                return Err(SynthesisError::AssignmentMissing);
                            }
                            let value = value()?;
                            let index = witness.next_aux();
                            write_aux(&value, witness);
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
                    self.settle();
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

                $($more)*
            }
        }
    };
}

#[cfg(feature = "gadgets")]
impl<F> crate::gadgets::WordPass for Synthesis<'_, F> {
    fn write_words<R>(&mut self, write: impl FnOnce(&mut WitnessWriter<'_>) -> R) -> Option<R> {
        self.settle();
        match &mut self.pass {
            Pass::Shape(_) => None,
            Pass::Witness(witness) => Some(write(witness)),
        }
    }
}

dialect!("bellman", with_bellman, bellman, ff014, |lc| lc.as_ref().iter().map(|(v, c)| (*v, c)), {});
dialect!("bellpepper", with_bellpepper, bellpepper_core, ff013, |lc| lc.iter(), {
    fn is_witness_generator(&self) -> bool {
        self.has_values()
    }

    fn extend_inputs(&mut self, values: &[F]) {
        self.allocate_empty(0, values.len()).1.copy_from_slice(values);
    }

    fn extend_aux(&mut self, values: &[F]) {
        self.allocate_empty(values.len(), 0).0.copy_from_slice(values);
    }

    fn allocate_empty(&mut self, aux: usize, publics: usize) -> (&mut [F], &mut [F]) {
        self.settle();
        let write = |room: &Room<F>, witness: &mut WitnessWriter<'_>| {
            room.aux.iter().for_each(|value| write_aux(value, witness));
            room.publics.iter().for_each(|value| {
                witness.push_public(limbs(value));
            });
        };
        let room = self.room.insert(Room { aux: vec![F::ZERO; aux], publics: vec![F::ZERO; publics], write });
        (&mut room.aux, &mut room.publics)
    }

    fn allocate_empty_inputs(&mut self, count: usize) -> &mut [F] {
        self.allocate_empty(0, count).1
    }

    fn allocate_empty_aux(&mut self, count: usize) -> &mut [F] {
        self.allocate_empty(count, 0).0
    }
});
