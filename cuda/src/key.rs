//! A proving key and its circuit on a device.

use std::sync::Arc;

use ff::Field;
use zkhost_groth16::{BoundKey, HBasis, ProvingKey, R1cs, Scalar, r1cs::MAX_LOG2_DOMAIN};

use crate::{
    circuit::DeviceCircuit,
    device::{Device, Stream},
    error::CudaError,
    memory::Arena,
    msm::{G1, G2, Group, Table, Windows},
    ntt::{Domain, FactorTable, LOG_DOMAIN_MAX},
    prover::SlotSizes,
    query::{Query, positions},
};

/// Copies of the bases that are considered: more than there are windows are never of use.
const COPIES_MAX: usize = 16;
/// Device memory that is left to the driver and others, in bytes.
const SPARE_BYTES: usize = 256 << 20;
/// log2 of the bases that are streamed at a time, at most and at least.
const LOG_CHUNK_MAX: u32 = 20;
const LOG_CHUNK_MIN: u32 = 8;

/// How a key lies in memory: the windows of its four multiplications, and how many bases are streamed at a time if they
/// are not resident.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) a: Windows,
    pub(crate) b: Windows,
    pub(crate) l: Windows,
    pub(crate) h: Windows,
    pub(crate) chunk: Option<usize>,
}

impl Layout {
    fn resident(key: &ProvingKey, copies_max: usize) -> Self {
        let windows = |len: usize| Windows::for_len(len, copies_max);
        let (a, b) = (windows(key.a.len()), windows(key.b_g2.len()));
        Self { a, b, l: windows(key.l.len()), h: windows(key.h.len()), chunk: None }
    }

    fn streamed(key: &ProvingKey, chunk: usize) -> Self {
        let windows = |len: usize| Windows::for_len(len.min(chunk), 1);
        let (a, b) = (windows(key.a.len()), windows(key.b_g2.len()));
        Self { a, b, l: windows(key.l.len()), h: windows(key.h.len()), chunk: Some(chunk) }
    }

    /// Bytes of the tables: none if bases are streamed.
    fn table_bytes(&self, key: &ProvingKey) -> usize {
        if self.chunk.is_some() {
            return 0;
        }
        Table::<G1>::bytes(key.a.len(), self.a)
            + Table::<G2>::bytes(key.b_g2.len(), self.b)
            + Table::<G1>::bytes(key.l.len(), self.l)
            + Table::<G1>::bytes(key.h.len(), self.h)
    }

    /// Bytes of what filling the tables takes.
    fn fill_bytes(key: &ProvingKey) -> usize {
        let g1 = [key.a.len(), key.l.len(), key.h.len()].map(Table::<G1>::scratch_bytes);
        g1.into_iter().fold(Table::<G2>::scratch_bytes(key.b_g2.len()), usize::max)
    }

    /// The layout with the most copies of the bases that fits beside the provers' scratch memory; the bases stay on the
    /// host if not even they do.
    fn affordable(
        device: &Device,
        key: &ProvingKey,
        circuit: &DeviceCircuit,
        provers: usize,
    ) -> Result<Self, CudaError> {
        let available = device.available_bytes()?.saturating_sub(SPARE_BYTES);
        let resident = (1..=COPIES_MAX).rev().map(|copies| Self::resident(key, copies));
        let streamed = (LOG_CHUNK_MIN..=LOG_CHUNK_MAX).rev().map(|log| Self::streamed(key, 1 << log));
        let mut asked_bytes = 0;
        for layout in resident.chain(streamed) {
            let slots = provers * SlotSizes::new(device, key, circuit, &layout)?.bytes();
            asked_bytes = layout.table_bytes(key) + slots.max(Self::fill_bytes(key));
            if asked_bytes <= available {
                return Ok(layout);
            }
        }
        Err(CudaError::OutOfMemory { asked_bytes, used_bytes: device.used_bytes() })
    }
}

/// A proving key bound to its circuit, on a device: fixed bases with multiples as memory allows (or streamed from the host
/// where it does not allow the bases themselves), the matrices A and B, and the tables of the transforms. Any number of [`crate::CudaProver`]s may use one.
pub struct CudaKey {
    pub(crate) bound: BoundKey,
    pub(crate) device: Arc<Device>,
    pub(crate) circuit: DeviceCircuit,
    pub(crate) domain: Domain,
    pub(crate) shift: FactorTable,
    pub(crate) a: Query<G1>,
    pub(crate) b: Query<G2>,
    pub(crate) l: Query<G1>,
    pub(crate) h: Query<G1>,
    pub(crate) layout: Layout,
}

impl CudaKey {
    /// Copies a key in the basis of quotient points to the device. `provers` is how many provers there will be: their
    /// scratch memory is left free.
    pub fn new(device: &Arc<Device>, key: Arc<ProvingKey>, r1cs: Arc<R1cs>, provers: usize) -> Result<Self, CudaError> {
        if key.h_basis != HBasis::QuotientPoints {
            return Err(CudaError::Unsupported(
                "the key's H query is monomial, the device proves by quotient points: convert the key first".into(),
            ));
        }
        if key.log2_domain > LOG_DOMAIN_MAX {
            return Err(CudaError::Unsupported(format!(
                "the key's domain is 2^{}; the device proves up to 2^{LOG_DOMAIN_MAX}: use --device cpu",
                key.log2_domain
            )));
        }
        let bound = BoundKey::new(key, r1cs).map_err(|e| CudaError::Unsupported(e.to_string()))?;
        let key = &bound.key;
        let stream = device.stream()?;
        let n = 1u64 << key.log2_domain;
        let circuit = DeviceCircuit::new(&stream, &bound.r1cs)?;
        let domain = Domain::new(&stream, &key.root.root_of_unity(MAX_LOG2_DOMAIN), key.log2_domain)?;
        let eta = key.root.root_of_unity(key.log2_domain + 1);
        let inverse_n = Scalar::from(n).invert().expect("a power of two is not zero in Fr");
        let shift = FactorTable::powers_reversed(&stream, key.log2_domain, &inverse_n, &eta)?;

        let layout = Layout::affordable(device, key, &circuit, provers)?;
        let scratch = device.allocate::<u8>(if layout.chunk.is_none() { Layout::fill_bytes(key) } else { 0 })?;
        let mut arena = Arena::new(&scratch);
        let variables = key.variables();
        let in_a = positions(&key.a_density, variables, key.a.len());
        let in_b = positions(&key.b_density, variables, key.b_g2.len());
        let loaded = Self {
            a: query(&stream, &mut arena, &key.a, layout.a, layout.chunk, in_a)?,
            b: query(&stream, &mut arena, &key.b_g2, layout.b, layout.chunk, in_b)?,
            l: query(&stream, &mut arena, &key.l, layout.l, layout.chunk, None)?,
            h: query(&stream, &mut arena, &key.h, layout.h, layout.chunk, None)?,
            layout,
            device: device.clone(),
            circuit,
            domain,
            shift,
            bound,
        };
        stream.synchronize()?;
        Ok(loaded)
    }

    /// Whether the bases are in device memory, or streamed to it for each proof.
    pub fn is_resident(&self) -> bool {
        self.layout.chunk.is_none()
    }
}

fn query<G: Group>(
    stream: &Stream,
    arena: &mut Arena<'_>,
    bases: &[G::Affine],
    windows: Windows,
    chunk: Option<usize>,
    positions: Option<Vec<u32>>,
) -> Result<Query<G>, CudaError> {
    match chunk {
        None => Query::resident(stream, arena, bases, windows, positions),
        Some(chunk) => Query::streamed(stream, bases, windows, chunk, positions),
    }
}
