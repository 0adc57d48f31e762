//! The peer: supraseal-c2 through bellperson, on a recorded constraint system and its values.
//!
//! bellperson synthesises on the CPU first, which we do on the device; only what follows, the proof itself, is its time. It
//! says when that begins and ends in its log.

use std::{
    fs::{self, File},
    io::BufWriter,
    path::PathBuf,
    sync::{Mutex, Once},
    time::{Duration, Instant},
};

use bellperson::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
    groth16::{SuprasealParameters, create_proof_batch},
};
use zkhost_cuda::DeviceMultiples;
use zkhost_groth16::{
    HBasis, R1cs, Scalar,
    formats::write_params,
    r1cs::MatrixId,
    setup::{ToxicWaste, setup_with},
};

/// A key in the peer's page-locked memory, and what to prove with it.
pub struct Supraseal<'a> {
    parameters: SuprasealParameters<blstrs::Bls12>,
    circuit: Recorded<'a>,
}

impl<'a> Supraseal<'a> {
    /// What the results call it.
    pub const NAME: &'static str = "supraseal-c2 0.1.2";

    /// Makes the key of these secrets with a monomial H query and hands it over as the file that the peer reads. There is
    /// always a peer.
    pub fn new(r1cs: &'a R1cs, waste: &ToxicWaste, multiples: &DeviceMultiples, z: &'a [Scalar]) -> Option<Self> {
        static LOGGER: Once = Once::new();
        LOGGER.call_once(|| {
            log::set_logger(&Stopwatch).expect("nobody else logs here");
            log::set_max_level(log::LevelFilter::Info);
        });
        let path = params_path();
        let key = setup_with(r1cs, waste, HBasis::Monomial, multiples).expect("the other basis gave a key");
        write_params(&key, BufWriter::new(File::create(&path).expect("the temporary folder is writable")))
            .expect("the key is written");
        let parameters = SuprasealParameters::new(path.clone()).expect("the peer reads the key");
        // The file is mapped: its name is not needed any more.
        fs::remove_file(&path).expect("the file is ours");
        Some(Self { parameters, circuit: Recorded { r1cs, z } })
    }

    /// The proof by r and s, and how long it took after synthesis.
    pub fn prove(&self, r: Scalar, s: Scalar) -> ([u8; 192], Duration) {
        let proofs = create_proof_batch(vec![self.circuit], &self.parameters, vec![r], vec![s]);
        let mut bytes = Vec::with_capacity(192);
        proofs.expect("the circuit is satisfied")[0].write(&mut bytes).expect("memory is writable");
        let took = TIMES.lock().expect("the logger does not panic").took.take();
        (bytes.try_into().expect("a proof is 192 bytes"), took.expect("the peer logs its time"))
    }
}

fn params_path() -> PathBuf {
    std::env::temp_dir().join(format!("zkhost-bench-{}.params", std::process::id()))
}

/// Recorded rows as a circuit, variables in the same order.
#[derive(Clone, Copy)]
struct Recorded<'a> {
    r1cs: &'a R1cs,
    /// [1, publics, aux].
    z: &'a [Scalar],
}

impl Circuit<Scalar> for Recorded<'_> {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let publics = self.r1cs.public_count as usize;
        for value in &self.z[1..=publics] {
            cs.alloc_input(|| "", || Ok(*value))?;
        }
        for value in &self.z[1 + publics..] {
            cs.alloc(|| "", || Ok(*value))?;
        }
        let coefficients = self.r1cs.coefficients();
        let variable = |column: usize| {
            Variable::new_unchecked(if column <= publics {
                Index::Input(column)
            } else {
                Index::Aux(column - publics - 1)
            })
        };
        for row in 0..self.r1cs.constraints() {
            let [a, b, c] = MatrixId::ALL.map(|id| {
                self.r1cs.matrix(id).row(row).fold(LinearCombination::zero(), |sum, (column, coefficient)| {
                    sum + (coefficients[coefficient as usize], variable(column as usize))
                })
            });
            cs.enforce(|| "", |_| a, |_| b, |_| c);
        }
        Ok(())
    }
}

/// Takes the times of the peer's log.
struct Stopwatch;

struct Times {
    started: Option<Instant>,
    took: Option<Duration>,
}

static TIMES: Mutex<Times> = Mutex::new(Times { started: None, took: None });

impl log::Log for Stopwatch {
    fn enabled(&self, _metadata: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let now = Instant::now();
        let message = record.args().to_string();
        let Ok(mut times) = TIMES.lock() else { return };
        if message == "starting proof timer" {
            times.started = Some(now);
        } else if message.starts_with("prover time") {
            times.took = times.started.take().map(|started| now - started);
        }
    }

    fn flush(&self) {}
}
