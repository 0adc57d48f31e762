//! The CPU backend.

use super::{BaseProof, BoundKey, ProveError, Prover, quotient};
use crate::assignment::Lookup;
use crate::domain::Domain;
use crate::key::{HBasis, KeyError};
use crate::msm::{Plan, Query, SecretSignedScalars, Terms, msm};
use crate::{Assignment, ProvingKey, R1cs};
use blstrs::G1Projective;
use std::sync::Arc;

/// Proves on the threads of the rayon pool that calls it. It holds no lock and, while it proves, hardly more than two vectors
/// of the domain's size.
pub struct CpuProver {
    bound: BoundKey,
    domain: Domain,
    a: Query,
    b: Query,
    l: Query,
}

impl CpuProver {
    /// Bind a key, in any basis of H, to its circuit.
    pub fn new(key: Arc<ProvingKey>, r1cs: Arc<R1cs>) -> Result<Self, KeyError> {
        let bound = BoundKey::new(key, r1cs)?;
        let key = &bound.key;
        if key.log2_domain > Domain::MAX_LOG2 {
            let what = "doublings of its domain (log2), at most,";
            return Err(KeyError::Count { what, expected: Domain::MAX_LOG2.into(), found: key.log2_domain.into() });
        }
        let first_of_l = match key.h_basis {
            HBasis::Monomial | HBasis::OddCoset => 1 + key.public_count,
            HBasis::QuotientPoints => 0,
        };
        Ok(Self {
            domain: Domain::new(key.root, key.log2_domain),
            a: Query::sparse(key.a_density.clone()),
            b: Query::sparse(key.b_density.clone()),
            l: Query::from_variable(first_of_l),
            bound,
        })
    }

    fn h(&self, assignment: &Assignment) -> G1Projective {
        let BoundKey { key, r1cs, .. } = &self.bound;
        let z = Lookup::new(assignment);
        let scalars = match key.h_basis {
            HBasis::Monomial => quotient::coefficients(r1cs, &z, &self.domain),
            HBasis::QuotientPoints => quotient::coset_products(r1cs, &z, &self.domain),
            HBasis::OddCoset => quotient::coset_differences(r1cs, &z, &self.domain),
        };
        // The monomial query has no point for the last coefficient, which is zero.
        let signed = SecretSignedScalars::new(&scalars[..key.h.len()]);
        drop(scalars);
        msm(&key.h, &Terms::in_order(&signed))
    }
}

impl Prover for CpuProver {
    fn describe(&self) -> String {
        match rayon::current_num_threads() {
            1 => "CPU, 1 thread".into(),
            threads => format!("CPU, {threads} threads"),
        }
    }

    fn bound(&self) -> &BoundKey {
        &self.bound
    }

    fn base(&self, assignment: &Assignment) -> Result<BaseProof, ProveError> {
        let key = &self.bound.key;
        let h = self.h(assignment);
        let plan = Plan::new(assignment);
        let (b, (a, l)) = rayon::join(
            || plan.combine(&key.b_g2, &self.b),
            || rayon::join(|| plan.combine(&key.a, &self.a), || plan.combine(&key.l, &self.l)),
        );
        Ok(BaseProof { a: a + key.vk.alpha_g1, b: b + key.vk.beta_g2, c: h + l })
    }

    fn base_b_g1(&self, assignment: &Assignment) -> Result<G1Projective, ProveError> {
        let key = &self.bound.key;
        Ok(Plan::new(assignment).combine(&key.b_g1, &self.b) + key.vk.beta_g1)
    }
}
