//! Inputs. Elements are 32 little-endian bytes in hexadecimal.
//!
//! A job's input is kept as text, of which every segment parses its own challenge.

use serde::Deserialize;
use zkhost_guest::input::{Part, RawValue, Text, element, expect_count};
use zkhost_guest::{Error, Fr, HexBytes};

use crate::params::{Params, TREE_ARITY};

/// Bytes of a level of a path. Few long strings are faster to skip than many short ones.
const LEVEL_BYTES: usize = ELEMENT_BYTES * (TREE_ARITY - 1);
/// Bytes of an element.
const ELEMENT_BYTES: usize = 32;

/// What a job is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outline<'a> {
    /// What the replica is bound to, below 2^254; public.
    replica_id: HexBytes<32>,
    /// The root of the tree of columns.
    column_root: HexBytes<32>,
    /// The root of the tree of the replica.
    replica_root: HexBytes<32>,
    /// The challenges of each partition, each a [`Challenge`].
    #[serde(borrow)]
    partitions: Vec<Vec<&'a RawValue>>,
}

/// A node that is opened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Challenge {
    /// The node; public.
    node: u64,
    /// What its last label hides.
    data: HexBytes<32>,
    /// Its path in the tree of columns: on each level, from the leaf up, the seven siblings, one after the other.
    column_path: Vec<HexBytes<LEVEL_BYTES>>,
    /// Its path in the tree of the replica.
    replica_path: Vec<HexBytes<LEVEL_BYTES>>,
    /// Its parents: of its own layer, then of the layer before.
    parents: Vec<Parent>,
}

/// A parent of a node.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parent {
    /// The node; public.
    node: u64,
    /// Its labels, one a layer, below 2^254.
    labels: Vec<HexBytes<32>>,
    /// Its path in the tree of columns.
    column_path: Vec<HexBytes<LEVEL_BYTES>>,
}

/// The nodes of a [`Challenge`], whose other fields the segment that opens it looks at.
#[derive(Deserialize)]
struct Nodes {
    node: u64,
    parents: Vec<ParentNode>,
}

/// The node of a [`Parent`].
#[derive(Deserialize)]
struct ParentNode {
    node: u64,
}

/// The values of a job.
pub(crate) struct Values {
    pub common: CommonValues,
    challenges: Challenges,
}

/// Values that all partitions share.
pub(crate) struct CommonValues {
    pub replica_id: [u64; 4],
    pub column_root: Fr,
    pub replica_root: Fr,
}

/// Where the values of challenges come from.
enum Challenges {
    /// An input, and where the challenges of each partition stand in it.
    Text(Text, Vec<Vec<Part>>),
    /// None: every number is two.
    Twos,
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
    /// Values of no labelling, but enough to measure segments. None is 0 or 1.
    pub fn twos() -> Self {
        let two = Fr::from(2);
        let common = CommonValues { replica_id: [2, 0, 0, 0], column_root: two, replica_root: two };
        Values { common, challenges: Challenges::Twos }
    }

    /// The values of an input, if it has the form that the parameters ask for as far as challenges. That it is true is left
    /// to the constraints.
    pub fn open(text: Text, params: &Params) -> Result<Self, Error> {
        let outline: Outline<'_> = text.parse()?;
        expect_count("partitions", outline.partitions.len(), params.partitions as usize)?;
        for (i, challenges) in outline.partitions.iter().enumerate() {
            expect_count(&format!("partitions[{i}]"), challenges.len(), params.challenges as usize)?;
        }
        let common = CommonValues {
            replica_id: bits("replica_id", &outline.replica_id)?,
            column_root: element("column_root", &outline.column_root)?,
            replica_root: element("replica_root", &outline.replica_root)?,
        };
        let parts = |challenges: &Vec<&RawValue>| challenges.iter().map(|challenge| text.part(challenge)).collect();
        let parts = outline.partitions.iter().map(parts).collect();
        Ok(Values { common, challenges: Challenges::Text(text, parts) })
    }

    /// The values of a challenge of a partition.
    pub fn challenge(&self, partition: u32, index: u32, params: &Params) -> Result<ChallengeValues, Error> {
        match &self.challenges {
            Challenges::Text(text, parts) => {
                let field = format!("partitions[{partition}][{index}]");
                let part = &parts[partition as usize][index as usize];
                text.parse_part::<Challenge>(part, &field)?.values(&field, params)
            }
            Challenges::Twos => Ok(ChallengeValues::twos(params)),
        }
    }

    /// The nodes of a challenge of a partition: its own, then its parents.
    pub fn nodes(&self, partition: u32, index: u32, params: &Params) -> Result<Vec<u64>, Error> {
        let Challenges::Text(text, parts) = &self.challenges else { return Ok(vec![2; 1 + params.parents()]) };
        let field = format!("partitions[{partition}][{index}]");
        let nodes: Nodes = text.parse_part(&parts[partition as usize][index as usize], &field)?;
        expect_count(&format!("{field}.parents"), nodes.parents.len(), params.parents())?;
        let parents = nodes.parents.iter().enumerate();
        let parents = parents.map(|(i, parent)| node(&format!("{field}.parents[{i}]"), parent.node, params));
        std::iter::once(node(&field, nodes.node, params)).chain(parents).collect()
    }
}

impl ChallengeValues {
    fn twos(params: &Params) -> Self {
        let path = || vec![[Fr::from(2); TREE_ARITY - 1]; params.depth];
        let parent = |_| ParentValues { node: 2, labels: vec![[2, 0, 0, 0]; params.layers], column_path: path() };
        ChallengeValues {
            node: 2,
            data: Fr::from(2),
            column_path: path(),
            replica_path: path(),
            parents: (0..params.parents()).map(parent).collect(),
        }
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

fn path(field: &str, levels: &[HexBytes<LEVEL_BYTES>], params: &Params) -> Result<Path, Error> {
    expect_count(field, levels.len(), params.depth)?;
    let level = |(level, siblings): (usize, &HexBytes<LEVEL_BYTES>)| {
        let mut elements = [Fr::ZERO; TREE_ARITY - 1];
        let (siblings, _) = siblings.0.as_chunks();
        for (i, (place, sibling)) in elements.iter_mut().zip(siblings).enumerate() {
            *place = element(&format!("{field}[{level}][{i}]"), &HexBytes(*sibling))?;
        }
        Ok(elements)
    };
    levels.iter().enumerate().map(level).collect()
}

/// The limbs of a number below 2^254.
fn bits(field: &str, bytes: &HexBytes<32>) -> Result<[u64; 4], Error> {
    match bytes.0[31] >> 6 {
        0 => Ok(element(field, bytes)?.to_canonical()),
        _ => Err(Error::BadInput(format!("field `{field}`: a number below 2^254, little-endian, was expected"))),
    }
}
