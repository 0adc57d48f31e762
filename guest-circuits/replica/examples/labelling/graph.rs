//! The labelling, computed natively.

use replica::{Params, TREE_ARITY};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zkhost_guest::Fr;
use zkhost_guest::gadgets::poseidon::Poseidon;

/// A labelled graph and its trees.
pub struct Labelling<'a> {
    params: &'a Params,
    seed: u64,
    replica_id: Fr,
    /// Labels of all layers, node by node.
    labels: Vec<Vec<Fr>>,
    /// From the leaves up.
    columns: Vec<Vec<Fr>>,
    replica: Vec<Vec<Fr>>,
}

impl<'a> Labelling<'a> {
    /// Label a graph of 8^depth nodes.
    pub fn new(params: &'a Params, seed: u64) -> Self {
        let nodes = 1usize << params.node_bits();
        let replica_id = below_254_bits(&[b"replica", &seed.to_be_bytes()]);
        let mut layers: Vec<Vec<Fr>> = Vec::new();
        for layer in 0..params.layers {
            let mut labels: Vec<Fr> = Vec::with_capacity(nodes);
            for node in 0..nodes {
                let parents = parents(params, seed, node as u64);
                let (base, expander) = parents.split_at(params.base_parents);
                let base = base.iter().map(|parent| labels.get(*parent as usize).copied().unwrap_or(Fr::ZERO));
                let expander = expander.iter().filter_map(|parent| Some(layers.last()?[*parent as usize]));
                let hashed: Vec<Fr> = base.chain(expander).collect();
                labels.push(label(params, replica_id, layer, node as u64, &hashed));
            }
            layers.push(labels);
        }
        let labels: Vec<Vec<Fr>> = (0..nodes).map(|node| layers.iter().map(|layer| layer[node]).collect()).collect();
        let column_hasher = Poseidon::new(params.layers).expect("an arity");
        let columns = labels.iter().map(|column| column_hasher.hash(column)).collect();
        let encoded = (0..nodes).map(|node| labels[node][params.layers - 1] + data(seed, node as u64)).collect();
        Labelling { params, seed, replica_id, labels, columns: tree(columns), replica: tree(encoded) }
    }

    /// An input of the circuit: challenges spread over the nodes, the first node excepted, which has no parents.
    pub fn input(&self) -> Value {
        let nodes = self.labels.len() as u64;
        let partition = |partition: u32| -> Vec<Value> {
            let number = |i| u64::from(partition) * u64::from(self.params.challenges) + u64::from(i);
            (0..self.params.challenges).map(|i| self.challenge(1 + number(i) * 5 % (nodes - 1))).collect()
        };
        json!({
            "replica_id": hex(self.replica_id),
            "column_root": hex(self.columns[self.params.depth][0]),
            "replica_root": hex(self.replica[self.params.depth][0]),
            "partitions": (0..self.params.partitions).map(partition).collect::<Vec<_>>(),
        })
    }

    fn challenge(&self, node: u64) -> Value {
        let parent = |node: u64| {
            let labels = self.labels[node as usize].iter().map(|label| hex(*label));
            json!({
                "node": node,
                "labels": labels.collect::<Vec<_>>(),
                "column_path": path(&self.columns, node),
            })
        };
        json!({
            "node": node,
            "data": hex(data(self.seed, node)),
            "column_path": path(&self.columns, node),
            "replica_path": path(&self.replica, node),
            "parents": parents(self.params, self.seed, node).into_iter().map(parent).collect::<Vec<_>>(),
        })
    }
}

/// The parents of a node: of its own layer, all before it, and of the layer before.
fn parents(params: &Params, seed: u64, node: u64) -> Vec<u64> {
    let nodes = 1u64 << params.node_bits();
    let random = |kind: u8, i: usize| {
        let digest = Sha256::digest([&seed.to_be_bytes()[..], &[kind], &node.to_be_bytes(), &i.to_be_bytes()].concat());
        u64::from_be_bytes(digest[..8].try_into().expect("eight bytes"))
    };
    let base = (0..params.base_parents).map(|i| if node == 0 { 0 } else { random(0, i) % node });
    base.chain((0..params.expander_parents).map(|i| random(1, i) % nodes)).collect()
}

/// The label of a node from labels of its parents.
fn label(params: &Params, replica_id: Fr, layer: usize, node: u64, hashed: &[Fr]) -> Fr {
    let mut message = replica_id.to_le_bytes().to_vec();
    message.extend((layer as u32).to_be_bytes());
    message.extend(node.to_be_bytes());
    message.resize(64, 0);
    message.extend(hashed.iter().cycle().take(params.hashed_labels).flat_map(|label| label.to_le_bytes()));
    below_254_bits(&[&message])
}

/// The SHA-256 of some bytes as a little-endian number, without its two top bits.
fn below_254_bits(parts: &[&[u8]]) -> Fr {
    let mut digest: [u8; 32] = Sha256::digest(parts.concat()).into();
    digest[31] &= 0x3f;
    Fr::from_le_bytes(&digest).expect("254 bits")
}

/// The data of a node.
fn data(seed: u64, node: u64) -> Fr {
    below_254_bits(&[b"data", &seed.to_be_bytes(), &node.to_be_bytes()])
}

/// The levels of a tree, from its leaves up.
fn tree(leaves: Vec<Fr>) -> Vec<Vec<Fr>> {
    let hasher = Poseidon::new(TREE_ARITY).expect("an arity");
    let mut levels = vec![leaves];
    while let Some(level) = levels.last().filter(|level| level.len() > 1) {
        let above = level.chunks(TREE_ARITY).map(|children| hasher.hash(children)).collect();
        levels.push(above);
    }
    levels
}

/// The siblings of a node on each level, one after the other.
fn path(levels: &[Vec<Fr>], node: u64) -> Vec<String> {
    let mut node = node as usize;
    let mut path = Vec::new();
    for level in &levels[..levels.len() - 1] {
        let first = node / TREE_ARITY * TREE_ARITY;
        let siblings = (first..first + TREE_ARITY).filter(|sibling| *sibling != node);
        path.push(siblings.map(|sibling| hex(level[sibling])).collect());
        node /= TREE_ARITY;
    }
    path
}

fn hex(element: Fr) -> String {
    element.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
