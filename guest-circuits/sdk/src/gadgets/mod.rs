//! Gadgets that compute their witness with words.
//!
//! Each is a gadget of bellpepper or neptune, called like it and with its results. When a shape is recorded, it *is* that
//! gadget, so the constraint system is the published one. When an assignment is written, it computes the values of the same
//! variables, in the same order, 32 or 64 to a word, and appends the words to the packed assignment; values that are not
//! bits are field elements, as there. What it takes and returns are bellpepper's own types, so that circuits mix these
//! gadgets with any others.
//!
//! | module | in place of |
//! |---|---|
//! | [`boolean`] | bits of words and of elements of `bellpepper_core::boolean` |
//! | [`multipack`] | `bellpepper::gadgets::multipack` |
//! | [`uint32`] | the arithmetic of `bellpepper::gadgets::uint32` |
//! | [`sha256`] | `bellpepper::gadgets::sha256` |
//! | `poseidon` (feature `poseidon`) | `neptune::circuit2::poseidon_hash_allocated` |
//! | `merkle` (feature `poseidon`) | – |

pub mod boolean;
mod lanes;
#[cfg(feature = "poseidon")]
pub mod merkle;
pub mod multipack;
#[cfg(feature = "poseidon")]
pub mod poseidon;
pub mod sha256;
pub mod uint32;

use bellpepper_core::num::AllocatedNum;
use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff013::PrimeField;

pub use crate::witness::WitnessWriter;

/// The root of a constraint system that may take an assignment word by word.
pub trait WordPass {
    /// Have `write` append variables to the assignment that is written. None, and nothing is called, if none is or if its
    /// variables have to come one by one.
    fn write_words<R>(&mut self, write: impl FnOnce(&mut WitnessWriter<'_>) -> R) -> Option<R>;
}

/// Run the word pass of a gadget, if this pass has one.
fn word_pass<F, CS, R>(
    cs: &mut CS,
    write: impl FnOnce(&mut WitnessWriter<'_>) -> Result<R, SynthesisError>,
) -> Option<Result<R, SynthesisError>>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    cs.get_root().write_words(
        |words| {
            if words.is_running() { write(words) } else { Err(SynthesisError::AssignmentMissing) }
        },
    )
}

/// The number of a variable that is allocated.
fn allocated_num<F: PrimeField>(variable: usize, value: F) -> Result<AllocatedNum<F>, SynthesisError> {
    AllocatedNum::alloc(Allocated(variable), || Ok(value))
}

/// A constraint system whose next variable is already allocated: through it bellpepper's types are made of a variable and
/// its value, for which they have no constructor.
struct Allocated(usize);

impl<F: PrimeField> ConstraintSystem<F> for Allocated {
    type Root = Self;

    fn alloc<V, A, AR>(&mut self, _annotation: A, value: V) -> Result<Variable, SynthesisError>
    where
        V: FnOnce() -> Result<F, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        value()?;
        Ok(Variable::new_unchecked(Index::Aux(self.0)))
    }

    fn alloc_input<V, A, AR>(&mut self, _annotation: A, value: V) -> Result<Variable, SynthesisError>
    where
        V: FnOnce() -> Result<F, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        value()?;
        Ok(Variable::new_unchecked(Index::Input(self.0)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _annotation: A, _a: LA, _b: LB, _c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
        LB: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
        LC: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
    {
    }

    fn push_namespace<NR, N>(&mut self, _name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}
