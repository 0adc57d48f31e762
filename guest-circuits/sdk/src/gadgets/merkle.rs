//! Paths in Merkle trees of Poseidon hashes.

use bellpepper_core::boolean::AllocatedBit;
use bellpepper_core::num::AllocatedNum;
use bellpepper_core::{ConstraintSystem, SynthesisError, Variable};

use super::WordPass;
use super::poseidon::Poseidon;
use crate::Fr;

/// One level of a path, allocated.
pub struct Level {
    /// Which child is the node below: exactly one of these is set.
    pub selectors: Vec<AllocatedBit>,
    /// The node above, the last variable of the level.
    pub parent: AllocatedNum<Fr>,
}

/// One level of a path: `node` is one of the children, and the hash of the children is the node above.
///
/// `values` are which child the node is, and all children. For each child a bit and the child are allocated; exactly one
/// bit is set, and the child it selects equals `node`.
pub fn level<CS>(
    mut cs: CS,
    hasher: &Poseidon,
    node: Variable,
    values: Option<(usize, &[Fr])>,
) -> Result<Level, SynthesisError>
where
    CS: ConstraintSystem<Fr>,
    CS::Root: ConstraintSystem<Fr, Root = CS::Root> + WordPass,
{
    let mut selectors = Vec::with_capacity(hasher.arity());
    let mut children = Vec::with_capacity(hasher.arity());
    for i in 0..hasher.arity() {
        let selected = values.map(|(position, _)| position == i);
        let selector = AllocatedBit::alloc(cs.namespace(|| format!("selector {i}")), selected)?;
        let child = AllocatedNum::alloc(cs.namespace(|| format!("child {i}")), || {
            values.and_then(|(_, children)| children.get(i).copied()).ok_or(SynthesisError::AssignmentMissing)
        })?;
        cs.enforce(
            || format!("selected child {i} is the node below"),
            |lc| lc + selector.get_variable(),
            |lc| lc + child.get_variable() - node,
            |lc| lc,
        );
        selectors.push(selector);
        children.push(child);
    }
    cs.enforce(
        || "one child is selected",
        |lc| selectors.iter().fold(lc, |lc, selector| lc + selector.get_variable()),
        |lc| lc + CS::one(),
        |lc| lc + CS::one(),
    );
    let parent = hasher.hash_allocated(cs.namespace(|| "hash"), children)?;
    Ok(Level { selectors, parent })
}
