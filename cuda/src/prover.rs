//! The prover on a device: formulas (1) to (3) of the design's prover algebra.
//!
//! Two streams: one unpacks the assignment and runs the multiplications by A, B and L', the other evaluates the
//! constraints, transforms, and runs the multiplication by the quotient points.

use std::sync::{Arc, Mutex};

use blstrs::G1Projective;
use zkhost_groth16::{
    Assignment, BoundKey, HBasis, ProveError, Prover, ProvingKey, R1cs,
    msm::{Plan as HostPlan, Query as HostQuery},
    prover::BaseProof,
    scalar::Limbs,
};

use crate::{
    assignment::DeviceAssignment,
    circuit::DeviceCircuit,
    convert::to_quotient_points,
    device::{Device, DeviceChoice, Stream},
    error::CudaError,
    key::{CudaKey, Layout},
    memory::{Arena, Buffer},
    msm::{G1, G2, Scalars, Windows},
    query::{Pending, Query},
};

/// Room for the few points that a multiplication leaves for the host, in bytes.
const RESULT_BYTES_MAX: usize = 1 << 20;

/// Scratch memory of a prover, in bytes.
pub(crate) struct SlotSizes {
    witness: usize,
    quotient: usize,
}

impl SlotSizes {
    pub(crate) fn new(
        device: &Device,
        key: &ProvingKey,
        circuit: &DeviceCircuit,
        layout: &Layout,
    ) -> Result<Self, CudaError> {
        let (variables, n, chunk) = (key.variables(), 1 << key.log2_domain, layout.chunk);
        let meanwhile = [
            Query::<G1>::scratch_bytes(device, key.a.len(), variables, layout.a, chunk)?,
            Query::<G2>::scratch_bytes(device, key.b_g2.len(), variables, layout.b, chunk)?,
            Query::<G1>::scratch_bytes(device, key.l.len(), variables, layout.l, chunk)?,
        ];
        // Plans of resident queries stay until their sums are taken; what a query needs meanwhile is used again by the next.
        let plan = |w: Windows| Arena::bytes_for::<[u32; 2]>(variables * w.count() as usize) + RESULT_BYTES_MAX;
        let plans = if chunk.is_none() { plan(layout.a) + plan(layout.b) + plan(layout.l) } else { 0 };
        Ok(Self {
            witness: DeviceAssignment::bytes(key.public_count as usize, key.aux_count as usize)
                + plans
                + meanwhile.into_iter().fold(0, usize::max),
            quotient: Arena::bytes_for::<Limbs>(2 * n)
                + circuit.scratch_bytes()
                + RESULT_BYTES_MAX
                + Query::<G1>::scratch_bytes(device, n, n, layout.h, chunk)?,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.witness + self.quotient
    }
}

/// Streams and scratch memory of one proof at a time; all of it exists from the start.
struct Slot {
    witness: Stream,
    quotient: Stream,
    witness_memory: Buffer<u8>,
    quotient_memory: Buffer<u8>,
}

/// Proves on a device, one proof at a time. For proofs that overlap, make several over one [`CudaKey`].
pub struct CudaProver {
    key: Arc<CudaKey>,
    slot: Mutex<Slot>,
}

impl CudaProver {
    /// A prover over a resident key. Allocates all its device memory.
    pub fn new(key: Arc<CudaKey>) -> Result<Self, CudaError> {
        let device = &key.device;
        let sizes = SlotSizes::new(device, &key.bound.key, &key.circuit, &key.layout)?;
        let slot = Slot {
            witness: device.stream()?,
            quotient: device.stream()?,
            witness_memory: device.allocate(sizes.witness)?,
            quotient_memory: device.allocate(sizes.quotient)?,
        };
        Ok(Self { slot: Mutex::new(slot), key })
    }
}

impl Prover for CudaProver {
    fn describe(&self) -> String {
        self.key.device.describe()
    }

    fn bound(&self) -> &BoundKey {
        &self.key.bound
    }

    fn base(&self, assignment: &Assignment) -> Result<BaseProof, ProveError> {
        // A slot holds no state between proofs, so one that a panic left is as good as new.
        let slot = self.slot.lock().unwrap_or_else(|e| e.into_inner());
        slot.base(&self.key, assignment).map_err(|e| ProveError::Backend(e.to_string()))
    }

    fn base_b_g1(&self, assignment: &Assignment) -> Result<G1Projective, ProveError> {
        // B in G1 is not on the device: only proofs with given r and s need it.
        let key = &self.key.bound.key;
        let query = HostQuery::sparse(key.b_density.clone());
        Ok(HostPlan::new(assignment).combine(&key.b_g1, &query) + key.vk.beta_g1)
    }
}

impl Slot {
    fn base(&self, key: &CudaKey, assignment: &Assignment) -> Result<BaseProof, CudaError> {
        let base = self.compute(key, assignment);
        // Nothing may be in flight when the assignment's borrow ends, and nothing of it may stay.
        let idle = self.witness.synchronize().and(self.quotient.synchronize());
        self.witness.clear(self.witness_memory.as_slice())?;
        self.quotient.clear(self.quotient_memory.as_slice())?;
        idle.and(base)
    }

    fn compute(&self, key: &CudaKey, assignment: &Assignment) -> Result<BaseProof, CudaError> {
        let mut arena = Arena::new(&self.witness_memory);
        // SAFETY: the caller waits for the stream before it gives the assignment back.
        let assigned = unsafe { DeviceAssignment::upload(&self.witness, &mut arena, assignment)? };
        self.quotient.wait_for(&self.witness)?;
        let mut quotient_arena = Arena::new(&self.quotient_memory);
        let h = self.quotient(key, &mut quotient_arena, &assigned)?;

        let scalars = assigned.scalars();
        let l = key.l.multiply(&self.witness, &mut arena, &scalars)?;
        let a = key.a.multiply(&self.witness, &mut arena, &scalars)?;
        let b = key.b.multiply(&self.witness, &mut arena, &scalars)?;
        let vk = &key.bound.key.vk;
        let (a, l) = (a.finish(&self.witness)? + vk.alpha_g1, l.finish(&self.witness)?);
        Ok(BaseProof { a, b: b.finish(&self.witness)? + vk.beta_g2, c: h.finish(&self.quotient)? + l })
    }

    /// Queues the sum over the quotient points.
    fn quotient<'a>(
        &self,
        key: &CudaKey,
        arena: &mut Arena<'a>,
        assigned: &DeviceAssignment<'_>,
    ) -> Result<Pending<'a, G1>, CudaError> {
        let n = key.domain.len();
        let vectors = arena.take::<Limbs>(2 * n)?;
        key.circuit.evaluate(&self.quotient, arena, assigned.z(), vectors)?;
        key.domain.coset_product(&self.quotient, vectors, &key.shift)?;
        key.h.multiply(&self.quotient, arena, &Scalars::dense(vectors.slice(0, n)?))
    }
}

/// A prover on the device that was chosen, and a sentence if that is not used.
///
/// The CPU proves when it was chosen, when there is no usable device or too little memory on it, and, unless a device was
/// asked for by number, when the domain is so small that the CPU is as fast. A key with a monomial H query is converted
/// first, which for large domains is worth doing once and storing: see [`to_quotient_points`].
pub fn open_prover(
    choice: DeviceChoice,
    key: Arc<ProvingKey>,
    r1cs: Arc<R1cs>,
) -> Result<(Box<dyn Prover>, Option<String>), ProveError> {
    let cpu = |key, r1cs| -> Result<Box<dyn Prover>, ProveError> {
        let prover = zkhost_groth16::CpuProver::new(key, r1cs).map_err(|e| ProveError::Backend(e.to_string()))?;
        Ok(Box::new(prover))
    };
    if choice == DeviceChoice::Auto && key.log2_domain < LOG_DOMAIN_MIN {
        return Ok((cpu(key, r1cs)?, None));
    }
    let (device, why) = choice.open();
    let Some(device) = device else { return Ok((cpu(key, r1cs)?, why)) };
    let converted = match key.h_basis {
        HBasis::QuotientPoints => Ok(key.clone()),
        HBasis::Monomial => to_quotient_points(&device, &key, &r1cs).map(Arc::new),
    };
    let opened = converted.and_then(|key| CudaKey::new(&device, key, r1cs.clone(), 1));
    match opened.and_then(|key| CudaProver::new(Arc::new(key))) {
        Ok(prover) => Ok((Box::new(prover), None)),
        Err(error) => Ok((cpu(key, r1cs)?, Some(format!("{error}; proving on the CPU")))),
    }
}

/// Below a domain of 2^this the CPU proves, unless a device was asked for by number: both take about a millisecond.
const LOG_DOMAIN_MIN: u32 = 10;
