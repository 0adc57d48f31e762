//! From other H queries to quotient points, once for each imported key: formulas (1), (2) and (5) of the prover's algebra.
//!
//! With Z_c = eta^n - 1 = -2 and c = 1/(n Z_c): P_j = c sum_k (eta w^j)^-k H_k, R_i = c sum_k w^-ik H_k, two transforms of
//! points on the device, and Q_v = sum_i C[i,v] R_i, a sparse product on the host; L'_v = L_v - Q_v. snarkjs's H query is P
//! itself, and H_k = Z_c eta^k sum_j w^jk P_j. The result is checked against the given key with random vectors, so a wrong
//! conversion is found with certainty but for 1 in r.

use std::sync::Arc;

use blstrs::{G1Affine, G1Projective};
use cudarc::driver::PushKernelArg;
use ff::Field;
use group::{Curve, Group as _};
use rand_core::OsRng;
use rayon::prelude::*;
use zkhost_groth16::{
    G1Point, HBasis, ProvingKey, R1cs, Scalar,
    r1cs::{MAX_LOG2_DOMAIN, MatrixId},
    scalar::{Limbs, to_canonical, to_montgomery},
};

use crate::{
    device::{Device, Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Buffer, Slice},
    msm::{G1, Plan, Scalars, Windows, points::normalise, sum, sum_scratch_bytes},
    ntt::{Direction, Domain, FactorTable, Order, Transform, powers},
};

const THREADS: u32 = 128;
/// Products of a point and a scalar in one launch, which takes some tens of milliseconds.
const LAUNCH_PRODUCTS_MAX: usize = 1 << 17;
/// Points that are normalised in one launch.
const LAUNCH_POINTS_MAX: usize = 1 << 19;

/// (X, Y, ZZ, ZZZ) in device memory.
type Xyzz = [[u64; 6]; 4];

/// The same key with its H query as quotient points and C folded into L, whatever its basis was. It takes seconds for a
/// domain of 2^21.
pub fn to_quotient_points(device: &Arc<Device>, key: &ProvingKey, r1cs: &R1cs) -> Result<ProvingKey, CudaError> {
    if key.h_basis == HBasis::QuotientPoints {
        return Ok(key.clone());
    }
    key.check_circuit(r1cs).map_err(|e| CudaError::Unsupported(e.to_string()))?;
    let stream = device.stream()?;
    let conversion = Conversion::new(&stream, key)?;
    let (p, rows) = match key.h_basis {
        HBasis::OddCoset => (key.h.to_vec(), conversion.row_points_of_odd_coset()?),
        HBasis::Monomial | HBasis::QuotientPoints => (conversion.quotient_points()?, conversion.row_points()?),
    };
    let q = sparse_product(r1cs, &rows);
    conversion.check(key, r1cs, &p, &q)?;
    let publics = 1 + key.public_count as usize;
    let l: Vec<G1Projective> = (0..key.variables())
        .into_par_iter()
        .map(|v| if v < publics { -q[v] } else { G1Affine::from(key.l[v - publics]) - q[v] })
        .collect();
    Ok(ProvingKey { h_basis: HBasis::QuotientPoints, h: p.into(), l: to_points(&l).into(), ..key.clone() })
}

fn to_points(points: &[G1Projective]) -> Vec<G1Point> {
    points.par_iter().map(|point| point.to_affine().into()).collect()
}

/// Q_v for each variable.
fn sparse_product(r1cs: &R1cs, rows: &[G1Point]) -> Vec<G1Projective> {
    let matrix = r1cs.matrix(MatrixId::C);
    let coefficients = r1cs.coefficients();
    let mut columns: Vec<Vec<(u32, u32)>> = vec![vec![]; r1cs.variables()];
    for row in 0..matrix.rows() {
        matrix.row(row).for_each(|(column, coefficient)| columns[column as usize].push((row as u32, coefficient)));
    }
    let term = |(row, coefficient): &(u32, u32)| {
        multiply(&G1Affine::from(rows[*row as usize]).into(), &coefficients[*coefficient as usize])
    };
    columns.par_iter().map(|terms| terms.iter().map(term).sum()).collect()
}

/// scalar * point, cheap for the small scalars and their negatives that circuits are made of.
fn multiply(point: &G1Projective, scalar: &Scalar) -> G1Projective {
    let small = |scalar: &Scalar| match to_canonical(scalar) {
        [low, 0, 0, 0] => Some(low),
        _ => None,
    };
    let times = |low: u64| {
        let bits = (0..u64::BITS - low.leading_zeros()).rev();
        bits.fold(G1Projective::identity(), |sum, bit| {
            let sum = sum.double();
            if low >> bit & 1 == 1 { sum + point } else { sum }
        })
    };
    match (small(scalar), small(&-scalar)) {
        (Some(low), _) => times(low),
        (_, Some(low)) => -times(low),
        _ => point * scalar,
    }
}

/// What both transforms share.
struct Conversion<'a> {
    stream: &'a Stream,
    log_n: u32,
    // c = 1/(n Z_c), and eta.
    factor: Scalar,
    eta: Scalar,
    domain: Domain,
    roots: Buffer<Limbs>,
    h: Buffer<G1Point>,
}

impl<'a> Conversion<'a> {
    fn new(stream: &'a Stream, key: &ProvingKey) -> Result<Self, CudaError> {
        let log_n = key.log2_domain;
        let domain = Domain::new(stream, &key.root.root_of_unity(MAX_LOG2_DOMAIN), log_n)?;
        let n = Scalar::from(1u64 << log_n);
        let h = stream.device().allocate(key.h.len())?;
        stream.upload(h.as_slice(), &key.h)?;
        Ok(Self {
            stream,
            log_n,
            factor: (n * -Scalar::from(2)).invert().expect("n and 2 are not zero in Fr"),
            eta: key.root.root_of_unity(log_n + 1),
            domain,
            roots: powers(stream, (1 << log_n) / 2 + 1, &Scalar::ONE, &key.root.root_of_unity(log_n), 0)?,
            h,
        })
    }

    fn n(&self) -> usize {
        1 << self.log_n
    }

    /// eta^-1.
    fn inverse_eta(&self) -> Scalar {
        self.eta.invert().expect("a root of unity is not zero")
    }

    /// P_j for each point of the domain.
    fn quotient_points(&self) -> Result<Vec<G1Point>, CudaError> {
        let scalars = powers(self.stream, self.n(), &self.factor, &self.inverse_eta(), 0)?;
        self.transform(self.h.as_slice(), scalars.as_slice(), 1)
    }

    /// R_i for each row.
    fn row_points(&self) -> Result<Vec<G1Point>, CudaError> {
        let scalars = powers(self.stream, 1, &self.factor, &Scalar::ONE, 0)?;
        self.transform(self.h.as_slice(), scalars.as_slice(), 0)
    }

    /// R_i for each row, where the H query is P: sum_k w^-ik (eta^k / n) sum_j w^jk P_j.
    fn row_points_of_odd_coset(&self) -> Result<Vec<G1Point>, CudaError> {
        let one = powers(self.stream, 1, &Scalar::ONE, &Scalar::ONE, 0)?;
        let mut sums = self.transform(self.h.as_slice(), one.as_slice(), 0)?;
        // The sum with w^-jk in place n - k is the one with w^jk in place k.
        sums[1..].reverse();
        let points = self.stream.device().allocate(sums.len())?;
        self.stream.upload(points.as_slice(), &sums)?;
        let scalars = powers(self.stream, self.n(), &self.inverse_n(), &self.eta, 0)?;
        self.transform(points.as_slice(), scalars.as_slice(), 1)
    }

    fn inverse_n(&self) -> Scalar {
        Scalar::from(1u64 << self.log_n).invert().expect("a power of two is not zero in Fr")
    }

    /// sum_k scalars[k * step] w^-jk points_k for each j; points that are missing are infinity.
    fn transform(
        &self,
        from: Slice<'_, G1Point>,
        scalars: Slice<'_, Limbs>,
        step: u32,
    ) -> Result<Vec<G1Point>, CudaError> {
        let (stream, n) = (self.stream, self.n());
        let device = stream.device();
        let buffer = device.allocate::<Xyzz>(n)?;
        let points = buffer.as_slice();
        let scale = device.kernel("ecntt_scale")?;
        let len = from.len() as u32;
        for first in (0..n).step_by(LAUNCH_PRODUCTS_MAX) {
            let blocks = LAUNCH_PRODUCTS_MAX.min(n - first).div_ceil(THREADS as usize);
            let first = first as u32;
            let mut launch = stream.launch_builder(&scale);
            launch.arg(&from).arg(&len).arg(&scalars).arg(&step).arg(&self.log_n).arg(&first).arg(&points);
            // SAFETY: the kernel checks its index against both lengths; there is a scalar for each index, or step is 0.
            unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("scaling points")?;
        }
        let level_kernel = device.kernel("ecntt_level")?;
        let roots = self.roots.as_slice();
        for level in 0..self.log_n {
            for first in (0..n / 2).step_by(LAUNCH_PRODUCTS_MAX) {
                let blocks = LAUNCH_PRODUCTS_MAX.min(n / 2 - first).div_ceil(THREADS as usize);
                let first = first as u32;
                let mut launch = stream.launch_builder(&level_kernel);
                launch.arg(&points).arg(&roots).arg(&self.log_n).arg(&level).arg(&first);
                // SAFETY: the kernel checks its butterfly against n / 2; the roots reach n / 2.
                unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("transforming points")?;
            }
        }
        let piece = n.min(LAUNCH_POINTS_MAX);
        let products = device.allocate(piece)?;
        let affine = device.allocate::<G1Point>(n)?;
        for first in (0..n).step_by(piece) {
            let (from, to) = (points.slice(first, piece)?, affine.as_slice().slice(first, piece)?);
            normalise::<G1>(stream, from, products.as_slice(), to)?;
        }
        stream.to_vec(affine.as_slice())
    }

    /// For random s and z: sum_j s_j P_j against the H query, unless it is P, and sum_v z_v Q_v against it.
    fn check(&self, key: &ProvingKey, r1cs: &R1cs, p: &[G1Point], q: &[G1Projective]) -> Result<(), CudaError> {
        let random = |len: usize| -> Vec<Scalar> { (0..len).map(|_| Scalar::random(OsRng)).collect() };
        let limbs = |scalars: &[Scalar]| -> Vec<Limbs> { scalars.iter().map(to_canonical).collect() };
        let odd_coset = key.h_basis == HBasis::OddCoset;
        let s = random(self.n());
        if !odd_coset && self.combine(p, &limbs(&s))? != self.combine_coefficients(key, &s, &self.inverse_eta())? {
            return Err(CudaError::WrongResult("the quotient points do not belong to the key's H query".into()));
        }
        let z = random(key.variables());
        let mut rows = r1cs.evaluate(MatrixId::C, &z);
        rows.resize(self.n(), Scalar::ZERO);
        let expected = if odd_coset {
            self.combine(&key.h, &self.values_on_coset(&rows)?)?
        } else {
            self.combine_coefficients(key, &rows, &Scalar::ONE)?
        };
        if self.combine(&to_points(q), &limbs(&z))? != expected {
            return Err(CudaError::WrongResult("the folded L query does not belong to the key's H query".into()));
        }
        Ok(())
    }

    /// The values on the odd coset, canonical, of what has these values on the domain.
    fn values_on_coset(&self, values: &[Scalar]) -> Result<Vec<Limbs>, CudaError> {
        let (stream, n) = (self.stream, self.n());
        let data = stream.device().allocate::<Limbs>(2 * n)?;
        let ones = std::iter::repeat_n(&Scalar::ONE, n);
        let montgomery: Vec<Limbs> = values.iter().chain(ones).map(to_montgomery).collect();
        stream.upload(data.as_slice(), &montgomery)?;
        let shift = FactorTable::powers_reversed(stream, self.log_n, &self.inverse_n(), &self.eta)?;
        self.domain.coset_product(stream, data.as_slice(), &shift)?;
        stream.to_vec(data.as_slice().slice(0, n)?)
    }

    /// The H query times the coefficients of what has these values on the coset of 1/base, divided by Z_c.
    fn combine_coefficients(
        &self,
        key: &ProvingKey,
        values: &[Scalar],
        base: &Scalar,
    ) -> Result<G1Projective, CudaError> {
        let stream = self.stream;
        let data = stream.device().allocate::<Limbs>(self.n())?;
        let montgomery: Vec<Limbs> = values.iter().map(to_montgomery).collect();
        stream.upload(data.as_slice(), &montgomery)?;
        // The Montgomery form of x/R is the canonical form of x.
        let r = Scalar::from(2).pow_vartime([256u64]);
        let first = self.factor * r.invert().expect("a power of two is not zero in Fr");
        let factors = FactorTable::powers(stream, self.log_n, &first, base)?;
        let (direction, order) = (Direction::Inverse, Order::Natural);
        let transform = Transform { direction, input: order, output: order, before: None, after: Some(&factors) };
        self.domain.transform(stream, data.as_slice(), &transform)?;
        let coefficients = stream.to_vec(data.as_slice())?;
        self.combine(&key.h, &coefficients[..key.h.len()])
    }

    /// The sum of scalars times points; scalars canonical.
    fn combine(&self, points: &[G1Point], scalars: &[Limbs]) -> Result<G1Projective, CudaError> {
        let device = self.stream.device();
        let (bases, values) = (device.allocate(points.len())?, device.allocate(scalars.len())?);
        self.stream.upload(bases.as_slice(), points)?;
        self.stream.upload(values.as_slice(), scalars)?;
        let windows = Windows::for_len(points.len(), 1);
        let bytes =
            Plan::scratch_bytes(points.len(), windows) + sum_scratch_bytes::<G1>(device, points.len(), windows)?;
        let memory = device.allocate::<u8>(bytes)?;
        let mut arena = Arena::new(&memory);
        let plan = Plan::new(self.stream, &mut arena, &Scalars::dense(values.as_slice()), windows, points.len())?;
        sum::<G1>(self.stream, &mut arena, &plan, bases.as_slice())?.finish(self.stream)
    }
}
