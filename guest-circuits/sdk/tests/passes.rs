//! The two passes: what is recorded, what is written, and that both dialects say the same.

use serde::Deserialize;
use zkhost_guest::sink::{Matrix, PUBLIC_COLUMN, ShapeSink, WitnessSink};
use zkhost_guest::{Circuit, Counts, Error, Fr, Info, Plan, Scope, Synthesis, job, native};

/// A circuit of `bits` bits, whose weighted sum is public, in the dialect of the module.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    bits: usize,
    segments: usize,
    /// Variables of the last segment that the plan declares and nobody allocates.
    overdeclared: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params { bits: 130, segments: 1, overdeclared: 0 }
    }
}

/// The values of the aux variables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    values: Vec<u64>,
}

const INFO: Info = Info { name: "values", version: "1.0.0", about: "", params_help: "", input_help: "" };

fn plan(params: &Params) -> Result<Plan, Error> {
    if params.segments == 1 {
        return Ok(Plan::single());
    }
    // All but the last take 64 variables.
    let mut counts = vec![64; params.segments - 1];
    counts.push(params.bits as u64 - 64 * (params.segments as u64 - 1) + params.overdeclared);
    Ok(Plan::segmented(1, &counts))
}

fn range(params: &Params, scope: &Scope) -> std::ops::Range<usize> {
    let end =
        if scope.segments.end as usize == params.segments { params.bits } else { 64 * scope.segments.end as usize };
    64 * scope.segments.start as usize..end
}

macro_rules! values_circuit {
    ($module:ident, $dialect:ident) => {
        mod $module {
            use zkhost_guest::$dialect::{ConstraintSystem, SynthesisError};

            use super::*;

            pub struct Values {
                params: Params,
                values: Option<Vec<u64>>,
            }

            impl Circuit for Values {
                type Field = Fr;
                type Params = Params;
                type Input = Input;

                fn info() -> Info {
                    INFO
                }

                fn plan(params: &Params) -> Result<Plan, Error> {
                    plan(params)
                }

                fn blank(params: &Params) -> Result<Self, Error> {
                    Ok(Values { params: params.clone(), values: None })
                }

                fn open(params: &Params, input: Input) -> Result<Self, Error> {
                    Ok(Values { params: params.clone(), values: Some(input.values) })
                }

                fn synthesize(&self, scope: Scope, cs: &mut Synthesis<'_, Fr>) -> Result<(), Error> {
                    let missing = SynthesisError::AssignmentMissing;
                    let value = |i: usize| self.values.as_ref().and_then(|v| v.get(i)).map(|v| Fr::from(*v));
                    for i in range(&self.params, &scope) {
                        let mut cs = cs.namespace(|| format!("values\n{}", i / 64));
                        let x = cs.alloc(|| "x", || value(i).ok_or(SynthesisError::AssignmentMissing))?;
                        let seven = Fr::from(7);
                        cs.enforce(
                            || format!("x {i}"),
                            // Repeated, cancelling and zero terms, which the host merges.
                            |lc| lc + x + (seven, x) - (seven, x) + (Fr::ZERO, x),
                            |lc| lc + Synthesis::<Fr>::one(),
                            |lc| lc + x,
                        );
                    }
                    if scope.is_first() {
                        let sum = self.values.as_ref().map(|v| v.iter().map(|v| Fr::from(*v)).sum());
                        let _: zkhost_guest::$dialect::Variable = cs.alloc_input(|| "sum", || sum.ok_or(missing))?;
                    }
                    Ok(())
                }
            }
        }
    };
}

values_circuit!(with_bellman, bellman);
values_circuit!(with_bellpepper, bellpepper_core);

fn input(values: &[u64]) -> String {
    serde_json::json!({ "values": values }).to_string()
}

/// `count` values that are all zero, all one, all other, or mixed, travel and arrive; only others travel as elements.
fn check_values(values: &[u64]) {
    let params = serde_json::json!({ "bits": values.len() }).to_string();
    let run = native::run::<with_bellman::Values>(params.as_bytes(), input(values).as_bytes()).expect("a run");
    let assignment = &run.assignments[0];
    assert_eq!(assignment.aux, values.iter().map(|value| Fr::from(*value)).collect::<Vec<_>>());
    assert_eq!(assignment.publics, [values.iter().map(|value| Fr::from(*value)).sum()]);
    assert_eq!(assignment.masks.len(), 2 * values.len().div_ceil(64));
    assert_eq!(assignment.elements.len(), 4 * values.iter().filter(|value| **value > 1).count());
    assert!(assignment.masks.chunks(2).all(|pair| pair[0] & pair[1] == 0));
}

#[test]
fn every_number_of_variables_is_packed_exactly() {
    for count in (0..=300).chain([511, 512, 513, 65_536, 65_537]) {
        check_values(&vec![0; count]);
        check_values(&vec![1; count]);
        check_values(&vec![u64::MAX; count]);
        check_values(&(0..count as u64).map(|i| i % 5).collect::<Vec<_>>());
    }
}

#[test]
fn both_dialects_give_the_same_shape_and_assignment() {
    let values: Vec<u64> = (0..130).map(|i| i % 4).collect();
    let bellman = native::run::<with_bellman::Values>(b"", input(&values).as_bytes()).expect("a run");
    let bellpepper = native::run::<with_bellpepper::Values>(b"", input(&values).as_bytes()).expect("a run");
    assert_eq!(bellman.first_unsatisfied(), None);
    assert_eq!(bellpepper.first_unsatisfied(), None);
    assert!(bellman.assignments == bellpepper.assignments);
    assert_eq!(bellman.shape.counts, bellpepper.shape.counts);
    assert_eq!(bellman.shape.names, bellpepper.shape.names);
    // bellpepper merges repeated terms by itself, so rows are compared as sums.
    for matrix in 0..3 {
        for (left, right) in bellman.shape.rows[matrix].iter().zip(&bellpepper.shape.rows[matrix]) {
            let sum = |row: &native::Row| row.iter().map(|term| term.1).sum::<Fr>();
            assert_eq!(sum(left), sum(right));
        }
    }
}

#[test]
fn a_line_feed_in_a_namespace_does_not_break_a_name_in_two() {
    let shape = native::record_shape::<with_bellman::Values>(b"").expect("a shape");
    assert_eq!(shape.names.len(), 130);
    assert_eq!(shape.names[129], "values 2/x 129");
}

#[test]
fn segments_change_neither_shape_nor_values() {
    let values: Vec<u64> = (0..200).map(|i| i % 3).collect();
    let run = |params: &str| {
        native::run::<with_bellman::Values>(params.as_bytes(), input(&values).as_bytes()).expect("a run")
    };
    let (whole, divided) = (run(r#"{"bits": 200}"#), run(r#"{"bits": 200, "segments": 3}"#));
    assert!(whole.shape == divided.shape);
    assert!(whole.assignments == divided.assignments);
}

#[test]
fn a_segment_that_misses_its_declared_count_is_refused() {
    let params = br#"{"bits": 100, "segments": 2, "overdeclared": 1}"#;
    let error = native::run::<with_bellman::Values>(params, input(&[1; 100]).as_bytes()).err().expect("a refusal");
    assert_eq!(error, Error::Internal("segment 1 allocated 36 aux variables; the plan says 37".into()));
}

#[test]
fn a_variable_without_a_value_is_refused() {
    let error = native::run::<with_bellman::Values>(b"", input(&[1; 129]).as_bytes()).err().expect("a refusal");
    assert_eq!(error, Error::Internal("a variable has no value; `open` must give every variable one".into()));
}

/// A host that asks to stop at the first chance.
struct Stops;

impl WitnessSink for Stops {
    fn write_groups(&mut self, _masks: &[u64], _elements: &[u64]) {}
    fn write_public(&mut self, _elements: &[u64]) {
        panic!("a stopped circuit writes no public input")
    }
    fn progress(&mut self, _aux_written: u64) -> bool {
        false
    }
}

#[test]
fn a_circuit_that_is_asked_to_stop_returns_cancelled() {
    let params = br#"{"bits": 100000}"#;
    let input = input(&vec![2; 100_000]);
    let job = job::Job::<with_bellman::Values>::open(params, input.as_bytes(), input.len() as u64).expect("a job");
    assert_eq!(job.assign(0, 0, &mut Stops), Err(Error::Cancelled));
}

/// A sink that checks what the contract demands of the calls.
#[derive(Default)]
struct Strict {
    coefficients: u32,
    rows: [usize; 3],
    names: usize,
}

impl ShapeSink for Strict {
    fn add_coefficients(&mut self, limbs: &[u64]) {
        assert_eq!(limbs.len() % 4, 0);
        self.coefficients += (limbs.len() / 4) as u32;
    }

    fn add_rows(&mut self, matrix: Matrix, row_lengths: &[u32], columns: &[u32], coefficients: &[u32]) {
        assert_eq!(row_lengths.iter().sum::<u32>() as usize, columns.len());
        assert_eq!(columns.len(), coefficients.len());
        assert!(coefficients.iter().all(|&index| index < self.coefficients), "a coefficient that is not sent yet");
        assert!(columns.iter().all(|&column| column == PUBLIC_COLUMN || column < 40_000));
        self.rows[matrix as usize] += row_lengths.len();
    }

    fn name_rows(&mut self, paths: &str) {
        assert!(paths.ends_with('\n'));
        self.names += paths.lines().count();
    }
}

#[test]
fn long_shapes_arrive_whole_in_many_calls() {
    for (names, expected) in [(true, 40_000), (false, 0)] {
        let mut sink = Strict::default();
        let counts =
            job::record_shape::<with_bellman::Values>(br#"{"bits": 40000}"#, names, &mut sink).expect("counts");
        assert_eq!(counts, Counts { publics: 1, aux: 40_000, constraints: 40_000 });
        assert_eq!(sink.rows, [40_000; 3]);
        assert_eq!(sink.names, expected);
    }
}
