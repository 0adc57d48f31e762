//! Gadgets that write words: their shapes, values and results are those of the published gadgets.

use bellpepper::gadgets::multieq::MultiEq;
use bellpepper::gadgets::uint32::UInt32;
use bellpepper::gadgets::{multipack as published_multipack, sha256 as published_sha256};
use ff013::Field;
use generic_array::typenum::{U2, U4, U8, U11};
use neptune::Arity;
use neptune::circuit2::poseidon_hash_allocated;
use neptune::poseidon::PoseidonConstants;
use rand_chacha::ChaCha8Rng;
use rand_core06::{RngCore, SeedableRng};
use reference_synthesis::Reference;
use zkhost_guest::bellpepper_core::boolean::{self as published_boolean, AllocatedBit, Boolean};
use zkhost_guest::bellpepper_core::num::AllocatedNum;
use zkhost_guest::bellpepper_core::{ConstraintSystem, LinearCombination, SynthesisError, Variable};
use zkhost_guest::gadgets::poseidon::Poseidon;
use zkhost_guest::gadgets::{WordPass, boolean, merkle, multipack, sha256, uint32};
use zkhost_guest::native::{self, Assignment, Shape};
use zkhost_guest::{Error, Fr};

/// A gadget twice: as published and as the SDK has it. Both return what tells their results apart, variables included.
trait Twin {
    fn published<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError>;
    fn ours<CS: ConstraintSystem<Fr, Root = CS> + WordPass>(&self, cs: &mut CS) -> Result<String, SynthesisError>;
}

/// Both passes of the SDK's gadget say what one plain synthesis of the published gadget says.
fn check(twin: &impl Twin) -> (Shape, Assignment) {
    let mut reference = Reference::<Fr>::default();
    let expected = twin.published(&mut reference).expect("a plain synthesis");
    let results = std::cell::RefCell::new(Vec::new());
    let (shape, assignment) = native::gadget(|cs| {
        let result = twin.ours(cs)?;
        results.borrow_mut().push(result);
        Ok(())
    })
    .expect("both passes");
    reference.assert_equals(&shape, &assignment);
    assert_eq!(shape.first_unsatisfied(&assignment), None);
    assert_eq!(results.borrow()[1], expected, "the result when assigned");
    (shape, assignment)
}

/// The kinds of Booleans in a word or message.
#[derive(Clone, Copy)]
enum Kind {
    Variables,
    Constants,
    /// Each bit a variable, its negation or a constant, by chance.
    Mixed,
}

fn bits<CS: ConstraintSystem<Fr>>(cs: &mut CS, count: usize, kind: Kind, seed: u64) -> Vec<Boolean> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|i| {
            let (value, choice) = (rng.next_u32() & 1 == 1, rng.next_u32() % 3);
            match (kind, choice) {
                (Kind::Constants, _) | (Kind::Mixed, 0) => Boolean::constant(value),
                (_, choice) => {
                    let bit = AllocatedBit::alloc(cs.namespace(|| format!("input {i}")), Some(value)).expect("a bit");
                    let bit = Boolean::from(bit);
                    if matches!(kind, Kind::Mixed) && choice == 1 { bit.not() } else { bit }
                }
            }
        })
        .collect()
}

fn word<CS: ConstraintSystem<Fr>>(cs: &mut CS, kind: Kind, seed: u64) -> UInt32 {
    UInt32::from_bits(&bits(&mut cs.namespace(|| format!("word {seed}")), 32, kind, seed))
}

struct Sha256 {
    bytes: usize,
    kind: Kind,
    seed: u64,
}

impl Twin for Sha256 {
    fn published<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let input = bits(cs, 8 * self.bytes, self.kind, self.seed);
        let digest = published_sha256::sha256(cs.namespace(|| "sha256"), &input)?;
        published_multipack::pack_into_inputs(cs.namespace(|| "inputs"), &digest)?;
        Ok(format!("{digest:?}"))
    }

    fn ours<CS: ConstraintSystem<Fr, Root = CS> + WordPass>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let input = bits(cs, 8 * self.bytes, self.kind, self.seed);
        let digest = sha256::sha256(cs.namespace(|| "sha256"), &input)?;
        multipack::pack_into_inputs(cs.namespace(|| "inputs"), &digest)?;
        Ok(format!("{digest:?}"))
    }
}

#[test]
fn sha256_is_the_published_one_for_every_length_around_words_and_blocks() {
    for bytes in (0..=5).chain([31, 32, 33, 54, 55, 56, 60, 63, 64, 65, 119, 120, 128]) {
        check(&Sha256 { bytes, kind: Kind::Variables, seed: bytes as u64 });
    }
}

#[test]
fn sha256_of_constants_and_negations_is_the_published_one() {
    for (bytes, kind) in [(64, Kind::Constants), (3, Kind::Mixed), (64, Kind::Mixed), (100, Kind::Mixed)] {
        check(&Sha256 { bytes, kind, seed: 7 });
    }
}

/// A compression from a state of any kind.
struct Compression(Kind, Kind);

impl Compression {
    fn state<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Vec<UInt32> {
        (100..108).map(|seed| word(cs, self.1, seed)).collect()
    }
}

impl Twin for Compression {
    fn published<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let (input, state) = (bits(cs, 512, self.0, 3), self.state(cs));
        let alone = published_sha256::sha256_block_no_padding(cs.namespace(|| "alone"), &input)?;
        let state = published_sha256::sha256_compression_function(cs.namespace(|| "chained"), &input, &state)?;
        Ok(format!("{alone:?} {state:?}"))
    }

    fn ours<CS: ConstraintSystem<Fr, Root = CS> + WordPass>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let (input, state) = (bits(cs, 512, self.0, 3), self.state(cs));
        let alone = sha256::sha256_block_no_padding(cs.namespace(|| "alone"), &input)?;
        let state = sha256::sha256_compression_function(cs.namespace(|| "chained"), &input, &state)?;
        Ok(format!("{alone:?} {state:?}"))
    }
}

#[test]
fn a_compression_from_any_state_is_the_published_one() {
    check(&Compression(Kind::Variables, Kind::Variables));
    check(&Compression(Kind::Variables, Kind::Mixed));
    check(&Compression(Kind::Mixed, Kind::Mixed));
    check(&Compression(Kind::Constants, Kind::Variables));
}

/// Every operation on words of three kinds.
struct Words([Kind; 3]);

impl Words {
    fn terms<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Vec<UInt32> {
        self.0.iter().zip(50..).map(|(kind, seed)| word(cs, *kind, seed)).collect()
    }
}

impl Twin for Words {
    fn published<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let terms = self.terms(cs);
        let [a, b, c] = [&terms[0], &terms[1], &terms[2]];
        let fresh = UInt32::alloc(cs.namespace(|| "alloc"), Some(0x8000_0001))?;
        let xor = a.xor(cs.namespace(|| "xor"), b)?;
        let ch = UInt32::sha256_ch(cs.namespace(|| "ch"), a, b, c)?;
        let maj = UInt32::sha256_maj(cs.namespace(|| "maj"), a, b, c)?;
        let mut multieq = MultiEq::new(cs.namespace(|| "sums"));
        let two = UInt32::addmany(multieq.namespace(|| "sum 0"), &[fresh.clone(), a.clone()])?;
        let ten = UInt32::addmany(multieq.namespace(|| "sum 1"), &vec![b.clone(); 10])?;
        let three = UInt32::addmany(multieq.namespace(|| "sum 2"), &terms)?;
        Ok(format!("{fresh:?} {xor:?} {ch:?} {maj:?} {two:?} {ten:?} {three:?}"))
    }

    fn ours<CS: ConstraintSystem<Fr, Root = CS> + WordPass>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let terms = self.terms(cs);
        let [a, b, c] = [&terms[0], &terms[1], &terms[2]];
        let fresh = uint32::alloc(cs.namespace(|| "alloc"), Some(0x8000_0001))?;
        let xor = uint32::xor(cs.namespace(|| "xor"), a, b)?;
        let ch = uint32::sha256_ch(cs.namespace(|| "ch"), a, b, c)?;
        let maj = uint32::sha256_maj(cs.namespace(|| "maj"), a, b, c)?;
        let sums = [&[fresh.clone(), a.clone()][..], &vec![b.clone(); 10], &terms];
        let sums = uint32::sums(cs.namespace(|| "sums"), &sums)?;
        let [two, ten, three] = [&sums[0], &sums[1], &sums[2]];
        Ok(format!("{fresh:?} {xor:?} {ch:?} {maj:?} {two:?} {ten:?} {three:?}"))
    }
}

#[test]
fn operations_on_words_are_the_published_ones_for_every_mix_of_kinds() {
    let kinds = [Kind::Variables, Kind::Constants, Kind::Mixed];
    for case in 0..27 {
        check(&Words([kinds[case % 3], kinds[case / 3 % 3], kinds[case / 9]]));
    }
}

/// Decompositions of an element and a word, and bits packed again.
struct Bits {
    element: Fr,
    word: u64,
    packed: usize,
}

impl Bits {
    fn limbs(&self) -> [u64; 4] {
        self.element.to_canonical()
    }
}

impl Twin for Bits {
    fn published<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let element = published_boolean::field_into_boolean_vec_le(cs.namespace(|| "element"), Some(self.element))?;
        let word = published_boolean::u64_into_boolean_vec_le(cs.namespace(|| "word"), Some(self.word))?;
        let mut counted = Vec::new();
        for i in 0..self.packed {
            let mut cs = cs.namespace(|| "counted");
            let bit = self.limbs()[i / 64] >> (i % 64) & 1 == 1;
            counted.push(Boolean::from(AllocatedBit::alloc(cs.namespace(|| format!("bit {i}")), Some(bit))?));
        }
        let mixed = bits(&mut cs.namespace(|| "mixed"), self.packed, Kind::Mixed, self.word);
        let first = published_multipack::pack_bits(cs.namespace(|| "first"), &counted)?;
        let second = published_multipack::pack_bits(cs.namespace(|| "second"), &mixed)?;
        published_multipack::pack_into_inputs(cs.namespace(|| "inputs"), &[&element[..], &word, &mixed].concat())?;
        Ok(format!("{element:?} {word:?} {counted:?} {first:?} {second:?}"))
    }

    fn ours<CS: ConstraintSystem<Fr, Root = CS> + WordPass>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let element = boolean::field_into_boolean_vec_le(cs.namespace(|| "element"), Some(self.element))?;
        let word = boolean::u64_into_boolean_vec_le(cs.namespace(|| "word"), Some(self.word))?;
        let counted = boolean::bits_from_limbs(cs.namespace(|| "counted"), self.packed, Some(&self.limbs()))?;
        let mixed = bits(&mut cs.namespace(|| "mixed"), self.packed, Kind::Mixed, self.word);
        let first = multipack::pack_bits(cs.namespace(|| "first"), &counted)?;
        let second = multipack::pack_bits(cs.namespace(|| "second"), &mixed)?;
        multipack::pack_into_inputs(cs.namespace(|| "inputs"), &[&element[..], &word, &mixed].concat())?;
        Ok(format!("{element:?} {word:?} {counted:?} {first:?} {second:?}"))
    }
}

#[test]
fn decomposition_and_packing_are_the_published_ones() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for packed in (0..=3).chain([63, 64, 65, 127, 128, 129, 253, 254, 255, 256]) {
        let element = Fr::random(&mut rng);
        check(&Bits { element, word: rng.next_u64(), packed });
    }
    for element in [Fr::ZERO, Fr::ONE, -Fr::ONE] {
        check(&Bits { element, word: u64::MAX, packed: 254 });
    }
}

/// The hash of `arity` elements, twice.
struct Hash {
    hasher: Poseidon,
    elements: Vec<Fr>,
}

impl Hash {
    fn preimage<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Vec<AllocatedNum<Fr>> {
        let allocate = |(i, element): (usize, &Fr)| {
            AllocatedNum::alloc(cs.namespace(|| format!("element {i}")), || Ok(*element)).expect("a number")
        };
        self.elements.iter().enumerate().map(allocate).collect()
    }

    fn published_with<A: Arity<Fr>, CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let (preimage, constants) = (self.preimage(cs), PoseidonConstants::<Fr, A>::new());
        let first = poseidon_hash_allocated(cs.namespace(|| "first"), preimage.clone(), &constants)?;
        let mut preimage = preimage;
        preimage[0] = first;
        Ok(format!("{:?}", poseidon_hash_allocated(cs.namespace(|| "second"), preimage, &constants)?))
    }
}

impl Twin for Hash {
    fn published<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        match self.elements.len() {
            2 => self.published_with::<U2, _>(cs),
            4 => self.published_with::<U4, _>(cs),
            8 => self.published_with::<U8, _>(cs),
            _ => self.published_with::<U11, _>(cs),
        }
    }

    fn ours<CS: ConstraintSystem<Fr, Root = CS> + WordPass>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let mut preimage = self.preimage(cs);
        preimage[0] = self.hasher.hash_allocated(cs.namespace(|| "first"), preimage.clone())?;
        Ok(format!("{:?}", self.hasher.hash_allocated(cs.namespace(|| "second"), preimage)?))
    }
}

/// This arity's hash is neptune's, natively and in a circuit, and each of its variables has but one value.
fn check_poseidon<A: Arity<Fr>>(arity: usize) {
    let constants = PoseidonConstants::<Fr, A>::new();
    let hasher = Poseidon::new(arity).expect("an arity");
    let mut rng = ChaCha8Rng::seed_from_u64(arity as u64);
    for fixed in [None, Some(Fr::ZERO), Some(-Fr::ONE)] {
        let elements: Vec<Fr> = (0..arity).map(|_| fixed.unwrap_or_else(|| Fr::random(&mut rng))).collect();
        let expected = neptune::Poseidon::<Fr, A>::new_with_preimage(&elements, &constants).hash();
        assert_eq!(hasher.hash(&elements), expected, "arity {arity}");
        let twin = Hash { hasher: Poseidon::new(arity).expect("an arity"), elements };
        check_every_variable_matters(&twin, arity);
    }
}

#[test]
fn poseidon_of_every_arity_is_the_published_one() {
    check_poseidon::<U2>(2);
    check_poseidon::<U4>(4);
    check_poseidon::<U8>(8);
    check_poseidon::<U11>(11);
    assert!((0..20).all(|arity| Poseidon::new(arity).is_some() == Poseidon::ARITIES.contains(&arity)));
}

/// One level of a path: a node among its siblings.
struct Level {
    hasher: Poseidon,
    position: usize,
    children: Vec<Fr>,
}

impl Level {
    fn node<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Variable {
        cs.alloc(|| "node", || Ok(self.children[self.position])).expect("a variable")
    }

    /// The level from published gadgets, one variable after the other.
    fn published_with<A: Arity<Fr>, CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let node = self.node(cs);
        let (mut selectors, mut children) = (Vec::new(), Vec::new());
        for (i, child) in self.children.iter().enumerate() {
            let selector = AllocatedBit::alloc(cs.namespace(|| format!("selector {i}")), Some(i == self.position))?;
            let child = AllocatedNum::alloc(cs.namespace(|| format!("child {i}")), || Ok(*child))?;
            cs.enforce(
                || format!("selected child {i} is the node below"),
                |lc| lc + selector.get_variable(),
                |lc| lc + child.get_variable() - node,
                |lc| lc,
            );
            selectors.push(selector);
            children.push(child);
        }
        let sum = selectors.iter().fold(LinearCombination::zero(), |sum, selector| sum + selector.get_variable());
        cs.enforce(|| "one child is selected", |_| sum, |lc| lc + CS::one(), |lc| lc + CS::one());
        let parent = poseidon_hash_allocated(cs.namespace(|| "hash"), children, &PoseidonConstants::<Fr, A>::new())?;
        Ok(format!("{selectors:?} {parent:?}"))
    }
}

impl Twin for Level {
    fn published<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        match self.children.len() {
            2 => self.published_with::<U2, _>(cs),
            4 => self.published_with::<U4, _>(cs),
            8 => self.published_with::<U8, _>(cs),
            _ => self.published_with::<U11, _>(cs),
        }
    }

    fn ours<CS: ConstraintSystem<Fr, Root = CS> + WordPass>(&self, cs: &mut CS) -> Result<String, SynthesisError> {
        let node = self.node(cs);
        let level = merkle::level(cs, &self.hasher, node, Some((self.position, &self.children)))?;
        Ok(format!("{:?} {:?}", level.selectors, level.parent))
    }
}

#[test]
fn a_level_of_a_merkle_path_is_made_of_the_published_gadgets_and_each_of_its_variables_matters() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for arity in Poseidon::ARITIES {
        for position in [0, arity / 2, arity - 1] {
            let children = (0..arity).map(|_| Fr::random(&mut rng)).collect();
            let hasher = Poseidon::new(arity).expect("an arity");
            check_every_variable_matters(&Level { hasher, position, children }, 0);
        }
    }
}

/// Changing a variable of this gadget breaks a constraint in its namespace, whichever variable it is.
fn check_every_variable_matters(twin: &impl Twin, inputs: usize) {
    let (shape, mut assignment) = check(twin);
    for variable in inputs..assignment.aux.len() {
        let honest = assignment.aux[variable];
        assignment.aux[variable] = Fr::ONE - honest;
        let row = shape.first_unsatisfied(&assignment);
        let row = row.unwrap_or_else(|| panic!("variable {variable} may have two values"));
        assert!(!shape.names[row].is_empty(), "variable {variable} breaks row {row}, which has no name");
        assignment.aux[variable] = honest;
    }
}

#[test]
fn a_wrong_bit_of_any_variable_breaks_a_constraint_with_a_name() {
    check_every_variable_matters(&Words([Kind::Variables; 3]), 96);
    check_every_variable_matters(&Words([Kind::Mixed; 3]), 0);
    let element = Fr::random(&mut ChaCha8Rng::seed_from_u64(4));
    check_every_variable_matters(&Bits { element, word: 0x1234_5678_9abc_def0, packed: 200 }, 0);
}

/// A change of one bit of the schedule or of a round is found where it is, or where it is used first.
fn check_rounds(twin: &impl Twin, inputs: usize, namespaces: &[&str]) {
    let (shape, mut assignment) = check(twin);
    for variable in (inputs..assignment.aux.len()).step_by(397) {
        let honest = assignment.aux[variable];
        assignment.aux[variable] = Fr::ONE - honest;
        let row = shape.first_unsatisfied(&assignment).expect("a constraint that fails");
        let name = &shape.names[row];
        assert!(namespaces.iter().any(|namespace| name.starts_with(namespace)), "variable {variable}: {name}");
        assignment.aux[variable] = honest;
    }
}

#[test]
fn a_wrong_word_of_sha256_is_found_and_named() {
    check_rounds(&Sha256 { bytes: 64, kind: Kind::Variables, seed: 9 }, 512, &["sha256/block "]);
    check_rounds(&Compression(Kind::Variables, Kind::Variables), 768, &["alone/", "chained/"]);
}

#[test]
fn a_bit_without_a_value_is_refused_when_assigned() {
    let error = native::gadget::<Fr>(|cs| {
        let bit = cs.has_values().then_some(()).map_or(Boolean::constant(true), |()| {
            Boolean::from(AllocatedBit::alloc(cs.namespace(|| "known"), Some(true)).expect("a bit"))
        });
        boolean::u64_into_boolean_vec_le(cs.namespace(|| "unknown"), None)?;
        sha256::sha256(cs.namespace(|| "sha256"), &vec![bit; 8])?;
        Ok(())
    });
    assert_eq!(
        error.err(),
        Some(Error::Internal("a variable has no value; `open` must give every variable one".into()))
    );
}
