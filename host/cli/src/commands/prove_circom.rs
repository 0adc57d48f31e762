//! `zkhost prove --r1cs`: a circom circuit.

use super::prove::{ProveArgs, ProveResult, write_trace};
use crate::error::{Code, Failure};
use crate::files::{self, Draft};
use crate::output::Output;
use crate::progress::Stages;
use crate::{circom, engine, keys, scalars};
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::Arc;
use zkhost_engine::circom::CircomJob;
use zkhost_engine::failure::Proved;
use zkhost_groth16::Proof;
use zkhost_groth16::formats::snarkjs::{write_proof, write_publics};
use zkhost_runtime::Silent;

/// Run the command. Proof and public inputs are written as snarkjs does where their names end in `.json`.
pub fn run(args: &ProveArgs, r1cs: &Path, output: Output) -> Result<()> {
    let mut stages = Stages::new(output);
    let circuit = Arc::new(args.witness.load(r1cs, &mut stages)?);
    let witness = args.witness.witness(args.input.as_deref(), &args.source.sandbox, &mut stages)?;
    let message = "a circom circuit needs --witness-wasm and --input, or --wtns";
    let witness = witness.ok_or_else(|| Failure::new(Code::Usage, message))?;
    let shape = circuit.r1cs();
    let key = circom::open_key(&args.key, shape, args.phase2.phase2(), &args.source.sandbox, &mut stages)?;
    key.check_circuit(shape).with_context(|| format!("key {}", args.key.display()))?;
    let devices = stages.run("prepare", || engine::Devices::open(args.device.choice(), &key, shape, 1, output))?;
    let job = Arc::new(CircomJob::new(circuit.clone(), witness, Arc::new(Silent)));
    let named = || format!("circuit {}", r1cs.display());
    let (Proved { proofs, publics }, timeline) =
        engine::prove_circom(job, &devices, &mut stages).with_context(named)?;

    let encoded = match scalars::is_json(&args.out) {
        true => write_proof(&Proof::from_bytes(&proofs)?).into_bytes(),
        false => proofs,
    };
    let vk = args.vk_out.as_ref().map(|path| keys::draft_vk(path, &key.vk)).transpose()?;
    files::write(&args.out, &encoded)?;
    match &args.public_out {
        Some(path) if scalars::is_json(path) => files::write(path, write_publics(&publics[0]).as_bytes())?,
        Some(path) => scalars::write(path, &publics)?,
        None => {}
    }
    vk.map(Draft::keep).transpose()?;
    args.trace.as_ref().map(|path| write_trace(path, &timeline)).transpose()?;
    output.result(&ProveResult {
        proof: args.out.clone(),
        bytes: encoded.len(),
        partitions: 1,
        shape: shape.hash().to_string(),
        prover: devices.describe().to_owned(),
        public: scalars::to_json(&publics),
        stages: stages.finish(),
    });
    Ok(())
}
