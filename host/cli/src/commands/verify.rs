//! `zkhost verify`

use crate::error::{Code, Failure};
use crate::formats::{ProofFormat, VkFormat};
use crate::output::Output;
use crate::progress::{Stage, Stages, Table};
use crate::{files, keys, scalars};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use zkhost_groth16::key::VerifierKey;
use zkhost_groth16::{PreparedVerifyingKey, Proof, Scalar};

/// Bytes of a file of proofs at most.
const PROOFS_BYTES_MAX: u64 = 1 << 30;

/// Verify proofs
///
/// A file of proofs holds one or several, 192 bytes each. All proofs of all files are verified at once; if one is false it
/// is named, and the exit code is 1. Anyone can re-randomise a valid proof, so its bytes are no identity.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost verify --vk spend.vk --proof spend.proof --public spend.public.json
  zkhost verify --key sha256.zkimage --proof a.proof --public a.json --proof b.proof --public b.json
  zkhost verify --vk vkey.json --vk-format snarkjs --proof proof.json --proof-format snarkjs --public public.json")]
pub struct VerifyArgs {
    /// The verifying key
    #[arg(long, value_name = "FILE", required_unless_present = "key", conflicts_with = "key")]
    vk: Option<PathBuf>,
    /// The verifying key's format
    #[arg(long, value_name = "FORMAT", default_value = "bellman", conflicts_with = "key")]
    vk_format: VkFormat,
    /// A key image, whose verifying key is taken
    #[arg(long, short, value_name = "FILE")]
    key: Option<PathBuf>,
    /// A file of proofs (may be repeated)
    #[arg(long, value_name = "FILE", required = true)]
    proof: Vec<PathBuf>,
    /// The format of the files of proofs; in any but bellman's a file holds one proof
    #[arg(long, value_name = "FORMAT", default_value = "bellman")]
    proof_format: ProofFormat,
    /// Their public inputs, one file for each file of proofs: as JSON if the name ends in .json, else 32 bytes each,
    /// little-endian
    #[arg(long, value_name = "FILE", required = true)]
    public: Vec<PathBuf>,
    #[command(flatten)]
    phase2: keys::Phase2Args,
}

#[derive(Serialize)]
struct VerifyResult {
    /// Always true: a false proof is an error.
    valid: bool,
    /// Proofs that were verified.
    proofs: usize,
    stages: Vec<Stage>,
}

impl fmt::Display for VerifyResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "valid: {} proof(s)\n{}", self.proofs, Table(&self.stages))
    }
}

/// Run the command.
pub fn run(args: &VerifyArgs, output: Output) -> Result<()> {
    if args.proof.len() != args.public.len() {
        let (proofs, publics) = (args.proof.len(), args.public.len());
        let message = format!("{proofs} --proof and {publics} --public were given; each file of proofs needs its own");
        return Err(Failure::new(Code::Usage, message).into());
    }
    let mut stages = Stages::new(output);
    let vk = stages.run("open key", || open_key(args))?;
    let mut proofs: Vec<Proof> = Vec::new();
    let mut publics: Vec<Vec<Scalar>> = Vec::new();
    for (proof, public) in args.proof.iter().zip(&args.public) {
        let more = read_proofs(proof, args.proof_format)?;
        publics.extend(scalars::read(public, more.len(), vk.public_count())?);
        proofs.extend(more);
    }
    let claims: Vec<_> = proofs.iter().zip(publics.iter().map(Vec::as_slice)).collect();
    let prepared = PreparedVerifyingKey::from(&vk);
    stages.run("verify", || match claims.as_slice() {
        [(proof, publics)] => prepared.verify(proof, publics),
        several => prepared.verify_batch(several),
    })?;
    output.result(&VerifyResult { valid: true, proofs: proofs.len(), stages: stages.finish() });
    Ok(())
}

fn open_key(args: &VerifyArgs) -> Result<VerifierKey> {
    let phase2 = args.phase2.phase2();
    match (&args.vk, &args.key) {
        (Some(vk), _) => Ok(args.vk_format.read(vk, phase2)?.verifier()),
        (None, Some(key)) => Ok(VerifierKey::from(&keys::open(key, phase2)?.vk)),
        (None, None) => Err(Failure::new(Code::Usage, "give the verifying key with --vk or --key").into()),
    }
}

fn read_proofs(path: &Path, format: ProofFormat) -> Result<Vec<Proof>> {
    if format != ProofFormat::Bellman {
        return Ok(vec![format.read(path)?.proof]);
    }
    let bytes = files::read(path, "the proof", PROOFS_BYTES_MAX)?;
    if bytes.is_empty() || bytes.len() % Proof::BYTES != 0 {
        let (length, each) = (bytes.len(), Proof::BYTES);
        let message = format!("proof {}: {length} bytes, expected {each} for each proof", path.display());
        return Err(Failure::new(Code::File, message).into());
    }
    let decode =
        |(index, bytes)| Proof::from_bytes(bytes).with_context(|| format!("proof {} of {}", index, path.display()));
    bytes.chunks(Proof::BYTES).enumerate().map(decode).collect()
}
