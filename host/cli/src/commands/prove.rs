//! `zkhost prove`

use super::prove_circom;
use crate::circom::WitnessArgs;
use crate::circuit::{CircuitArgs, Job, Source, SourceArgs};
use crate::device::DeviceArgs;
use crate::error::{Code, Failure};
use crate::files::{self, Draft};
use crate::output::Output;
use crate::progress::{Stage, Stages, Table};
use crate::{engine, keys, scalars};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use zkhost_engine::failure::Proved;
use zkhost_engine::timeline::Timeline;

/// Prove an input
///
/// Writes one proof of 192 bytes for each partition of the job, one after another. Every proof is verified before it is
/// written. Proofs are randomised: two runs give different bytes.
///
/// A circom circuit is proved as it is, from what circom and snarkjs write; proof and public inputs are in snarkjs's form if
/// their names end in .json.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost prove spend.wasm --key spend.zkimage --input input.json --out spend.proof --public-out spend.public.json
  zkhost prove --r1cs c.r1cs --witness-wasm c.wasm --key c.zkey --input in.json --out proof.json --public-out public.json")]
pub struct ProveArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub witness: WitnessArgs,
    /// The key image, made by `zkhost setup` or `zkhost import-key` for this circuit; for a circom circuit also a .zkey
    #[arg(long, short, value_name = "FILE")]
    pub key: PathBuf,
    #[command(flatten)]
    pub phase2: keys::Phase2Args,
    /// The input, a file in the circuit's own form, `-` for standard input; it stays secret
    #[arg(long, short, value_name = "FILE", required_unless_present = "wtns")]
    pub input: Option<PathBuf>,
    /// Where to write the proof
    #[arg(long, short, value_name = "FILE", default_value = "proof.bin")]
    pub out: PathBuf,
    /// Also write the public inputs: as JSON if the name ends in .json, else 32 bytes each, little-endian
    #[arg(long, value_name = "FILE")]
    pub public_out: Option<PathBuf>,
    /// Also write the verifying key, in bellman's format
    #[arg(long, value_name = "FILE")]
    pub vk_out: Option<PathBuf>,
    /// Also write what was done when, for `zkhost trace` and for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Overwrite a verifying key that exists
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
pub struct ProveResult {
    /// The proofs' file.
    pub proof: PathBuf,
    /// Bytes of it: 192 for each partition.
    pub bytes: usize,
    /// Proofs in it.
    pub partitions: u32,
    /// BLAKE3 of the constraint system.
    pub shape: String,
    /// What computed the proofs.
    pub prover: String,
    /// Public inputs, for each partition if there are several.
    pub public: Value,
    /// What took how long.
    pub stages: Vec<Stage>,
}

impl fmt::Display for ProveResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProveResult { proof, bytes, partitions, prover, stages, .. } = self;
        writeln!(f, "{} ({bytes} bytes): {partitions} proof(s) by {prover}, verified", proof.display())?;
        write!(f, "{}", Table(stages))
    }
}

/// Run the command.
pub fn run(args: &ProveArgs, output: Output) -> Result<()> {
    let read = [Some(args.key.as_path()), args.input.as_deref()];
    let inputs = [&args.source.files()[..], &args.witness.files(), &read].concat();
    let outputs = [Some(args.out.as_path()), args.public_out.as_deref(), args.vk_out.as_deref(), args.trace.as_deref()];
    files::check_outputs(&outputs, &inputs)?;
    args.vk_out.as_deref().map_or(Ok(()), |path| files::refuse_overwrite(path, args.force))?;
    match (args.source.source()?, &args.input) {
        (Source::Circom(r1cs), _) => prove_circom::run(args, r1cs, output),
        (Source::Component(circuit), Some(input)) => prove_component(args, &circuit, input, output),
        _ => Err(Failure::new(Code::Usage, "give a component and --input, or --r1cs").into()),
    }
}

fn prove_component(args: &ProveArgs, circuit: &CircuitArgs, input: &Path, output: Output) -> Result<()> {
    let mut stages = Stages::new(output);
    let loaded = circuit.load(&mut stages)?;
    let input = loaded.read_input(input)?;
    let layout = loaded.plan(&mut stages)?;
    let shape = loaded.shape(&mut stages)?;
    let key = stages.run("open key", || keys::open(&args.key, args.phase2.phase2()))?;
    key.check_circuit(&shape).with_context(|| format!("key {}", args.key.display()))?;
    let choice = args.device.choice();
    let devices = stages.run("prepare", || engine::Devices::open(choice, &key, &shape, layout.partitions, output))?;
    if !key.proven {
        output.note(format_args!(
            "key {}: no proof by it was seen to verify yet; `zkhost import-key --input` records that one does",
            args.key.display()
        ));
    }

    let job = Job { input: &input, layout: &layout, shape: &shape };
    let (Proved { proofs, publics }, timeline) = engine::prove(&loaded, &job, &devices, &mut stages)?;

    let vk = args.vk_out.as_ref().map(|path| keys::draft_vk(path, &key.vk)).transpose()?;
    files::write(&args.out, &proofs)?;
    args.public_out.as_ref().map(|path| scalars::write(path, &publics)).transpose()?;
    vk.map(Draft::keep).transpose()?;
    args.trace.as_ref().map(|path| write_trace(path, &timeline)).transpose()?;
    output.result(&ProveResult {
        proof: args.out.clone(),
        bytes: proofs.len(),
        partitions: layout.partitions,
        shape: shape.hash().to_string(),
        prover: devices.describe().to_owned(),
        public: scalars::to_json(&publics),
        stages: stages.finish(),
    });
    Ok(())
}

/// Write what was done when.
pub fn write_trace(path: &Path, timeline: &Timeline) -> Result<()> {
    let mut bytes = Vec::new();
    timeline.write_trace(&mut bytes)?;
    files::write(path, &bytes)
}
