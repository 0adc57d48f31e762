//! `zkhost prove --r1cs`: a circom circuit.

use super::prove::{ProveArgs, ProveResult};
use crate::files::{self, Draft};
use crate::output::Output;
use crate::progress::Stages;
use crate::{circom, keys, scalars};
use anyhow::Result;
use std::path::Path;
use std::sync::Arc;
use zkhost_groth16::formats::snarkjs::{write_proof, write_publics};

/// Run the command. Proof and public inputs are written as snarkjs does where their names end in `.json`.
pub fn run(args: &ProveArgs, r1cs: &Path, output: Output) -> Result<()> {
    let mut stages = Stages::new(output);
    let loaded = args.circom.load(r1cs, &mut stages)?;
    let assignment = args.circom.witness(&loaded, args.input.as_deref(), &args.sandbox, &mut stages)?;
    let shape = &loaded.shape;
    let key = stages.run("open key", || circom::open_key(&args.key, shape, args.phase2.phase2()))?;
    let prover =
        stages.run("prepare", || args.device.prover(&args.key, Arc::clone(&key), Arc::clone(shape), output))?;
    let proof = stages.run("prove", || prover.prove(&assignment))?;

    let encoded = match scalars::is_json(&args.out) {
        true => write_proof(&proof).into_bytes(),
        false => proof.to_bytes().to_vec(),
    };
    let vk = args.vk_out.as_ref().map(|path| keys::draft_vk(path, &key.vk)).transpose()?;
    files::write(&args.out, &encoded)?;
    let publics = vec![assignment.publics().to_vec()];
    match &args.public_out {
        Some(path) if scalars::is_json(path) => files::write(path, write_publics(&publics[0]).as_bytes())?,
        Some(path) => scalars::write(path, &publics)?,
        None => {}
    }
    vk.map(Draft::keep).transpose()?;
    output.result(&ProveResult {
        proof: args.out.clone(),
        bytes: encoded.len(),
        partitions: 1,
        shape: shape.hash().to_string(),
        prover: prover.describe(),
        public: scalars::to_json(&publics),
        stages: stages.finish(),
    });
    Ok(())
}
