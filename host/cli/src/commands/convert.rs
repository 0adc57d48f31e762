//! `zkhost convert`

use crate::error::{Code, Failure};
use crate::formats::{ProofFile, ProofFormat, VkFormat};
use crate::output::Output;
use crate::{files, keys, scalars};
use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use zkhost_groth16::formats::{eip2537, snarkjs};
use zkhost_groth16::scalar::{limbs_to_le_bytes, to_canonical};

/// Bytes of a file of public inputs at most.
const PUBLICS_BYTES_MAX: u64 = 1 << 30;

/// Convert proofs, verifying keys and public inputs between formats
///
/// Every point is checked: on its curve, in the subgroup of order r, not at infinity. Public inputs at or above r are
/// refused. A conversion that would lose something is refused, and says what.
///
/// The formats differ in what the bytes mean, so they are named, never guessed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost convert proof --from snarkjs --to bellman proof.json c.proof
  zkhost convert proof --from bellman --to zokrates --public c.json c.proof proof.json
  zkhost convert vk --from zkey --to bellman c.zkey c.vk
  zkhost convert vk --from bellman --to solidity c.vk Verifier.sol
  zkhost convert public --from zkhost --to snarkjs c.json public.json")]
pub struct ConvertArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A proof
    Proof(ProofArgs),
    /// A verifying key
    Vk(VkArgs),
    /// Public inputs
    Public(PublicArgs),
}

#[derive(Args)]
struct ProofArgs {
    /// The format of the file that is read
    #[arg(long)]
    from: ProofFormat,
    /// The format of the file that is written
    #[arg(long)]
    to: ProofFormat,
    /// The proof
    input: PathBuf,
    /// Where to write it
    output: PathBuf,
    /// Public inputs, for formats that hold them beside the proof
    #[arg(long, value_name = "FILE")]
    public: Option<PathBuf>,
    /// Where to write public inputs that the format read holds and the other does not
    #[arg(long, value_name = "FILE")]
    public_out: Option<PathBuf>,
    /// Convert though public inputs are lost
    #[arg(long)]
    allow_loss: bool,
}

#[derive(Args)]
struct VkArgs {
    /// The format of the file that is read
    #[arg(long)]
    from: VkFormat,
    /// The format of the file that is written
    #[arg(long)]
    to: VkFormat,
    /// The verifying key
    input: PathBuf,
    /// Where to write it
    output: PathBuf,
    /// Convert though beta and delta in G1, which only provers use, are lost
    #[arg(long)]
    allow_loss: bool,
    #[command(flatten)]
    phase2: keys::Phase2Args,
}

#[derive(Args)]
struct PublicArgs {
    /// The format of the file that is read
    #[arg(long)]
    from: PublicFormat,
    /// The format of the file that is written
    #[arg(long)]
    to: PublicFormat,
    /// The public inputs
    input: PathBuf,
    /// Where to write them
    output: PathBuf,
}

/// Formats of the public inputs of one proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PublicFormat {
    /// As `zkhost prove` writes them: JSON, in hexadecimal, if the name ends in .json, else 32 bytes each, little-endian
    Zkhost,
    /// snarkjs's JSON, in decimal
    Snarkjs,
    /// 32 bytes each, little-endian: bellman, arkworks
    Bellman,
    /// Words of 32 bytes, big-endian
    Eip2537,
}

#[derive(Serialize)]
struct ConvertResult {
    /// What was written.
    output: PathBuf,
    /// Bytes of it.
    bytes: usize,
    /// Public inputs that were written apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    public: Option<PathBuf>,
}

impl fmt::Display for ConvertResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({} bytes)", self.output.display(), self.bytes)?;
        self.public.iter().try_for_each(|path| writeln!(f, "{}", path.display()))
    }
}

/// Run the command.
pub fn run(args: &ConvertArgs, output: Output) -> Result<()> {
    let result = match &args.what {
        What::Proof(args) => convert_proof(args)?,
        What::Vk(args) => {
            files::check_outputs(&[Some(&args.output)], &[Some(&args.input)])?;
            let file = args.from.read(&args.input, args.phase2.phase2())?;
            let named = || format!("verifying key {}", args.input.display());
            written(&args.output, &args.to.write(&file, args.allow_loss).with_context(named)?)?
        }
        What::Public(args) => convert_public(args)?,
    };
    output.result(&result);
    Ok(())
}

fn written(path: &Path, bytes: &[u8]) -> Result<ConvertResult> {
    files::write(path, bytes)?;
    Ok(ConvertResult { output: path.to_owned(), bytes: bytes.len(), public: None })
}

fn convert_proof(args: &ProofArgs) -> Result<ConvertResult> {
    let outputs = [Some(args.output.as_path()), args.public_out.as_deref()];
    files::check_outputs(&outputs, &[Some(&args.input), args.public.as_deref()])?;
    let refused = |message: String| Err(Failure::new(Code::Usage, message).into());
    let ProofFile { proof, publics } = args.from.read(&args.input)?;
    if publics.is_some() && args.public.is_some() {
        return refused(format!("{} holds public inputs, so --public has no place", args.input.display()));
    }
    if publics.is_none() && args.public_out.is_some() {
        return refused(format!("{} holds no public inputs, so there are none for --public-out", args.input.display()));
    }
    let lost = publics.is_some() && !args.to.has_publics() && args.public_out.is_none();
    if lost && !args.allow_loss {
        return refused(
            "the public inputs would be lost: that format does not hold them; give --public-out for them, or --allow-loss".into(),
        );
    }
    let publics = match (publics, &args.public) {
        (Some(publics), _) => publics,
        (None, Some(path)) if args.to.has_publics() => scalars::read_one(path)?,
        (None, Some(_)) => return refused("that format holds no public inputs, so --public has no place".into()),
        (None, None) if args.to.has_publics() => {
            return refused("that format holds the public inputs beside the proof; give them with --public".into());
        }
        (None, None) => vec![],
    };
    let result = written(&args.output, &args.to.write(&proof, &publics))?;
    if let Some(path) = &args.public_out {
        scalars::write(path, &[publics])?;
    }
    Ok(ConvertResult { public: args.public_out.clone(), ..result })
}

fn convert_public(args: &PublicArgs) -> Result<ConvertResult> {
    files::check_outputs(&[Some(&args.output)], &[Some(&args.input)])?;
    let bytes = || files::read(&args.input, "the public inputs", PUBLICS_BYTES_MAX);
    let named = || format!("public inputs {}", args.input.display());
    let publics = match args.from {
        PublicFormat::Zkhost => scalars::read_one(&args.input)?,
        PublicFormat::Snarkjs => snarkjs::read_publics(&bytes()?).with_context(named)?,
        PublicFormat::Bellman => {
            scalars::parse_bytes(&bytes()?).map_err(|e| Failure::new(Code::File, e)).with_context(named)?
        }
        PublicFormat::Eip2537 => eip2537::read_publics(&bytes()?).with_context(named)?,
    };
    match args.to {
        PublicFormat::Zkhost => {
            scalars::write(&args.output, &[publics])?;
            let bytes = std::fs::metadata(&args.output).map_or(0, |metadata| metadata.len() as usize);
            Ok(ConvertResult { output: args.output.clone(), bytes, public: None })
        }
        PublicFormat::Snarkjs => written(&args.output, snarkjs::write_publics(&publics).as_bytes()),
        PublicFormat::Bellman => {
            let bytes: Vec<u8> = publics.iter().flat_map(|x| limbs_to_le_bytes(&to_canonical(x))).collect();
            written(&args.output, &bytes)
        }
        PublicFormat::Eip2537 => written(&args.output, &eip2537::write_publics(&publics)),
    }
}
