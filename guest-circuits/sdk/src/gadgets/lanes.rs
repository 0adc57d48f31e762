//! 32 Booleans side by side.
//!
//! Bellpepper's gadgets decide bit by bit which variables they allocate: an operation on a constant allocates none, and a
//! negated variable is a view of it. [`Lanes`] carries what those decisions depend on as masks, so that each gadget is a few
//! operations on words and still allocates exactly the variables that bellpepper's does.

use bellpepper_core::SynthesisError;
use bellpepper_core::boolean::{AllocatedBit, Boolean};
use ff013::PrimeField;

use super::{Allocated, WitnessWriter};

/// All 32 lanes.
const ALL: u32 = u32::MAX;

/// 32 Booleans without the names of their variables, the least significant first.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    /// The values of the Booleans.
    pub value: u32,
    /// Lanes that are constants.
    pub constant: u32,
    /// Lanes that are the negation of their variable; no constants.
    pub negated: u32,
}

/// What a gadget of at most one variable a lane gives.
#[derive(Clone, Copy)]
struct Gate {
    result: Lanes,
    /// The lanes that allocate a variable, and its value.
    allocated: u32,
    variable: u32,
}

impl Lanes {
    /// 32 constants.
    pub fn constant(value: u32) -> Self {
        Lanes { value, constant: ALL, negated: 0 }
    }

    /// 32 variables.
    pub fn variables(value: u32) -> Self {
        Lanes { value, constant: 0, negated: 0 }
    }

    /// At most 32 Booleans, the least significant first; lanes beyond them are constants of value 0.
    pub fn of<'a>(bits: impl Iterator<Item = &'a Boolean>) -> Result<Self, SynthesisError> {
        let mut lanes = Lanes::constant(0);
        for (lane, bit) in bits.enumerate() {
            let value = bit.get_value().ok_or(SynthesisError::AssignmentMissing)?;
            lanes.value |= u32::from(value) << lane;
            lanes.constant ^= u32::from(!bit.is_constant()) << lane;
            lanes.negated |= u32::from(matches!(bit, Boolean::Not(_))) << lane;
        }
        Ok(lanes)
    }

    /// Whether all lanes are constants.
    pub fn is_constant(&self) -> bool {
        self.constant == ALL
    }

    pub fn rotr(self, by: u32) -> Self {
        Lanes {
            value: self.value.rotate_right(by),
            constant: self.constant.rotate_right(by),
            negated: self.negated.rotate_right(by),
        }
    }

    /// Shift right by 1 to 31; constants of value 0 come in.
    pub fn shr(self, by: u32) -> Self {
        Lanes { value: self.value >> by, constant: self.constant >> by | ALL << (32 - by), negated: self.negated >> by }
    }

    fn not(self) -> Self {
        Lanes { value: !self.value, constant: self.constant, negated: !self.negated & !self.constant }
    }

    /// The lanes that are constants of value 1, and those of value 0.
    fn ones(&self) -> u32 {
        self.constant & self.value
    }
    fn zeros(&self) -> u32 {
        self.constant & !self.value
    }

    /// `Boolean::xor`: the exclusive or of two variables is a variable, negated if one of them is.
    pub fn xor(self, other: Self, words: &mut WitnessWriter<'_>) -> Self {
        let value = self.value ^ other.value;
        let constant = self.constant & other.constant;
        let negated = ((self.negated | self.ones()) ^ (other.negated | other.ones())) & !constant;
        push_lanes(words, value ^ negated, !(self.constant | other.constant));
        Lanes { value, constant, negated }
    }

    /// `Boolean::and`.
    fn and_gate(self, other: Self) -> Gate {
        let value = self.value & other.value;
        let constant = self.constant & other.constant | self.zeros() | other.zeros();
        let negated = (self.constant & other.negated | other.constant & self.negated) & !constant;
        let allocated = !(self.constant | other.constant);
        Gate { result: Lanes { value, constant, negated }, allocated, variable: value }
    }

    /// The negation of the conjunction of two negations, as bellpepper writes a disjunction.
    fn or_gate(self, other: Self) -> Gate {
        let gate = self.not().and_gate(other.not());
        Gate { result: gate.result.not(), ..gate }
    }

    /// `Boolean::sha256_ch` of self, `b` and `c`. The cases of constants are taken in bellpepper's order.
    pub fn ch(self, b: Self, c: Self, words: &mut WitnessWriter<'_>) -> Self {
        let a = self;
        let value = a.value & b.value ^ !a.value & c.value;
        if a.constant | b.constant | c.constant == 0 {
            words.push_bits(value.into(), 32);
            return Lanes::variables(value);
        }
        let copy = |result| Gate { result, allocated: 0, variable: 0 };
        let mut cases = Cases::new();
        cases.take(a.constant & b.constant & c.constant, copy(Lanes::constant(value)));
        cases.take(a.zeros(), copy(c));
        cases.take(b.zeros(), a.not().and_gate(c));
        cases.take(c.zeros(), a.and_gate(b));
        cases.take(c.ones(), a.not().or_gate(b));
        cases.take(b.ones(), a.or_gate(c));
        cases.take(ALL, Gate { result: Lanes::variables(value), allocated: ALL, variable: value });
        push_lanes(words, cases.gate.variable, cases.gate.allocated);
        cases.gate.result
    }

    /// `Boolean::sha256_maj` of self, `b` and `c`. The cases of constants are taken in bellpepper's order. Three variables
    /// allocate two in their lane: the majority, and b and c.
    pub fn maj(self, b: Self, c: Self, words: &mut WitnessWriter<'_>) -> Self {
        let a = self;
        let value = a.value & b.value ^ a.value & c.value ^ b.value & c.value;
        let both = b.value & c.value;
        let any_constant = a.constant | b.constant | c.constant;
        if any_constant == 0 {
            words.push_bits(interleave(value, both), 64);
            return Lanes::variables(value);
        }
        let mut cases = Cases::new();
        let all = Gate { result: Lanes::constant(value), allocated: 0, variable: 0 };
        cases.take(a.constant & b.constant & c.constant, all);
        cases.take(a.zeros(), b.and_gate(c));
        cases.take(b.zeros(), a.and_gate(c));
        cases.take(c.zeros(), a.and_gate(b));
        cases.take(c.ones(), a.or_gate(b));
        cases.take(b.ones(), a.or_gate(c));
        cases.take(a.ones(), b.or_gate(c));
        cases.take(ALL, Gate { result: Lanes::variables(value), allocated: 0, variable: 0 });
        let Gate { result, allocated, variable } = cases.gate;
        if any_constant == ALL {
            push_lanes(words, variable, allocated);
            return result;
        }
        for lane in 0..32 {
            let bit = |word: u32| word >> lane & 1 == 1;
            if !bit(any_constant) {
                words.push_bit(bit(value));
                words.push_bit(bit(both));
            } else if bit(allocated) {
                words.push_bit(bit(variable));
            }
        }
        result
    }

    /// `UInt32::addmany`: the sum of 2 to 10 words modulo 2^32. Its carries are variables too. The result is all variables
    /// or, if every term is a constant, all constants.
    pub fn sum(terms: &[Self], words: &mut WitnessWriter<'_>) -> Self {
        let sum: u64 = terms.iter().map(|term| u64::from(term.value)).sum();
        if terms.iter().all(Lanes::is_constant) {
            return Lanes::constant(sum as u32);
        }
        let largest = terms.len() as u64 * u64::from(u32::MAX);
        words.push_bits(sum, u64::BITS - largest.leading_zeros());
        Lanes::variables(sum as u32)
    }
}

/// Lanes put together from gates, each lane from the first case that it is in.
struct Cases {
    left: u32,
    gate: Gate,
}

impl Cases {
    fn new() -> Self {
        let nothing = Lanes { value: 0, constant: 0, negated: 0 };
        Cases { left: ALL, gate: Gate { result: nothing, allocated: 0, variable: 0 } }
    }

    fn take(&mut self, lanes: u32, gate: Gate) {
        let lanes = lanes & self.left;
        self.left &= !lanes;
        self.gate.result.value |= gate.result.value & lanes;
        self.gate.result.constant |= gate.result.constant & lanes;
        self.gate.result.negated |= gate.result.negated & lanes;
        self.gate.allocated |= gate.allocated & lanes;
        self.gate.variable |= gate.variable & lanes;
    }
}

/// Append the variables of some lanes, the least significant first.
fn push_lanes(words: &mut WitnessWriter<'_>, values: u32, lanes: u32) {
    let values = u64::from(values & lanes);
    if lanes & lanes.wrapping_add(1) == 0 {
        words.push_bits(values, lanes.trailing_ones());
        return;
    }
    let mut left = lanes;
    while left != 0 {
        words.push_bit(values >> left.trailing_zeros() & 1 == 1);
        left &= left - 1;
    }
}

/// The bits of two words in turn, the first word's first.
fn interleave(even: u32, odd: u32) -> u64 {
    /// Put a 0 above every bit: doubling the gaps from halves down to single bits.
    fn spread(word: u32) -> u64 {
        let mut x = u64::from(word);
        x = (x | x << 16) & 0x0000_ffff_0000_ffff;
        x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
        x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
        x = (x | x << 2) & 0x3333_3333_3333_3333;
        (x | x << 1) & 0x5555_5555_5555_5555
    }
    spread(even) | spread(odd) << 1
}

/// `count` Booleans, the least significant first: constants, or the variables from `first` on in order.
pub(super) fn booleans<F: PrimeField>(value: u64, count: usize, first: Option<usize>) -> Vec<Boolean> {
    (0..count)
        .map(|i| {
            let bit = value >> i & 1 == 1;
            first.map_or(Boolean::constant(bit), |first| allocated_bit::<F>(first + i, bit).into())
        })
        .collect()
}

/// The bit of a variable that is allocated.
pub(super) fn allocated_bit<F: PrimeField>(variable: usize, value: bool) -> AllocatedBit {
    AllocatedBit::alloc::<F, _>(Allocated(variable), Some(value)).expect("the variable is there")
}
