//! SHA-256 as in `bellpepper::gadgets::sha256`.

use bellpepper::gadgets::sha256 as published;
use bellpepper::gadgets::uint32::UInt32;
use bellpepper_core::boolean::Boolean;
use bellpepper_core::{ConstraintSystem, SynthesisError};
use ff013::PrimeField;

use super::lanes::{Lanes, booleans};
use super::{WitnessWriter, WordPass, word_pass};

/// Bits of a block.
const BLOCK_BITS: usize = 512;
/// Bits of the length at the end of the padding.
const LENGTH_BITS: usize = 64;
const ROUNDS: usize = 64;

const ROUND_CONSTANTS: [u32; ROUNDS] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];

const INITIAL: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// The SHA-256 digest of some bits, a multiple of eight, each byte from its most significant bit; so is the digest.
pub fn sha256<F, CS>(mut cs: CS, input: &[Boolean]) -> Result<Vec<Boolean>, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    assert!(input.len().is_multiple_of(8), "SHA-256 of {} bits, which are not whole bytes", input.len());
    word_pass(&mut cs, |words| {
        let mut state = State::initial();
        for block in padded(input)?.chunks_exact(16) {
            state = state.compress(block, words);
        }
        Ok(state.digest::<F>())
    })
    .unwrap_or_else(|| published::sha256(cs, input))
}

/// The compression of one block of 512 bits from SHA-256's initial state.
pub fn sha256_block_no_padding<F, CS>(mut cs: CS, input: &[Boolean]) -> Result<Vec<Boolean>, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    assert_eq!(input.len(), BLOCK_BITS, "bits of a block");
    word_pass(&mut cs, |words| Ok(State::initial().compress(&lanes(input)?, words).digest::<F>()))
        .unwrap_or_else(|| published::sha256_block_no_padding(cs, input))
}

/// The compression of one block of 512 bits from a state of eight words.
pub fn sha256_compression_function<F, CS>(
    mut cs: CS,
    input: &[Boolean],
    current_hash_value: &[UInt32],
) -> Result<Vec<UInt32>, SynthesisError>
where
    F: PrimeField,
    CS: ConstraintSystem<F>,
    CS::Root: WordPass,
{
    assert_eq!(input.len(), BLOCK_BITS, "bits of a block");
    assert_eq!(current_hash_value.len(), 8, "words of the state");
    word_pass(&mut cs, |words| {
        let mut state = State::initial();
        for (word, current) in state.words.iter_mut().zip(current_hash_value) {
            *word = Lanes::of(current.clone().into_bits().iter())?;
        }
        let state = state.compress(&lanes(input)?, words);
        Ok((0..8).map(|word| UInt32::from_bits(&state.word::<F>(word))).collect())
    })
    .unwrap_or_else(|| published::sha256_compression_function(cs, input, current_hash_value))
}

/// Words of bits that come from the most significant one.
fn lanes(bits: &[Boolean]) -> Result<Vec<Lanes>, SynthesisError> {
    bits.chunks(32).map(|word| Lanes::of(word.iter().rev())).collect()
}

/// The words of a message and its padding: a one, zeros, and the message's length in bits.
fn padded(message: &[Boolean]) -> Result<Vec<Lanes>, SynthesisError> {
    let whole = message.len() / 32 * 32;
    let mut words = lanes(&message[..whole])?;
    let (rest, last) = (&message[whole..], 32 - (message.len() - whole));
    let Lanes { value, constant, negated } = Lanes::of(rest.iter().rev())?;
    // `last` bits of the word are padding, from a one on; none of them is there when it comes to 32 bits.
    let shift = |word: u32| word.checked_shl(last as u32).unwrap_or(0);
    let padding = u32::MAX.checked_shl(last as u32).map_or(u32::MAX, |rest| !rest);
    words.push(Lanes {
        value: shift(value) | 1 << (last - 1),
        constant: shift(constant) | padding,
        negated: shift(negated),
    });
    while !(32 * words.len() + LENGTH_BITS).is_multiple_of(BLOCK_BITS) {
        words.push(Lanes::constant(0));
    }
    let bits = message.len() as u64;
    words.extend([Lanes::constant((bits >> 32) as u32), Lanes::constant(bits as u32)]);
    Ok(words)
}

/// The state between two blocks.
struct State {
    words: [Lanes; 8],
    /// The first variable of each word that is not constant.
    variables: [usize; 8],
}

impl State {
    fn initial() -> Self {
        State { words: INITIAL.map(Lanes::constant), variables: [0; 8] }
    }

    /// The Booleans of one word, the least significant first. Those of a state come from sums, so they are all variables
    /// or all constants.
    fn word<F: PrimeField>(&self, word: usize) -> Vec<Boolean> {
        let lanes = self.words[word];
        booleans::<F>(lanes.value.into(), 32, (!lanes.is_constant()).then_some(self.variables[word]))
    }

    fn digest<F: PrimeField>(&self) -> Vec<Boolean> {
        (0..8).flat_map(|word| self.word::<F>(word).into_iter().rev()).collect()
    }

    /// The next state. Variables are allocated in bellpepper's order: the new values of `a` and `e` come at the start of
    /// the round after the one that defines them.
    fn compress(&self, block: &[Lanes], words: &mut WitnessWriter<'_>) -> Self {
        let schedule = schedule(block, words);
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.words.map(Term::Known);
        for (w, k) in schedule.into_iter().zip(ROUND_CONSTANTS) {
            let new_e = e.value(None, words);
            let s1 = new_e.rotr(6).xor(new_e.rotr(11), words).xor(new_e.rotr(25), words);
            let ch = new_e.ch(f.known(), g.known(), words);
            let first = [h.known(), s1, ch, Lanes::constant(k), w];
            let new_a = a.value(None, words);
            let s0 = new_a.rotr(2).xor(new_a.rotr(13), words).xor(new_a.rotr(22), words);
            let maj = new_a.maj(b.known(), c.known(), words);
            let second = [s0, maj];

            (h, g, f) = (g, f, Term::Known(new_e));
            e = Term::sum(&first, &[d.known()]);
            (d, c, b) = (c, b, Term::Known(new_a));
            a = Term::sum(&first, &second);
        }
        let mut next = State::initial();
        for (i, term) in [a, b, c, d, e, f, g, h].into_iter().enumerate() {
            next.variables[i] = words.next_aux();
            next.words[i] = term.value(Some(self.words[i]), words);
        }
        next
    }
}

/// The sixteen words of a block and the 48 that are computed from them.
fn schedule(block: &[Lanes], words: &mut WitnessWriter<'_>) -> [Lanes; ROUNDS] {
    let mut w = [Lanes::constant(0); ROUNDS];
    w[..16].copy_from_slice(block);
    for i in 16..ROUNDS {
        let (x, y) = (w[i - 15], w[i - 2]);
        let s0 = x.rotr(7).xor(x.rotr(18), words).xor(x.shr(3), words);
        let s1 = y.rotr(17).xor(y.rotr(19), words).xor(y.shr(10), words);
        w[i] = Lanes::sum(&[w[i - 16], s0, w[i - 7], s1], words);
    }
    w
}

/// A word of the state within a block: known, or a sum whose variables are not allocated yet, of at most eight terms.
#[derive(Clone, Copy)]
enum Term {
    Known(Lanes),
    Sum { terms: [Lanes; 8], count: usize },
}

impl Term {
    fn sum(first: &[Lanes], second: &[Lanes]) -> Self {
        let mut terms = [Lanes::constant(0); 8];
        let count = first.len() + second.len();
        terms[..first.len()].copy_from_slice(first);
        terms[first.len()..count].copy_from_slice(second);
        Term::Sum { terms, count }
    }

    /// The word that was computed before.
    fn known(&self) -> Lanes {
        match self {
            Term::Known(lanes) => *lanes,
            Term::Sum { .. } => unreachable!("only `a` and `e` are deferred, and not past the start of a round"),
        }
    }

    /// The word, computed now if it was deferred, with one more term to it if there is one.
    fn value(self, more: Option<Lanes>, words: &mut WitnessWriter<'_>) -> Lanes {
        match (self, more) {
            (Term::Known(lanes), None) => lanes,
            (Term::Known(lanes), Some(more)) => Lanes::sum(&[more, lanes], words),
            (Term::Sum { mut terms, count }, more) => {
                let count = count + usize::from(more.is_some());
                if let Some(more) = more {
                    terms[count - 1] = more;
                }
                Lanes::sum(&terms[..count], words)
            }
        }
    }
}
