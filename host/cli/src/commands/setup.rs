//! `zkhost setup`

use crate::circuit::CircuitArgs;
use crate::device::DeviceArgs;
use crate::files::{Draft, check_outputs, refuse_overwrite};
use crate::keys;
use crate::output::Output;
use crate::progress::{Stage, Stages, Table};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use zkhost_groth16::formats::write_params;
use zkhost_groth16::setup::{ToxicWaste, setup, setup_with};
use zkhost_groth16::{HBasis, ProvingKey};

/// Make a development key for a circuit
///
/// Whoever runs this could forge proofs by the key, so it is for development and tests. Use a key from a ceremony, with
/// `zkhost import-key`, where proofs matter.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost setup sha256.wasm --out sha256.zkimage
  zkhost setup sha256.wasm --out sha256.zkimage --vk-out sha256.vk --params-out sha256.params")]
pub struct SetupArgs {
    #[command(flatten)]
    circuit: CircuitArgs,
    /// Where to write the key image, for `zkhost prove`
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Also write the verifying key, in bellman's format
    #[arg(long, value_name = "FILE")]
    vk_out: Option<PathBuf>,
    /// Also write the proving key in bellman's .params format, for other provers
    #[arg(long, value_name = "FILE")]
    params_out: Option<PathBuf>,
    /// Make the same key each time from this number; everyone who knows it can forge proofs
    #[arg(long, value_name = "NUMBER")]
    insecure_seed: Option<u64>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct SetupResult {
    /// The key image.
    key: PathBuf,
    /// Bytes of the key image.
    bytes: u64,
    /// BLAKE3 of the constraint system that the key is for.
    shape: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    vk: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<PathBuf>,
    stages: Vec<Stage>,
}

impl fmt::Display for SetupResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SetupResult { key, bytes, shape, vk, params, stages } = self;
        writeln!(f, "{} ({bytes} bytes), a development key for shape {shape}", key.display())?;
        for path in vk.iter().chain(params) {
            writeln!(f, "{}", path.display())?;
        }
        write!(f, "{}", Table(stages))
    }
}

/// Run the command.
pub fn run(args: &SetupArgs, output: Output) -> Result<()> {
    let outputs = [Some(args.out.as_path()), args.vk_out.as_deref(), args.params_out.as_deref()];
    check_outputs(&outputs, &args.circuit.files())?;
    for path in outputs.into_iter().flatten() {
        refuse_overwrite(path, args.force)?;
    }
    let mut stages = Stages::new(output);
    let loaded = args.circuit.load(&mut stages)?;
    let shape = loaded.shape(&mut stages)?;
    let waste = match args.insecure_seed {
        Some(seed) => ToxicWaste::insecure_from_seed(seed),
        None => ToxicWaste::random(),
    };
    let multiples = args.device.multiples(&shape, output)?;
    let make = |basis| match &multiples {
        Some(multiples) => setup_with(&shape, &waste, basis, multiples),
        None => setup(&shape, &waste, basis),
    };
    let key = stages.run("setup", || make(HBasis::QuotientPoints))?;
    // The other form of the same key has another basis of H.
    let exported = args.params_out.as_ref().map(|path| -> Result<_> {
        let key = stages.run("setup for .params", || make(HBasis::Monomial))?;
        Ok((path, key))
    });
    let exported = exported.transpose()?;
    drop(waste);

    // All files are complete before the first appears.
    let drafts = stages.run("write", || -> Result<_> {
        let image = keys::draft_image(&args.out, &key)?;
        let vk = args.vk_out.as_ref().map(|path| keys::draft_vk(path, &key.vk)).transpose()?;
        let params = exported.map(|(path, key)| draft_params(path, &key)).transpose()?;
        Ok([Some(image), vk, params])
    })?;
    drafts.into_iter().flatten().try_for_each(Draft::keep)?;
    output.result(&SetupResult {
        bytes: std::fs::metadata(&args.out).map_or(0, |metadata| metadata.len()),
        key: args.out.clone(),
        shape: key.shape.to_string(),
        vk: args.vk_out.clone(),
        params: args.params_out.clone(),
        stages: stages.finish(),
    });
    Ok(())
}

fn draft_params(path: &Path, key: &ProvingKey) -> Result<Draft> {
    let mut draft = Draft::new(path)?;
    write_params(key, BufWriter::new(draft.file()))
        .with_context(|| format!("cannot write {} in bellman's format", path.display()))?;
    Ok(draft)
}
