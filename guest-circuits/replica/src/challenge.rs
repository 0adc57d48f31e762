//! The constraints of one challenge.

use zkhost_guest::Fr;
use zkhost_guest::bellpepper_core::boolean::Boolean;
use zkhost_guest::bellpepper_core::num::AllocatedNum;
use zkhost_guest::bellpepper_core::{ConstraintSystem, LinearCombination, Namespace, SynthesisError, Variable};
use zkhost_guest::gadgets::boolean::bits_from_limbs;
use zkhost_guest::gadgets::multipack::pack_bits;
use zkhost_guest::gadgets::poseidon::Poseidon;
use zkhost_guest::gadgets::sha256::sha256;
use zkhost_guest::gadgets::{WordPass, merkle};

use crate::input::{ChallengeValues, ParentValues, Path};
use crate::params::{Params, TREE_ARITY};

/// Bits of a label and of the replica's name: what fits an element whatever it is.
pub(crate) const LABEL_BITS: usize = 254;
/// Bits that a label or name takes in what is hashed.
const HASHED_BITS: usize = 256;
/// Bits before the labels in what is hashed: the replica's name, and layer and node in 32 bytes.
const PREFIX_BITS: usize = 512;

/// A challenge to constrain.
pub(crate) struct Challenge<'a> {
    pub params: &'a Params,
    pub column_hasher: &'a Poseidon,
    pub tree_hasher: &'a Poseidon,
    pub replica_id: Option<&'a [u64; 4]>,
    pub values: Option<&'a ChallengeValues>,
    /// Variables of all challenges.
    pub common: Common,
    /// Public inputs: the node, then its parents.
    pub nodes: Vec<Variable>,
}

/// Variables that all challenges of a partition share.
#[derive(Clone, Copy)]
pub(crate) struct Common {
    pub replica_id: Variable,
    pub column_root: Variable,
    pub replica_root: Variable,
}

/// Bits of a label, the least significant first, and the element they are.
struct Label {
    bits: Vec<Boolean>,
    number: AllocatedNum<Fr>,
}

impl Challenge<'_> {
    pub fn constrain<CS>(&self, cs: &mut Namespace<'_, Fr, CS>) -> Result<(), SynthesisError>
    where
        CS: ConstraintSystem<Fr, Root = CS> + WordPass,
    {
        let id = self.label(cs.namespace(|| "replica id"), self.replica_id)?;
        equal(cs, "replica id is the public one", id.number.get_variable(), self.common.replica_id);
        let node_value = self.values.map(|values| [values.node]);
        let node_bits = self.params.node_bits();
        let node = bits_from_limbs(cs.namespace(|| "node"), node_bits, node_value.as_ref().map(|limbs| &limbs[..]))?;
        let node_number = pack_bits(cs.namespace(|| "node as a number"), &node)?;
        equal(cs, "node is the public one", node_number.get_variable(), self.nodes[0]);

        let mut parents = Vec::with_capacity(self.params.parents());
        for i in 0..self.params.parents() {
            let values = self.values.map(|values| &values.parents[i]);
            parents.push(self.parent(&mut cs.namespace(|| format!("parent {i}")), values, self.nodes[1 + i])?);
        }

        let mut column: Vec<AllocatedNum<Fr>> = Vec::with_capacity(self.params.layers);
        for layer in 0..self.params.layers {
            let message = self.message(&id.bits, &node, layer, &parents);
            let mut cs = cs.namespace(|| format!("label of layer {layer}"));
            let digest = sha256(cs.namespace(|| "hash"), &message)?;
            column.push(pack_bits(cs.namespace(|| "label"), &bits_of_digest(&digest))?);
        }
        let key = column[self.params.layers - 1].clone();
        let hash = self.column_hasher.hash_allocated(cs.namespace(|| "column"), column)?;
        let path = self.values.map(|values| (values.node, &values.column_path));
        self.path(&mut cs.namespace(|| "column path"), &hash, path, self.nodes[0], self.common.column_root)?;

        let data = self.values.map(|values| values.data);
        let data = AllocatedNum::alloc(cs.namespace(|| "data"), || data.ok_or(SynthesisError::AssignmentMissing))?;
        let encoded = data.add(cs.namespace(|| "encoded data"), &key)?;
        let path = self.values.map(|values| (values.node, &values.replica_path));
        self.path(&mut cs.namespace(|| "replica path"), &encoded, path, self.nodes[0], self.common.replica_root)
    }

    /// A label that the input gives.
    fn label<CS>(&self, mut cs: Namespace<'_, Fr, CS>, limbs: Option<&[u64; 4]>) -> Result<Label, SynthesisError>
    where
        CS: ConstraintSystem<Fr, Root = CS> + WordPass,
    {
        let bits = bits_from_limbs(cs.namespace(|| "bits"), LABEL_BITS, limbs.map(|limbs| &limbs[..]))?;
        let number = pack_bits(cs.namespace(|| "number"), &bits)?;
        Ok(Label { bits, number })
    }

    /// The labels of a parent, whose column is in the tree.
    fn parent<CS>(
        &self,
        cs: &mut Namespace<'_, Fr, CS>,
        values: Option<&ParentValues>,
        node: Variable,
    ) -> Result<Vec<Label>, SynthesisError>
    where
        CS: ConstraintSystem<Fr, Root = CS> + WordPass,
    {
        let mut labels = Vec::with_capacity(self.params.layers);
        for layer in 0..self.params.layers {
            let limbs = values.map(|values| &values.labels[layer]);
            labels.push(self.label(cs.namespace(|| format!("label of layer {layer}")), limbs)?);
        }
        let column = labels.iter().map(|label| label.number.clone()).collect();
        let hash = self.column_hasher.hash_allocated(cs.namespace(|| "column"), column)?;
        let path = values.map(|values| (values.node, &values.column_path));
        self.path(&mut cs.namespace(|| "column path"), &hash, path, node, self.common.column_root)?;
        Ok(labels)
    }

    /// `leaf` is the node of this number under this root.
    fn path<CS>(
        &self,
        cs: &mut Namespace<'_, Fr, CS>,
        leaf: &AllocatedNum<Fr>,
        values: Option<(u64, &Path)>,
        number: Variable,
        root: Variable,
    ) -> Result<(), SynthesisError>
    where
        CS: ConstraintSystem<Fr, Root = CS> + WordPass,
    {
        let mut node = leaf.clone();
        let mut place = LinearCombination::zero();
        for level in 0..self.params.depth {
            let position = values.map(|(number, path)| {
                let position = (number >> (TREE_ARITY.ilog2() as usize * level)) as usize % TREE_ARITY;
                (position, &path[level])
            });
            let children = match (position, node.get_value()) {
                (Some((position, siblings)), Some(value)) => {
                    let mut children = [value; TREE_ARITY];
                    children[..position].copy_from_slice(&siblings[..position]);
                    children[position + 1..].copy_from_slice(&siblings[position..]);
                    Some((position, children))
                }
                _ => None,
            };
            let children = children.as_ref().map(|(position, children)| (*position, &children[..]));
            let allocated = merkle::level(
                cs.namespace(|| format!("level {level}")),
                self.tree_hasher,
                node.get_variable(),
                children,
            )?;
            for (position, selector) in (0u64..).zip(&allocated.selectors).skip(1) {
                let weight = position << (TREE_ARITY.ilog2() as usize * level);
                place = place + (Fr::from(weight), selector.get_variable());
            }
            node = allocated.parent;
        }
        cs.enforce(|| "place in the tree", |_| place, |lc| lc + CS::one(), |lc| lc + number);
        equal(cs, "root", node.get_variable(), root);
        Ok(())
    }

    /// What the label of a layer hashes: the replica's name, the layer, the node, and labels of the parents; of those in the
    /// layer before from the second layer on.
    fn message(&self, id: &[Boolean], node: &[Boolean], layer: usize, parents: &[Vec<Label>]) -> Vec<Boolean> {
        let mut message = Vec::with_capacity(PREFIX_BITS + HASHED_BITS * self.params.hashed_labels);
        push_hashed(&mut message, id);
        message.extend((0..32).rev().map(|i| Boolean::constant(layer >> i & 1 == 1)));
        message.extend((node.len()..64).map(|_| Boolean::constant(false)));
        message.extend(node.iter().rev().cloned());
        message.resize(PREFIX_BITS, Boolean::constant(false));
        let (base, expander) = parents.split_at(self.params.base_parents);
        let base = base.iter().map(|labels| &labels[layer]);
        let expander = expander.iter().filter_map(|labels| Some(&labels[layer.checked_sub(1)?]));
        for label in base.chain(expander).cycle().take(self.params.hashed_labels) {
            push_hashed(&mut message, &label.bits);
        }
        message
    }
}

/// Append a label in 32 little-endian bytes, each from its most significant bit.
fn push_hashed(message: &mut Vec<Boolean>, bits: &[Boolean]) {
    let bit = |i: usize| bits.get(i).cloned().unwrap_or(Boolean::constant(false));
    message.extend((0..HASHED_BITS / 8).flat_map(|byte| (0..8).rev().map(move |i| bit(8 * byte + i))));
}

/// The label of a digest, whose bytes are little-endian and come from their most significant bits: all but its top bits.
fn bits_of_digest(digest: &[Boolean]) -> Vec<Boolean> {
    digest.chunks(8).flat_map(|byte| byte.iter().rev()).take(LABEL_BITS).cloned().collect()
}

/// Two variables are equal.
fn equal<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &'static str, left: Variable, right: Variable) {
    cs.enforce(|| name, |lc| lc + left, |lc| lc + CS::one(), |lc| lc + right);
}
