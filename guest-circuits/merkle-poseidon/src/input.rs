//! Parameters and inputs.

use std::ops::Range;

use serde::Deserialize;
use zkhost_guest::gadgets::poseidon::Poseidon;
use zkhost_guest::input::{element, expect_count};
use zkhost_guest::{Error, Fr, HexBytes};

use crate::PathValues;

/// The most levels of a tree.
const DEPTH_LEVELS_MAX: usize = 4096;
/// The most paths of a job.
const PATHS_MAX: u32 = 65_536;
/// The most segments of a path.
const SEGMENTS_MAX: u32 = 1024;

/// What the constraint system and the plan depend on.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Children of a node: 2, 4 or 8.
    pub arity: usize,
    /// Levels of hashes between leaf and root.
    pub depth: usize,
    /// The number of paths: partitions of a job.
    pub paths: u32,
    /// Segments of a path.
    pub segments: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { arity: 2, depth: 32, paths: 1, segments: 1 }
    }
}

impl Params {
    /// Refuse what is out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse =
            |field: &str, expected: String| Err(Error::BadParams(format!("field `{field}`: {expected} was expected")));
        if ![2, 4, 8].contains(&self.arity) {
            return refuse("arity", "2, 4 or 8".into());
        }
        if !(1..=DEPTH_LEVELS_MAX).contains(&self.depth) {
            return refuse("depth", format!("a number from 1 to {DEPTH_LEVELS_MAX}"));
        }
        if !(1..=PATHS_MAX).contains(&self.paths) {
            return refuse("paths", format!("a number from 1 to {PATHS_MAX}"));
        }
        if !(1..=SEGMENTS_MAX).contains(&self.segments) || self.segments as usize > self.depth {
            return refuse("segments", format!("a number from 1 to {SEGMENTS_MAX} and not above the depth"));
        }
        Ok(())
    }

    /// The levels of a segment; they are divided as evenly as can be.
    pub(crate) fn levels(&self, segment: u32) -> Range<usize> {
        let start = |segment: u32| self.depth * segment as usize / self.segments as usize;
        start(segment)..start(segment + 1)
    }
}

/// What a job is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// One for every path of the parameters.
    pub paths: Vec<Path>,
}

/// One path; elements are 32 little-endian bytes in hexadecimal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// The secret leaf.
    pub leaf: HexBytes<32>,
    /// From the leaf up, one a level.
    pub levels: Vec<Level>,
    /// The public root.
    pub root: HexBytes<32>,
}

/// One level of a path.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Which child the node on the path is, from 0.
    pub position: usize,
    /// The other children, in order.
    pub siblings: Vec<HexBytes<32>>,
}

impl Input {
    /// The values of every path. That the root is the right one is left to the constraints.
    pub(crate) fn values(&self, params: &Params, hasher: &Poseidon) -> Result<Vec<PathValues>, Error> {
        expect_count("paths", self.paths.len(), params.paths as usize)?;
        self.paths.iter().enumerate().map(|(i, path)| path.values(&format!("paths[{i}]"), params, hasher)).collect()
    }
}

impl Path {
    fn values(&self, field: &str, params: &Params, hasher: &Poseidon) -> Result<PathValues, Error> {
        let leaf = element(&format!("{field}.leaf"), &self.leaf)?;
        let root = element(&format!("{field}.root"), &self.root)?;
        expect_count(&format!("{field}.levels"), self.levels.len(), params.depth)?;
        let mut node = leaf;
        let mut levels = Vec::with_capacity(params.depth);
        for (i, level) in self.levels.iter().enumerate() {
            let children = level.children(&format!("{field}.levels[{i}]"), params.arity, node)?;
            node = hasher.hash(&children);
            levels.push((level.position, children));
        }
        Ok(PathValues { leaf, root, levels })
    }
}

impl Level {
    /// The siblings with the node among them.
    fn children(&self, field: &str, arity: usize, node: Fr) -> Result<Vec<Fr>, Error> {
        if self.position >= arity {
            let last = arity - 1;
            return Err(Error::BadInput(format!("field `{field}.position`: a number from 0 to {last} was expected")));
        }
        expect_count(&format!("{field}.siblings"), self.siblings.len(), arity - 1)?;
        let siblings = self.siblings.iter().enumerate();
        let mut children = siblings
            .map(|(i, sibling)| element(&format!("{field}.siblings[{i}]"), sibling))
            .collect::<Result<Vec<_>, Error>>()?;
        children.insert(self.position, node);
        Ok(children)
    }
}
