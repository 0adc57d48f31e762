//! circom circuits as they are: constraint system, witness module, symbols, key.

use crate::circuit::{SandboxArgs, start_runtime};
use crate::error::{Code, Failure};
use crate::progress::Stages;
use crate::{files, keys};
use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zkhost_groth16::formats::{R1csFile, Sym, read_r1cs, read_sym, read_wtns, read_zkey};
use zkhost_groth16::key::Phase2;
use zkhost_groth16::r1cs::{CheckError, MatrixId, Unsatisfied};
use zkhost_groth16::scalar::SecretScalars;
use zkhost_groth16::{Assignment, ProvingKey, R1cs};
use zkhost_runtime::Input;

/// Bytes of a `.sym` and of a `.wtns` file at most.
const FILE_BYTES_MAX: u64 = 8 << 30;
/// Signals of a broken constraint that are named.
const SIGNALS_NAMED_MAX: usize = 12;

/// A circom circuit in the place of a component.
#[derive(Args)]
pub struct CircomArgs {
    /// A circom circuit instead of a component: its constraint system, as `circom --r1cs --prime bls12381` writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["component", "params"], help_heading = "circom")]
    pub r1cs: Option<PathBuf>,
    /// The witness module that `circom --wasm` writes; --input is then JSON as snarkjs takes it, with no value above r
    #[arg(long, value_name = "FILE", requires = "r1cs", conflicts_with = "wtns", help_heading = "circom")]
    witness_wasm: Option<PathBuf>,
    /// The witness itself, instead of --witness-wasm and --input; it is secret
    #[arg(long, value_name = "FILE", requires = "r1cs", conflicts_with = "input", help_heading = "circom")]
    wtns: Option<PathBuf>,
    /// The names of signals, for messages [default: the .sym file beside the constraint system, if there is one]
    #[arg(long, value_name = "FILE", requires = "r1cs", help_heading = "circom")]
    sym: Option<PathBuf>,
}

/// A circom circuit that is read.
pub struct Loaded {
    /// Its constraint system.
    pub shape: Arc<R1cs>,
    file_name: String,
    public_outputs: u32,
    private_inputs: u32,
    sym: Sym,
}

impl CircomArgs {
    /// The files that are read, for what is written not to replace them.
    pub fn files(&self) -> [Option<&Path>; 4] {
        [&self.r1cs, &self.witness_wasm, &self.wtns, &self.sym].map(Option::as_deref)
    }

    /// Read the constraint system and the symbols.
    pub fn load(&self, r1cs: &Path, stages: &mut Stages) -> Result<Loaded> {
        let named = || format!("constraint system {}", r1cs.display());
        let bytes = files::map(r1cs, "the constraint system")?;
        let file = stages.run("r1cs", || read_r1cs(&bytes)).with_context(named)?;
        let beside = r1cs.with_extension("sym");
        let sym = match (&self.sym, beside.is_file()) {
            (Some(path), _) => read_symbols(path)?,
            (None, true) => read_symbols(&beside)?,
            (None, false) => Sym::default(),
        };
        let R1csFile { r1cs: shape, public_outputs, private_inputs } = file;
        let file_name = r1cs.display().to_string();
        Ok(Loaded { shape: Arc::new(shape), file_name, public_outputs, private_inputs, sym })
    }

    /// The witness: read, or computed from the input by the module in the sandbox.
    pub fn witness(
        &self,
        loaded: &Loaded,
        input: Option<&Path>,
        sandbox: &SandboxArgs,
        stages: &mut Stages,
    ) -> Result<Assignment> {
        let z = match (&self.wtns, &self.witness_wasm, input) {
            (Some(path), ..) => {
                let bytes = files::read_secret(path, "the witness", FILE_BYTES_MAX)?;
                stages.run("witness", || read_wtns(&bytes)).with_context(|| format!("witness {}", path.display()))?
            }
            (None, Some(module), Some(input)) => compute(loaded, module, input, sandbox, stages)?,
            _ => {
                let message = "a circom circuit needs --witness-wasm and --input, or --wtns";
                return Err(Failure::new(Code::Usage, message).into());
            }
        };
        let shape = &loaded.shape;
        if z.len() != shape.variables() {
            let message = format!(
                "the witness has {} values, the constraint system {} has {} wires: they belong to different circuits",
                z.len(),
                loaded.file_name,
                shape.variables()
            );
            return Err(Failure::new(Code::File, message).into());
        }
        let (publics, aux) = z[1..].split_at(shape.public_count as usize);
        let assignment = Assignment::from_values(publics, aux);
        stages.run("check", || loaded.check(&assignment))?;
        Ok(assignment)
    }
}

fn read_symbols(path: &Path) -> Result<Sym> {
    let bytes = files::read(path, "the symbols", FILE_BYTES_MAX)?;
    read_sym(&bytes).with_context(|| format!("symbols {}", path.display()))
}

fn compute(
    loaded: &Loaded,
    module: &Path,
    input: &Path,
    sandbox: &SandboxArgs,
    stages: &mut Stages,
) -> Result<SecretScalars> {
    let limits = sandbox.limits()?;
    let mut bytes = files::read_secret(input, "the input", limits.input_bytes)?;
    let input = Input::from(std::mem::take(&mut *bytes));
    let circom = stages.run("load", || -> Result<_> {
        let (runtime, _) = start_runtime(sandbox)?;
        Ok(runtime.load_circom_file(module, limits)?)
    })?;
    if let Some(warning) = circom.warning() {
        stages.note(warning);
    }
    Ok(stages.run("witness", || circom.witness(&input, &loaded.input_signals()))?)
}

impl Loaded {
    /// The names of the input signals as the input gives them: without `main.` and without an array's indices.
    fn input_signals(&self) -> Vec<String> {
        let first = 1 + self.public_outputs;
        let end = 1 + self.shape.public_count + self.private_inputs;
        let wires = self.sym.names().filter(|(wire, _)| (first..end).contains(wire));
        let mut names: Vec<String> = Vec::new();
        for (_, name) in wires {
            let name = name.strip_prefix("main.").unwrap_or(name);
            let name =
                name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '[' || c == ']' && name.contains('['));
            if names.last().is_none_or(|last| last != name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Whether every constraint holds; one that does not is named by its row and its signals.
    pub fn check(&self, assignment: &Assignment) -> Result<()> {
        match self.shape.check(assignment) {
            Ok(()) => Ok(()),
            Err(CheckError::Unsatisfied(broken)) => {
                let message = format!("{}: {}; the witness proves nothing", self.file_name, self.named(broken));
                Err(Failure::new(Code::False, message).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A broken constraint with the signals in it.
    fn named(&self, broken: Unsatisfied) -> Unsatisfied {
        let rows = MatrixId::ALL.into_iter().flat_map(|id| self.shape.matrix(id).row(broken.index));
        let mut wires: Vec<u32> = rows.map(|(wire, _)| wire).filter(|wire| *wire != 0).collect();
        wires.sort_unstable();
        wires.dedup();
        let name = |wire: &u32| self.sym.name(*wire).map_or_else(|| format!("wire {wire}"), str::to_owned);
        let mut names: Vec<String> = wires.iter().take(SIGNALS_NAMED_MAX).map(name).collect();
        if wires.len() > SIGNALS_NAMED_MAX {
            names.push(format!("{} more", wires.len() - SIGNALS_NAMED_MAX));
        }
        Unsatisfied { name: Some(format!("of {}", names.join(", "))), ..broken }
    }
}

/// Open a key: snarkjs's `.zkey`, bound to the circuit, or an image.
pub fn open_key(path: &Path, shape: &R1cs, phase2: Phase2) -> Result<Arc<ProvingKey>> {
    let bytes = files::map(path, "the key")?;
    if !bytes.starts_with(b"zkey") {
        return keys::open(path, phase2);
    }
    let named = || format!("key {}", path.display());
    let key = ProvingKey::import_zkey(read_zkey(&bytes).with_context(named)?, shape, phase2).with_context(named)?;
    Ok(Arc::new(key))
}
