//! A proving key and its circuit on a device.

use std::sync::{Arc, Mutex};

use ff::Field;
use zkhost_groth16::{
    Assignment, BoundKey, G1Point, G2Point, HBasis, ProvingKey, R1cs, Scalar,
    r1cs::{CheckError, MAX_LOG2_DOMAIN, MatrixId},
    scalar::Limbs,
};

use crate::{
    circuit::{DeviceCircuit, SHORT_TERMS_MAX, UNIT_TERMS_MAX},
    convert::to_quotient_points,
    device::Device,
    error::CudaError,
    memory::{Arena, Buffer, PinnedBuffer, Plain},
    msm::{G1, G2, Table, Windows},
    ntt::{Domain, FactorTable, LOG_DOMAIN_MAX},
    prover::SlotSizes,
    query::{Query, positions},
};

/// Copies of the bases that are considered: more than there are windows are never of use.
const COPIES_MAX: usize = 16;
/// Device memory that is left to the driver and others, in bytes.
pub(crate) const SPARE_BYTES: usize = 256 << 20;
/// log2 of the bases that are streamed at a time, at most and at least.
const LOG_CHUNK_MAX: u32 = 20;
const LOG_CHUNK_MIN: u32 = 8;
/// Bytes of the transforms' tables beside those that grow with the domain.
const TRANSFORM_TABLES_BYTES: usize = 1 << 20;

/// What a key and its circuit take on a device depends on these numbers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyDimensions {
    /// log2 of the evaluation domain.
    pub log2_domain: u32,
    /// Public inputs, the constant one excluded.
    pub publics: usize,
    /// Private variables.
    pub aux: usize,
    /// Points of the A query.
    pub a: usize,
    /// Points of the B query.
    pub b: usize,
    /// Rows of the constraint system.
    pub rows: usize,
    /// Terms of A and of B.
    pub terms: [usize; 2],
    /// Different coefficients.
    pub coefficients: usize,
}

impl KeyDimensions {
    /// Those of a key, in whatever basis, and its circuit.
    pub fn of(key: &ProvingKey, r1cs: &R1cs) -> Self {
        Self {
            log2_domain: key.log2_domain,
            publics: key.public_count as usize,
            aux: key.aux_count as usize,
            a: key.a.len(),
            b: key.b_g2.len(),
            rows: r1cs.constraints(),
            terms: [MatrixId::A, MatrixId::B].map(|id| r1cs.matrix(id).terms()),
            coefficients: r1cs.dictionary.len(),
        }
    }

    /// Points of the quotient query.
    pub fn domain(&self) -> usize {
        1 << self.log2_domain
    }

    /// The one, publics and private variables; as many points has the L' query.
    pub fn variables(&self) -> usize {
        1 + self.publics + self.aux
    }

    /// Long rows of a matrix and the units that they are cut into, at most.
    fn long_rows_max(terms: usize) -> (usize, usize) {
        let rows = terms / (SHORT_TERMS_MAX as usize + 1);
        (rows, rows + terms / UNIT_TERMS_MAX as usize)
    }

    /// Scratch of evaluating constraints, at most.
    pub(crate) fn circuit_scratch_bytes(&self) -> usize {
        self.terms.iter().map(|&terms| Arena::bytes_for::<Limbs>(Self::long_rows_max(terms).1)).sum()
    }

    /// Bytes of the matrices, the positions and the transforms' tables, at most.
    fn fixed_bytes(&self) -> usize {
        let matrix = |terms: usize| {
            let (rows, units) = Self::long_rows_max(terms);
            4 * self.rows + (4 + 4) * terms + 4 * (2 * rows + 1) + 4 * 2 * units
        };
        let dictionary = size_of::<Limbs>() * (2 + self.coefficients);
        let positions = 2 * size_of::<u32>() * self.variables();
        // Half a domain of roots and a domain of shifts.
        let transforms = size_of::<Limbs>() * self.domain() / 2 * 3 + TRANSFORM_TABLES_BYTES;
        self.terms.into_iter().map(matrix).sum::<usize>() + dictionary + positions + transforms
    }
}

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
    fn resident(key: &KeyDimensions, copies_max: usize) -> Self {
        let windows = |len: usize| Windows::for_len(len, copies_max);
        let (l, h) = (windows(key.variables()), windows(key.domain()));
        Self { a: windows(key.a), b: windows(key.b), l, h, chunk: None }
    }

    fn streamed(key: &KeyDimensions, chunk: usize) -> Self {
        let windows = |len: usize| Windows::for_len(len.min(chunk), 1);
        let (l, h) = (windows(key.variables()), windows(key.domain()));
        Self { a: windows(key.a), b: windows(key.b), l, h, chunk: Some(chunk) }
    }

    /// Bytes of the tables: none if bases are streamed.
    fn table_bytes(&self, key: &KeyDimensions) -> usize {
        if self.chunk.is_some() {
            return 0;
        }
        Table::<G1>::bytes(key.a, self.a)
            + Table::<G2>::bytes(key.b, self.b)
            + Table::<G1>::bytes(key.variables(), self.l)
            + Table::<G1>::bytes(key.domain(), self.h)
    }

    /// Bytes of what filling the tables takes, of the largest key.
    fn fill_bytes(key: &KeyDimensions) -> usize {
        let g1 = Table::<G1>::scratch_bytes(key.variables().max(key.domain()));
        g1.max(Table::<G2>::scratch_bytes(key.b))
    }
}

/// How a key will lie on a device, known before it is loaded.
#[derive(Clone, Copy)]
pub struct KeyPlan {
    pub(crate) layout: Layout,
    dimensions: KeyDimensions,
    key_bytes: usize,
    scratch_bytes: usize,
}

impl KeyPlan {
    /// The fastest layout whose key and matrices take up to `key_bytes_max` of device memory, and whose proofs take up to
    /// `scratch_bytes_max` of a slot's. The bases stay on the host, and are streamed, if not even one copy of them fits.
    pub fn within(
        device: &Device,
        key: KeyDimensions,
        key_bytes_max: usize,
        scratch_bytes_max: usize,
    ) -> Result<Self, CudaError> {
        let resident = (1..=COPIES_MAX).rev().map(|copies| Layout::resident(&key, copies));
        Self::first_that_fits(device, key, resident.chain(Self::streamed_layouts(key)), |plan| {
            plan.key_bytes <= key_bytes_max && plan.scratch_bytes <= scratch_bytes_max
        })
    }

    /// The same with bases streamed, whatever room there is.
    pub fn streamed(device: &Device, key: KeyDimensions, scratch_bytes_max: usize) -> Result<Self, CudaError> {
        let fits = |plan: &Self| plan.scratch_bytes <= scratch_bytes_max;
        Self::first_that_fits(device, key, Self::streamed_layouts(key), fits)
    }

    /// The fastest that leaves room for the scratch memory of so many slots, and of loading, in what is free now.
    fn beside(device: &Device, key: KeyDimensions, slots: usize) -> Result<Self, CudaError> {
        let available = device.available_bytes()?.saturating_sub(SPARE_BYTES);
        let resident = (1..=COPIES_MAX).rev().map(|copies| Layout::resident(&key, copies));
        Self::first_that_fits(device, key, resident.chain(Self::streamed_layouts(key)), |plan| {
            plan.key_bytes + (slots * plan.scratch_bytes).max(plan.fill_bytes()) <= available
        })
    }

    fn streamed_layouts(key: KeyDimensions) -> impl Iterator<Item = Layout> {
        (LOG_CHUNK_MIN..=LOG_CHUNK_MAX).rev().map(move |log| Layout::streamed(&key, 1 << log))
    }

    fn first_that_fits(
        device: &Device,
        dimensions: KeyDimensions,
        layouts: impl Iterator<Item = Layout>,
        fits: impl Fn(&Self) -> bool,
    ) -> Result<Self, CudaError> {
        if dimensions.log2_domain > LOG_DOMAIN_MAX {
            return Err(CudaError::Unsupported(format!(
                "the key's domain is 2^{}; the device proves up to 2^{LOG_DOMAIN_MAX}: use --device cpu",
                dimensions.log2_domain
            )));
        }
        let mut asked_bytes = 0;
        for layout in layouts {
            let plan = Self {
                layout,
                dimensions,
                key_bytes: dimensions.fixed_bytes() + layout.table_bytes(&dimensions),
                scratch_bytes: SlotSizes::new(device, &dimensions, &layout)?.bytes(),
            };
            if fits(&plan) {
                return Ok(plan);
            }
            asked_bytes = plan.key_bytes + plan.scratch_bytes;
        }
        Err(CudaError::OutOfMemory { asked_bytes, used_bytes: device.used_bytes() })
    }

    /// Device memory of the key, its matrices and tables, at most.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Scratch memory that a slot needs for its proofs.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// Whether the bases will be in device memory, or streamed to it for each proof.
    pub fn is_resident(&self) -> bool {
        self.layout.chunk.is_none()
    }

    /// Scratch memory that loading takes.
    pub fn fill_bytes(&self) -> usize {
        if self.is_resident() { Layout::fill_bytes(&self.dimensions) } else { 0 }
    }
}

/// The bases of a streamed key in page-locked memory.
struct PinnedBases {
    a: Arc<PinnedBuffer<G1Point>>,
    b: Arc<PinnedBuffer<G2Point>>,
    l: Arc<PinnedBuffer<G1Point>>,
    h: Arc<PinnedBuffer<G1Point>>,
}

/// A key in the basis of quotient points with its circuit, on the host. One feeds any number of devices.
pub struct HostKey {
    bound: BoundKey,
    pinned: Mutex<Option<Arc<PinnedBases>>>,
}

impl HostKey {
    /// Binds a key to its circuit.
    pub fn new(key: Arc<ProvingKey>, r1cs: Arc<R1cs>) -> Result<Arc<Self>, CudaError> {
        if key.h_basis != HBasis::QuotientPoints {
            return Err(CudaError::Unsupported(
                "the key's H query is not in quotient points, by which the device proves: convert the key first".into(),
            ));
        }
        let bound = BoundKey::new(key, r1cs).map_err(|e| CudaError::Unsupported(e.to_string()))?;
        Ok(Arc::new(Self { bound, pinned: Mutex::default() }))
    }

    /// Binds a key to its circuit, after converting it on the device if that is necessary: seconds for a domain of 2^21.
    pub fn converted(device: &Arc<Device>, key: Arc<ProvingKey>, r1cs: Arc<R1cs>) -> Result<Arc<Self>, CudaError> {
        let key = match key.h_basis {
            HBasis::QuotientPoints => key,
            _ => Arc::new(to_quotient_points(device, &key, &r1cs)?),
        };
        Self::new(key, r1cs)
    }

    /// Key and circuit.
    pub fn bound(&self) -> &BoundKey {
        &self.bound
    }

    /// Its numbers.
    pub fn dimensions(&self) -> KeyDimensions {
        KeyDimensions::of(&self.bound.key, &self.bound.r1cs)
    }

    /// The bases in page-locked memory, copied there once for all devices.
    fn pinned(&self, device: &Arc<Device>) -> Result<Arc<PinnedBases>, CudaError> {
        // Held meanwhile on purpose: another device that wants them has to wait for them.
        let mut pinned = self.pinned.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(pinned) = &*pinned {
            return Ok(pinned.clone());
        }
        let key = &self.bound.key;
        let made = Arc::new(PinnedBases {
            a: pin(device, &key.a)?,
            b: pin(device, &key.b_g2)?,
            l: pin(device, &key.l)?,
            h: pin(device, &key.h)?,
        });
        *pinned = Some(made.clone());
        Ok(made)
    }
}

fn pin<T: Plain>(device: &Arc<Device>, points: &[T]) -> Result<Arc<PinnedBuffer<T>>, CudaError> {
    let mut buffer = PinnedBuffer::new(device, points.len())?;
    buffer.copy_from_slice(points);
    Ok(Arc::new(buffer))
}

/// A proving key bound to its circuit, on a device: fixed bases with multiples as memory allows (or streamed from the host
/// where it does not allow the bases themselves), the matrices A and B, and the tables of the transforms. Any number of
/// [`crate::Slot`]s may use one.
pub struct CudaKey {
    pub(crate) host: Arc<HostKey>,
    pub(crate) device: Arc<Device>,
    pub(crate) circuit: DeviceCircuit,
    pub(crate) domain: Domain,
    pub(crate) shift: FactorTable,
    pub(crate) a: Query<G1>,
    pub(crate) b: Query<G2>,
    pub(crate) l: Query<G1>,
    pub(crate) h: Query<G1>,
    pub(crate) sizes: SlotSizes,
}

impl CudaKey {
    /// Copies a key in the basis of quotient points to the device, by the fastest plan for which there is room. `provers` is
    /// how many provers there will be: their scratch memory is left free.
    pub fn new(device: &Arc<Device>, key: Arc<ProvingKey>, r1cs: Arc<R1cs>, provers: usize) -> Result<Self, CudaError> {
        Self::beside(device, HostKey::new(key, r1cs)?, provers)
    }

    /// The same from a key on the host.
    pub fn beside(device: &Arc<Device>, host: Arc<HostKey>, provers: usize) -> Result<Self, CudaError> {
        let plan = KeyPlan::beside(device, host.dimensions(), provers)?;
        let scratch = device.allocate(plan.fill_bytes())?;
        Self::load(device, host, &plan, &scratch)
    }

    /// Copies a key to the device as planned; `scratch` is of [`KeyPlan::fill_bytes`] at least.
    pub fn load(
        device: &Arc<Device>,
        host: Arc<HostKey>,
        plan: &KeyPlan,
        scratch: &Buffer<u8>,
    ) -> Result<Self, CudaError> {
        let BoundKey { key, r1cs, .. } = &host.bound;
        let stream = device.stream()?;
        let circuit = DeviceCircuit::new(&stream, r1cs)?;
        debug_assert!(circuit.scratch_bytes() <= plan.dimensions.circuit_scratch_bytes());
        let domain = Domain::new(&stream, &key.root.root_of_unity(MAX_LOG2_DOMAIN), key.log2_domain)?;
        let eta = key.root.root_of_unity(key.log2_domain + 1);
        let inverse_n = Scalar::from(1u64 << key.log2_domain).invert().expect("a power of two is not zero in Fr");
        let shift = FactorTable::powers_reversed(&stream, key.log2_domain, &inverse_n, &eta)?;

        let layout = plan.layout;
        let variables = key.variables();
        let in_a = positions(&key.a_density, variables, key.a.len());
        let in_b = positions(&key.b_density, variables, key.b_g2.len());
        let (a, b, l, h) = match layout.chunk {
            None => {
                let mut arena = Arena::new(scratch);
                (
                    Query::resident(&stream, &mut arena, &key.a, layout.a, in_a)?,
                    Query::resident(&stream, &mut arena, &key.b_g2, layout.b, in_b)?,
                    Query::resident(&stream, &mut arena, &key.l, layout.l, None)?,
                    Query::resident(&stream, &mut arena, &key.h, layout.h, None)?,
                )
            }
            Some(chunk) => {
                let bases = host.pinned(device)?;
                (
                    Query::streamed(&stream, bases.a.clone(), layout.a, chunk, in_a)?,
                    Query::streamed(&stream, bases.b.clone(), layout.b, chunk, in_b)?,
                    Query::streamed(&stream, bases.l.clone(), layout.l, chunk, None)?,
                    Query::streamed(&stream, bases.h.clone(), layout.h, chunk, None)?,
                )
            }
        };
        let sizes = SlotSizes::new(device, &plan.dimensions, &layout)?;
        stream.synchronize()?;
        Ok(Self { device: device.clone(), circuit, domain, shift, a, b, l, h, sizes, host })
    }

    /// Whether the bases are in device memory, or streamed to it for each proof.
    pub fn is_resident(&self) -> bool {
        !self.a.is_streamed()
    }

    /// Scratch memory that a slot needs for proofs by this key, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        self.sizes.bytes()
    }

    /// Whether an assignment is one of the key's circuit, by its counts.
    pub fn check_dimensions(&self, assignment: &Assignment) -> Result<(), CheckError> {
        self.host.bound.r1cs.check_dimensions(assignment)
    }
}
