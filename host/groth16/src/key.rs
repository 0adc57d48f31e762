//! Proving and verifying keys in memory.

use crate::formats::{ParamsFile, ZkeyFile};
use crate::points::{G1Point, G2Point, Point};
use crate::r1cs::{MAX_LOG2_DOMAIN, MatrixId, R1cs, ShapeHash};
use crate::scalar::{MODULUS, Scalar};
use blstrs::{G1Affine, G2Affine};
use bytemuck::Pod;
use ff::{Field, PrimeField};
use memmap2::Mmap;
use std::{marker::PhantomData, ops::Deref, ops::Range, sync::Arc};

/// The generator whose power is the root of unity of the evaluation domain. The key format decides it; it is never
/// guessed, and a wrong one gives proofs that verify on degenerate circuits only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootGenerator {
    /// 7: bellman, bellperson, arkworks, this crate's setup.
    Seven,
    /// 5: snarkjs.
    Five,
}

impl RootGenerator {
    /// A root of unity of order 2^log2: the power of the generator.
    ///
    /// Panics if log2 is above 32, the field's two-adicity.
    pub fn root_of_unity(self, log2: u32) -> Scalar {
        assert!(log2 <= Scalar::S, "the field has roots of unity of order 2^32 at most");
        let generator = match self {
            Self::Seven => Scalar::from(7),
            Self::Five => Scalar::from(5),
        };
        // (r - 1) / 2^32
        let [r0, r1, r2, r3] = MODULUS;
        let odd = [r0 >> 32 | r1 << 32, r1 >> 32 | r2 << 32, r2 >> 32 | r3 << 32, r3 >> 32];
        let mut root = generator.pow_vartime(odd);
        for _ in log2..Scalar::S {
            root = root.square();
        }
        root
    }
}

/// The basis of the quotient's query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HBasis {
    /// H_k = [tau^k Z(tau) / delta], k < n - 1: bellman's.
    Monomial,
    /// P_j, n points: the quotient's scalars are a_j b_j on the odd coset and C is folded into L'. See
    /// `ALGEBRA.md`, formulas (1) and (2).
    QuotientPoints,
    /// [L_j(tau) Z(tau) / (-2 delta)], n points, L_j the Lagrange polynomials of the odd coset: snarkjs's. The quotient's
    /// scalars are a_j b_j - c_j on that coset. See `ALGEBRA.md`, formula (5).
    OddCoset,
}

impl HBasis {
    /// The generator of the root of unity that [`setup`](crate::setup::setup) uses with this basis: that of the tools
    /// whose keys have it.
    pub fn root(self) -> RootGenerator {
        match self {
            Self::Monomial | Self::QuotientPoints => RootGenerator::Seven,
            Self::OddCoset => RootGenerator::Five,
        }
    }
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

impl VerifyingKey {
    /// Public inputs, the constant one excluded.
    pub fn public_count(&self) -> usize {
        self.ic.len().saturating_sub(1)
    }

    /// Whether delta differs from gamma: whether anyone contributed to the second phase of the key's ceremony. Without it
    /// delta is no secret, and whoever knows it can prove anything.
    pub fn has_phase2_contribution(&self) -> bool {
        self.delta_g2 != self.gamma_g2
    }
}

/// What a verifier needs: a verifying key without beta and delta in G1, which only provers use and most formats lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    /// alpha in G1.
    pub alpha_g1: G1Affine,
    /// beta in G2.
    pub beta_g2: G2Affine,
    /// gamma in G2.
    pub gamma_g2: G2Affine,
    /// delta in G2.
    pub delta_g2: G2Affine,
    /// One point for the constant one and each public input.
    pub ic: Vec<G1Affine>,
}

impl From<&VerifyingKey> for VerifierKey {
    fn from(vk: &VerifyingKey) -> Self {
        let VerifyingKey { alpha_g1, beta_g2, gamma_g2, delta_g2, .. } = *vk;
        Self { alpha_g1, beta_g2, gamma_g2, delta_g2, ic: vk.ic.clone() }
    }
}

impl VerifierKey {
    /// Public inputs, the constant one excluded.
    pub fn public_count(&self) -> usize {
        self.ic.len().saturating_sub(1)
    }

    /// Refuse a key without a phase-2 contribution, unless that is allowed. Decoders refuse identities.
    pub fn check_phase2(&self, phase2: Phase2) -> Result<(), KeyError> {
        match phase2 {
            Phase2::Required if self.delta_g2 == self.gamma_g2 => Err(KeyError::NoPhase2),
            _ => Ok(()),
        }
    }
}

/// A run of points: in ordinary memory, or in a key image that is mapped.
#[derive(Clone)]
pub struct Section<T>(Storage<T>);

#[derive(Clone)]
enum Storage<T> {
    Owned(Vec<T>),
    Mapped { map: Arc<Mmap>, bytes: Range<usize>, points: PhantomData<T> },
}

impl<T: Pod> Section<T> {
    /// A part of a mapped file; none if it lies outside, or its size or alignment does not suit T.
    pub(crate) fn mapped(map: Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        bytemuck::try_cast_slice::<u8, T>(map.get(bytes.clone())?).ok()?;
        Some(Self(Storage::Mapped { map, bytes, points: PhantomData }))
    }
}

impl<T> From<Vec<T>> for Section<T> {
    fn from(points: Vec<T>) -> Self {
        Self(Storage::Owned(points))
    }
}

impl<T: Pod> Deref for Section<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Owned(points) => points,
            Storage::Mapped { map, bytes, .. } => bytemuck::cast_slice(&map[bytes.clone()]),
        }
    }
}

/// A proving key in memory, bound to a circuit.
///
/// Queries are sparse: a variable whose polynomial is zero has no point. `a_density` and `b_density` have one bit per
/// variable of z (bit i mod 64 of word i / 64), set where the query has a point; bellman gives every public input a
/// point in A.
#[derive(Clone)]
pub struct ProvingKey {
    /// The verifying key.
    pub vk: VerifyingKey,
    /// The circuit it is bound to.
    pub shape: ShapeHash,
    /// Whether that is known: the key was made from this very shape, or a proof by it verified. An imported key fits by
    /// its counts alone until then.
    pub proven: bool,
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
    pub a: Section<G1Point>,
    /// B query, G1.
    pub b_g1: Section<G1Point>,
    /// B query, G2.
    pub b_g2: Section<G2Point>,
    /// Quotient query in `h_basis`.
    pub h: Section<G1Point>,
    /// L query: one point per aux variable; with `HBasis::QuotientPoints` L' over all of z.
    pub l: Section<G1Point>,
}

/// Why a key is refused for a circuit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A count differs.
    #[error(
        "the key does not fit the circuit: it has {found} {what} where the circuit needs {expected}; use the key made for \
         this circuit and these parameters"
    )]
    Count {
        /// What is counted.
        what: &'static str,
        /// What the circuit needs.
        expected: u64,
        /// What the key has.
        found: u64,
    },
    /// The key was made for another shape.
    #[error(
        "the key was made for circuit {found}, this one is {expected}: use the key made for this circuit and these parameters"
    )]
    Shape {
        /// The circuit at hand.
        expected: ShapeHash,
        /// The circuit the key names.
        found: ShapeHash,
    },
    /// The key has other coefficients than the circuit.
    #[error(
        "the key was made for another circuit: row {row} of its matrix {matrix:?} differs; use the key made for this circuit \
         and these parameters"
    )]
    Matrix {
        /// Which matrix.
        matrix: MatrixId,
        /// The first row that differs.
        row: usize,
    },
    /// A query lacks the point of a variable in use, or has one for a variable that is not.
    #[error(
        "the key does not fit the circuit: entry {variable} of its {query} is{} the point at infinity, which it is exactly for \
         variables that the circuit does not use there; use the key made for this circuit", if *.infinite { "" } else { " not" }
    )]
    Density {
        /// Which query.
        query: &'static str,
        /// Which variable of z.
        variable: usize,
        /// Whether it is the point at infinity.
        infinite: bool,
    },
    /// A point of the key is the identity.
    #[error("the key's {what} is the point at infinity: the key is broken or was made to break proofs; do not use it")]
    Identity {
        /// Which point.
        what: String,
    },
    /// Nobody contributed to the second phase.
    #[error(
        "the key's delta equals its gamma: its ceremony had no phase-2 contribution, so anyone can forge proofs; use a \
         finished key, or allow such keys explicitly, for tests only"
    )]
    NoPhase2,
}

/// Whether to take a key to whose ceremony nobody contributed a second phase, which lets anyone forge proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase2 {
    /// Refuse it.
    Required,
    /// Take it: for tests only.
    MayBeMissingForTests,
}

/// Refuse a key with an identity where none may be, or without a phase-2 contribution unless that is allowed.
pub fn check_verifying_key(vk: &VerifyingKey, phase2: Phase2) -> Result<(), KeyError> {
    let g1 = [("alpha in G1", vk.alpha_g1), ("beta in G1", vk.beta_g1), ("delta in G1", vk.delta_g1)];
    let g2 = [("beta in G2", vk.beta_g2), ("gamma in G2", vk.gamma_g2), ("delta in G2", vk.delta_g2)];
    let g1 = g1.iter().filter(|(_, p)| G1Point::from(*p).is_infinity()).map(|(what, _)| *what);
    let g2 = g2.iter().filter(|(_, p)| G2Point::from(*p).is_infinity()).map(|(what, _)| *what);
    if let Some(what) = g1.chain(g2).next() {
        return Err(KeyError::Identity { what: what.into() });
    }
    if let Some(index) = vk.ic.iter().position(|p| G1Point::from(*p).is_infinity()) {
        return Err(KeyError::Identity { what: format!("IC, entry {index},") });
    }
    if phase2 == Phase2::Required && !vk.has_phase2_contribution() {
        return Err(KeyError::NoPhase2);
    }
    Ok(())
}

impl ProvingKey {
    /// Bind an imported key to a circuit: its counts, densities and domain must be the circuit's. That is necessary, not
    /// sufficient, so the binding counts as unproven until a proof by it verifies.
    pub fn import(params: ParamsFile, r1cs: &R1cs, phase2: Phase2) -> Result<Self, KeyError> {
        check_verifying_key(&params.vk, phase2)?;
        let key = Self {
            shape: r1cs.hash(),
            proven: false,
            root: RootGenerator::Seven,
            log2_domain: r1cs.log2_domain(),
            h_basis: HBasis::Monomial,
            public_count: r1cs.public_count,
            aux_count: r1cs.aux_count,
            a_density: r1cs.a_density(),
            b_density: r1cs.b_density(),
            a: params.a.into(),
            b_g1: params.b_g1.into(),
            b_g2: params.b_g2.into(),
            h: params.h.into(),
            l: params.l.into(),
            vk: params.vk,
        };
        key.check_sections()?;
        Ok(key)
    }

    /// Bind snarkjs's key to a circuit: its counts, domain, matrices A and B and the points at infinity must be the
    /// circuit's. The file does not have C, so the binding counts as unproven until a proof by it verifies.
    pub fn import_zkey(zkey: ZkeyFile, r1cs: &R1cs, phase2: Phase2) -> Result<Self, KeyError> {
        check_verifying_key(&zkey.vk, phase2)?;
        check_counts(r1cs, zkey.public_count(), zkey.variables - 1 - zkey.public_count(), zkey.log2_domain)?;
        zkey.check_matrices(r1cs)?;
        let (a_density, b_density) = (r1cs.a_density(), r1cs.b_density());
        let key = Self {
            shape: r1cs.hash(),
            proven: false,
            root: HBasis::OddCoset.root(),
            log2_domain: zkey.log2_domain,
            h_basis: HBasis::OddCoset,
            public_count: r1cs.public_count,
            aux_count: r1cs.aux_count,
            a: sparse("A query", zkey.a, &a_density)?,
            b_g1: sparse("B query in G1", zkey.b_g1, &b_density)?,
            b_g2: sparse("B query in G2", zkey.b_g2, &b_density)?,
            a_density,
            b_density,
            h: zkey.h.into(),
            l: zkey.l.into(),
            vk: zkey.vk,
        };
        key.check_sections()?;
        Ok(key)
    }

    /// Whether this key belongs to the circuit.
    pub fn check_circuit(&self, r1cs: &R1cs) -> Result<(), KeyError> {
        check_counts(r1cs, self.public_count, self.aux_count, self.log2_domain)?;
        let expected = r1cs.hash();
        if expected != self.shape {
            return Err(KeyError::Shape { expected, found: self.shape });
        }
        Ok(())
    }

    /// The length of z = [1, publics, aux].
    pub fn variables(&self) -> usize {
        1 + self.public_count as usize + self.aux_count as usize
    }

    /// Whether every section has the length that the dimensions and densities ask for.
    pub(crate) fn check_sections(&self) -> Result<(), KeyError> {
        let ones = |density: &[u64]| density.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        if self.log2_domain > MAX_LOG2_DOMAIN {
            let (expected, found) = (MAX_LOG2_DOMAIN.into(), self.log2_domain.into());
            return Err(KeyError::Count { what: "doublings of its domain (log2), at most", expected, found });
        }
        let n = 1u64 << self.log2_domain;
        let (h, l) = match self.h_basis {
            HBasis::Monomial => (n - 1, self.aux_count.into()),
            HBasis::QuotientPoints => (n, self.variables() as u64),
            HBasis::OddCoset => (n, self.aux_count.into()),
        };
        let (a, b) = (ones(&self.a_density), ones(&self.b_density));
        same_count(
            "IC points (one more than public inputs)",
            u64::from(self.public_count) + 1,
            self.vk.ic.len() as u64,
        )?;
        same_count("H points (from the domain)", h, self.h.len() as u64)?;
        same_count("L points (from the variables)", l, self.l.len() as u64)?;
        same_count("A points (from the variables used in A)", a, self.a.len() as u64)?;
        same_count("B points in G1 (from the variables used in B)", b, self.b_g1.len() as u64)?;
        same_count("B points in G2 (from the variables used in B)", b, self.b_g2.len() as u64)
    }
}

fn check_counts(r1cs: &R1cs, public_count: u32, aux_count: u32, log2_domain: u32) -> Result<(), KeyError> {
    let counts = [
        ("public inputs", u64::from(r1cs.public_count), u64::from(public_count)),
        ("private variables", r1cs.aux_count.into(), aux_count.into()),
        ("doublings of its domain (log2)", r1cs.log2_domain().into(), log2_domain.into()),
    ];
    counts.into_iter().try_for_each(|(what, expected, found)| same_count(what, expected, found))
}

/// The points of a dense query that the density marks; exactly the others are the point at infinity.
fn sparse<P: Point>(query: &'static str, mut points: Vec<P>, density: &[u64]) -> Result<Section<P>, KeyError> {
    let used = |variable: usize| density[variable / 64] >> (variable % 64) & 1 == 1;
    if let Some(variable) = (0..points.len()).find(|&variable| used(variable) == points[variable].is_infinity()) {
        return Err(KeyError::Density { query, variable, infinite: points[variable].is_infinity() });
    }
    points.retain(|point| !point.is_infinity());
    Ok(points.into())
}

fn same_count(what: &'static str, expected: u64, found: u64) -> Result<(), KeyError> {
    if expected == found { Ok(()) } else { Err(KeyError::Count { what, expected, found }) }
}
