//! `zkhost setup`

use crate::circuit::{Source, SourceArgs};
use crate::device::DeviceArgs;
use crate::files::{Draft, check_outputs, refuse_overwrite};
use crate::output::Output;
use crate::progress::{Stage, Stages, Table};
use crate::{circom, keys};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zkhost_groth16::formats::{write_params, write_zkey};
use zkhost_groth16::setup::{ToxicWaste, setup, setup_with};
use zkhost_groth16::{HBasis, ProvingKey, R1cs};

/// Make a development key for a circuit
///
/// Whoever runs this could forge proofs by the key, so it is for development and tests. Use a key from a ceremony, with
/// `zkhost import-key`, where proofs matter.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost setup sha256.wasm --out sha256.zkimage
  zkhost setup sha256.wasm --out sha256.zkimage --vk-out sha256.vk --params-out sha256.params
  zkhost setup --r1cs c.r1cs --out c.zkimage --zkey-out c.zkey")]
pub struct SetupArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Where to write the key image, for `zkhost prove`
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Also write the verifying key, in bellman's format
    #[arg(long, value_name = "FILE")]
    vk_out: Option<PathBuf>,
    /// Also write the proving key in bellman's .params format, for other provers
    #[arg(long, value_name = "FILE")]
    params_out: Option<PathBuf>,
    /// Also write the proving key as snarkjs's .zkey; its domain has another root of unity than bellman's, so a key has one
    /// of the two forms
    #[arg(long, value_name = "FILE", conflicts_with = "params_out")]
    zkey_out: Option<PathBuf>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    zkey: Option<PathBuf>,
    stages: Vec<Stage>,
}

impl fmt::Display for SetupResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SetupResult { key, bytes, shape, vk, params, zkey, stages } = self;
        writeln!(f, "{} ({bytes} bytes), a development key for shape {shape}", key.display())?;
        for path in vk.iter().chain(params).chain(zkey) {
            writeln!(f, "{}", path.display())?;
        }
        write!(f, "{}", Table(stages))
    }
}

/// Run the command.
pub fn run(args: &SetupArgs, output: Output) -> Result<()> {
    let outputs = [&args.vk_out, &args.params_out, &args.zkey_out].map(Option::as_deref);
    let outputs = [&[Some(args.out.as_path())], &outputs[..]].concat();
    check_outputs(&outputs, &args.source.files())?;
    for path in outputs.into_iter().flatten() {
        refuse_overwrite(path, args.force)?;
    }
    let mut stages = Stages::new(output);
    let shape = match args.source.source()? {
        Source::Component(circuit) => circuit.load(&mut stages)?.shape(&mut stages)?,
        Source::Circom(r1cs) => Arc::clone(circom::load(r1cs, None, &mut stages)?.r1cs()),
    };
    let waste = match args.insecure_seed {
        Some(seed) => ToxicWaste::insecure_from_seed(seed),
        None => ToxicWaste::random(),
    };
    let multiples = args.device.multiples(&shape, output)?;
    let make = |basis| match &multiples {
        Some(multiples) => setup_with(&shape, &waste, basis, multiples),
        None => setup(&shape, &waste, basis),
    };
    let basis = if args.zkey_out.is_some() { HBasis::OddCoset } else { HBasis::QuotientPoints };
    let mut key = stages.run("setup", || make(basis))?;
    // The other form of the same key has another basis of H.
    let exported = args.params_out.as_ref().map(|path| -> Result<_> {
        let key = stages.run("setup for .params", || make(HBasis::Monomial))?;
        Ok((path, key))
    });
    let exported = exported.transpose()?;
    drop(waste);

    // All files are complete before the first appears.
    let zkey = args.zkey_out.as_ref().map(|path| stages.run("write .zkey", || draft_zkey(path, &key, &shape)));
    let zkey = zkey.transpose()?;
    if zkey.is_some() {
        key = stages.run("convert", || args.device.convert(key, &shape, output))?;
    }
    let drafts = stages.run("write", || -> Result<_> {
        let image = keys::draft_image(&args.out, &key)?;
        let vk = args.vk_out.as_ref().map(|path| keys::draft_vk(path, &key.vk)).transpose()?;
        let params = exported.map(|(path, key)| draft_params(path, &key)).transpose()?;
        Ok([Some(image), vk, params, zkey])
    })?;
    drafts.into_iter().flatten().try_for_each(Draft::keep)?;
    output.result(&SetupResult {
        bytes: std::fs::metadata(&args.out).map_or(0, |metadata| metadata.len()),
        key: args.out.clone(),
        shape: key.shape.to_string(),
        vk: args.vk_out.clone(),
        params: args.params_out.clone(),
        zkey: args.zkey_out.clone(),
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

fn draft_zkey(path: &Path, key: &ProvingKey, shape: &R1cs) -> Result<Draft> {
    let mut draft = Draft::new(path)?;
    write_zkey(key, shape, BufWriter::new(draft.file()))
        .with_context(|| format!("cannot write {} as .zkey", path.display()))?;
    Ok(draft)
}
