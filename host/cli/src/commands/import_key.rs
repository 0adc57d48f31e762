//! `zkhost import-key`

use crate::circuit::{CircuitArgs, Job, Loaded};
use crate::device::DeviceArgs;
use crate::error::{Code, Failure};
use crate::files::{self, Draft, refuse_overwrite};
use crate::keys;
use crate::output::Output;
use crate::progress::{Stage, Stages, Table};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zkhost_groth16::formats::{KnownParams, ParamsFile, Subgroup, Trailer, known_params, read_params, sha256};
use zkhost_groth16::{CpuProver, ProveError, Prover, ProvingKey, R1cs};

/// Make a key image from a proving key in bellman's .params format
///
/// The key must fit the circuit: counts, densities and domain. Whether it is the circuit's own shows when a proof by it
/// verifies; give an example input with --input to find out now.
///
/// The files of Zcash's Sapling ceremony are known by their SHA-256. Other files that carry a ceremony's transcript after
/// the key need --sha256.
#[derive(Args)]
#[command(after_help = "\
Example:
  zkhost import-key spend.wasm sapling-spend.params --input example-input.json --out spend.zkimage --vk-out spend.vk")]
pub struct ImportKeyArgs {
    #[command(flatten)]
    circuit: CircuitArgs,
    /// The proving key, in bellman's .params format
    params_file: PathBuf,
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
    /// SHA-256 of the .params file.
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
    let [component, params] = args.circuit.files();
    files::check_outputs(&outputs, &[component, params, Some(&args.params_file), args.input.as_deref()])?;
    for path in outputs.into_iter().flatten() {
        refuse_overwrite(path, args.force)?;
    }
    let mut stages = Stages::new(output);
    let loaded = args.circuit.load(&mut stages)?;
    let shape = loaded.shape(&mut stages)?;
    let file = stages.run("read key", || read_file(args))?;
    let trailer_bytes = file.params.trailer_bytes;
    let named = || format!("key {}", args.params_file.display());
    let key = ProvingKey::import(file.params, &shape, args.phase2.phase2()).with_context(named)?;
    let key = stages.run("convert", || args.device.convert(key, &shape, output))?;
    let mut key = Arc::new(key);
    if let Some(input) = &args.input {
        prove_example(&loaded, &shape, Arc::clone(&key), input, &mut stages).with_context(named)?;
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
        trailer_bytes,
        proven: key.proven,
        vk: args.vk_out.clone(),
        stages: stages.finish(),
    });
    Ok(())
}

/// A .params file and its digest.
struct PinnedFile {
    params: ParamsFile,
    sha256: [u8; 32],
    known: Option<KnownParams>,
}

/// Read and check the key. The points of a known file were checked when its digest was pinned.
fn read_file(args: &ImportKeyArgs) -> Result<PinnedFile> {
    let path = &args.params_file;
    let bytes = files::map(path, "the proving key")?;
    // A file as long as a known one is taken for it, unless another digest was given.
    let candidate = known_params(bytes.len() as u64);
    let pinned = args.sha256.or(candidate.map(|known| known.sha256));
    let known = candidate.filter(|known| pinned == Some(known.sha256));
    let subgroup = if known.is_some() { Subgroup::CheckedBefore } else { Subgroup::Check };
    let trailer = pinned.map_or(Trailer::None, Trailer::Pinned);
    let params = read_params(&bytes, subgroup, trailer).with_context(|| match known {
        Some(known) => format!("key {} (as long as Zcash's {}.params)", path.display(), known.name),
        None => format!("key {}", path.display()),
    })?;
    Ok(PinnedFile { params, sha256: pinned.unwrap_or_else(|| sha256(&bytes)), known })
}

/// Prove an example. If its proof does not verify, the key is another circuit's.
fn prove_example(
    loaded: &Loaded,
    shape: &Arc<R1cs>,
    key: Arc<ProvingKey>,
    input: &Path,
    stages: &mut Stages,
) -> Result<()> {
    let input = loaded.read_input(input)?;
    let layout = loaded.plan(stages)?;
    let job = Job { input: &input, layout: &layout, shape };
    let assignments = stages.run("assign example", || loaded.assign(&job, 0..1))?;
    let prover = CpuProver::new(key, Arc::clone(shape))?;
    for assignment in &assignments {
        match stages.run("prove example", || prover.prove(assignment)) {
            Ok(_) => {}
            Err(ProveError::Unsatisfied(broken)) => return Err(loaded.name_constraint(0, broken).into()),
            Err(error @ ProveError::DoesNotVerify { .. }) => {
                return Err(anyhow::Error::from(Failure::new(Code::File, error.to_string())));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
