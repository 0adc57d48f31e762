//! From a component to a proof: the shape is that of native synthesis, the proof has the bytes of the `groth16` crate for the
//! same key, witness, r and s, and each side takes the other's proofs.

use bellman::gadgets::boolean::{AllocatedBit, Boolean};
use bellman::gadgets::multipack::pack_into_inputs;
use bellman::gadgets::sha256::sha256;
use bellman::{Circuit, ConstraintSystem, SynthesisError};
use bls12_381::{Bls12, Scalar as OtherScalar};
use reference_groth16::{Parameters, Proof as OtherProof, create_proof, prepare_verifying_key, verify_proof};
use sapling_crypto::circuit::{Output, Spend};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use zkhost_groth16::assignment::{SegmentSink, SegmentWriter, SinkError};
use zkhost_groth16::formats::{Subgroup, Trailer, known_params, read_params, write_params};
use zkhost_groth16::key::Phase2;
use zkhost_groth16::r1cs::CheckError;
use zkhost_groth16::scalar::{limbs_to_le_bytes, to_canonical};
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{Assignment, CpuProver, HBasis, PreparedVerifyingKey, Proof, Prover, ProvingKey, R1cs, Scalar};
use zkhost_runtime::{Compiler, Input, Limits, Runtime, Synthesis, examine_without_wide_arithmetic};
use zkhost_tests::{ForBellman, ceremony_key, component, example_input, example_params, fixture, record};

/// The blinding of the golden proof.
const R: u64 = 27134;
const S: u64 = 17146;

/// Levels of Sapling's tree of notes.
const TREE_DEPTH: usize = 32;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new(Compiler::InProcess, None).unwrap());

/// The shape that a component without parameters records in the sandbox.
fn shape(name: &str) -> R1cs {
    RUNTIME.load(name, &component(name), Limits::default()).unwrap().record_shape(b"", false).unwrap()
}

/// What a component makes of its example input.
struct Run {
    r1cs: Arc<R1cs>,
    /// One for each partition.
    assignments: Vec<Assignment>,
}

fn run(name: &str, params: &[u8]) -> Run {
    run_with(name, params, &Input::from(example_input(name)))
}

/// What a component makes of an input.
fn run_with(name: &str, params: &[u8], input: &Input) -> Run {
    let circuit = RUNTIME.load(name, &component(name), Limits::default()).unwrap();
    let layout = circuit.plan(params).unwrap();
    let shape = circuit.record_shape(params, false).unwrap();
    let job = Synthesis { params, input, layout: &layout, shape: &shape };
    let assignments = circuit.synthesise(job, 0..layout.partitions, 2).unwrap();
    Run { r1cs: Arc::new(shape), assignments }
}

/// The proof that the `groth16` crate makes of a constraint system and values.
fn their_proof(r1cs: &R1cs, z: &[Scalar], params: &Parameters<Bls12>) -> Proof {
    let circuit = ForBellman { r1cs, z: Some(z) };
    let proof = create_proof(circuit, params, OtherScalar::from(R), OtherScalar::from(S)).unwrap();
    let mut bytes = vec![];
    proof.write(&mut bytes).unwrap();
    Proof::from_bytes(&bytes).unwrap()
}

/// Every partition is proved, by the key in a `.params` file, with the bytes of the `groth16` crate; a randomised proof
/// verifies there and the crate's proof here. Returns the proofs with R and S.
fn check_proofs(run: &Run, params: &[u8]) -> Vec<Proof> {
    let theirs = Parameters::<Bls12>::read(params, false).unwrap();
    let their_verifier = prepare_verifying_key(&theirs.vk);
    let trailer = known_params(params.len() as u64).map_or(Trailer::None, |known| Trailer::Pinned(known.sha256));
    let ours = read_params(params, Subgroup::CheckedBefore, trailer).unwrap();
    let our_verifier = PreparedVerifyingKey::from(&ours.vk);
    let key = ProvingKey::import(ours, &run.r1cs, Phase2::Required).unwrap();
    let prover = CpuProver::new(Arc::new(key), run.r1cs.clone()).unwrap();

    let check = |assignment: &Assignment| {
        let fixed = prover.prove_with_fixed_blinding_for_tests(assignment, Scalar::from(R), Scalar::from(S)).unwrap();
        let expected = their_proof(&run.r1cs, &assignment.z(), &theirs);
        assert_eq!(hex::encode(fixed.to_bytes()), hex::encode(expected.to_bytes()), "the groth16 crate's bytes");
        our_verifier.verify(&expected, assignment.publics()).unwrap();

        let randomised = prover.prove(assignment).unwrap();
        assert_ne!(randomised, fixed);
        let randomised = OtherProof::<Bls12>::read(&randomised.to_bytes()[..]).unwrap();
        let publics = assignment.publics().iter().map(|x| OtherScalar::from_raw(to_canonical(x)));
        verify_proof(&their_verifier, &randomised, &publics.collect::<Vec<_>>()).unwrap();
        fixed
    };
    run.assignments.iter().map(check).collect()
}

/// The same under a key of our setup that was written as `.params`.
fn check_development_key(run: &Run) {
    let key = setup(&run.r1cs, &ToxicWaste::random(), HBasis::Monomial).unwrap();
    let mut params = vec![];
    write_params(&key, &mut params).unwrap();
    check_proofs(run, &params);
}

/// The component records these rows and no others, so many constraints over so many inputs, the one included.
fn check_shape(name: &str, native: R1cs, constraints: usize, inputs: u32) {
    let shape = shape(name);
    assert_eq!((shape.constraints(), shape.public_count + 1), (constraints, inputs));
    assert!(shape == native, "{name} records other rows than native synthesis makes");
}

#[test]
fn sapling_spend_has_the_shape_of_native_synthesis() {
    let spend = Spend {
        value_commitment_opening: None,
        proof_generation_key: None,
        payment_address: None,
        commitment_randomness: None,
        ar: None,
        auth_path: vec![None; TREE_DEPTH],
        anchor: None,
    };
    check_shape("sapling-spend", record(spend), 98_777, 8);
}

#[test]
fn sapling_output_has_the_shape_of_native_synthesis() {
    let output =
        Output { value_commitment_opening: None, payment_address: None, commitment_randomness: None, esk: None };
    check_shape("sapling-output", record(output), 7_827, 6);
}

/// A preimage of 512 bits, by bellman's gadget.
struct Sha256Preimage;

impl Circuit<OtherScalar> for Sha256Preimage {
    fn synthesize<CS: ConstraintSystem<OtherScalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let bit = |i| Ok(AllocatedBit::alloc(cs.namespace(|| format!("bit {i}")), None)?.into());
        let bits = (0..512).map(bit).collect::<Result<Vec<Boolean>, SynthesisError>>()?;
        let digest = sha256(cs.namespace(|| "sha256"), &bits)?;
        pack_into_inputs(cs.namespace(|| "digest"), &digest)
    }
}

/// The guest writes SHA-256 with words; its rows are those of a published gadget all the same.
#[test]
fn sha256_has_the_shape_of_the_published_gadget() {
    check_shape("sha256", record(Sha256Preimage), 44_874 + 512 + 2, 3);
}

#[test]
fn sapling_spend_is_proved_as_by_groth16_under_the_ceremony_key() {
    check_proofs(&run("sapling-spend", b""), &ceremony_key("sapling-spend"));
}

#[test]
fn sapling_output_is_proved_as_by_groth16_under_the_ceremony_key() {
    let run = run("sapling-output", b"");
    let proofs = check_proofs(&run, &ceremony_key("sapling-output"));
    let publics = run.assignments[0].publics().iter().flat_map(|x| limbs_to_le_bytes(&to_canonical(x)));
    assert_eq!(publics.collect::<Vec<u8>>(), fixture("sapling/golden-output.public"));
    assert_eq!(hex::encode(proofs[0].to_bytes()), hex::encode(fixture("sapling/golden-output.proof")));
}

#[test]
fn sha256_is_proved_as_by_groth16() {
    let run = run("sha256", &example_params("sha256"));
    // The gadget on 512 bits; that each of them is a bit; that the digest is packed into two public inputs.
    assert_eq!(run.r1cs.constraints(), 44_874 + 512 + 2);
    check_development_key(&run);
}

#[test]
fn merkle_poseidon_is_proved_as_by_groth16_in_every_partition() {
    let run = run("merkle-poseidon", &example_params("merkle-poseidon"));
    assert_eq!(run.assignments.len(), 3);
    check_development_key(&run);
}

/// Rounds of MiMC in the guest in C.
const MIMC_ROUNDS: u64 = 322;

/// Its constants: four words of SplitMix64 each, the last without its two topmost bits.
fn mimc_constant(round: u64) -> OtherScalar {
    let word = |i: u64| {
        let mut word = (4 * round + i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    };
    OtherScalar::from_raw([word(0), word(1), word(2), word(3) >> 2])
}

/// What the guest in C proves, for bellman.
struct Mimc;

impl Circuit<OtherScalar> for Mimc {
    fn synthesize<CS: ConstraintSystem<OtherScalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut left = cs.alloc(|| "left", || Err(SynthesisError::AssignmentMissing))?;
        let mut right = cs.alloc(|| "right", || Err(SynthesisError::AssignmentMissing))?;
        for round in 0..MIMC_ROUNDS {
            let square = cs.alloc(|| "square", || Err(SynthesisError::AssignmentMissing))?;
            let next = match round + 1 < MIMC_ROUNDS {
                true => cs.alloc(|| "next", || Err(SynthesisError::AssignmentMissing))?,
                false => cs.alloc_input(|| "image", || Err(SynthesisError::AssignmentMissing))?,
            };
            let constant = (mimc_constant(round), CS::one());
            cs.enforce(|| "square", |z| z + left + constant, |z| z + left + constant, |z| z + square);
            cs.enforce(|| "cube", |z| z + square, |z| z + left + constant, |z| z + next - right);
            (left, right) = (next, left);
        }
        Ok(())
    }
}

#[test]
fn a_guest_in_c_has_the_shape_of_native_synthesis_and_names_its_rows() {
    check_shape("c-mimc", record(Mimc), 2 * MIMC_ROUNDS as usize, 2);
    let circuit = RUNTIME.load("c-mimc", &component("c-mimc"), Limits::default()).unwrap();
    let named = circuit.record_shape(b"{}", true).unwrap();
    assert_eq!((&*named.names[0], &*named.names[643]), ("round 0/square", "round 321/cube"));
}

#[test]
fn a_guest_in_c_is_proved_as_by_groth16() {
    let run = run("c-mimc", b"");
    let (mut left, mut right) = (-OtherScalar::one(), OtherScalar::from(0x1234_5678_90ab_cdef));
    for round in 0..MIMC_ROUNDS {
        let base = left + mimc_constant(round);
        (left, right) = (right + base * base * base, left);
    }
    assert_eq!(OtherScalar::from_raw(to_canonical(&run.assignments[0].publics()[0])), left);
    check_development_key(&run);
}

/// What the guest in C says of an input.
fn check_refused_by_c(input: &str, part: &str) {
    let circuit = RUNTIME.load("c-mimc", &component("c-mimc"), Limits::default()).unwrap();
    let error = circuit.open(b"", &Input::from(input.as_bytes().to_vec())).err().expect(input).to_string();
    assert!(error.contains(part), "{input}: {error}");
}

#[test]
fn a_guest_in_c_refuses_bad_input_with_a_sentence() {
    let half = "field `left`: a string of 0x and 1 to 64 hexadecimal digits below r was expected";
    let r = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
    check_refused_by_c(&format!(r#"{{"left": "0x{r}", "right": "0x1"}}"#), half);
    check_refused_by_c(&format!(r#"{{"left": "0x0{r}", "right": "0x1"}}"#), half);
    for wrong in [r#""0x""#, r#""7""#, "7", r#""0x1"#, r#""0x1g""#, ""] {
        check_refused_by_c(&format!(r#"{{"left": {wrong}"#), half);
    }
    for fields in ["", r#""left": "0x1""#, r#""left": "0x1", "left": "0x1""#, r#""left": "0x1", "middle": "0x1""#] {
        check_refused_by_c(&format!("{{{fields}}}"), "`left` and `right` were expected, each once, and no others");
    }
    check_refused_by_c(r#"{"left": "0x1", "right": "0x2"} 1"#, "more follows");
    check_refused_by_c("[]", "an object");
    check_refused_by_c(&" ".repeat(1025), "at most 1,024 bytes");
}

/// Parameters of one challenge, and the example cut to it.
fn one_challenge() -> (&'static [u8], Input) {
    let mut input: serde_json::Value = serde_json::from_slice(&example_input("replica")).unwrap();
    input["partitions"][0].as_array_mut().unwrap().truncate(1);
    (br#"{"challenges": 1}"#, Input::from(input.to_string().into_bytes()))
}

/// SHA-256 and Poseidon with words, two layers, opened in parts.
#[test]
fn replica_is_proved_as_by_groth16() {
    let (params, input) = one_challenge();
    check_development_key(&run_with("replica", params, &input));
}

/// Passes on what a guest writes, with one word wrong: a group's bits, or a limb where a group has none.
struct WrongWord {
    writer: SegmentWriter,
    /// Groups before the wrong one.
    left: usize,
}

impl SegmentSink for WrongWord {
    fn write_groups(&mut self, masks: &[u64], elements: &[u64]) -> Result<(), SinkError> {
        let (mut masks, mut elements) = (masks.to_vec(), elements.to_vec());
        let full: Vec<u32> = masks.chunks_exact(2).map(|group| group[0].count_ones()).collect();
        match full.get(self.left) {
            Some(&64) => elements[4 * full[..self.left].iter().sum::<u32>() as usize] ^= 2,
            Some(_) => masks[2 * self.left + 1] ^= !masks[2 * self.left],
            None => {}
        }
        self.left = self.left.wrapping_sub(full.len());
        self.writer.write_groups(&masks, &elements)
    }

    fn write_public(&mut self, elements: &[u64]) -> Result<(), SinkError> {
        self.writer.write_public(elements)
    }
}

/// A guest that computed a word wrongly, whichever gadget it is of, does not pass the check, which names the row.
#[test]
fn a_wrong_word_of_any_gadget_is_caught_by_check_which_names_the_row() {
    let (params, input) = one_challenge();
    let circuit = RUNTIME.load("replica", &component("replica"), Limits::default()).unwrap();
    let (layout, shape) = (circuit.plan(params).unwrap(), circuit.record_shape(params, true).unwrap());
    let mut job = circuit.open(params, &input).unwrap();
    let limits = circuit.segment_limits(&layout, &shape).unwrap()[0];
    // The last group has padding, which the sink checks.
    let groups = (limits.aux_count / 64) as usize;
    let mut named = BTreeSet::new();
    // Hashes and paths of Poseidon and packed bits come first, then SHA-256 for the most part.
    for left in (0..64).step_by(2).chain((64..groups).step_by(groups / 12)) {
        let writer = SegmentWriter::on_heap(layout.encoding, limits).unwrap();
        let wrong = job.assign(0, 0, WrongWord { writer, left }).unwrap();
        let assignment = Assignment::new(vec![wrong.writer.finish().unwrap()]);
        let Err(CheckError::Unsatisfied(broken)) = shape.check(&assignment) else { panic!("group {left} passes") };
        named.insert(broken.name.expect("a name"));
    }
    for gadget in ["commitment/", "/number/", "/column/", "/column path/", "/hash/block "] {
        assert!(named.iter().any(|name| name.contains(gadget)), "no word of {gadget} was wrong: {named:?}");
    }
}

/// Built for hosts without wide arithmetic, a circuit has the same rows and values.
#[test]
fn without_wide_arithmetic_a_circuit_is_the_same() {
    let [wide, narrow] = ["arithmetic", "arithmetic-narrow"].map(|name| {
        let run = run_with(name, b"", &Input::from(example_input("arithmetic")));
        run.r1cs.check(&run.assignments[0]).unwrap();
        (run.r1cs.hash(), run.assignments[0].z())
    });
    assert_eq!(wide.0, narrow.0);
    assert!(wide.1[..] == narrow.1[..], "a variable has another value");
    let refused = examine_without_wide_arithmetic(&component("arithmetic"), &Limits::default()).unwrap_err();
    assert!(refused.contains("zkhost build --no-wide-arithmetic"), "{refused}");
    examine_without_wide_arithmetic(&component("arithmetic-narrow"), &Limits::default()).unwrap();
}
