//! Sapling Spend as recorded from the crate `sapling-crypto`, for our prover and for other people's.

use sapling_spend::SaplingSpend;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zkhost_groth16::assignment::{SegmentLimits, SegmentSink, SegmentWriter};
use zkhost_groth16::formats::{Subgroup, Trailer, known_params, read_params};
use zkhost_groth16::key::Phase2;
use zkhost_groth16::r1cs::{Counts, MatrixId, ShapeLimits, ShapeRecorder};
use zkhost_groth16::scalar::{limbs_to_le_bytes, to_canonical};
use zkhost_groth16::{Assignment, Encoding, ProvingKey, R1cs, Scalar};
use zkhost_guest::job::{self, Job};
use zkhost_guest::sink::{Matrix, ShapeSink, WitnessSink};

/// Spend's constraint system, an example's assignment, and the ceremony's key.
pub struct Spend {
    /// The constraint system.
    pub r1cs: Arc<R1cs>,
    /// z = [1, publics, aux].
    pub z: Vec<Scalar>,
    /// The file `sapling-spend.params`.
    pub params: Vec<u8>,
}

/// What our recorder takes of a circuit run natively.
struct Shape(ShapeRecorder);

impl ShapeSink for Shape {
    fn add_coefficients(&mut self, limbs: &[u64]) {
        self.0.add_coefficients(limbs).expect("within limits");
    }

    fn add_rows(&mut self, matrix: Matrix, row_lengths: &[u32], columns: &[u32], coefficients: &[u32]) {
        let matrix = match matrix {
            Matrix::A => MatrixId::A,
            Matrix::B => MatrixId::B,
            Matrix::C => MatrixId::C,
        };
        self.0.add_rows(matrix, row_lengths, columns, coefficients).expect("rows are well-formed");
    }

    fn name_rows(&mut self, _paths: &str) {}
}

struct Witness(SegmentWriter);

impl WitnessSink for Witness {
    fn write_groups(&mut self, masks: &[u64], elements: &[u64]) {
        self.0.write_groups(masks, elements).expect("groups are well-formed");
    }

    fn write_public(&mut self, elements: &[u64]) {
        self.0.write_public(elements).expect("publics are well-formed");
    }

    fn progress(&mut self, _aux_written: u64) -> bool {
        true
    }
}

impl Spend {
    /// Record the circuit and assign the guest's example natively.
    ///
    /// Panics, saying what to run, if the key is not there.
    pub fn record() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut shape = Shape(ShapeRecorder::new(ShapeLimits::NONE, false));
        let counts = job::record_shape::<SaplingSpend>(b"", false, &mut shape).expect("Spend records");
        let counts = Counts { publics: counts.publics, aux: counts.aux, constraints: counts.constraints };
        let r1cs = shape.0.finish(counts).expect("Spend is a constraint system");

        let input = read(root.join("guest-circuits/sapling-spend/example-input.json"));
        let limits = SegmentLimits { aux_count: counts.aux, full_max: counts.aux, public_count: counts.publics };
        let mut witness = Witness(SegmentWriter::on_heap(Encoding::Canonical, limits).expect("there is memory"));
        let spend = Job::<SaplingSpend>::open(b"", &input[..], input.len() as u64).expect("the example is an input");
        spend.assign(0, 0, &mut witness).expect("the example is satisfied");
        let assignment = Assignment::new(vec![witness.0.finish().expect("it is complete")]);
        r1cs.check(&assignment).expect("the example satisfies Spend");
        let z = assignment.z().to_vec();
        Self { r1cs: Arc::new(r1cs), z, params: read(root.join("build/sapling/sapling-spend.params")) }
    }

    /// The ceremony's key, for our prover.
    pub fn key(&self) -> ProvingKey {
        let known = known_params(self.params.len() as u64).expect("the key is the ceremony's");
        let params = read_params(&self.params, Subgroup::CheckedBefore, Trailer::Pinned(known.sha256));
        ProvingKey::import(params.expect("the key reads"), &self.r1cs, Phase2::Required).expect("the key fits")
    }

    /// The assignment, packed.
    pub fn assignment(&self) -> Assignment {
        let (publics, aux) = self.z[1..].split_at(self.r1cs.public_count as usize);
        Assignment::from_values(publics, aux)
    }
}

fn read(path: PathBuf) -> Vec<u8> {
    let hint = "run `make sapling-keys` first";
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; {hint}", path.display()))
}

/// Makes the type of a peer's circuits.
///
/// Linear combinations are made beforehand and only copied for the peer, which takes them by value: its time is for
/// evaluating them and proving, as ours is.
macro_rules! replay {
    ($name:ident, $peer:ident, $scalar:ty, $convert:expr) => {
        /// A recorded constraint system and its assignment as a circuit for this peer.
        #[derive(Clone, Copy)]
        pub struct $name<'a> {
            values: &'a [$scalar],
            publics: usize,
            rows: &'a [[$peer::LinearCombination<$scalar>; 3]],
        }

        impl<'a> $name<'a> {
            /// Join a circuit's parts.
            pub fn new(
                values: &'a [$scalar],
                publics: usize,
                rows: &'a [[$peer::LinearCombination<$scalar>; 3]],
            ) -> Self {
                Self { values, publics, rows }
            }

            /// z in the peer's type.
            pub fn values(spend: &Spend) -> Vec<$scalar> {
                spend.z.iter().map($convert).collect()
            }

            /// The linear combinations of every row.
            pub fn rows(spend: &Spend) -> Vec<[$peer::LinearCombination<$scalar>; 3]> {
                use $peer::{Index, LinearCombination, Variable};
                let r1cs = &spend.r1cs;
                let publics = r1cs.public_count as usize;
                let variable = |column: u32| {
                    let column = column as usize;
                    let is_public = column <= publics;
                    Variable::new_unchecked(if is_public {
                        Index::Input(column)
                    } else {
                        Index::Aux(column - publics - 1)
                    })
                };
                let coefficients: Vec<$scalar> = r1cs.coefficients().iter().map($convert).collect();
                let combination = |id, row| {
                    let terms = r1cs.matrix(id).row(row);
                    terms.fold(LinearCombination::zero(), |sum, (column, coefficient)| {
                        sum + (coefficients[coefficient as usize], variable(column))
                    })
                };
                (0..r1cs.constraints()).map(|row| MatrixId::ALL.map(|id| combination(id, row))).collect()
            }
        }

        impl $peer::Circuit<$scalar> for $name<'_> {
            fn synthesize<CS: $peer::ConstraintSystem<$scalar>>(
                self,
                cs: &mut CS,
            ) -> Result<(), $peer::SynthesisError> {
                for value in &self.values[1..=self.publics] {
                    cs.alloc_input(|| "", || Ok(*value))?;
                }
                for value in &self.values[1 + self.publics..] {
                    cs.alloc(|| "", || Ok(*value))?;
                }
                for [a, b, c] in self.rows {
                    cs.enforce(|| "", |_| a.clone(), |_| b.clone(), |_| c.clone());
                }
                Ok(())
            }
        }
    };
}

replay!(ForGroth16, bellman, bls12_381::Scalar, |scalar: &Scalar| {
    bls12_381::Scalar::from_bytes(&limbs_to_le_bytes(&to_canonical(scalar))).expect("the value is reduced")
});
replay!(ForBellperson, bellperson, Scalar, |scalar: &Scalar| *scalar);
