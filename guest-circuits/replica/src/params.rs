//! What the constraint system and the plan depend on.

use serde::{Deserialize, Serialize};
use zkhost_guest::Error;
use zkhost_guest::gadgets::poseidon::Poseidon;

/// Children of a node of the trees.
pub const TREE_ARITY: usize = 8;
/// The most levels of a tree: 2^30 nodes, the largest sector there is.
const DEPTH_LEVELS_MAX: usize = 10;
/// The most partitions of a job.
const PARTITIONS_MAX: u32 = 65_536;
/// The most challenges of a partition, each a segment.
const CHALLENGES_MAX: u32 = 1024;
/// The most parents of a node of either kind.
const PARENTS_MAX: usize = 64;
/// The most labels that a label hashes.
const HASHED_LABELS_MAX: usize = 1024;

/// Sizes. The defaults are small; [`Params::sealing`] has those of the published proofs of replication.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Proofs of a job.
    pub partitions: u32,
    /// Nodes that a partition opens.
    pub challenges: u32,
    /// Layers of labels: 2, 4, 8 or 11, for a node's labels are hashed together.
    pub layers: usize,
    /// Parents of a node in its own layer.
    pub base_parents: usize,
    /// Parents of a node in the layer before.
    pub expander_parents: usize,
    /// Labels of parents that a label hashes; those of the parents are repeated as often as it takes.
    pub hashed_labels: usize,
    /// Levels of the trees over 8^depth nodes.
    pub depth: usize,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            partitions: 1,
            challenges: 2,
            layers: 2,
            base_parents: 1,
            expander_parents: 1,
            hashed_labels: 2,
            depth: 1,
        }
    }
}

impl Params {
    /// The sizes of Filecoin's proof of replication of a 32 GiB sector.
    pub fn sealing() -> Self {
        Params {
            partitions: 10,
            challenges: 18,
            layers: 11,
            base_parents: 6,
            expander_parents: 8,
            hashed_labels: 37,
            depth: 10,
        }
    }

    /// Parents of a node.
    pub fn parents(&self) -> usize {
        self.base_parents + self.expander_parents
    }

    /// Bits of a node's number.
    pub fn node_bits(&self) -> usize {
        TREE_ARITY.ilog2() as usize * self.depth
    }

    /// Refuse what is out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |field: &str, found: u64, most: u64| match (1..=most).contains(&found) {
            true => Ok(()),
            false => Err(Error::BadParams(format!("field `{field}`: a number from 1 to {most} was expected"))),
        };
        refuse("partitions", self.partitions.into(), PARTITIONS_MAX.into())?;
        refuse("challenges", self.challenges.into(), CHALLENGES_MAX.into())?;
        refuse("base_parents", self.base_parents as u64, PARENTS_MAX as u64)?;
        refuse("expander_parents", self.expander_parents as u64, PARENTS_MAX as u64)?;
        refuse("hashed_labels", self.hashed_labels as u64, HASHED_LABELS_MAX as u64)?;
        refuse("depth", self.depth as u64, DEPTH_LEVELS_MAX as u64)?;
        if !Poseidon::ARITIES.contains(&self.layers) {
            return Err(Error::BadParams("field `layers`: 2, 4, 8 or 11 was expected".into()));
        }
        Ok(())
    }
}
