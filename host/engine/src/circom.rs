//! Jobs of circom circuits: one partition in one segment, whose witness the circuit's own module computes in the sandbox, or
//! that is at hand. Its constraints are checked before anything is proved.

use crate::component::Watch;
use crate::device::Stop;
use crate::scheduler::SynthesisFault;
use crate::synthesis::Synthesis;
use std::sync::{Arc, Mutex, PoisonError};
use zkhost_groth16::assignment::{SegmentLimits, SegmentSink, SegmentWriter};
use zkhost_groth16::formats::{R1csFile, Sym};
use zkhost_groth16::r1cs::CheckError;
use zkhost_groth16::scalar::{SecretScalars, to_canonical};
use zkhost_groth16::{Assignment, Encoding, R1cs, Scalar};
use zkhost_runtime::{Circom, Fault, Input, Observer, RunError};

/// What the jobs of a circuit share: its constraints and the names in them.
pub struct CircomCircuit {
    r1cs: Arc<R1cs>,
    inputs: Vec<String>,
    sym: Sym,
}

impl CircomCircuit {
    /// A circuit of these files. Without symbols, which may be empty, errors name wires by their numbers.
    pub fn new(file: R1csFile, sym: Sym) -> Self {
        Self { inputs: sym.signals(file.input_wires()), r1cs: Arc::new(file.r1cs), sym }
    }

    /// Its constraint system.
    pub fn r1cs(&self) -> &Arc<R1cs> {
        &self.r1cs
    }

    /// The names of its input signals, as far as they are known.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// The witness z = [1, publics, aux] as an assignment, if every constraint holds.
    pub fn assignment(&self, z: &[Scalar]) -> Result<Assignment, CircomError> {
        let expected = self.r1cs.variables();
        if z.len() != expected {
            return Err(CircomError::Length { found: z.len(), expected });
        }
        let (publics, aux) = z[1..].split_at(self.r1cs.public_count as usize);
        let assignment = Assignment::from_values(publics, aux);
        match self.r1cs.check(&assignment) {
            Ok(()) => Ok(assignment),
            Err(CheckError::Unsatisfied(broken)) => {
                Err(CheckError::Unsatisfied(self.sym.name_constraint(&self.r1cs, broken)).into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Why a circom circuit has no assignment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CircomError {
    /// The module refused the input, or failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The witness is another circuit's.
    #[error(
        "the witness has {found} values, the constraint system has {expected} wires: they belong to different circuits; use \
         the files that circom wrote together"
    )]
    Length {
        /// Values of the witness.
        found: usize,
        /// Wires of the circuit.
        expected: usize,
    },
    /// A constraint does not hold; it is named by its signals.
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// Where a job's witness comes from.
pub enum Witness {
    /// The module computes it from an input.
    Module(Circom, Input),
    /// It is there: z = [1, publics, aux].
    Values(SecretScalars),
}

/// One input of a circom circuit, or one witness.
pub struct CircomJob {
    circuit: Arc<CircomCircuit>,
    witness: Witness,
    segments: [SegmentLimits; 1],
    watch: Arc<Watch>,
    /// What went wrong.
    error: Mutex<Option<CircomError>>,
}

impl CircomJob {
    /// A job. The observer hears of the module's run.
    pub fn new(circuit: Arc<CircomCircuit>, witness: Witness, observer: Arc<dyn Observer>) -> Self {
        let aux_count = circuit.r1cs.aux_count.into();
        // How many variables are neither 0 nor 1 shows only when it is computed.
        let limits = SegmentLimits { aux_count, full_max: aux_count, public_count: circuit.r1cs.public_count.into() };
        let watch = Arc::new(Watch::new(observer));
        let witness = match witness {
            Witness::Module(module, input) => Witness::Module(module.observed(watch.clone()), input),
            values => values,
        };
        Self { circuit, witness, segments: [limits], watch, error: Mutex::default() }
    }

    /// What went wrong in full, if anything did. The engine tells it as a sentence.
    pub fn take_error(&self) -> Option<CircomError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn assignment(&self) -> Result<Assignment, CircomError> {
        match &self.witness {
            Witness::Module(module, input) => self.circuit.assignment(&module.witness(input, &self.circuit.inputs)?),
            Witness::Values(z) => self.circuit.assignment(z),
        }
    }
}

impl Synthesis for CircomJob {
    fn partitions(&self) -> u32 {
        1
    }

    fn encoding(&self) -> Encoding {
        Encoding::Montgomery
    }

    fn segments(&self) -> &[SegmentLimits] {
        &self.segments
    }

    fn guest_bytes(&self) -> u64 {
        // The witness, and packed before it is copied.
        let values = 2 * 32 * self.circuit.r1cs.variables() as u64;
        let module = match &self.witness {
            Witness::Module(module, _) => module.limits().memory_bytes,
            Witness::Values(_) => 0,
        };
        module.saturating_add(values)
    }

    fn assign(
        &self,
        _partition: u32,
        _segment: u32,
        mut writer: SegmentWriter,
        stop: &Stop,
    ) -> Result<SegmentWriter, SynthesisFault> {
        self.watch.stop_by(stop);
        let assignment = self.assignment().map_err(|error| {
            let fault = match &error {
                CircomError::Run(RunError { fault: Fault::Cancelled, .. }) => SynthesisFault::Cancelled,
                CircomError::Check(CheckError::Unsatisfied(broken)) => SynthesisFault::Unsatisfied(broken.clone()),
                error => SynthesisFault::Guest(error.to_string()),
            };
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            fault
        })?;
        let publics: Vec<_> = assignment.publics().iter().map(to_canonical).collect();
        let refused = |error| SynthesisFault::Guest(format!("its witness does not fit: {error}"));
        writer.write_public(publics.as_flattened()).map_err(refused)?;
        for segment in assignment.segments() {
            writer.write_groups(segment.masks(), segment.elements().as_flattened()).map_err(refused)?;
        }
        Ok(writer)
    }
}
