//! What `zkhost bench` tells of a circuit's synthesis: how large it is, what assigning costs, and what bounds a proof.

use crate::circuit::{Job, Loaded};
use anyhow::Result;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};
use zkhost_groth16::assignment::SegmentWriter;
use zkhost_groth16::{Assignment, R1cs};
use zkhost_runtime::Synthesis;

/// Partitions that are assigned together at most, to see how that scales.
const PARTITIONS_MAX: u32 = 16;
/// Of the time that assigning takes, the share from which its cause is named.
const MAIN_SHARE: f64 = 0.5;

/// A circuit's size and what assigning one partition costs.
#[derive(Serialize)]
pub struct SynthesisReport {
    /// Public inputs, the constant one excluded.
    publics: u32,
    /// Variables of value 0 or 1, which travel as two bits.
    bits: u64,
    /// Variables that travel as elements of 32 bytes.
    elements: u64,
    /// Terms of A, B and C for each constraint.
    terms_per_row: f64,
    /// Aux variables that occur in A and in B, in percent.
    a_density: f64,
    b_density: f64,
    /// Bytes that the guest hands over for one partition.
    sink_bytes: u64,
    /// The largest memory of the instance that wrote it.
    instance_bytes: u64,
    /// Opening the input: once for every instance.
    open_milliseconds: f64,
    /// Assigning one partition in one instance.
    assign_milliseconds: f64,
    nanoseconds_per_constraint: f64,
    /// More and more threads.
    scaling: Vec<Scaling>,
    /// What bounds a job, in words.
    bound: String,
}

/// Assigning several partitions on several threads, opening included.
#[derive(Serialize)]
struct Scaling {
    threads: usize,
    /// For each partition.
    milliseconds: f64,
    /// How many times faster than one thread.
    speedup: f64,
}

/// One partition assigned in one instance.
struct Pass {
    assignment: Assignment,
    open: Duration,
    assign: Duration,
    instance_bytes: u64,
}

impl SynthesisReport {
    /// Measure `runs` times and keep the fastest of each, for what else runs on a machine only ever slows things.
    /// `prove_milliseconds` is what proving all partitions takes, if they are proved.
    pub fn new(loaded: &Loaded, job: &Job<'_>, runs: u32, prove_milliseconds: Option<f64>) -> Result<Self> {
        let mut pass = Pass::new(loaded, job)?;
        for _ in 1..runs {
            let next = Pass::new(loaded, job)?;
            pass.open = pass.open.min(next.open);
            pass.assign = pass.assign.min(next.assign);
        }
        let scaling = scaling(loaded, job)?;
        let shape = job.shape;
        let segments = pass.assignment.segments();
        let elements = segments.iter().map(|segment| segment.elements().len() as u64).sum();
        let mask_bytes: u64 = segments.iter().map(|segment| 8 * segment.masks().len() as u64).sum();
        let terms: usize = shape.matrices.iter().map(|matrix| matrix.terms()).sum();
        let (open, assign) = (milliseconds(pass.open), milliseconds(pass.assign));
        let mut report = SynthesisReport {
            publics: shape.public_count,
            bits: pass.assignment.aux_count() - elements,
            elements,
            terms_per_row: terms as f64 / shape.constraints() as f64,
            a_density: density(shape, 0),
            b_density: density(shape, 1),
            sink_bytes: mask_bytes + 32 * (elements + u64::from(shape.public_count)),
            instance_bytes: pass.instance_bytes,
            open_milliseconds: open,
            assign_milliseconds: assign,
            nanoseconds_per_constraint: 1e6 * assign / shape.constraints() as f64,
            scaling,
            bound: String::new(),
        };
        report.bound = report.bound(prove_milliseconds.map(|time| time / f64::from(job.layout.partitions)));
        Ok(report)
    }

    /// What takes longest, and why.
    fn bound(&self, prove: Option<f64>) -> String {
        let synthesis = self.scaling.last().map_or(self.assign_milliseconds, |most| most.milliseconds);
        let stages = match prove {
            Some(prove) => format!(
                "a partition takes {prove:.1} ms to prove and {synthesis:.1} ms to open and assign on all threads"
            ),
            None => {
                format!("a partition takes {synthesis:.1} ms to open and assign on all threads, and nothing is proved")
            }
        };
        if prove.is_some_and(|prove| prove >= synthesis) {
            return format!("the prover: {stages}");
        }
        let SynthesisReport { elements, bits, assign_milliseconds: assign, open_milliseconds: open, .. } = self;
        let cause = if *open > MAIN_SHARE * (open + assign) {
            format!("opening the input, {open:.1} ms for every instance")
        } else if elements >= bits {
            format!("field elements, {:.0} ns each", 1e6 * assign / (*elements).max(1) as f64)
        } else {
            format!("variables, {:.1} ns each", 1e6 * assign / (elements + bits).max(1) as f64)
        };
        format!("the circuit's synthesis: {stages}; mostly {cause}")
    }
}

impl Pass {
    fn new(loaded: &Loaded, job: &Job<'_>) -> Result<Self> {
        let limits = loaded.circuit.segment_limits(job.layout, job.shape)?;
        let started = Instant::now();
        let mut opened = loaded.circuit.open(&loaded.params, job.input)?;
        let open = started.elapsed();
        let mut segments = Vec::with_capacity(limits.len());
        let started = Instant::now();
        for (segment, limits) in (0..).zip(limits) {
            let writer = SegmentWriter::on_heap(job.layout.encoding, limits)?;
            segments.push(opened.assign(0, segment, writer)?.finish()?);
        }
        let assign = started.elapsed();
        Ok(Pass { assignment: Assignment::new(segments), open, assign, instance_bytes: opened.memory_bytes() })
    }
}

/// The same partitions on 1, 2, 4, ... and all threads.
fn scaling(loaded: &Loaded, job: &Job<'_>) -> Result<Vec<Scaling>> {
    let all = rayon::current_num_threads();
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |count| Some(2 * count)).take_while(|c| *c < all).collect();
    counts.push(all);
    let partitions = job.layout.partitions.min(PARTITIONS_MAX);
    let synthesis = Synthesis { params: &loaded.params, input: job.input, layout: job.layout, shape: job.shape };
    let mut scaling: Vec<Scaling> = Vec::new();
    for threads in counts {
        let started = Instant::now();
        loaded.circuit.synthesise(synthesis, 0..partitions, threads)?;
        let time = milliseconds(started.elapsed()) / f64::from(partitions);
        let speedup = scaling.first().map_or(1.0, |one| one.milliseconds / time);
        scaling.push(Scaling { threads, milliseconds: time, speedup });
    }
    Ok(scaling)
}

/// The share of aux variables that occur in A or B, in percent.
fn density(shape: &R1cs, matrix: usize) -> f64 {
    let words = if matrix == 0 { shape.a_density() } else { shape.b_density() };
    let publics = 1 + shape.public_count as usize;
    let occurs = |variable: &usize| words[variable / 64] >> (variable % 64) & 1 == 1;
    let aux = (publics..shape.variables()).filter(occurs).count();
    100.0 * aux as f64 / f64::from(shape.aux_count).max(1.0)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl fmt::Display for SynthesisReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes as f64 / (1 << 20) as f64;
        writeln!(f, "variables: {} bits, {} elements, {} public inputs", self.bits, self.elements, self.publics)?;
        writeln!(
            f,
            "rows: {:.2} terms each; {:.1} % of the variables occur in A, {:.1} % in B",
            self.terms_per_row, self.a_density, self.b_density
        )?;
        writeln!(
            f,
            "assigning a partition: {:.2} ms in one instance, {:.2} ns a constraint, {:.2} MiB handed over",
            self.assign_milliseconds,
            self.nanoseconds_per_constraint,
            mebibytes(self.sink_bytes)
        )?;
        writeln!(
            f,
            "an instance: {:.2} ms to open the input, {:.2} MiB of memory",
            self.open_milliseconds,
            mebibytes(self.instance_bytes)
        )?;
        for Scaling { threads, milliseconds, speedup } in &self.scaling {
            writeln!(f, "{threads} thread(s): {milliseconds:.2} ms a partition, {speedup:.2} times one")?;
        }
        write!(f, "bound by {}", self.bound)
    }
}
