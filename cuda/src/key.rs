//! A proving key and its circuit, resident in device memory.

use std::sync::Arc;

use ff::Field;
use zkhost_groth16::{BoundKey, HBasis, ProvingKey, R1cs, Scalar, r1cs::MAX_LOG2_DOMAIN, scalar::Limbs};

use crate::{
    circuit::DeviceCircuit,
    device::{Device, Stream},
    error::CudaError,
    memory::{Arena, Buffer, Plain, Slice},
    msm::{G1, G2, Group, Table, Windows},
    ntt::{Domain, FactorTable, LOG_DOMAIN_MAX},
};

/// Copies of the bases that are considered: more than there are windows are never of use.
const COPIES_MAX: usize = 16;
/// Device memory that is left to the driver and others, in bytes.
const SPARE_BYTES: usize = 512 << 20;
/// The position of a variable that has no base.
const POSITION_NONE: u32 = u32::MAX;

/// A query of a key: bases with precomputed multiples, and which variable has which.
pub(crate) struct Query<G: Group> {
    pub(crate) table: Table<G>,
    positions: Option<Buffer<u32>>,
}

impl<G: Group> Query<G> {
    /// The index of each variable's base; none if every variable has the base of its own index.
    pub(crate) fn positions(&self) -> Option<Slice<'_, u32>> {
        self.positions.as_ref().map(Buffer::as_slice)
    }
}

/// The windows of the four multiplications.
#[derive(Clone, Copy)]
pub(crate) struct KeyWindows {
    pub(crate) a: Windows,
    pub(crate) b: Windows,
    pub(crate) l: Windows,
    pub(crate) h: Windows,
}

impl KeyWindows {
    fn new(key: &ProvingKey, copies_max: usize) -> Self {
        let windows = |len: usize| Windows::for_len(len, copies_max);
        Self { a: windows(key.a.len()), b: windows(key.b_g2.len()), l: windows(key.l.len()), h: windows(key.h.len()) }
    }

    fn table_bytes(&self, key: &ProvingKey) -> usize {
        Table::<G1>::bytes(key.a.len(), self.a)
            + Table::<G2>::bytes(key.b_g2.len(), self.b)
            + Table::<G1>::bytes(key.l.len(), self.l)
            + Table::<G1>::bytes(key.h.len(), self.h)
    }
}

/// A proving key bound to its circuit, on a device: fixed bases with multiples as memory allows, the matrices A and B, and
/// the tables of the transforms. Any number of [`crate::CudaProver`]s may use one.
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

        let windows = affordable_windows(device, key, &circuit, provers)?;
        let scratch_bytes = [key.a.len(), key.l.len(), key.h.len()].map(Table::<G1>::scratch_bytes);
        let scratch_bytes =
            scratch_bytes.into_iter().max().unwrap_or(0).max(Table::<G2>::scratch_bytes(key.b_g2.len()));
        let scratch = device.allocate::<u8>(scratch_bytes)?;
        let mut arena = Arena::new(&scratch);
        let variables = key.variables();
        let loaded = Self {
            a: query(&stream, &mut arena, &key.a, windows.a, positions(&key.a_density, variables, key.a.len()))?,
            b: query(&stream, &mut arena, &key.b_g2, windows.b, positions(&key.b_density, variables, key.b_g2.len()))?,
            l: query(&stream, &mut arena, &key.l, windows.l, None)?,
            h: query(&stream, &mut arena, &key.h, windows.h, None)?,
            device: device.clone(),
            circuit,
            domain,
            shift,
            bound,
        };
        stream.synchronize()?;
        Ok(loaded)
    }

    pub(crate) fn windows(&self) -> KeyWindows {
        let (a, b, l, h) = (&self.a.table, &self.b.table, &self.l.table, &self.h.table);
        KeyWindows { a: a.windows(), b: b.windows(), l: l.windows(), h: h.windows() }
    }
}

/// The windows with the most copies of the bases that fit beside the provers' scratch memory.
fn affordable_windows(
    device: &Device,
    key: &ProvingKey,
    circuit: &DeviceCircuit,
    provers: usize,
) -> Result<KeyWindows, CudaError> {
    let available = device.available_bytes()?.saturating_sub(SPARE_BYTES);
    let mut asked_bytes = 0;
    for copies in (1..=COPIES_MAX).rev() {
        let windows = KeyWindows::new(key, copies);
        let slot = crate::prover::SlotSizes::new(device, key, circuit, &windows)?;
        asked_bytes = windows.table_bytes(key) + provers * slot.bytes();
        if asked_bytes <= available {
            return Ok(windows);
        }
    }
    Err(CudaError::OutOfMemory { asked_bytes, used_bytes: device.used_bytes() })
}

/// Where each variable's base is; none if all have one.
fn positions(density: &[u64], variables: usize, bases: usize) -> Option<Vec<u32>> {
    if bases == variables {
        return None;
    }
    let mut next = 0;
    let position = |i: usize| {
        if density[i / 64] >> (i % 64) & 1 == 0 {
            return POSITION_NONE;
        }
        next += 1;
        next - 1
    };
    Some((0..variables).map(position).collect())
}

fn query<G: Group>(
    stream: &Stream,
    arena: &mut Arena<'_>,
    bases: &[G::Affine],
    windows: Windows,
    positions: Option<Vec<u32>>,
) -> Result<Query<G>, CudaError>
where
    G::Affine: Plain,
{
    let device = stream.device();
    let table = Table::allocate(device, bases.len(), windows)?;
    stream.upload(table.bases(), bases)?;
    table.fill(stream, arena)?;
    let positions = positions
        .map(|positions| -> Result<Buffer<u32>, CudaError> {
            let buffer = device.allocate(positions.len())?;
            stream.upload(buffer.as_slice(), &positions)?;
            Ok(buffer)
        })
        .transpose()?;
    Ok(Query { table, positions })
}

/// Bytes of two vectors over the domain.
pub(crate) fn vectors_bytes(log_n: u32) -> usize {
    Arena::bytes_for::<Limbs>(2 << log_n)
}
