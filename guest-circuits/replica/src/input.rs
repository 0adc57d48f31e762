//! Inputs. Elements are 32 little-endian bytes in hexadecimal.

use serde::Deserialize;
use zkhost_guest::{Error, Fr, HexBytes};

use crate::params::{Params, TREE_ARITY};

/// What a job is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What the replica is bound to, below 2^254; public.
    pub replica_id: HexBytes<32>,
    /// The root of the tree of columns.
    pub column_root: HexBytes<32>,
    /// The root of the tree of the replica.
    pub replica_root: HexBytes<32>,
    /// The challenges of each partition.
    pub partitions: Vec<Vec<Challenge>>,
}

/// A node that is opened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Challenge {
    /// The node; public.
    pub node: u64,
    /// What its last label hides.
    pub data: HexBytes<32>,
    /// Its path in the tree of columns: on each level, from the leaf up, the seven siblings.
    pub column_path: Vec<Vec<HexBytes<32>>>,
    /// Its path in the tree of the replica.
    pub replica_path: Vec<Vec<HexBytes<32>>>,
    /// Its parents: of its own layer, then of the layer before.
    pub parents: Vec<Parent>,
}

/// A parent of a node.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    /// The node; public.
    pub node: u64,
    /// Its labels, one a layer, below 2^254.
    pub labels: Vec<HexBytes<32>>,
    /// Its path in the tree of columns.
    pub column_path: Vec<Vec<HexBytes<32>>>,
}

/// The values of a job.
pub(crate) struct Values {
    pub replica_id: [u64; 4],
    pub column_root: Fr,
    pub replica_root: Fr,
    pub partitions: Vec<Vec<ChallengeValues>>,
}

/// The values of a challenge.
pub(crate) struct ChallengeValues {
    pub node: u64,
    pub data: Fr,
    pub column_path: Path,
    pub replica_path: Path,
    pub parents: Vec<ParentValues>,
}

/// The values of a parent.
pub(crate) struct ParentValues {
    pub node: u64,
    /// 254 bits each.
    pub labels: Vec<[u64; 4]>,
    pub column_path: Path,
}

/// On each level, from the leaf up, the seven siblings.
pub(crate) type Path = Vec<[Fr; TREE_ARITY - 1]>;

impl Values {
    /// Values for one partition, of no labelling, but enough to measure its segments. None is 0 or 1.
    pub(crate) fn twos(params: &Params) -> Self {
        let two = Fr::from(2);
        let path = || vec![[two; TREE_ARITY - 1]; params.depth];
        let parent = |_| ParentValues { node: 2, labels: vec![[2, 0, 0, 0]; params.layers], column_path: path() };
        let challenge = |_| ChallengeValues {
            node: 2,
            data: two,
            column_path: path(),
            replica_path: path(),
            parents: (0..params.parents()).map(parent).collect(),
        };
        Values {
            replica_id: [2, 0, 0, 0],
            column_root: two,
            replica_root: two,
            partitions: vec![(0..params.challenges).map(challenge).collect()],
        }
    }
}

impl Input {
    /// The values, if the input has the form that the parameters ask for. That it is true is left to the constraints.
    pub(crate) fn values(self, params: &Params) -> Result<Values, Error> {
        expect_count("partitions", self.partitions.len(), params.partitions as usize)?;
        let partition = |(i, challenges): (usize, Vec<Challenge>)| {
            let field = format!("partitions[{i}]");
            expect_count(&field, challenges.len(), params.challenges as usize)?;
            let challenge = |(i, challenge): (usize, Challenge)| challenge.values(&format!("{field}[{i}]"), params);
            challenges.into_iter().enumerate().map(challenge).collect()
        };
        Ok(Values {
            replica_id: bits("replica_id", &self.replica_id)?,
            column_root: element("column_root", &self.column_root)?,
            replica_root: element("replica_root", &self.replica_root)?,
            partitions: self.partitions.into_iter().enumerate().map(partition).collect::<Result<_, _>>()?,
        })
    }
}

impl Challenge {
    fn values(self, field: &str, params: &Params) -> Result<ChallengeValues, Error> {
        expect_count(&format!("{field}.parents"), self.parents.len(), params.parents())?;
        let parent = |(i, parent): (usize, Parent)| parent.values(&format!("{field}.parents[{i}]"), params);
        Ok(ChallengeValues {
            node: node(field, self.node, params)?,
            data: element(&format!("{field}.data"), &self.data)?,
            column_path: path(&format!("{field}.column_path"), &self.column_path, params)?,
            replica_path: path(&format!("{field}.replica_path"), &self.replica_path, params)?,
            parents: self.parents.into_iter().enumerate().map(parent).collect::<Result<_, _>>()?,
        })
    }
}

impl Parent {
    fn values(self, field: &str, params: &Params) -> Result<ParentValues, Error> {
        expect_count(&format!("{field}.labels"), self.labels.len(), params.layers)?;
        let label = |(i, label): (usize, &HexBytes<32>)| bits(&format!("{field}.labels[{i}]"), label);
        Ok(ParentValues {
            node: node(field, self.node, params)?,
            labels: self.labels.iter().enumerate().map(label).collect::<Result<_, _>>()?,
            column_path: path(&format!("{field}.column_path"), &self.column_path, params)?,
        })
    }
}

fn node(field: &str, node: u64, params: &Params) -> Result<u64, Error> {
    let last = (1u64 << params.node_bits()) - 1;
    match node <= last {
        true => Ok(node),
        false => Err(Error::BadInput(format!("field `{field}.node`: a number from 0 to {last} was expected"))),
    }
}

fn path(field: &str, levels: &[Vec<HexBytes<32>>], params: &Params) -> Result<Path, Error> {
    expect_count(field, levels.len(), params.depth)?;
    let level = |(i, siblings): (usize, &Vec<HexBytes<32>>)| {
        let field = format!("{field}[{i}]");
        expect_count(&field, siblings.len(), TREE_ARITY - 1)?;
        let mut elements = [Fr::ZERO; TREE_ARITY - 1];
        for (i, (place, sibling)) in elements.iter_mut().zip(siblings).enumerate() {
            *place = element(&format!("{field}[{i}]"), sibling)?;
        }
        Ok(elements)
    };
    levels.iter().enumerate().map(level).collect()
}

fn expect_count(field: &str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::BadInput(format!("field `{field}`: a list of {expected} was expected, not of {found}")))
}

fn element(field: &str, bytes: &HexBytes<32>) -> Result<Fr, Error> {
    let expected = "a scalar of BLS12-381 below its modulus, little-endian, was expected";
    Fr::from_le_bytes(&bytes.0).ok_or_else(|| Error::BadInput(format!("field `{field}`: {expected}")))
}

/// The limbs of a number below 2^254.
fn bits(field: &str, bytes: &HexBytes<32>) -> Result<[u64; 4], Error> {
    match bytes.0[31] >> 6 {
        0 => Ok(element(field, bytes)?.to_canonical()),
        _ => Err(Error::BadInput(format!("field `{field}`: a number below 2^254, little-endian, was expected"))),
    }
}
