//! circom circuits as they are: constraint system, witness module, symbols, key.

use crate::circuit::{SandboxArgs, start_runtime};
use crate::error::{Code, Failure};
use crate::progress::Stages;
use crate::{files, keys};
use anyhow::{Context, Result};
use clap::Args;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zkhost_engine::circom::{CircomCircuit, Witness};
use zkhost_groth16::formats::{Sym, read_r1cs, read_sym, read_wtns, read_zkey_watched};
use zkhost_groth16::image::{open_image, write_image};
use zkhost_groth16::key::Phase2;
use zkhost_groth16::{ProvingKey, R1cs};
use zkhost_runtime::{Cache, CacheKey, Circom, Input};

/// Part of the names of kept images: changed when the checks of an import change.
const IMPORT_REVISION: &[u8] = b"1";
/// Bytes of a `.sym` file at most.
const SYM_BYTES_MAX: u64 = 8 << 30;
/// Bytes of a `.wtns` that is no file, at most.
const WTNS_BYTES_MAX: u64 = 8 << 30;

/// The witness of a circom circuit, and the names in it.
#[derive(Args)]
pub struct WitnessArgs {
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

impl WitnessArgs {
    /// The files that are read, for what is written not to replace them.
    pub fn files(&self) -> [Option<&Path>; 3] {
        [&self.witness_wasm, &self.wtns, &self.sym].map(Option::as_deref)
    }

    /// Read the constraint system and the symbols.
    pub fn load(&self, r1cs: &Path, stages: &mut Stages) -> Result<CircomCircuit> {
        let beside = r1cs.with_extension("sym");
        let sym = self.sym.as_deref().or(beside.is_file().then_some(&*beside));
        load(r1cs, sym, stages)
    }

    /// The witness: read, or the module loaded that computes it from the input. None if neither is given.
    pub fn witness(&self, input: Option<&Path>, sandbox: &SandboxArgs, stages: &mut Stages) -> Result<Option<Witness>> {
        match (&self.wtns, &self.witness_wasm, input) {
            (Some(path), ..) => {
                let z = match path.is_file() {
                    true => {
                        let bytes = files::map(path, "the witness")?;
                        stages.run("witness", || read_wtns(&bytes))
                    }
                    // Standard input and pipes cannot be mapped.
                    false => {
                        let bytes = files::read_secret(path, "the witness", WTNS_BYTES_MAX)?;
                        stages.run("witness", || read_wtns(&bytes))
                    }
                };
                Ok(Some(Witness::Values(z.with_context(|| format!("witness {}", path.display()))?)))
            }
            (None, Some(module), Some(input)) => {
                let limits = sandbox.limits()?;
                let mut bytes = files::read_secret(input, "the input", limits.input_bytes)?;
                let input = Input::from(std::mem::take(&mut *bytes));
                let module = stages.run("load", || -> Result<Circom> {
                    let (runtime, _) = start_runtime(sandbox)?;
                    Ok(runtime.load_circom_file(module, limits)?)
                })?;
                if let Some(warning) = module.warning() {
                    stages.note(warning);
                }
                Ok(Some(Witness::Module(module, input)))
            }
            (None, None, None) => Ok(None),
            _ => {
                let message = "a circom circuit's witness comes from --witness-wasm and --input, or from --wtns";
                Err(Failure::new(Code::Usage, message).into())
            }
        }
    }
}

/// Read a constraint system and, if they are given, its symbols.
pub fn load(r1cs: &Path, sym: Option<&Path>, stages: &mut Stages) -> Result<CircomCircuit> {
    let bytes = files::map(r1cs, "the constraint system")?;
    let file = stages.run("r1cs", || read_r1cs(&bytes));
    let file = file.with_context(|| format!("constraint system {}", r1cs.display()))?;
    let sym = match sym {
        Some(path) => {
            let bytes = files::read(path, "the symbols", SYM_BYTES_MAX)?;
            stages.run("symbols", || read_sym(&bytes)).with_context(|| format!("symbols {}", path.display()))?
        }
        None => Sym::default(),
    };
    Ok(CircomCircuit::new(file, sym))
}

/// Open a key: an image; or snarkjs's `.zkey`, all of whose points are checked, bound to the circuit.
///
/// The checks take longer than a proof, so the image of a `.zkey` that passed them is kept in the user's private cache, under
/// the file's digest, and taken from there the next time.
pub fn open_key(
    path: &Path,
    shape: &R1cs,
    phase2: Phase2,
    sandbox: &SandboxArgs,
    stages: &mut Stages,
) -> Result<Arc<ProvingKey>> {
    let bytes = files::map(path, "the key")?;
    if !bytes.starts_with(b"zkey") {
        return stages.run("open key", || keys::open(path, phase2));
    }
    let (named, total) = (|| format!("key {}", path.display()), bytes.len() as u64);
    // A cache that cannot be used costs time, not the proof.
    let images = sandbox.key_images();
    let digest = stages.run("digest", || digest(&bytes));
    // Whether it is this circuit's key, the image says itself, as any does.
    let name = CacheKey::of("zkhost 2026 cache of key images", &[IMPORT_REVISION, digest.as_bytes()]);
    // One that is damaged or refused is made again, which says what is wrong.
    let kept = stages.run("open key", || open_image(&images.as_ref().ok()?.file(&name)?, phase2).ok());
    if let Some(key) = kept {
        return Ok(Arc::new(key));
    }
    let file = stages.bytes("read key", total, |bar| read_zkey_watched(&bytes, &|bytes| bar.inc(bytes)));
    let key = stages.run("bind key", || ProvingKey::import_zkey(file?, shape, phase2).map_err(anyhow::Error::from));
    let key = key.with_context(named)?;
    let stored = stages.run("keep image", || keep_image(&images?, &name, &key, (&bytes, digest)));
    if let Err(error) = stored {
        stages.note(&format!(
            "the key's image is not kept, so its points will be checked again the next time: {error:#}"
        ));
    }
    Ok(Arc::new(key))
}

/// Keep the image of a key that was read from a file with this digest.
fn keep_image(images: &Cache, name: &CacheKey, key: &ProvingKey, (bytes, read): (&[u8], blake3::Hash)) -> Result<()> {
    // The file is mapped, and the image will be taken for the file's from now on.
    anyhow::ensure!(digest(bytes) == read, "the file changed while it was read");
    let write = |file: &mut File| write_image(key, BufWriter::new(file)).map_err(std::io::Error::other);
    Ok(images.store_file(name, bytes.len() as u64, write)?)
}

/// The BLAKE3 digest of a file's bytes, by all processors.
fn digest(bytes: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update_rayon(bytes).finalize()
}
