//! Membership in Merkle trees of Poseidon hashes, from neptune's gadget.
//!
//! Each path is a partition: a proof of its own under the same key. A path may be divided into segments of whole levels,
//! which are assigned independently of each other.

mod input;

use zkhost_guest::bellpepper_core::{ConstraintSystem, Index, SynthesisError, Variable};
use zkhost_guest::gadgets::poseidon::Poseidon;
use zkhost_guest::gadgets::{WordPass, merkle};
use zkhost_guest::{Circuit, Error, Fr, Info, Plan, Scope, Synthesis};

pub use input::{Input, Level, Params, Path};

/// The circuit: for every path its values, or none of them.
pub struct MerklePoseidon {
    hasher: Poseidon,
    params: Params,
    /// Aux variables of a level.
    level_aux: u64,
    paths: Option<Vec<PathValues>>,
}

/// The values of one path.
struct PathValues {
    leaf: Fr,
    root: Fr,
    /// From the leaf up: which child is on the path, and all children.
    levels: Vec<(usize, Vec<Fr>)>,
}

impl Circuit for MerklePoseidon {
    type Field = Fr;
    type Params = Params;
    type Input = Input;

    fn info() -> Info {
        Info {
            name: "merkle-poseidon",
            version: env!("CARGO_PKG_VERSION"),
            about: "Membership of a secret leaf in a Merkle tree of Poseidon hashes (neptune, standard strength). One proof \
                    a path; its public input is the root.",
            params_help: r#"{"arity": 2 (or 4 or 8), "depth": 32, "paths": 1, "segments": 1}"#,
            input_help: r#"{"paths": [one a path: {"leaf": hex of 32 bytes, "levels": [depth x, from the leaf: {"position": 0 to arity - 1, "siblings": [arity - 1 x hex of 32 bytes]}], "root": hex of 32 bytes}]}; elements are little-endian"#,
        }
    }

    fn plan(params: &Params) -> Result<Plan, Error> {
        params.check()?;
        if params.segments == 1 {
            return Ok(Plan::partitions(params.paths));
        }
        let circuit = MerklePoseidon::blank(params)?;
        let aux_counts: Vec<u64> = (0..params.segments)
            .map(|segment| {
                let leaf = u64::from(segment == 0);
                leaf + params.levels(segment).len() as u64 * circuit.level_aux
            })
            .collect();
        Ok(Plan::segmented(params.paths, &aux_counts))
    }

    fn blank(params: &Params) -> Result<Self, Error> {
        params.check()?;
        let hasher = Poseidon::new(params.arity).ok_or_else(|| Error::Internal("an arity without constants".into()))?;
        let mut circuit = MerklePoseidon { hasher, params: params.clone(), level_aux: 0, paths: None };
        let one = Variable::new_unchecked(Index::Input(0));
        let zeros = vec![Fr::ZERO; params.arity];
        circuit.level_aux = Synthesis::measure(|cs| {
            merkle::level(cs, &circuit.hasher, one, Some((0, &zeros)))?;
            Ok(())
        })?
        .aux_count;
        Ok(circuit)
    }

    fn open(params: &Params, input: Input) -> Result<Self, Error> {
        let mut circuit = MerklePoseidon::blank(params)?;
        circuit.paths = Some(input.values(params, &circuit.hasher)?);
        Ok(circuit)
    }

    fn synthesize(&self, scope: Scope, cs: &mut Synthesis<'_, Fr>) -> Result<(), Error> {
        Ok(self.constrain(scope, cs)?)
    }
}

impl MerklePoseidon {
    /// The circuit in any constraint system.
    pub fn constrain<CS>(&self, scope: Scope, cs: &mut CS) -> Result<(), SynthesisError>
    where
        CS: ConstraintSystem<Fr, Root = CS> + WordPass,
    {
        let path = self.paths.as_ref().map(|paths| &paths[scope.partition as usize]);
        let levels = self.params.levels(scope.segments.start).start..self.params.levels(scope.segments.end - 1).end;
        let root = Variable::new_unchecked(Index::Input(1));
        let mut node = if scope.is_first() {
            cs.alloc_input(|| "root", || path.map(|path| path.root).ok_or(SynthesisError::AssignmentMissing))?;
            cs.alloc(|| "leaf", || path.map(|path| path.leaf).ok_or(SynthesisError::AssignmentMissing))?
        } else {
            self.last_variable_below(levels.start)
        };
        for level in levels.clone() {
            let values = path.map(|path| (path.levels[level].0, &path.levels[level].1[..]));
            let cs = cs.namespace(|| format!("level {level}"));
            node = merkle::level(cs, &self.hasher, node, values)?.parent.get_variable();
        }
        if levels.end == self.params.depth {
            cs.enforce(|| "root", |lc| lc + node, |lc| lc + CS::one(), |lc| lc + root);
        }
        Ok(())
    }

    /// The node below a level, when the segment of that node is not synthesised: a level's digest is its last variable.
    fn last_variable_below(&self, level: usize) -> Variable {
        let leaf = 1;
        let aux = leaf + level as u64 * self.level_aux;
        Variable::new_unchecked(Index::Aux(aux as usize - 1))
    }
}

zkhost_guest::export_circuit!(MerklePoseidon);
