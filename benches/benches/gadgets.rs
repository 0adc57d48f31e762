//! Gadgets that write words, in the sandbox, beside the published ones, native: `sha256_witness`, in nanoseconds a
//! constraint, and `poseidon_witness`, in microseconds a hash.
//!
//! The published gadgets have two peers. A prover's constraint system takes values and evaluates every constraint, as
//! bellperson's does; a witness generator, which neptune and bellpepper know too, takes values only, as ours does.

use bellpepper::gadgets::{multipack::pack_into_inputs, sha256::sha256};
use bellpepper::util_cs::witness_cs::WitnessCS;
use bellpepper_core::boolean::{AllocatedBit, Boolean};
use bellpepper_core::num::AllocatedNum;
use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::{Field, PrimeField};
use generic_array::typenum::U8;
use neptune::circuit2::poseidon_hash_allocated;
use neptune::poseidon::PoseidonConstants;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use zkhost_benches::{Measurement, paired, timed};
use zkhost_groth16::Assignment;
use zkhost_groth16::assignment::SegmentWriter;
use zkhost_guest::Fr;
use zkhost_guest::gadgets::poseidon::Poseidon;
use zkhost_runtime::{Cache, Circuit, Compiler, Input, Limits, Runtime};

const RUNS: usize = 9;
/// Bytes of the preimage: 65 blocks.
const PREIMAGE_BYTES: usize = 4096;
/// Hashes of a path.
const HASHES: usize = 256;
const ARITY: usize = 8;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::open(&folder.path().join("cache")).expect("a private cache");
    let runtime = Runtime::new(Compiler::InProcess, Some(cache)).expect("the runtime starts");
    sha256_witness(&load(&runtime, "sha256"));
    poseidon_witness(&load(&runtime, "merkle-poseidon"));
}

fn load(runtime: &Runtime, name: &str) -> Circuit {
    let components = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../guest-circuits/target/components");
    runtime
        .load_file(&components.join(name).with_extension("wasm"), Limits::default())
        .expect("run `make guests` first")
}

/// A guest's assignment of one partition, timed and checked again and again, and the number of its constraints.
struct Guest {
    assign: Box<dyn FnMut() -> Duration>,
    constraints: usize,
}

impl Guest {
    fn new(circuit: &Circuit, params: &str, input: &str) -> Self {
        let layout = circuit.plan(params.as_bytes()).expect("it plans");
        let shape = circuit.record_shape(params.as_bytes(), false).expect("it records");
        let limits = circuit.segment_limits(&layout, &shape).expect("plan and shape agree")[0];
        let mut job = circuit.open(params.as_bytes(), &Input::from(input.as_bytes().to_vec())).expect("an input");
        let constraints = shape.constraints();
        let assign = move || {
            let started = Instant::now();
            let writer = SegmentWriter::on_heap(layout.encoding, limits).expect("there is memory");
            let segment = job.assign(0, 0, writer).expect("it assigns").finish().expect("it is complete");
            let time = started.elapsed();
            shape.check(&Assignment::new(vec![segment])).expect("every constraint holds");
            time
        };
        Guest { assign: Box::new(assign), constraints }
    }

    /// Ours beside a peer; both are `of` a number of things, and recorded by the thing.
    fn record(
        &mut self,
        bench: &str,
        peer: &str,
        (unit, scale): (&str, f64),
        of: usize,
        native: impl FnMut() -> Duration,
    ) {
        let (ours, native) = paired(RUNS, &mut self.assign, native);
        let per = |time: Duration| time.as_secs_f64() * scale / of as f64;
        let measurement = Measurement {
            bench,
            case: peer,
            ours: per(ours),
            peer: Some(peer),
            peer_value: Some(per(native)),
            unit,
            checked: true,
        };
        measurement.record().expect("results can be written");
    }
}

fn sha256_witness(circuit: &Circuit) {
    let preimage: Vec<u8> = (0..PREIMAGE_BYTES).map(|i| (i * 7 + i / 256) as u8).collect();
    let params = json!({ "preimage_bytes": PREIMAGE_BYTES }).to_string();
    let input = json!({ "preimage": hex::encode(&preimage) }).to_string();
    let mut guest = Guest::new(circuit, &params, &input);
    let constraints = guest.constraints;
    let unit = ("ns", 1e9);
    guest.record("sha256_witness", "bellpepper native, as a prover synthesises", unit, constraints, || {
        timed(|| hash_preimage(Proving::new(), &preimage))
    });
    guest.record("sha256_witness", "bellpepper native, witness generator", unit, constraints, || {
        timed(|| hash_preimage(WitnessCS::<Scalar>::new(), &preimage))
    });
}

/// The circuit of the guest, from the published gadgets.
fn hash_preimage<CS: ConstraintSystem<Scalar>>(mut cs: CS, preimage: &[u8]) -> CS {
    let bits: Vec<Boolean> = (0..8 * preimage.len())
        .map(|i| {
            let bit = preimage[i / 8] >> (7 - i % 8) & 1 == 1;
            AllocatedBit::alloc(cs.namespace(|| format!("bit {i}")), Some(bit)).expect("a bit").into()
        })
        .collect();
    let digest = sha256(cs.namespace(|| "sha256"), &bits).expect("a digest");
    pack_into_inputs(cs.namespace(|| "digest"), &digest).expect("inputs");
    cs
}

fn poseidon_witness(circuit: &Circuit) {
    let hasher = Poseidon::new(ARITY).expect("an arity");
    let leaf = Fr::from(42);
    let siblings: Vec<Fr> = (1..ARITY as u64).map(|i| Fr::from(1000 + i)).collect();
    let hex = |element: Fr| hex::encode(element.to_le_bytes());
    let level = json!({ "position": 0, "siblings": siblings.iter().map(|s| hex(*s)).collect::<Vec<_>>() });
    let root = (0..HASHES).fold(leaf, |node, _| hasher.hash(&[&[node], &siblings[..]].concat()));
    let params = json!({ "arity": ARITY, "depth": HASHES }).to_string();
    let path = json!({ "leaf": hex(leaf), "levels": vec![level; HASHES], "root": hex(root) });
    let mut guest = Guest::new(circuit, &params, &json!({ "paths": [path] }).to_string());

    let constants = PoseidonConstants::<Scalar, U8>::new();
    let siblings: Vec<Scalar> =
        siblings.iter().map(|s| Scalar::from_repr(s.to_le_bytes()).expect("canonical")).collect();
    let expected = root.to_le_bytes();
    let unit = ("us", 1e6);
    guest.record("poseidon_witness", "neptune native, as a prover synthesises", unit, HASHES, || {
        timed(|| hash_path(Proving::new(), &siblings, &constants, &expected))
    });
    guest.record("poseidon_witness", "neptune native, witness generator", unit, HASHES, || {
        timed(|| hash_path(WitnessCS::<Scalar>::new(), &siblings, &constants, &expected))
    });
}

/// As many hashes as the guest's path has, without its selection of children.
fn hash_path<CS: ConstraintSystem<Scalar>>(
    mut cs: CS,
    siblings: &[Scalar],
    constants: &PoseidonConstants<Scalar, U8>,
    root: &[u8; 32],
) -> CS {
    let mut allocate = |value: Scalar| AllocatedNum::alloc(cs.namespace(|| "child"), || Ok(value)).expect("a number");
    let mut children = vec![allocate(Scalar::from(42))];
    children.extend(siblings.iter().map(|sibling| allocate(*sibling)));
    for i in 0..HASHES {
        let cs = cs.namespace(|| format!("hash {i}"));
        children[0] = poseidon_hash_allocated(cs, children.clone(), constants).expect("a digest");
    }
    assert_eq!(children[0].get_value().map(|digest| digest.to_repr()), Some(*root), "the root is the guest's");
    cs
}

/// How long some work takes; what it makes is dropped afterwards.
/// What a prover's constraint system does: keep values, and evaluate the three sides of every constraint.
struct Proving {
    inputs: Vec<Scalar>,
    aux: Vec<Scalar>,
    sides: [Vec<Scalar>; 3],
}

impl Proving {
    fn evaluate(&self, lc: &LinearCombination<Scalar>) -> Scalar {
        let term = |(variable, coefficient): (Variable, &Scalar)| {
            let value = match variable.get_unchecked() {
                Index::Input(i) => self.inputs[i],
                Index::Aux(i) => self.aux[i],
            };
            if *coefficient == Scalar::ONE { value } else { value * coefficient }
        };
        lc.iter().map(term).sum()
    }
}

impl ConstraintSystem<Scalar> for Proving {
    type Root = Self;

    fn new() -> Self {
        Proving { inputs: vec![Scalar::ONE], aux: Vec::new(), sides: Default::default() }
    }

    fn alloc<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(value()?);
        Ok(Variable::new_unchecked(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _annotation: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let zero = LinearCombination::zero;
        for (side, lc) in [a(zero()), b(zero()), c(zero())].iter().enumerate() {
            let value = self.evaluate(lc);
            self.sides[side].push(value);
        }
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
