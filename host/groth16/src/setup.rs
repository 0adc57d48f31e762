//! Development keys: whoever makes one could forge proofs by it, so it is for development and tests.
//!
//! Groth16, <https://eprint.iacr.org/2016/260>, with bellman's layout: standard generators, the rows "public * 0 = 0" after
//! the constraints, queries without the variables whose polynomial is zero. With [`HBasis::QuotientPoints`] the secrets give
//! P and L' directly, by formulas (1) and (2) of `ALGEBRA.md`; with [`HBasis::OddCoset`] the H query of snarkjs's keys.

use crate::fixed_base::CpuMultiples;
pub use crate::fixed_base::GeneratorMultiples;
use crate::key::{HBasis, ProvingKey, RootGenerator, VerifyingKey};
use crate::r1cs::{MatrixId, R1cs};
use crate::scalar::{Scalar, SecretScalars};
use blstrs::G1Affine;
use ff::{BatchInvert, Field};
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use rayon::prelude::*;

/// Elements one task computes.
const ELEMENTS_PER_TASK: usize = 4096;

/// The secrets of a key, zeroed when dropped. Whoever has them can forge proofs.
pub struct ToxicWaste(SecretScalars);

/// Where the secrets lie in [`ToxicWaste`].
#[derive(Clone, Copy)]
enum Secret {
    Alpha,
    Beta,
    Gamma,
    Delta,
    Tau,
}

impl ToxicWaste {
    /// From the operating system's randomness.
    pub fn random() -> Self {
        // Straight from the system: a generator in between would keep its state, from which the secrets follow.
        Self::from_rng(&mut OsRng)
    }

    /// From a seed: the same key each time, and everyone who knows the seed can forge proofs by it.
    pub fn insecure_from_seed(seed: u64) -> Self {
        Self::from_rng(&mut ChaCha20Rng::seed_from_u64(seed))
    }

    /// These very values, to reproduce a key that was made elsewhere.
    pub fn fixed_for_tests(alpha: Scalar, beta: Scalar, gamma: Scalar, delta: Scalar, tau: Scalar) -> Self {
        Self(SecretScalars::new(vec![alpha, beta, gamma, delta, tau]))
    }

    fn from_rng(rng: &mut impl RngCore) -> Self {
        Self(SecretScalars::new((0..5).map(|_| Scalar::random(&mut *rng)).collect()))
    }

    fn get(&self, secret: Secret) -> Scalar {
        self.0[secret as usize]
    }
}

/// Why no key was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The domain has no coset of twice its order.
    #[error("the circuit needs a domain of 2^{log2_domain}, setup makes keys up to 2^{max}")]
    TooLarge {
        /// What the circuit needs.
        log2_domain: u32,
        /// What is possible.
        max: u32,
    },
    /// A secret that gives no key: zero, or a root of unity. Random secrets never are, in practice.
    #[error("the secrets give no key for this circuit ({reason}); choose others")]
    Unlucky {
        /// What is wrong with them.
        reason: &'static str,
    },
    /// The multiples of the generators were not computed.
    #[error("the key's points were not computed: {0}")]
    Multiples(String),
}

fn nonzero(value: Scalar, reason: &'static str) -> Result<Scalar, SetupError> {
    Option::from(value.invert()).ok_or(SetupError::Unlucky { reason })
}

/// The largest domain: its coset needs a root of twice its order.
const MAX_LOG2_DOMAIN: u32 = 31;

/// Make a key for a circuit, with the H query in the given basis and by its root generator, [`HBasis::root`].
pub fn setup(r1cs: &R1cs, waste: &ToxicWaste, h_basis: HBasis) -> Result<ProvingKey, SetupError> {
    setup_with(r1cs, waste, h_basis, &CpuMultiples::new())
}

/// As [`setup`], with the multiples of the generators from elsewhere. Whoever computes them learns the secrets' products.
pub fn setup_with(
    r1cs: &R1cs,
    waste: &ToxicWaste,
    h_basis: HBasis,
    multiples: &dyn GeneratorMultiples,
) -> Result<ProvingKey, SetupError> {
    let log2_domain = r1cs.log2_domain();
    if log2_domain > MAX_LOG2_DOMAIN {
        return Err(SetupError::TooLarge { log2_domain, max: MAX_LOG2_DOMAIN });
    }
    let powers = Powers::new(waste, log2_domain)?;
    let root = h_basis.root();
    let polynomials = Polynomials::new(r1cs, &powers.lagrange(&Offsets::domain(root, log2_domain)));
    let (ic, mut l) = polynomials.ic_and_l(r1cs, waste)?;
    let h = match h_basis {
        HBasis::Monomial => powers.monomial(),
        HBasis::QuotientPoints => {
            l = folded_l(r1cs, &powers, &Offsets::domain(root, log2_domain), l);
            powers.quotient(&Offsets::coset(root, log2_domain))
        }
        HBasis::OddCoset => powers.odd_coset(&Offsets::coset(root, log2_domain)),
    };

    let (a_density, b_density) = (r1cs.a_density(), r1cs.b_density());
    let a = used(&polynomials.a, &a_density)?;
    let b = used(&polynomials.b, &b_density)?;
    let g1 = |scalars: &[Scalar]| all_of(multiples.g1(scalars), scalars);
    Ok(ProvingKey {
        vk: verifying_key(waste, &ic, multiples)?,
        shape: r1cs.hash(),
        proven: true,
        root,
        log2_domain,
        h_basis,
        public_count: r1cs.public_count,
        aux_count: r1cs.aux_count,
        a_density,
        b_density,
        a: g1(&a)?.into(),
        b_g1: g1(&b)?.into(),
        b_g2: all_of(multiples.g2(&b), &b)?.into(),
        h: g1(&h)?.into(),
        l: g1(&l)?.into(),
    })
}

/// The points, if there is one for each scalar.
fn all_of<T>(points: Result<Vec<T>, String>, scalars: &[Scalar]) -> Result<Vec<T>, SetupError> {
    let points = points.map_err(SetupError::Multiples)?;
    match (points.len(), scalars.len()) {
        (found, expected) if found != expected => {
            Err(SetupError::Multiples(format!("{found} points came back for {expected} scalars")))
        }
        _ => Ok(points),
    }
}

fn verifying_key(
    waste: &ToxicWaste,
    ic: &[Scalar],
    multiples: &dyn GeneratorMultiples,
) -> Result<VerifyingKey, SetupError> {
    let secrets = |secrets: [Secret; 3]| SecretScalars::new(secrets.map(|secret| waste.get(secret)).to_vec());
    let in_g1 = secrets([Secret::Alpha, Secret::Beta, Secret::Delta]);
    let in_g2 = secrets([Secret::Beta, Secret::Gamma, Secret::Delta]);
    let g1 = all_of(multiples.g1(&in_g1), &in_g1)?;
    let g2 = all_of(multiples.g2(&in_g2), &in_g2)?;
    Ok(VerifyingKey {
        alpha_g1: g1[0].into(),
        beta_g1: g1[1].into(),
        beta_g2: g2[0].into(),
        gamma_g2: g2[1].into(),
        delta_g1: g1[2].into(),
        delta_g2: g2[2].into(),
        ic: all_of(multiples.g1(ic), ic)?.into_iter().map(G1Affine::from).collect(),
    })
}

/// The values at the variables that the density marks, which are not zero there.
fn used(values: &[Scalar], density: &[u64]) -> Result<SecretScalars, SetupError> {
    // All of the memory at once: a list that grows leaves copies behind.
    let mut used = Vec::with_capacity(density.iter().map(|word| word.count_ones() as usize).sum());
    let marked = values.iter().enumerate().filter(|(i, _)| density[i / 64] >> (i % 64) & 1 == 1);
    used.extend(marked.map(|(_, value)| *value));
    let used = SecretScalars::new(used);
    if used.iter().any(|value| value.is_zero_vartime()) {
        return Err(SetupError::Unlucky { reason: "a variable's polynomial vanishes at tau" });
    }
    Ok(used)
}

/// Points of a coset of the domain, as the numbers tau is divided by: 1/offset_j = start * step^j.
struct Offsets {
    start: Scalar,
    step: Scalar,
    log2: u32,
}

impl Offsets {
    /// The domain: powers of omega, inverted.
    fn domain(root: RootGenerator, log2: u32) -> Self {
        let omega = root.root_of_unity(log2);
        // omega^(n - 1) is its inverse.
        Self { start: Scalar::ONE, step: omega.pow_vartime([(1u64 << log2) - 1]), log2 }
    }

    /// The odd coset eta * <omega>, eta^2 = omega, inverted.
    fn coset(root: RootGenerator, log2: u32) -> Self {
        let eta = root.root_of_unity(log2 + 1);
        let inverse = eta.pow_vartime([(2u64 << log2) - 1]);
        Self { start: inverse, step: inverse.square(), log2 }
    }

    /// tau / offset_j for every j.
    fn quotients(&self, tau: Scalar) -> SecretScalars {
        let mut out = SecretScalars::zeros(1 << self.log2);
        geometric(&mut out, tau * self.start, self.step);
        out
    }
}

/// Fill with first * ratio^j.
fn geometric(out: &mut [Scalar], first: Scalar, ratio: Scalar) {
    out.par_chunks_mut(ELEMENTS_PER_TASK).enumerate().for_each(|(task, out)| {
        let mut next = first * ratio.pow_vartime([(task * ELEMENTS_PER_TASK) as u64]);
        for value in out {
            *value = next;
            next *= ratio;
        }
    });
}

/// What depends on tau and the domain alone.
struct Powers {
    tau: Scalar,
    n: u64,
    /// Z(tau) = tau^n - 1.
    z: Scalar,
    /// Z(tau) / delta.
    z_over_delta: Scalar,
    /// 1 / n.
    n_inverse: Scalar,
}

impl Powers {
    fn new(waste: &ToxicWaste, log2_domain: u32) -> Result<Self, SetupError> {
        let (tau, n) = (waste.get(Secret::Tau), 1 << log2_domain);
        nonzero(tau, "tau is zero")?;
        let power = tau.pow_vartime([n]);
        // tau in the domain makes Z vanish, tau in its odd coset has no quotient points.
        nonzero(power.square() - Scalar::ONE, "tau is a root of unity of the domain or of its coset")?;
        let z = power - Scalar::ONE;
        let z_over_delta = z * nonzero(waste.get(Secret::Delta), "delta is zero")?;
        let n_inverse = nonzero(Scalar::from(n), "the domain's size is zero")?;
        Ok(Self { tau, n, z, z_over_delta, n_inverse })
    }

    /// The Lagrange polynomials of the domain at tau: with x = tau / omega^j, L_j(tau) = (x^n - 1) / (n (x - 1)).
    fn lagrange(&self, domain: &Offsets) -> SecretScalars {
        let factor = self.z * self.n_inverse;
        self.fractions(domain, |_| factor)
    }

    /// tau^k Z(tau) / delta, k < n - 1.
    fn monomial(&self) -> SecretScalars {
        let mut out = SecretScalars::zeros(self.n as usize - 1);
        geometric(&mut out, self.z_over_delta, self.tau);
        out
    }

    /// (1 / (n Z_c)) sum over k < n - 1 of x^k Z(tau) / delta, with x = tau / offset_j and Z_c = -2: the scalars of P_j over
    /// the coset, of R_i over the domain. The sum is (x^(n-1) - 1) / (x - 1).
    fn quotient(&self, offsets: &Offsets) -> SecretScalars {
        let minus_half = -Scalar::from(2).invert().expect("two is not zero");
        let factor = self.z_over_delta * self.n_inverse * minus_half;
        let exponent = [self.n - 1];
        let last_power = (self.tau * offsets.start).pow_vartime(exponent);
        // x_j^(n-1) = x_0^(n-1) * step^(j (n-1)) = x_0^(n-1) / step^j, for step^n = 1.
        let mut powers = SecretScalars::zeros(self.n as usize);
        geometric(&mut powers, last_power, offsets.step.pow_vartime(exponent));
        self.fractions(offsets, |j| factor * (powers[j] - Scalar::ONE))
    }

    /// L_j(tau) Z(tau) / (-2 delta), L_j the Lagrange polynomials of the odd coset: with x = tau / (eta omega^j), whose n-th
    /// power is -tau^n, L_j(tau) = (-tau^n - 1) / (n (x - 1)).
    fn odd_coset(&self, coset: &Offsets) -> SecretScalars {
        let half = Scalar::from(2).invert().expect("two is not zero");
        let factor = (self.z + Scalar::from(2)) * self.z_over_delta * self.n_inverse * half;
        self.fractions(coset, |_| factor)
    }

    /// numerator(j) / (x_j - 1), with x_j = tau / offset_j, which is never one.
    fn fractions(&self, offsets: &Offsets, numerator: impl Fn(usize) -> Scalar + Sync) -> SecretScalars {
        let mut out = offsets.quotients(self.tau);
        out.par_chunks_mut(ELEMENTS_PER_TASK).enumerate().for_each(|(task, out)| {
            out.iter_mut().for_each(|x| *x -= Scalar::ONE);
            out.batch_invert();
            for (j, value) in (task * ELEMENTS_PER_TASK..).zip(out) {
                *value *= numerator(j);
            }
        });
        out
    }
}

/// The polynomials of every variable of z at tau.
struct Polynomials {
    a: SecretScalars,
    b: SecretScalars,
    c: SecretScalars,
}

impl Polynomials {
    fn new(r1cs: &R1cs, lagrange: &[Scalar]) -> Self {
        let ((mut a, b), c) = rayon::join(
            || rayon::join(|| combine(r1cs, MatrixId::A, lagrange), || combine(r1cs, MatrixId::B, lagrange)),
            || combine(r1cs, MatrixId::C, lagrange),
        );
        // The rows "public * 0 = 0".
        let bound = &lagrange[r1cs.constraints()..][..=r1cs.public_count as usize];
        a.iter_mut().zip(bound).for_each(|(a, row)| *a += row);
        Self { a, b, c }
    }

    /// (beta A + alpha B + C) over gamma for the one and the publics, over delta for the others.
    fn ic_and_l(&self, r1cs: &R1cs, waste: &ToxicWaste) -> Result<(SecretScalars, SecretScalars), SetupError> {
        let (alpha, beta) = (waste.get(Secret::Alpha), waste.get(Secret::Beta));
        nonzero(alpha, "alpha is zero")?;
        nonzero(beta, "beta is zero")?;
        let gamma_inverse = nonzero(waste.get(Secret::Gamma), "gamma is zero")?;
        let delta_inverse = nonzero(waste.get(Secret::Delta), "delta is zero")?;
        let publics = r1cs.public_count as usize + 1;
        let value = |i: usize, inverse: Scalar| (beta * self.a[i] + alpha * self.b[i] + self.c[i]) * inverse;
        let ic = (0..publics).map(|i| value(i, gamma_inverse)).collect();
        let l = (publics..r1cs.variables()).into_par_iter().map(|i| value(i, delta_inverse)).collect();
        Ok((SecretScalars::new(ic), SecretScalars::new(l)))
    }
}

/// L' over all of z: L_v - Q_v for aux, -Q_v for the one and the publics, with Q_v = sum over i of C[i,v] R_i.
fn folded_l(r1cs: &R1cs, powers: &Powers, domain: &Offsets, l: SecretScalars) -> SecretScalars {
    let mut folded = combine(r1cs, MatrixId::C, &powers.quotient(domain));
    folded.iter_mut().for_each(|q| *q = -*q);
    let publics = r1cs.public_count as usize + 1;
    folded[publics..].iter_mut().zip(l.iter()).for_each(|(q, l)| *q += l);
    folded
}

/// For every variable of z, the sum over rows of its coefficient times the row's weight. Each task has some of the variables
/// and looks at all terms for theirs: that costs less than adding into memory that tasks share.
fn combine(r1cs: &R1cs, id: MatrixId, weights: &[Scalar]) -> SecretScalars {
    let (matrix, coefficients) = (r1cs.matrix(id), r1cs.coefficients());
    let mut out = SecretScalars::zeros(r1cs.variables());
    let share = out.len().div_ceil(rayon::current_num_threads()).max(ELEMENTS_PER_TASK);
    out.par_chunks_mut(share).enumerate().for_each(|(task, out)| {
        let first = task * share;
        for (row, weight) in (0..matrix.rows()).zip(weights) {
            for (column, coefficient) in matrix.row(row) {
                let Some(sum) = (column as usize).checked_sub(first).and_then(|i| out.get_mut(i)) else { continue };
                let coefficient = coefficients[coefficient as usize];
                // Most are one.
                *sum += if coefficient == Scalar::ONE { *weight } else { coefficient * weight };
            }
        }
    });
    out
}
