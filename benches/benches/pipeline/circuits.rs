//! Circuits with keys and assignments that are ready, so that nothing but proving is measured.

use ff::Field;
use rayon::prelude::*;
use std::collections::HashMap;
use std::mem::take;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zkhost_cuda::{DeviceMultiples, KeyDimensions};
use zkhost_engine::component::ComponentJob;
use zkhost_engine::cuda::KeySource;
use zkhost_engine::device::Stop;
use zkhost_engine::ids::CircuitId;
use zkhost_engine::scheduler::SynthesisFault;
use zkhost_engine::synthesis::{Circuit, Synthesis};
use zkhost_groth16::assignment::{Segment, SegmentLimits, SegmentSink, SegmentWriter, SinkError};
use zkhost_groth16::r1cs::{Counts, Matrix, MatrixId, ShapeLimits, ShapeRecorder};
use zkhost_groth16::scalar::{Limbs, to_canonical};
use zkhost_groth16::setup::{ToxicWaste, setup_with};
use zkhost_groth16::{Assignment, BoundKey, Encoding, HBasis, ProvingKey, R1cs, Scalar};
use zkhost_runtime::{Compiler, Input, Layout, Limits, Runtime, Silent, Synthesis as Guests};

/// SHA-256 of so many blocks has a domain of 2^22: 99 % of its rows are used.
pub const SHA_BLOCKS: usize = 150;

/// A circuit, its key and one assignment of it.
pub struct Material {
    pub r1cs: Arc<R1cs>,
    pub key: Arc<ProvingKey>,
    pub circuit: Circuit,
    pub segments: Arc<[SegmentLimits]>,
    pub assignment: Arc<Assignment>,
}

impl Material {
    /// A circuit with a key that is made on the device.
    pub fn new(
        device: &Arc<zkhost_cuda::Device>,
        r1cs: Arc<R1cs>,
        segments: Vec<SegmentLimits>,
        assignment: Assignment,
    ) -> Self {
        let multiples = DeviceMultiples::new(device).expect("the device has room for its tables");
        let waste = ToxicWaste::insecure_from_seed(4);
        let key = setup_with(&r1cs, &waste, HBasis::QuotientPoints, &multiples).expect("the circuit has a key");
        let key = Arc::new(key);
        let circuit = Circuit::of(&BoundKey::new(key.clone(), r1cs.clone()).expect("the key is the circuit's"));
        Self { r1cs, key, circuit, segments: segments.into(), assignment: Arc::new(assignment) }
    }

    /// Bytes of its assignment as it crosses the link.
    pub fn witness_bytes(&self) -> usize {
        let bytes = |s: &Segment| size_of_val(s.masks()) + size_of_val(s.elements());
        self.assignment.segments().iter().map(bytes).sum()
    }
}

/// Keys that are in memory.
#[derive(Default)]
pub struct Keys(pub HashMap<CircuitId, (Arc<ProvingKey>, Arc<R1cs>)>);

impl Keys {
    pub fn of(materials: &[&Material]) -> Arc<Self> {
        let pair = |m: &&Material| (m.circuit.id, (m.key.clone(), m.r1cs.clone()));
        Arc::new(Self(materials.iter().map(pair).collect()))
    }
}

impl KeySource for Keys {
    fn dimensions(&self, circuit: CircuitId) -> Option<KeyDimensions> {
        self.0.get(&circuit).map(|(key, r1cs)| KeyDimensions::of(key, r1cs))
    }

    fn open(&self, circuit: CircuitId) -> Result<(Arc<ProvingKey>, Arc<R1cs>), String> {
        self.0.get(&circuit).cloned().ok_or_else(|| "there is no such circuit".to_owned())
    }
}

/// A job whose segments are copied from an assignment that is there: synthesis at the speed of memory.
pub struct Ready {
    partitions: u32,
    segments: Arc<[SegmentLimits]>,
    assignment: Arc<Assignment>,
}

impl Ready {
    pub fn new(material: &Material, partitions: u32) -> Self {
        let (segments, assignment) = (material.segments.clone(), material.assignment.clone());
        Self { partitions, segments, assignment }
    }
}

impl Synthesis for Ready {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn encoding(&self) -> Encoding {
        self.assignment.encoding()
    }

    fn segments(&self) -> &[SegmentLimits] {
        &self.segments
    }

    fn guest_bytes(&self) -> u64 {
        0
    }

    fn assign(
        &self,
        _partition: u32,
        segment: u32,
        mut writer: SegmentWriter,
        _stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault> {
        let ready = &self.assignment.segments()[segment as usize];
        let publics: Vec<Limbs> = ready.publics().iter().map(to_canonical).collect();
        let refused = |error: SinkError| SynthesisFault::Guest(error.to_string());
        if !publics.is_empty() {
            writer.write_public(publics.as_flattened()).map_err(refused)?;
        }
        writer.write_groups(ready.masks(), ready.elements().as_flattened()).map_err(refused)?;
        Ok(writer)
    }
}

/// A component in its sandbox, with what it plans and the shape it records for some parameters.
pub struct Guest {
    circuit: zkhost_runtime::Circuit,
    params: Vec<u8>,
    layout: Layout,
    shape: Arc<R1cs>,
}

impl Guest {
    pub fn load(path: &Path, params: String) -> Self {
        let runtime = Runtime::new(Compiler::InProcess, None).expect("the runtime starts");
        // 2^26 rows of SHA-256 have more terms than a service would take.
        let limits = Limits { terms: 1 << 31, ..Limits::default() };
        let circuit = runtime.load_file(path, limits).expect("the component loads");
        let params = params.into_bytes();
        let layout = circuit.plan(&params).expect("it has a plan");
        let shape = Arc::new(circuit.record_shape(&params, false).expect("it records its shape"));
        Self { circuit, params, layout, shape }
    }

    /// The assignment of the first partition of an input.
    pub fn assignment(&self, input: &Input) -> Assignment {
        let guests = Guests { params: &self.params, input, layout: &self.layout, shape: &self.shape };
        self.circuit.synthesise(guests, 0..1, 1).expect("it assigns").remove(0)
    }

    /// It, with a key made on the device, and the assignment of the first partition of an input.
    pub fn material(&self, device: &Arc<zkhost_cuda::Device>, input: &Input) -> Material {
        let segments = self.circuit.segment_limits(&self.layout, &self.shape).expect("it has segments");
        Material::new(device, self.shape.clone(), segments, self.assignment(input))
    }

    pub fn shape(&self) -> &R1cs {
        &self.shape
    }

    /// Another number of partitions of the same shape.
    pub fn with_params(&self, params: String) -> Self {
        let params = params.into_bytes();
        let layout = self.circuit.plan(&params).expect("it has a plan");
        Self { circuit: self.circuit.clone(), params, layout, shape: self.shape.clone() }
    }

    pub fn job(&self, input: &Input) -> ComponentJob {
        let sources = (&self.layout, &*self.shape);
        ComponentJob::new(&self.circuit, &self.params, input, sources, Arc::new(Silent)).expect("its plan is good")
    }
}

/// Parameters of SHA-256 of [`SHA_BLOCKS`] blocks.
pub fn sha_params() -> String {
    format!(r#"{{"preimage_bytes": {}}}"#, preimage_bytes())
}

/// A preimage for each number below 128.
pub fn sha_input(number: u32) -> Input {
    let byte = format!("{:02x}", 0xa7 ^ (number & 0x7f));
    format!(r#"{{"preimage": "{}"}}"#, byte.repeat(preimage_bytes())).into_bytes().into()
}

/// The preimage that fills the blocks, with the nine bytes of padding.
fn preimage_bytes() -> usize {
    64 * SHA_BLOCKS - 9
}

/// Jobs of one partition as the partitions of one job: guests end with their partition.
pub struct Bundle(Vec<(ComponentJob, AtomicUsize)>);

impl Bundle {
    pub fn new(guest: &Guest, inputs: impl Iterator<Item = Input>) -> Self {
        Self(inputs.map(|input| (guest.job(&input), AtomicUsize::new(0))).collect())
    }
}

impl Synthesis for Bundle {
    fn partitions(&self) -> u32 {
        self.0.len() as u32
    }

    fn encoding(&self) -> Encoding {
        self.0[0].0.encoding()
    }

    fn segments(&self) -> &[SegmentLimits] {
        self.0[0].0.segments()
    }

    fn guest_bytes(&self) -> u64 {
        self.0[0].0.guest_bytes()
    }

    fn assign(
        &self,
        partition: u32,
        segment: u32,
        writer: SegmentWriter,
        stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault> {
        let (job, written) = &self.0[partition as usize];
        let writer = job.assign(0, segment, writer, stop)?;
        if written.fetch_add(1, Ordering::Relaxed) + 1 == self.segments().len() {
            job.keep_guests(0);
        }
        Ok(writer)
    }
}

/// So many copies of a constraint system as one, which have nothing but the constant one in common.
pub fn copies(r1cs: &R1cs, count: usize) -> R1cs {
    let (publics, aux) = (r1cs.public_count as usize, r1cs.aux_count as usize);
    let column = |copy: usize, column: u32| match column as usize {
        0 => 0,
        public if public <= publics => (public + copy * publics) as u32,
        private => (private + (count - 1) * publics + copy * aux) as u32,
    };
    let repeated = |matrix: &Matrix| Matrix {
        row_ends: (0..count)
            .into_par_iter()
            .flat_map_iter(|copy| matrix.row_ends.iter().map(move |end| end + (copy * matrix.terms()) as u64))
            .collect(),
        columns: (0..count)
            .into_par_iter()
            .flat_map_iter(|copy| matrix.columns.iter().map(move |&of| column(copy, of)))
            .collect(),
        coefficients: matrix.coefficients.repeat(count),
    };
    R1cs {
        public_count: (count * publics) as u32,
        aux_count: (count * aux) as u32,
        dictionary: r1cs.dictionary.clone(),
        matrices: r1cs.matrices.each_ref().map(repeated),
        names: vec![],
    }
}

/// The assignment of [`copies`] from one for each, and the limits of its segments.
pub fn joined(assignments: &[Assignment]) -> (Assignment, Vec<SegmentLimits>) {
    let publics: Vec<Limbs> = assignments.iter().flat_map(|each| each.publics().iter().map(to_canonical)).collect();
    let mut public_count = publics.len() as u64;
    let segment = |segment: &Segment| {
        let full_max = segment.elements().len() as u64;
        let limits = SegmentLimits { aux_count: segment.aux_count(), full_max, public_count: take(&mut public_count) };
        let mut writer = SegmentWriter::on_heap(segment.encoding(), limits).expect("there is memory");
        if limits.public_count > 0 {
            writer.write_public(publics.as_flattened()).expect("within the limits");
        }
        writer.write_groups(segment.masks(), segment.elements().as_flattened()).expect("within the limits");
        (writer.finish().expect("it is complete"), limits)
    };
    let (segments, limits) = assignments.iter().flat_map(Assignment::segments).map(segment).unzip();
    (Assignment::new(segments), limits)
}

/// x -> x^2 + 3 to fill a domain of 2^log: every value is of full size, 32 bytes for each point of the domain.
pub fn squarings(device: &Arc<zkhost_cuda::Device>, log: u32) -> Material {
    // The rows that bind the one and the public input are the domain's last.
    let steps = (1usize << log) - 2;
    let mut values = vec![Scalar::from(0x1234_5678_9abc_def1).square().square().square()];
    (0..steps).for_each(|i| values.push(values[i].square() + Scalar::from(3)));
    let mut recorder = ShapeRecorder::new(ShapeLimits::NONE, false);
    let one = recorder.add_coefficients(&to_canonical(&Scalar::ONE)).expect("within the limits");
    let minus_three = recorder.add_coefficients(&to_canonical(&-Scalar::from(3))).expect("within the limits");
    // Publics have the top bit set: the one is 0, the result 1.
    let public = |index: u32| index | 1 << 31;
    let columns: Vec<u32> = (0..steps as u32).collect();
    for matrix in [MatrixId::A, MatrixId::B] {
        recorder.add_rows(matrix, &vec![1; steps], &columns, &vec![one; steps]).expect("within the limits");
    }
    let next = |step: u32| if step + 1 < steps as u32 { step + 1 } else { public(1) };
    let outs: Vec<u32> = (0..steps as u32).flat_map(|step| [next(step), public(0)]).collect();
    recorder
        .add_rows(MatrixId::C, &vec![2; steps], &outs, &[one, minus_three].repeat(steps))
        .expect("within the limits");
    let counts = Counts { publics: 1, aux: steps as u64, constraints: steps as u64 };
    let r1cs = Arc::new(recorder.finish(counts).expect("all rows are there"));
    let assignment = Assignment::from_values(&values[steps..], &values[..steps]);
    assert!(r1cs.check(&assignment).is_ok(), "the values satisfy the constraints");
    let limits = SegmentLimits { aux_count: steps as u64, full_max: steps as u64, public_count: 1 };
    Material::new(device, r1cs, vec![limits], assignment)
}
