//! Challenges of a layered labelling, the workload of proofs of replication.
//!
//! A node of every layer has a label: the SHA-256 of the replica's name, the layer, the node and labels of its parents, of
//! which some are nodes of the same layer and, from the second layer on, some of the layer before. A node's labels of all
//! layers are hashed to a column, a leaf of the tree of columns; its last label hides data, and the sum of the two is a leaf
//! of the tree of the replica. The public commitment is the hash of the two trees' roots.
//!
//! For each challenge, a node, the circuit computes its labels from those of its parents, all of them opened in the tree of
//! columns, and opens its column and its replica. Which nodes the parents are is public: the graph is the verifier's.

mod challenge;
mod input;
mod params;

use zkhost_guest::bellpepper_core::num::AllocatedNum;
use zkhost_guest::bellpepper_core::{ConstraintSystem, Index, SynthesisError, Variable};
use zkhost_guest::gadgets::WordPass;
use zkhost_guest::gadgets::poseidon::Poseidon;
use zkhost_guest::input::Text;
use zkhost_guest::{Circuit, Error, Fr, Info, Plan, Scope, Synthesis};

use challenge::{Challenge, Common};
use input::Values;
pub use params::{Params, TREE_ARITY};

/// Public inputs before those of challenges: the one, the commitment and the replica's name.
const COMMON_INPUTS: usize = 3;

/// The circuit: the values of a job, or none of them.
pub struct Replica {
    params: Params,
    column_hasher: Poseidon,
    tree_hasher: Poseidon,
    root_hasher: Poseidon,
    values: Option<Values>,
}

impl Circuit for Replica {
    type Field = Fr;
    type Params = Params;
    type Input = Text;

    fn info() -> Info {
        Info {
            name: "replica",
            version: env!("CARGO_PKG_VERSION"),
            about: "Challenged nodes of a layered labelling. A label is the SHA-256 of the replica's name, layer, node and \
                    labels of its parents; columns of labels and the replica are leaves of Poseidon trees of arity 8. Public \
                    are the hash of the two roots, the replica's name and, for each challenge, the node and its parents.",
            params_help: r#"{"partitions": 1, "challenges": 2 (of a partition), "layers": 2 (or 4, 8, 11), "base_parents": 1, "expander_parents": 1, "hashed_labels": 2, "depth": 1 (of trees over 8^depth nodes)}"#,
            input_help: r#"{"replica_id": hex, "column_root": hex, "replica_root": hex, "partitions": [[challenges x {"node": 5, "data": hex, "column_path": [depth x hex of 7 elements], "replica_path": same, "parents": [{"node": 4, "labels": [layers x hex], "column_path": same}]}]]}; hex is of 32 little-endian bytes for each element"#,
        }
    }

    fn plan(params: &Params) -> Result<Plan, Error> {
        params.check()?;
        // Challenges after the first two are like the second.
        let counted = Params { challenges: params.challenges.min(2), ..params.clone() };
        let mut circuit = Replica::blank(&counted)?;
        circuit.values = Some(Values::twos());
        let measure = |segments| Synthesis::measure(|cs| circuit.synthesize(Scope { partition: 0, segments }, cs));
        let mut segments = vec![measure(0..1)?; params.challenges as usize];
        if params.challenges > 1 {
            segments[1..].fill(measure(1..2)?);
        }
        Ok(Plan::of_segments(params.partitions, segments))
    }

    fn blank(params: &Params) -> Result<Self, Error> {
        params.check()?;
        let hasher = |arity| Poseidon::new(arity).ok_or_else(|| Error::Internal("an arity without constants".into()));
        Ok(Replica {
            params: params.clone(),
            column_hasher: hasher(params.layers)?,
            tree_hasher: hasher(TREE_ARITY)?,
            root_hasher: hasher(2)?,
            values: None,
        })
    }

    fn open(params: &Params, input: Text) -> Result<Self, Error> {
        let mut circuit = Replica::blank(params)?;
        circuit.values = Some(Values::open(input, params)?);
        Ok(circuit)
    }

    fn synthesize(&self, scope: Scope, cs: &mut Synthesis<'_, Fr>) -> Result<(), Error> {
        self.constrain(scope, cs)
    }
}

impl Replica {
    /// The circuit in any constraint system.
    pub fn constrain<CS>(&self, scope: Scope, cs: &mut CS) -> Result<(), Error>
    where
        CS: ConstraintSystem<Fr, Root = CS> + WordPass,
    {
        if scope.is_first() {
            self.commitment(cs, scope.partition)?;
        }
        for index in scope.segments {
            let first = COMMON_INPUTS + index as usize * self.nodes_of_challenge();
            let input = |i| Variable::new_unchecked(Index::Input(i));
            let read = |values: &Values| values.challenge(scope.partition, index, &self.params);
            let values = self.values.as_ref().map(read).transpose()?;
            let challenge = Challenge {
                params: &self.params,
                column_hasher: &self.column_hasher,
                tree_hasher: &self.tree_hasher,
                replica_id: self.values.as_ref().map(|values| &values.common.replica_id),
                values: values.as_ref(),
                common: Common {
                    replica_id: input(2),
                    // The first variables of the first segment.
                    column_root: Variable::new_unchecked(Index::Aux(0)),
                    replica_root: Variable::new_unchecked(Index::Aux(1)),
                },
                nodes: (first..first + self.nodes_of_challenge()).map(input).collect(),
            };
            challenge.constrain(&mut cs.namespace(|| format!("challenge {index}")))?;
        }
        Ok(())
    }

    /// Public inputs of a challenge: the node and its parents.
    fn nodes_of_challenge(&self) -> usize {
        1 + self.params.parents()
    }

    /// The roots, the commitment to them, and all public inputs.
    fn commitment<CS>(&self, cs: &mut CS, partition: u32) -> Result<(), Error>
    where
        CS: ConstraintSystem<Fr, Root = CS> + WordPass,
    {
        let common = self.values.as_ref().map(|values| &values.common);
        let roots = common.map(|values| [values.column_root, values.replica_root]);
        let mut allocate = |name, index: usize| {
            AllocatedNum::alloc(cs.namespace(|| name), || {
                roots.map(|roots| roots[index]).ok_or(SynthesisError::AssignmentMissing)
            })
        };
        let roots = vec![allocate("column root", 0)?, allocate("replica root", 1)?];
        let commitment = self.root_hasher.hash_allocated(cs.namespace(|| "commitment"), roots)?;
        commitment.inputize(cs.namespace(|| "commitment is public"))?;
        let id = common.and_then(|values| Fr::from_canonical(values.replica_id));
        cs.alloc_input(|| "replica id", || id.ok_or(SynthesisError::AssignmentMissing))?;
        for challenge in 0..self.params.challenges {
            let read = |values: &Values| values.nodes(partition, challenge, &self.params);
            let nodes = self.values.as_ref().map(read).transpose()?;
            for i in 0..self.nodes_of_challenge() {
                let node = nodes.as_ref().map(|nodes| Fr::from(nodes[i]));
                cs.alloc_input(|| "node", || node.ok_or(SynthesisError::AssignmentMissing))?;
            }
        }
        Ok(())
    }
}

zkhost_guest::export_circuit!(Replica);
