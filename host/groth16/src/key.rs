//! Proving and verifying keys in memory.

use crate::points::{G1Point, G2Point};
use blstrs::{G1Affine, G2Affine};

/// The generator whose power is the root of unity of the evaluation domain. The key format decides it; it is never
/// guessed, and a wrong one gives proofs that verify on degenerate circuits only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootGenerator {
    /// 7: bellman, bellperson, arkworks, this crate's setup.
    Seven,
    /// 5: snarkjs.
    Five,
}

/// The basis of the quotient's query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HBasis {
    /// H_k = [tau^k Z(tau) / delta], k < n - 1: bellman's.
    Monomial,
    /// P_j, n points: the quotient's scalars are a_j b_j on the odd coset and C is folded into L'. See
    /// `reference/prover-algebra.md`, formulas (1) and (2).
    QuotientPoints,
}

/// A verifying key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// alpha in G1.
    pub alpha_g1: G1Affine,
    /// beta in G1; only provers use it.
    pub beta_g1: G1Affine,
    /// beta in G2.
    pub beta_g2: G2Affine,
    /// gamma in G2.
    pub gamma_g2: G2Affine,
    /// delta in G1; only provers use it.
    pub delta_g1: G1Affine,
    /// delta in G2.
    pub delta_g2: G2Affine,
    /// One point for the constant one and each public input.
    pub ic: Vec<G1Affine>,
}

/// A proving key in memory.
///
/// Queries are sparse: a variable whose polynomial is zero has no point. `a_density` and `b_density` have one bit per
/// variable of z (bit i mod 64 of word i / 64), set where the query has a point; bellman gives every public input a
/// point in A.
pub struct ProvingKey {
    /// The verifying key.
    pub vk: VerifyingKey,
    /// The generator of the domain's root of unity.
    pub root: RootGenerator,
    /// log2 of the domain size n.
    pub log2_domain: u32,
    /// The basis of `h`.
    pub h_basis: HBasis,
    /// Public inputs, the constant one excluded.
    pub public_count: u32,
    /// Private variables.
    pub aux_count: u32,
    /// Which variables have a point in `a`.
    pub a_density: Vec<u64>,
    /// Which variables have a point in `b_g1` and `b_g2`.
    pub b_density: Vec<u64>,
    /// A query, G1.
    pub a: Vec<G1Point>,
    /// B query, G1.
    pub b_g1: Vec<G1Point>,
    /// B query, G2.
    pub b_g2: Vec<G2Point>,
    /// Quotient query in `h_basis`.
    pub h: Vec<G1Point>,
    /// L query: with `HBasis::Monomial` one point per aux variable; with `HBasis::QuotientPoints` L' over all of z.
    pub l: Vec<G1Point>,
}
