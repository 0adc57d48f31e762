//! One circuit, loaded: checked once with its key, after which key and constraint system are opened when they are needed.

use super::manifest::Manifest;
use super::registry::Source;
use crate::Digest;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use zkhost_client::types;
use zkhost_cuda::KeyDimensions;
use zkhost_engine::ids::CircuitId;
use zkhost_engine::synthesis;
use zkhost_groth16::formats::{read_shape, write_shape};
use zkhost_groth16::image::open_image;
use zkhost_groth16::key::Phase2;
use zkhost_groth16::{BoundKey, CpuProver, PreparedVerifyingKey, R1cs};
use zkhost_runtime::{Cache, CacheKey, Circuit, Info, Layout, Runtime};

/// Bytes of a recorded shape in the cache at most.
const SHAPE_BYTES_MAX: u64 = 4 << 30;

/// Bytes at the start of a key image that commit to all of it.
const KEY_HEADER_BYTES: usize = 4096;

/// Why a circuit was not loaded, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadFailure(pub String);

/// What proving needs in memory: the constraint system and the mapped key.
pub struct Resident {
    /// The CPU's prover, which holds both.
    pub prover: Arc<CpuProver>,
    /// The constraint system.
    pub shape: Arc<R1cs>,
    /// The circuit as the engine knows it.
    pub circuit: synthesis::Circuit,
}

/// A circuit that jobs may name.
pub struct HostedCircuit {
    digest: Digest,
    manifest: Manifest,
    source: Source,
    component: Circuit,
    info: Info,
    layout: Layout,
    shapes: Arc<Cache>,
    key_path: PathBuf,
    phase2: Phase2,
    facts: Facts,
    verifier: PreparedVerifyingKey,
    resident: Mutex<Slot>,
    used: Mutex<Instant>,
    /// Jobs that were taken up and are not done.
    users: AtomicU64,
}

/// Key and constraint system: kept, or only known of as long as a job has them.
#[derive(Default)]
struct Slot {
    kept: Option<Arc<Resident>>,
    known: Weak<Resident>,
}

/// What is known of the circuit without its key.
struct Facts {
    engine: CircuitId,
    dimensions: KeyDimensions,
    shape: String,
    publics: u64,
    aux: u64,
    constraints: u64,
    key_bytes: u64,
    shape_bytes: u64,
    proven: bool,
}

/// The files of a circuit.
pub(super) struct Files {
    pub component: PathBuf,
    pub key: PathBuf,
}

impl HostedCircuit {
    /// Load: check the component, its plan and its shape, the key, and that they belong together. Takes from milliseconds
    /// to minutes; nothing stays in memory but what names and judges.
    pub(super) fn load(
        runtime: &Runtime,
        shapes: &Arc<Cache>,
        manifest: Manifest,
        files: Files,
        source: Source,
        phase2: Phase2,
    ) -> Result<Self, LoadFailure> {
        let named = |error: String| LoadFailure(format!("circuit `{}`: {error}", manifest.name));
        let limits = manifest.limits().map_err(named)?;
        let component = read_component(&files.component, limits.component_bytes).map_err(named)?;
        let component = runtime.load(&manifest.name, &component, limits).map_err(said)?;
        let info = component.describe().map_err(said)?;
        let layout = component.plan(manifest.params.as_bytes()).map_err(said)?;
        let shape = Arc::new(recorded_shape(&component, shapes, &manifest)?);
        component.segment_limits(&layout, &shape).map_err(said)?;
        let (key_header, key_bytes) = key_header(&files.key).map_err(named)?;
        let resident = open(&files.key, phase2, shape).map_err(named)?;
        let bound = zkhost_groth16::Prover::bound(resident.prover.as_ref());
        let facts = Facts {
            engine: resident.circuit.id,
            dimensions: KeyDimensions::of(&bound.key, &bound.r1cs),
            shape: resident.shape.hash().to_string(),
            publics: resident.shape.public_count.into(),
            aux: resident.shape.aux_count.into(),
            constraints: resident.shape.constraints() as u64,
            key_bytes,
            shape_bytes: shape_bytes(&resident.shape),
            proven: bound.key.proven,
        };
        Ok(Self {
            digest: digest(&manifest, component.digest(), key_header),
            verifier: bound.verifier.clone(),
            manifest,
            source,
            component,
            info,
            layout,
            shapes: shapes.clone(),
            key_path: files.key,
            phase2,
            facts,
            resident: Mutex::default(),
            used: Mutex::new(Instant::now()),
            users: AtomicU64::new(0),
        })
    }

    /// Names it exactly.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What its manifest calls it.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it came from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The component.
    pub fn component(&self) -> &Circuit {
        &self.component
    }

    /// How a job divides.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The engine's name for it: circuits of one constraint system and key share it.
    pub fn engine_id(&self) -> CircuitId {
        self.facts.engine
    }

    /// What its key takes on a GPU follows from these.
    pub fn key_dimensions(&self) -> KeyDimensions {
        self.facts.dimensions
    }

    /// Bytes of key and constraint system in memory.
    pub fn resident_bytes(&self) -> u64 {
        self.facts.key_bytes + self.facts.shape_bytes
    }

    /// Public inputs of each partition.
    pub fn public_count(&self) -> usize {
        self.facts.publics as usize
    }

    /// What its proofs are verified with.
    pub fn verifier(&self) -> &PreparedVerifyingKey {
        &self.verifier
    }

    /// Key and constraint system, opened now if they are not in memory. Callers wait for one who already opens them.
    pub fn resident(&self) -> Result<Arc<Resident>, LoadFailure> {
        let mut slot = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        // What was given up while a job has it still serves that job, whose key's file may be gone.
        if let Some(resident) = slot.kept.clone().or_else(|| slot.known.upgrade()) {
            return Ok(resident);
        }
        let shape = Arc::new(recorded_shape(&self.component, &self.shapes, &self.manifest)?);
        let resident = open(&self.key_path, self.phase2, shape)
            .map_err(|error| LoadFailure(format!("circuit `{}`: {error}", self.name())))?;
        if resident.circuit.id != self.facts.engine {
            let path = self.key_path.display();
            return Err(LoadFailure(format!(
                "circuit `{}`: key {path} changed since the circuit was loaded; load it as a circuit of its own",
                self.name()
            )));
        }
        let resident = Arc::new(resident);
        *slot = Slot { known: Arc::downgrade(&resident), kept: Some(resident.clone()) };
        Ok(resident)
    }

    /// Whether key and constraint system are in memory.
    pub fn is_resident(&self) -> bool {
        // Somebody who opens them holds the lock.
        self.resident.try_lock().is_ok_and(|slot| slot.kept.is_some())
    }

    /// Give up key and constraint system; jobs that run keep them until they end. Says whether there was anything.
    pub fn evict(&self) -> bool {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner).kept.take().is_some()
    }

    /// Give them up if no job uses them and none has for so long.
    pub fn evict_if_idle(&self, age: Duration) -> bool {
        let idle = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        self.users.load(Ordering::Relaxed) == 0 && idle >= age && self.is_resident() && self.evict()
    }

    /// A job was taken up, until the guard is dropped.
    pub fn begin_use(self: &Arc<Self>) -> InUse {
        self.users.fetch_add(1, Ordering::Relaxed);
        InUse(self.clone())
    }

    /// For people.
    pub fn describe(&self, pinned: bool) -> types::Circuit {
        types::Circuit {
            digest: self.digest.to_string(),
            name: self.name().to_owned(),
            version: self.info.version.clone(),
            about: self.info.about.clone(),
            input_help: self.info.input_help.clone(),
            component: self.component.digest().to_string(),
            shape: self.facts.shape.clone(),
            publics: self.facts.publics,
            aux: self.facts.aux,
            constraints: self.facts.constraints,
            partitions: self.layout.partitions,
            key_bytes: self.facts.key_bytes,
            proven: self.facts.proven,
            resident: self.is_resident(),
            pinned,
            source: self.source.name().to_owned(),
            limits: self.component.limits().named().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }
}

/// A circuit is in use as long as this lives.
pub struct InUse(Arc<HostedCircuit>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::Relaxed);
    }
}

fn said(error: impl std::fmt::Display) -> LoadFailure {
    LoadFailure(error.to_string())
}

fn read_component(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot read the component {}: {error}", path.display()))?;
    Ok(bytes)
}

/// The digest of the page that commits to the whole key image, and the image's length.
fn key_header(path: &Path) -> Result<(Digest, u64), String> {
    let read = || -> std::io::Result<_> {
        let mut file = File::open(path)?;
        let mut header = [0; KEY_HEADER_BYTES];
        let length = file.metadata()?.len();
        file.read_exact(&mut header)?;
        Ok((blake3::hash(&header).into(), length))
    };
    read().map_err(|error| format!("cannot read the key {} (a key image was expected): {error}", path.display()))
}

fn open(path: &Path, phase2: Phase2, shape: Arc<R1cs>) -> Result<Resident, String> {
    let with_path = |error: &dyn std::fmt::Display| format!("key {}: {error}", path.display());
    let file = File::open(path).map_err(|error| with_path(&error))?;
    let key = Arc::new(open_image(&file, phase2).map_err(|error| with_path(&error))?);
    let prover = CpuProver::new(key, shape.clone()).map_err(|error| with_path(&error))?;
    let bound: &BoundKey = zkhost_groth16::Prover::bound(&prover);
    Ok(Resident { circuit: synthesis::Circuit::of(bound), prover: Arc::new(prover), shape })
}

/// The constraint system: from the cache if it was recorded before and is within the limits of now.
fn recorded_shape(component: &Circuit, shapes: &Cache, manifest: &Manifest) -> Result<R1cs, LoadFailure> {
    let params = manifest.params.as_bytes();
    let key = CacheKey::of_shape(component.digest(), params);
    let limits = component.limits();
    let fits = |shape: &R1cs| {
        let terms: u64 = shape.matrices.iter().map(|matrix| matrix.terms() as u64).sum();
        u64::from(shape.public_count) <= limits.publics
            && u64::from(shape.aux_count) <= limits.aux
            && shape.constraints() as u64 <= limits.constraints
            && terms <= limits.terms
            && shape.dictionary.len() as u64 <= limits.coefficients
    };
    let cached = shapes.load(&key, SHAPE_BYTES_MAX).and_then(|bytes| read_shape(&bytes).ok());
    if let Some(shape) = cached.filter(fits) {
        return Ok(shape);
    }
    let shape = component.record_shape(params, false).map_err(said)?;
    let mut encoded = Vec::new();
    let stored = write_shape(&shape, &mut encoded).and_then(|()| shapes.store(&key, &encoded));
    if let Err(error) = stored {
        tracing::warn!(circuit = %manifest.name, %error, "the recorded shape is not cached and will be recorded again");
    }
    Ok(shape)
}

/// About what a constraint system takes in memory.
fn shape_bytes(shape: &R1cs) -> u64 {
    let terms: u64 = shape.matrices.iter().map(|matrix| matrix.terms() as u64).sum();
    8 * terms + 24 * shape.constraints() as u64 + 32 * shape.dictionary.len() as u64
}

fn digest(manifest: &Manifest, component: blake3::Hash, key: Digest) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("zkhost 2026 circuit of a manifest");
    let mut field = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    field(manifest.name.as_bytes());
    field(component.as_bytes());
    field(&key.0);
    field(manifest.params.as_bytes());
    for (name, value) in &manifest.limits {
        field(name.as_bytes());
        field(&value.to_le_bytes());
    }
    hasher.finalize().into()
}
