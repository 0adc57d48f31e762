//! A circuit run natively, without host or sandbox: for tests.
//!
//! It runs the same code as the component, from JSON to packed groups, and keeps the result in memory.

use std::fmt;

use crate::shape::ShapeRecorder;
use crate::sink::{Matrix, PUBLIC_COLUMN, ShapeSink, WitnessSink};
use crate::synthesis::{Pass, Synthesis};
use crate::witness::WitnessWriter;
use crate::{Circuit, Counts, Error, Fr, Plan, job};

/// One row of a matrix: columns and coefficients, in the order the circuit gave them.
pub type Row = Vec<(u32, Fr)>;

/// A recorded constraint system.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// Its dimensions.
    pub counts: Counts,
    /// The rows of A, B and C. A column with bit 31 set is a public input, 0 of them the constant one.
    pub rows: [Vec<Row>; 3],
    /// The path of each row.
    pub names: Vec<String>,
    coefficients: Vec<Fr>,
}

/// The assignment of one partition.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Public inputs, the constant one excluded.
    pub publics: Vec<Fr>,
    /// Aux variables.
    pub aux: Vec<Fr>,
    /// The masks as sent: words (full, one) for each group of 64 aux variables.
    pub masks: Vec<u64>,
    /// The full elements as sent.
    pub elements: Vec<u64>,
}

/// A circuit's shape and the assignments of every partition of one job.
pub struct Run {
    /// The plan of the job.
    pub plan: Plan,
    /// The constraint system, with names.
    pub shape: Shape,
    /// One assignment a partition.
    pub assignments: Vec<Assignment>,
}

/// A constraint that an assignment does not satisfy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsatisfied {
    /// The partition.
    pub partition: usize,
    /// The row.
    pub row: usize,
    /// The path of the row.
    pub name: String,
}

impl fmt::Display for Unsatisfied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {}: constraint {} ({}) does not hold", self.partition, self.row, self.name)
    }
}

/// Record a circuit's shape, with names.
pub fn record_shape<C: Circuit>(params: &[u8]) -> Result<Shape, Error> {
    let mut shape = Shape::default();
    shape.counts = job::record_shape::<C>(params, true, &mut shape)?;
    Ok(shape)
}

/// Record a circuit's shape and assign every partition from an input; both are JSON.
pub fn run<C: Circuit>(params: &[u8], input: &[u8]) -> Result<Run, Error> {
    let plan = job::plan::<C>(params)?;
    let shape = record_shape::<C>(params)?;
    let job = job::Job::<C>::open(params, input, input.len() as u64)?;
    let mut assignments = Vec::new();
    for partition in 0..plan.partitions {
        let mut assignment = Assignment::default();
        for (index, segment) in plan.segments.iter().enumerate() {
            let aux_count = if segment.aux_count == 0 { shape.counts.aux } else { segment.aux_count };
            let mut sink = MemoryWitness { assignment: &mut assignment, aux_left: aux_count };
            let written = job.assign(partition, index as u32, &mut sink)?;
            if written != aux_count {
                return Err(Error::Internal(format!(
                    "segment {index} allocated {written} aux variables; the plan says {aux_count}"
                )));
            }
        }
        assignments.push(assignment);
    }
    Ok(Run { plan, shape, assignments })
}

/// Record and assign what `synthesize` writes to a constraint system: for tests of gadgets, which are no circuits.
pub fn gadget<F>(
    synthesize: impl Fn(&mut Synthesis<'_, F>) -> Result<(), Error>,
) -> Result<(Shape, Assignment), Error> {
    let mut shape = Shape::default();
    let mut cs = Synthesis::new(Pass::Shape(Box::new(ShapeRecorder::new(&mut shape, true))));
    synthesize(&mut cs)?;
    let Pass::Shape(recorder) = cs.into_pass() else { unreachable!("a synthesis keeps its pass") };
    shape.counts = recorder.finish()?;
    let mut assignment = Assignment::default();
    let mut sink = MemoryWitness { assignment: &mut assignment, aux_left: shape.counts.aux };
    let mut cs = Synthesis::new(Pass::Witness(WitnessWriter::new(&mut sink, true)));
    synthesize(&mut cs)?;
    let Pass::Witness(writer) = cs.into_pass() else { unreachable!("a synthesis keeps its pass") };
    writer.finish()?;
    Ok((shape, assignment))
}

impl Run {
    /// The first constraint that does not hold, if any: ⟨A, z⟩ · ⟨B, z⟩ = ⟨C, z⟩, row by row.
    pub fn first_unsatisfied(&self) -> Option<Unsatisfied> {
        self.assignments.iter().enumerate().find_map(|(partition, assignment)| {
            let row = self.shape.first_unsatisfied(assignment)?;
            Some(Unsatisfied { partition, row, name: self.shape.names[row].clone() })
        })
    }
}

impl Shape {
    /// The first row that does not hold, if any.
    pub fn first_unsatisfied(&self, assignment: &Assignment) -> Option<usize> {
        let [a, b, c] = &self.rows;
        (0..a.len())
            .find(|&row| assignment.evaluate(&a[row]) * assignment.evaluate(&b[row]) != assignment.evaluate(&c[row]))
    }
}

impl Assignment {
    /// ⟨row, z⟩.
    fn evaluate(&self, row: &Row) -> Fr {
        let value = |column: u32| match (column & PUBLIC_COLUMN != 0, (column & !PUBLIC_COLUMN) as usize) {
            (true, 0) => Fr::ONE,
            (true, index) => self.publics[index - 1],
            (false, index) => self.aux[index],
        };
        row.iter().map(|&(column, coefficient)| value(column) * coefficient).sum()
    }
}

impl ShapeSink for Shape {
    fn add_coefficients(&mut self, limbs: &[u64]) {
        self.coefficients.extend(elements(limbs));
    }

    fn add_rows(&mut self, matrix: Matrix, row_lengths: &[u32], columns: &[u32], coefficients: &[u32]) {
        let mut terms = columns.iter().zip(coefficients).map(|(&column, &i)| (column, self.coefficients[i as usize]));
        let rows = row_lengths.iter().map(|&length| terms.by_ref().take(length as usize).collect());
        self.rows[matrix as usize].extend(rows);
    }

    fn name_rows(&mut self, paths: &str) {
        self.names.extend(paths.lines().map(String::from));
    }
}

/// Unpacks one segment's groups behind those of the segments before it.
struct MemoryWitness<'a> {
    assignment: &'a mut Assignment,
    aux_left: u64,
}

impl WitnessSink for MemoryWitness<'_> {
    fn write_groups(&mut self, masks: &[u64], limbs: &[u64]) {
        let mut full_elements = elements(limbs);
        for pair in masks.chunks_exact(2) {
            for bit in 0..self.aux_left.min(64) {
                let value = match (pair[0] >> bit & 1, pair[1] >> bit & 1) {
                    (1, _) => full_elements.next().expect("an element for every bit of `full`"),
                    (_, one) => Fr::from(one),
                };
                self.assignment.aux.push(value);
                self.aux_left -= 1;
            }
        }
        self.assignment.masks.extend_from_slice(masks);
        self.assignment.elements.extend_from_slice(limbs);
    }

    fn write_public(&mut self, limbs: &[u64]) {
        self.assignment.publics.extend(elements(limbs));
    }

    fn progress(&mut self, _aux_written: u64) -> bool {
        true
    }
}

/// Canonical limbs as elements. The writers above send no others, so this is no place for an error.
fn elements(limbs: &[u64]) -> impl Iterator<Item = Fr> + '_ {
    limbs.chunks_exact(4).map(|limbs| {
        let limbs = limbs.try_into().expect("four limbs");
        Fr::from_canonical(limbs).expect("a canonical element")
    })
}
