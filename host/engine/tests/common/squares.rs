//! A real circuit with real proofs: a chain of squarings, x_{i+1} = x_i^2; the last is public.

use std::sync::Arc;
use zkhost_engine::JobRequest;
use zkhost_engine::device::{ProverDevice, Stop};
use zkhost_engine::failure::Proved;
use zkhost_engine::ids::{JobId, Priority};
use zkhost_engine::scheduler::SynthesisFault;
use zkhost_engine::synthesis::{Circuit, Synthesis};
use zkhost_groth16::assignment::{SegmentLimits, SegmentSink, SegmentWriter};
use zkhost_groth16::r1cs::{Counts, MatrixId, ShapeLimits, ShapeRecorder};
use zkhost_groth16::scalar::to_canonical;
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{CpuProver, Encoding, HBasis, Proof, Prover, R1cs, Scalar};

/// A circuit with its key on the CPU.
pub struct Squares {
    pub squarings: u64,
    pub circuit: Circuit,
    pub prover: Arc<CpuProver>,
}

impl Squares {
    pub fn new(squarings: u64) -> Self {
        let r1cs = Arc::new(shape(squarings));
        let key = setup(&r1cs, &ToxicWaste::insecure_from_seed(squarings), HBasis::QuotientPoints).unwrap();
        let prover = Arc::new(CpuProver::new(Arc::new(key), r1cs).unwrap());
        Self { squarings, circuit: Circuit::of(prover.bound()), prover }
    }

    pub fn add_to(&self, device: &ProverDevice) {
        device.add(self.circuit.id, 1000, self.prover.clone());
    }

    /// A request for a job of it, named after where the job starts.
    pub fn request(&self, job: SquaresJob) -> JobRequest {
        JobRequest {
            id: JobId { owner: "test".into(), name: format!("{}-{}", job.squarings, job.first) },
            body: [0; 32],
            circuit: self.circuit.clone(),
            priority: Priority::Normal,
            time_limit: None,
            synthesis: Arc::new(job),
        }
    }

    /// Whether these are the proofs of a job that started from `first`.
    pub fn accepts(&self, first: u64, proved: &Proved) -> bool {
        let verifier = &self.prover.bound().verifier;
        proved.proofs.chunks(192).zip(&proved.publics).zip(0..).all(|((proof, publics), partition)| {
            *publics == [last(first + partition, self.squarings)]
                && verifier.verify(&Proof::from_bytes(proof).unwrap(), publics).is_ok()
        })
    }
}

fn shape(squarings: u64) -> R1cs {
    let limits =
        ShapeLimits { publics: 1, aux: 1 << 20, constraints: 1 << 20, terms: 1 << 24, coefficients: 1, name_bytes: 0 };
    let mut recorder = ShapeRecorder::new(limits, false);
    let one = recorder.add_coefficients(&[1, 0, 0, 0]).unwrap();
    for i in 0..squarings as u32 {
        let product = if u64::from(i) + 1 == squarings { 1 | 1 << 31 } else { i + 1 };
        for (matrix, column) in MatrixId::ALL.into_iter().zip([i, i, product]) {
            recorder.add_rows(matrix, &[1], &[column], &[one]).unwrap();
        }
    }
    recorder.finish(Counts { publics: 1, aux: squarings, constraints: squarings }).unwrap()
}

fn last(first: u64, squarings: u64) -> Scalar {
    (0..squarings).fold(Scalar::from(first), |x, _| x * x)
}

/// A job of it: partition p starts from `first + p`. With `broken`, one value of the last partition is wrong.
pub struct SquaresJob {
    pub squarings: u64,
    pub first: u64,
    pub partitions: u32,
    pub broken: bool,
    pub segments: Vec<SegmentLimits>,
}

impl SquaresJob {
    pub fn new(squarings: u64, first: u64, partitions: u32) -> Self {
        let half = squarings / 2;
        let limits = |aux_count, public_count| SegmentLimits { aux_count, full_max: aux_count, public_count };
        let segments = vec![limits(half, 1), limits(squarings - half, 0)];
        Self { squarings, first, partitions, broken: false, segments }
    }
}

impl Synthesis for SquaresJob {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn encoding(&self) -> Encoding {
        Encoding::Canonical
    }

    fn segments(&self) -> &[SegmentLimits] {
        &self.segments
    }

    fn guest_bytes(&self) -> u64 {
        1 << 20
    }

    fn assign(
        &self,
        partition: u32,
        segment: u32,
        mut writer: SegmentWriter,
        _stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault> {
        let first = self.first + u64::from(partition);
        let limits = self.segments[segment as usize];
        let refused = |error: zkhost_groth16::assignment::SinkError| SynthesisFault::Guest(error.to_string());
        if limits.public_count > 0 {
            writer.write_public(&to_canonical(&last(first, self.squarings))).map_err(refused)?;
        }
        let skip = if segment == 0 { 0 } else { self.segments[0].aux_count };
        let mut x = last(first, skip);
        let values = (0..limits.aux_count).map(|_| {
            let this = x;
            x = x * x;
            this
        });
        let mut values: Vec<_> = values.map(|value| to_canonical(&value)).collect();
        if self.broken && partition + 1 == self.partitions && segment == 1 {
            values[0][0] ^= 1;
        }
        for group in values.chunks(64) {
            let full = u64::MAX >> (64 - group.len());
            writer.write_groups(&[full, 0], group.as_flattened()).map_err(refused)?;
        }
        Ok(writer)
    }
}
