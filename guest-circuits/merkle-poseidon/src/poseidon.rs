//! Poseidon of neptune for the arities of the circuit.

use generic_array::typenum::{U2, U4, U8};
use neptune::circuit2::poseidon_hash_allocated;
use neptune::poseidon::PoseidonConstants;
use neptune::{Arity, Poseidon};
use zkhost_guest::Fr;
use zkhost_guest::bellpepper_core::num::AllocatedNum;
use zkhost_guest::bellpepper_core::{ConstraintSystem, SynthesisError};

/// The hash of `arity` children, domain-separated as a node of a Merkle tree.
pub(crate) enum Hasher {
    Two(Box<PoseidonConstants<Fr, U2>>),
    Four(Box<PoseidonConstants<Fr, U4>>),
    Eight(Box<PoseidonConstants<Fr, U8>>),
}

impl Hasher {
    /// None for an arity other than 2, 4 and 8.
    pub(crate) fn new(arity: usize) -> Option<Self> {
        match arity {
            2 => Some(Hasher::Two(Box::new(PoseidonConstants::new()))),
            4 => Some(Hasher::Four(Box::new(PoseidonConstants::new()))),
            8 => Some(Hasher::Eight(Box::new(PoseidonConstants::new()))),
            _ => None,
        }
    }

    /// The hash of these children.
    pub(crate) fn hash(&self, children: &[Fr]) -> Fr {
        fn hash<A: Arity<Fr>>(children: &[Fr], constants: &PoseidonConstants<Fr, A>) -> Fr {
            Poseidon::new_with_preimage(children, constants).hash()
        }
        match self {
            Hasher::Two(constants) => hash(children, constants),
            Hasher::Four(constants) => hash(children, constants),
            Hasher::Eight(constants) => hash(children, constants),
        }
    }

    /// The hash of these children, in a circuit. The digest is the last variable allocated.
    pub(crate) fn hash_allocated<CS: ConstraintSystem<Fr>>(
        &self,
        cs: CS,
        children: Vec<AllocatedNum<Fr>>,
    ) -> Result<AllocatedNum<Fr>, SynthesisError> {
        match self {
            Hasher::Two(constants) => poseidon_hash_allocated(cs, children, constants),
            Hasher::Four(constants) => poseidon_hash_allocated(cs, children, constants),
            Hasher::Eight(constants) => poseidon_hash_allocated(cs, children, constants),
        }
    }
}
