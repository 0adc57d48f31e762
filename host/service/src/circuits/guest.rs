//! What writes a circuit's assignments: a component, or the witness module of a circom circuit. It is checked when it is
//! loaded; its constraint system is opened together with a key.

use super::hosted::LoadFailure;
use super::manifest::{Manifest, Program};
use crate::stages::GuestJob;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zkhost_engine::circom::{CircomCircuit, CircomJob, Witness};
use zkhost_engine::component::ComponentJob;
use zkhost_groth16::R1cs;
use zkhost_groth16::formats::{Sym, read_r1cs, read_shape, read_sym, write_shape};
use zkhost_runtime::{Cache, CacheKey, Circom, Circuit, Info, Input, Layout, Limits, RunError, Runtime, Silent};

/// Bytes of a recorded shape in the cache, and of a `.r1cs` file, at most.
const SHAPE_BYTES_MAX: u64 = 4 << 30;

/// Bytes of a `.sym` file at most.
const SYM_BYTES_MAX: u64 = 1 << 30;

/// A guest that is loaded.
pub(super) enum Guest {
    Component(Arc<ComponentGuest>),
    Circom(Box<CircomGuest>),
}

/// A component, with what it said of itself.
pub struct ComponentGuest {
    circuit: Circuit,
    info: Info,
    layout: Layout,
    params: Vec<u8>,
    shapes: Arc<Cache>,
}

/// A witness module, and the files beside it.
pub(super) struct CircomGuest {
    module: Circom,
    module_digest: blake3::Hash,
    /// Commits to module, constraint system and symbols.
    digest: blake3::Hash,
    r1cs: PathBuf,
    sym: Option<PathBuf>,
    inputs: Vec<String>,
}

/// A guest with its constraint system: what a job needs.
#[derive(Clone)]
pub enum OpenGuest {
    /// A component.
    Component(Arc<ComponentGuest>, Arc<R1cs>),
    /// A circom circuit.
    Circom(Circom, Arc<CircomCircuit>),
}

impl OpenGuest {
    /// The constraint system.
    pub fn r1cs(&self) -> &Arc<R1cs> {
        match self {
            Self::Component(_, r1cs) => r1cs,
            Self::Circom(_, circuit) => circuit.r1cs(),
        }
    }

    /// A job of this input.
    pub fn job(&self, input: Input) -> Result<GuestJob, RunError> {
        match self {
            Self::Component(guest, r1cs) => {
                let parts = (&guest.layout, r1cs.as_ref());
                let job = ComponentJob::new(&guest.circuit, &guest.params, &input, parts, Arc::new(Silent))?;
                Ok(GuestJob::Component(job))
            }
            Self::Circom(module, circuit) => {
                let witness = Witness::Module(module.clone(), input);
                Ok(GuestJob::Circom(CircomJob::new(circuit.clone(), witness, Arc::new(Silent))))
            }
        }
    }
}

impl Guest {
    /// Load and check it. Takes from milliseconds to minutes. It is returned open as well.
    pub fn load(
        runtime: &Runtime,
        shapes: &Arc<Cache>,
        manifest: &Manifest,
        program: &Program<PathBuf>,
    ) -> Result<(Self, OpenGuest), LoadFailure> {
        let named = |error: String| LoadFailure(format!("circuit `{}`: {error}", manifest.name));
        let limits = manifest.limits().map_err(named)?;
        let code_bytes_max = limits.component_bytes;
        match program {
            Program::Component(path) => {
                let component = read_file(path, "component", code_bytes_max).map_err(named)?;
                let circuit = runtime.load(&manifest.name, &component, limits).map_err(said)?;
                let info = circuit.describe().map_err(said)?;
                let params = manifest.params.clone().into_bytes();
                let layout = circuit.plan(&params).map_err(said)?;
                let guest = ComponentGuest { circuit, info, layout, params, shapes: shapes.clone() };
                let r1cs = Arc::new(guest.recorded_shape()?);
                guest.circuit.segment_limits(&guest.layout, &r1cs).map_err(said)?;
                let guest = Arc::new(guest);
                Ok((Self::Component(guest.clone()), OpenGuest::Component(guest, r1cs)))
            }
            Program::Circom { r1cs, wasm, sym } => {
                let module = read_file(wasm, "witness module", code_bytes_max).map_err(named)?;
                let module_digest = blake3::hash(&module);
                let module = runtime.load_circom(&manifest.name, &module, limits).map_err(said)?;
                let (r1cs, sym) = (r1cs.clone(), sym.clone());
                let mut guest = CircomGuest { module, module_digest, digest: module_digest, r1cs, sym, inputs: vec![] };
                let (circuit, sym_digest) = guest.read()?;
                let mut hasher = blake3::Hasher::new_derive_key("zkhost 2026 files of a circom circuit");
                hasher.update(module_digest.as_bytes()).update(&circuit.r1cs().hash().0).update(sym_digest.as_bytes());
                guest.digest = hasher.finalize();
                guest.inputs = circuit.inputs().to_vec();
                let open = OpenGuest::Circom(guest.module.clone(), Arc::new(circuit));
                Ok((Self::Circom(Box::new(guest)), open))
            }
        }
    }

    /// Open the constraint system.
    pub fn open(&self) -> Result<OpenGuest, LoadFailure> {
        Ok(match self {
            Self::Component(guest) => OpenGuest::Component(guest.clone(), Arc::new(guest.recorded_shape()?)),
            Self::Circom(guest) => OpenGuest::Circom(guest.module.clone(), Arc::new(guest.read()?.0)),
        })
    }

    /// BLAKE3 of the component or the module.
    pub fn code_digest(&self) -> blake3::Hash {
        match self {
            Self::Component(guest) => guest.circuit.digest(),
            Self::Circom(guest) => guest.module_digest,
        }
    }

    /// Commits to all its files.
    pub fn digest(&self) -> blake3::Hash {
        match self {
            Self::Component(guest) => guest.circuit.digest(),
            Self::Circom(guest) => guest.digest,
        }
    }

    /// In JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Component(_) => "component",
            Self::Circom(_) => "circom",
        }
    }

    /// Proofs of a job.
    pub fn partitions(&self) -> u32 {
        match self {
            Self::Component(guest) => guest.layout.partitions,
            Self::Circom(_) => 1,
        }
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        match self {
            Self::Component(guest) => guest.circuit.limits(),
            Self::Circom(guest) => guest.module.limits(),
        }
    }

    /// Its version, what it proves and what an input holds, in its own words as far as it has any.
    pub fn words(&self) -> [String; 3] {
        match self {
            Self::Component(guest) => {
                let Info { version, about, input_help, .. } = &guest.info;
                [version.clone(), about.clone(), input_help.clone()]
            }
            Self::Circom(guest) => {
                let signals = match guest.inputs.as_slice() {
                    [] => String::new(),
                    signals => format!("; the signals are {}", signals.join(", ")),
                };
                [String::new(), "a circom circuit".into(), format!("JSON as snarkjs takes it, below r{signals}")]
            }
        }
    }
}

impl ComponentGuest {
    /// The constraint system: from the cache if it was recorded before and is within the limits of now.
    fn recorded_shape(&self) -> Result<R1cs, LoadFailure> {
        let key = CacheKey::of_shape(self.circuit.digest(), &self.params);
        let cached = self.shapes.load(&key, SHAPE_BYTES_MAX).and_then(|bytes| read_shape(&bytes).ok());
        if let Some(shape) = cached.filter(|shape| beyond(shape, self.circuit.limits()).is_none()) {
            return Ok(shape);
        }
        let shape = self.circuit.record_shape(&self.params, false).map_err(said)?;
        let mut encoded = Vec::new();
        let stored = write_shape(&shape, &mut encoded).and_then(|()| self.shapes.store(&key, &encoded));
        if let Err(error) = stored {
            let circuit = self.circuit.name();
            tracing::warn!(circuit, %error, "the recorded shape is not cached and will be recorded again");
        }
        Ok(shape)
    }
}

impl CircomGuest {
    /// Read the constraint system, within the limits, and the symbols, whose digest is returned too.
    fn read(&self) -> Result<(CircomCircuit, blake3::Hash), LoadFailure> {
        let named = |error: String| LoadFailure(format!("circuit `{}`: {error}", self.module.name()));
        let bytes = read_file(&self.r1cs, "constraint system", SHAPE_BYTES_MAX).map_err(named)?;
        let file = read_r1cs(&bytes).map_err(|error| named(format!("{}: {error}", self.r1cs.display())))?;
        if let Some((what, found, limit)) = beyond(&file.r1cs, self.module.limits()) {
            let path = self.r1cs.display();
            return Err(named(format!("{path} has {found} {what}; the limit `{what}` is {limit}")));
        }
        let Some(path) = &self.sym else {
            return Ok((CircomCircuit::new(file, Sym::default()), blake3::hash(b"")));
        };
        let bytes = read_file(path, "symbols", SYM_BYTES_MAX).map_err(named)?;
        let sym = read_sym(&bytes).map_err(|error| named(format!("{}: {error}", path.display())))?;
        Ok((CircomCircuit::new(file, sym), blake3::hash(&bytes)))
    }
}

/// The limit that a constraint system passes, if it passes one: its name, what there is, the limit.
fn beyond(shape: &R1cs, limits: &Limits) -> Option<(&'static str, u64, u64)> {
    let terms: u64 = shape.matrices.iter().map(|matrix| matrix.terms() as u64).sum();
    let counts = [
        ("publics", shape.public_count.into(), limits.publics),
        ("aux", shape.aux_count.into(), limits.aux),
        ("constraints", shape.constraints() as u64, limits.constraints),
        ("terms", terms, limits.terms),
        ("coefficients", shape.dictionary.len() as u64, limits.coefficients),
    ];
    counts.into_iter().find(|(_, found, limit)| found > limit)
}

fn said(error: impl std::fmt::Display) -> LoadFailure {
    LoadFailure(error.to_string())
}

/// A file of so many bytes at most.
pub(super) fn read_file(path: &Path, what: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot read the {what} {}: {error}", path.display()))?;
    match bytes.len() as u64 > bytes_max {
        true => Err(format!("the {what} {} has more than {bytes_max} bytes, the limit", path.display())),
        false => Ok(bytes),
    }
}
