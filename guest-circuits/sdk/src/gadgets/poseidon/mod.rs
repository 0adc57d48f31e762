//! Poseidon as in `neptune`, with its constants.
//!
//! Poseidon is the hash of Grassi, Khovratovich, Rechberger, Roy and Schofnegger (<https://eprint.iacr.org/2019/458>), here
//! with x^5, eight full rounds, standard strength and the domain tag of a complete Merkle tree, which is what
//! `PoseidonConstants::new` makes. Making them takes milliseconds, and an instance lives no longer than a job: so they are
//! data (`constants/arity-N.bin`, written by the example `poseidon_constants`; a test compares them with neptune's), and
//! neptune makes its own only when a shape is recorded.

use std::cell::OnceCell;

use bellpepper_core::num::AllocatedNum;
use bellpepper_core::{ConstraintSystem, SynthesisError};
use generic_array::typenum::{U2, U4, U8, U11};
use neptune::circuit2::poseidon_hash_allocated;
use neptune::poseidon::PoseidonConstants;

use super::{WordPass, allocated_num, word_pass};
use crate::Fr;
use crate::fr::limbs_from_le_bytes;

/// Rounds that apply the S-box to the whole state; half of them come first, half last.
const FULL_ROUNDS: usize = 8;
/// The most elements of a state.
const WIDTH_MAX: usize = 12;

/// The hash of 2, 4, 8 or 11 elements.
pub struct Poseidon {
    arity: usize,
    /// Round keys in order of use.
    keys: Vec<Fr>,
    /// The matrix of full rounds, column by column, and that of the last full round before the partial ones.
    full: Vec<Fr>,
    last_full: Vec<Fr>,
    /// For each partial round the first column of its matrix, then the rest of its first row; the rest is the identity.
    sparse: Vec<Fr>,
    /// Neptune's own constants, for recording shapes.
    published: OnceCell<Published>,
}

enum Published {
    Two(PoseidonConstants<Fr, U2>),
    Four(PoseidonConstants<Fr, U4>),
    Eight(PoseidonConstants<Fr, U8>),
    Eleven(PoseidonConstants<Fr, U11>),
}

impl Poseidon {
    /// The arities there are.
    pub const ARITIES: [usize; 4] = [2, 4, 8, 11];

    /// The hash of so many elements. None if there is none.
    pub fn new(arity: usize) -> Option<Self> {
        let constants: &[u8] = match arity {
            2 => include_bytes!("constants/arity-2.bin"),
            4 => include_bytes!("constants/arity-4.bin"),
            8 => include_bytes!("constants/arity-8.bin"),
            11 => include_bytes!("constants/arity-11.bin"),
            _ => return None,
        };
        let width = arity + 1;
        let (elements, _) = constants.as_chunks::<32>();
        let element = |bytes| Fr::from_canonical(limbs_from_le_bytes(bytes)).expect("constants are canonical");
        let mut elements = elements.iter().map(element);
        // Besides keys and matrices of full rounds there are 2 · width elements for each partial round, one of them a key.
        let partial_rounds = (elements.len() - FULL_ROUNDS * width - 2 * width * width) / (2 * width);
        let mut take = |count| elements.by_ref().take(count).collect();
        Some(Poseidon {
            arity,
            keys: take(FULL_ROUNDS * width + partial_rounds),
            full: take(width * width),
            last_full: take(width * width),
            sparse: take(partial_rounds * (2 * width - 1)),
            published: OnceCell::new(),
        })
    }

    /// The number of elements that are hashed.
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// The hash of `arity` elements.
    pub fn hash(&self, preimage: &[Fr]) -> Fr {
        self.permute(preimage.iter().copied(), |_| ())
    }

    /// The hash of `arity` elements, in a circuit: `neptune::circuit2::poseidon_hash_allocated`. The digest is the last
    /// variable allocated.
    pub fn hash_allocated<CS>(
        &self,
        mut cs: CS,
        preimage: Vec<AllocatedNum<Fr>>,
    ) -> Result<AllocatedNum<Fr>, SynthesisError>
    where
        CS: ConstraintSystem<Fr>,
        CS::Root: WordPass,
    {
        assert_eq!(preimage.len(), self.arity, "elements to hash");
        word_pass(&mut cs, |words| {
            let values = preimage.iter().map(|number| number.get_value().ok_or(SynthesisError::AssignmentMissing));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            let digest = self.permute(values.into_iter(), |value| words.push_value(value.to_canonical()));
            let variable = words.next_aux();
            words.push_value(digest.to_canonical());
            allocated_num(variable, digest)
        })
        .unwrap_or_else(|| match self.published() {
            Published::Two(constants) => poseidon_hash_allocated(cs, preimage, constants),
            Published::Four(constants) => poseidon_hash_allocated(cs, preimage, constants),
            Published::Eight(constants) => poseidon_hash_allocated(cs, preimage, constants),
            Published::Eleven(constants) => poseidon_hash_allocated(cs, preimage, constants),
        })
    }

    fn published(&self) -> &Published {
        self.published.get_or_init(|| match self.arity {
            2 => Published::Two(PoseidonConstants::new()),
            4 => Published::Four(PoseidonConstants::new()),
            8 => Published::Eight(PoseidonConstants::new()),
            _ => Published::Eleven(PoseidonConstants::new()),
        })
    }

    /// The hash, with neptune's optimised rounds. `variable` sees, of each S-box, x², x⁴ and x⁵ plus the next round's key:
    /// the variables of the circuit in order.
    fn permute(&self, preimage: impl Iterator<Item = Fr>, mut variable: impl FnMut(Fr)) -> Fr {
        let width = self.arity + 1;
        let mut room = [Fr::ZERO; WIDTH_MAX];
        let state = &mut room[..width];
        let domain_tag = Fr::from((1u64 << self.arity) - 1);
        let mut keys = self.keys.iter();
        for (element, value) in state.iter_mut().zip(std::iter::once(domain_tag).chain(preimage)) {
            *element = value + keys.next().expect("a key for every element");
        }
        // There are no keys after the last round.
        let mut s_box = |x: &mut Fr| {
            let square = x.square();
            let fourth = square.square();
            let fifth = fourth * *x + keys.next().copied().unwrap_or(Fr::ZERO);
            [square, fourth, fifth].into_iter().for_each(&mut variable);
            *x = fifth;
        };
        for round in 1..=FULL_ROUNDS / 2 {
            state.iter_mut().for_each(&mut s_box);
            multiply(state, if round == FULL_ROUNDS / 2 { &self.last_full } else { &self.full });
        }
        for matrix in self.sparse.chunks_exact(2 * width - 1) {
            s_box(&mut state[0]);
            let (column, row) = matrix.split_at(width);
            let first = Fr::dot(state, column);
            let (scale, rest) = state.split_first_mut().expect("a state has elements");
            rest.iter_mut().zip(row).for_each(|(element, factor)| *element += *scale * factor);
            *scale = first;
        }
        for _ in 0..FULL_ROUNDS / 2 {
            state.iter_mut().for_each(&mut s_box);
            multiply(state, &self.full);
        }
        state[1]
    }
}

/// The product of a row vector and a matrix that is given column by column.
fn multiply(state: &mut [Fr], columns: &[Fr]) {
    let width = state.len();
    let mut product = [Fr::ZERO; WIDTH_MAX];
    for (element, column) in product.iter_mut().zip(columns.chunks_exact(width)) {
        *element = Fr::dot(state, column);
    }
    state.copy_from_slice(&product[..width]);
}
