//! `zkhost import-key`

use crate::circom::WitnessArgs;
use crate::circuit::{self, Job, Source, SourceArgs};
use crate::device::DeviceArgs;
use crate::error::{Code, Failure};
use crate::files::{self, Draft, refuse_overwrite};
use crate::keys;
use crate::output::Output;
use crate::progress::{Stage, Stages, Table};
use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use zkhost_engine::circom::{CircomCircuit, Witness};
use zkhost_groth16::formats::{
    DecodeError, KnownParams, Problem, Subgroup, Trailer, known_params, read_params_watched, read_zkey_watched, sha256,
};
use zkhost_groth16::{Assignment, CpuProver, ProveError, Prover, ProvingKey, R1cs};

/// Make a key image from a proving key in bellman's .params format or snarkjs's .zkey
///
/// Every point is checked: on its curve and in the subgroup of order r. The key must fit the circuit: counts, densities and
/// domain, and of a .zkey the coefficients too. Whether it is the circuit's own shows when a proof by it verifies; give an
/// example input with --input, or a circom circuit's witness, to find out now.
///
/// The files of Zcash's Sapling ceremony are known by their SHA-256. Other files that carry a ceremony's transcript after
/// the key need --sha256.
#[derive(Args)]
#[command(
    allow_missing_positional = true,
    after_help = "\
Examples:
  zkhost import-key --r1cs c.r1cs c.zkey --out c.zkimage --vk-out c.vk
  zkhost import-key spend.wasm sapling-spend.params --input example-input.json --out spend.zkimage --vk-out spend.vk"
)]
pub struct ImportKeyArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    witness: WitnessArgs,
    /// The proving key: .params or .zkey
    key_file: PathBuf,
    /// Where to write the key image, for `zkhost prove`
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Also write the verifying key, in bellman's format
    #[arg(long, value_name = "FILE")]
    vk_out: Option<PathBuf>,
    /// Prove this input, to show that the key is the circuit's
    #[arg(long, short, value_name = "FILE")]
    input: Option<PathBuf>,
    /// The SHA-256 that the file must have, in hexadecimal
    #[arg(long, value_name = "HEX", value_parser = parse_digest)]
    sha256: Option<[u8; 32]>,
    #[command(flatten)]
    phase2: keys::Phase2Args,
    #[command(flatten)]
    device: DeviceArgs,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct ImportKeyResult {
    /// The key image.
    key: PathBuf,
    /// Bytes of the key image.
    bytes: u64,
    /// BLAKE3 of the constraint system that the key is bound to.
    shape: String,
    /// SHA-256 of the key's file.
    sha256: String,
    /// The name of the file, if its digest is a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<&'static str>,
    /// Bytes after the key proper, vouched for by the digest only.
    trailer_bytes: u64,
    /// Whether a proof by the key verified.
    proven: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    vk: Option<PathBuf>,
    stages: Vec<Stage>,
}

impl fmt::Display for ImportKeyResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({} bytes), a key for shape {}", self.key.display(), self.bytes, self.shape)?;
        let known = self.known.unwrap_or("not a known file");
        writeln!(f, "from SHA-256 {} ({known}), {} bytes of it after the key", self.sha256, self.trailer_bytes)?;
        writeln!(
            f,
            "{}",
            match self.proven {
                true => "an example proof by it verifies: it is this circuit's key",
                false => "it fits this circuit; give --input to show that it is this circuit's own",
            }
        )?;
        write!(f, "{}", Table(&self.stages))
    }
}

fn parse_digest(text: &str) -> Result<[u8; 32], String> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text, &mut digest).map_err(|error| format!("64 hexadecimal digits were expected: {error}"))?;
    Ok(digest)
}

/// Run the command.
pub fn run(args: &ImportKeyArgs, output: Output) -> Result<()> {
    let outputs = [Some(args.out.as_path()), args.vk_out.as_deref()];
    let read = [Some(args.key_file.as_path()), args.input.as_deref()];
    files::check_outputs(&outputs, &[&args.source.files()[..], &args.witness.files(), &read].concat())?;
    for path in outputs.into_iter().flatten() {
        refuse_overwrite(path, args.force)?;
    }
    let mut stages = Stages::new(output);
    let circuit = Circuit::load(args, &mut stages)?;
    let shape = circuit.shape(&mut stages)?;
    let file = read_file(args, &shape, &mut stages)?;
    let named = || format!("key {}", args.key_file.display());
    let key = stages.run("convert", || args.device.convert(file.key, &shape, output))?;
    let mut key = Arc::new(key);
    let example = circuit.example(args, &shape, &mut stages)?;
    if !example.is_empty() {
        let proved = prove_example(&circuit, &shape, Arc::clone(&key), &example, &mut stages);
        proved.with_context(named)?;
        // Nobody else has it any more, so this copies nothing.
        Arc::make_mut(&mut key).proven = true;
    }

    let drafts = stages.run("write", || -> Result<_> {
        let vk = args.vk_out.as_ref().map(|path| keys::draft_vk(path, &key.vk)).transpose()?;
        Ok([Some(keys::draft_image(&args.out, &key)?), vk])
    })?;
    drafts.into_iter().flatten().try_for_each(Draft::keep)?;
    output.result(&ImportKeyResult {
        bytes: std::fs::metadata(&args.out).map_or(0, |metadata| metadata.len()),
        key: args.out.clone(),
        shape: key.shape.to_string(),
        sha256: hex::encode(file.sha256),
        known: file.known.map(|known| known.name),
        trailer_bytes: file.trailer_bytes,
        proven: key.proven,
        vk: args.vk_out.clone(),
        stages: stages.finish(),
    });
    Ok(())
}

/// The circuit that the key is for.
enum Circuit {
    Component(circuit::Loaded),
    Circom(CircomCircuit),
}

impl Circuit {
    fn load(args: &ImportKeyArgs, stages: &mut Stages) -> Result<Self> {
        Ok(match args.source.source()? {
            Source::Component(circuit) => Self::Component(circuit.load(stages)?),
            Source::Circom(r1cs) => Self::Circom(args.witness.load(r1cs, stages)?),
        })
    }

    fn shape(&self, stages: &mut Stages) -> Result<Arc<R1cs>> {
        match self {
            Self::Component(loaded) => loaded.shape(stages),
            Self::Circom(circuit) => Ok(Arc::clone(circuit.r1cs())),
        }
    }

    /// The assignment of the example that is asked for, if one is.
    fn example(&self, args: &ImportKeyArgs, shape: &R1cs, stages: &mut Stages) -> Result<Vec<Assignment>> {
        match (self, &args.input) {
            (Self::Component(_), None) => Ok(vec![]),
            (Self::Component(loaded), Some(input)) => {
                let input = loaded.read_input(input)?;
                let layout = loaded.plan(stages)?;
                let job = Job { input: &input, layout: &layout, shape };
                Ok(stages.run("assign example", || loaded.assign(&job, 0..1))?)
            }
            (Self::Circom(circuit), input) => {
                let witness = args.witness.witness(input.as_deref(), &args.source.sandbox, stages)?;
                let z = match witness {
                    None => return Ok(vec![]),
                    Some(Witness::Values(z)) => z,
                    Some(Witness::Module(module, input)) => {
                        stages.run("assign example", || module.witness(&input, circuit.inputs()))?
                    }
                };
                Ok(vec![circuit.assignment(&z)?])
            }
        }
    }
}

/// A key that fits, and what is known of its file.
struct KeyFile {
    key: ProvingKey,
    sha256: [u8; 32],
    known: Option<KnownParams>,
    trailer_bytes: u64,
}

/// Read and check the key, and bind it to the circuit.
fn read_file(args: &ImportKeyArgs, shape: &R1cs, stages: &mut Stages) -> Result<KeyFile> {
    let path = &args.key_file;
    let bytes = files::map(path, "the proving key")?;
    let named = || format!("key {}", path.display());
    match bytes.starts_with(b"zkey") {
        true => read_zkey_file(args, &bytes, shape, stages).with_context(named),
        false => read_params_file(args, &bytes, shape, stages).with_context(named),
    }
}

fn read_zkey_file(args: &ImportKeyArgs, bytes: &[u8], shape: &R1cs, stages: &mut Stages) -> Result<KeyFile> {
    let sha256 = stages.run("digest", || sha256(bytes));
    if let Some(expected) = args.sha256.filter(|expected| *expected != sha256) {
        let problem = Problem::Digest { expected: hex::encode(expected), found: hex::encode(sha256) };
        return Err(DecodeError { format: "snarkjs proving key (.zkey)", section: "file", index: None, problem }.into());
    }
    let total = bytes.len() as u64;
    let zkey = stages.bytes("read key", total, |bar| read_zkey_watched(bytes, &|bytes| bar.inc(bytes)))?;
    let key = stages.run("bind", || ProvingKey::import_zkey(zkey, shape, args.phase2.phase2()))?;
    Ok(KeyFile { key, sha256, known: None, trailer_bytes: 0 })
}

/// The points of a known file were checked when its digest was pinned.
fn read_params_file(args: &ImportKeyArgs, bytes: &[u8], shape: &R1cs, stages: &mut Stages) -> Result<KeyFile> {
    // A file as long as a known one is taken for it, unless another digest was given.
    let candidate = known_params(bytes.len() as u64);
    let pinned = args.sha256.or(candidate.map(|known| known.sha256));
    let known = candidate.filter(|known| pinned == Some(known.sha256));
    let subgroup = if known.is_some() { Subgroup::CheckedBefore } else { Subgroup::Check };
    let trailer = pinned.map_or(Trailer::None, Trailer::Pinned);
    let total = bytes.len() as u64;
    let read = |bar: &ProgressBar| read_params_watched(bytes, subgroup, trailer, &|bytes| bar.inc(bytes));
    let params = stages.bytes("read key", total, read).with_context(|| match known {
        Some(known) => format!("as long as Zcash's {}.params", known.name),
        None => "bellman's .params was expected, or snarkjs's .zkey".into(),
    })?;
    let trailer_bytes = params.trailer_bytes;
    let key = ProvingKey::import(params, shape, args.phase2.phase2())?;
    Ok(KeyFile { key, sha256: pinned.unwrap_or_else(|| sha256(bytes)), known, trailer_bytes })
}

/// Prove an example. If its proof does not verify, the key is another circuit's.
fn prove_example(
    circuit: &Circuit,
    shape: &Arc<R1cs>,
    key: Arc<ProvingKey>,
    assignments: &[Assignment],
    stages: &mut Stages,
) -> Result<()> {
    let prover = CpuProver::new(key, Arc::clone(shape))?;
    for assignment in assignments {
        match (stages.run("prove example", || prover.prove(assignment)), circuit) {
            (Ok(_), _) => {}
            (Err(ProveError::Unsatisfied(broken)), Circuit::Component(loaded)) => {
                return Err(loaded.name_constraint(0, broken).into());
            }
            (Err(error @ ProveError::DoesNotVerify { .. }), _) => {
                return Err(anyhow::Error::from(Failure::new(Code::File, error.to_string())));
            }
            (Err(error), _) => return Err(error.into()),
        }
    }
    Ok(())
}
