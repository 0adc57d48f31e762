//! One circuit with one key, loaded: checked once, after which key and constraint system are opened when they are needed.

use super::guest::{Guest, OpenGuest};
use super::images::Images;
use super::manifest::{Files, Manifest};
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
use zkhost_groth16::image::open_image;
use zkhost_groth16::key::Phase2;
use zkhost_groth16::{BoundKey, CpuProver, PreparedVerifyingKey, R1cs};
use zkhost_runtime::{Cache, Limits, Runtime};

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
    /// What writes assignments for it.
    pub guest: OpenGuest,
    /// The circuit as the engine knows it.
    pub circuit: synthesis::Circuit,
}

/// A circuit that jobs may name: one for each key of a manifest.
pub struct HostedCircuit {
    digest: Digest,
    /// The digest of the circuit with the manifest's first key.
    bundle: Digest,
    manifest: Arc<Manifest>,
    source: Source,
    guest: Arc<Guest>,
    /// The key's name in the manifest.
    key: String,
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

/// What circuits are loaded with.
pub(super) struct Loader<'a> {
    pub runtime: &'a Runtime,
    pub shapes: &'a Arc<Cache>,
    pub images: &'a Images,
    pub phase2: Phase2,
}

impl HostedCircuit {
    /// Load what a manifest describes: check the guest, its plan and its shape, the keys, and that they belong together. Takes
    /// from milliseconds to minutes; nothing stays in memory but what names and judges. One circuit for each key, in order.
    pub(super) fn load(
        loader: &Loader<'_>,
        manifest: Manifest,
        files: &Files<PathBuf>,
        source: &Source,
    ) -> Result<Vec<Self>, LoadFailure> {
        let (guest, open_guest) = Guest::load(loader.runtime, loader.shapes, &manifest, &files.program)?;
        let named = |error: String| LoadFailure(format!("circuit `{}`: {error}", manifest.name));
        let mut keys = vec![];
        for key in &files.keys {
            let path = loader.images.of(&key.file, open_guest.r1cs(), loader.phase2).map_err(named)?;
            let (header, bytes) = key_header(&path).map_err(named)?;
            keys.push((key.name.clone(), path, header, bytes));
        }
        let headers: Vec<_> = keys.iter().map(|(name, _, header, _)| (name.as_str(), *header)).collect();
        let digests = digests(&manifest, &guest, &headers);
        let (manifest, guest) = (Arc::new(manifest), Arc::new(guest));
        let mut circuits = vec![];
        for ((key, key_path, _, key_bytes), digest) in keys.into_iter().zip(&digests) {
            let named = |error: String| LoadFailure(format!("circuit `{}`: {error}", manifest.name));
            let resident = open(&key_path, loader.phase2, open_guest.clone()).map_err(named)?;
            let bound = zkhost_groth16::Prover::bound(resident.prover.as_ref());
            circuits.push(Self {
                digest: *digest,
                bundle: digests[0],
                facts: Facts::of(&resident, key_bytes),
                verifier: bound.verifier.clone(),
                manifest: manifest.clone(),
                source: source.clone(),
                guest: guest.clone(),
                key,
                key_path,
                phase2: loader.phase2,
                resident: Mutex::default(),
                used: Mutex::new(Instant::now()),
                users: AtomicU64::new(0),
            });
        }
        Ok(circuits)
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

    /// The circuits of one manifest have the digest of its first.
    pub fn bundle(&self) -> Digest {
        self.bundle
    }

    /// The name of its key, where its manifest has several.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where the image of its key is.
    pub(super) fn key_path(&self) -> &Path {
        &self.key_path
    }

    /// The guest's limits.
    pub fn limits(&self) -> &Limits {
        self.guest.limits()
    }

    /// Proofs of a job.
    pub fn partitions(&self) -> u32 {
        self.guest.partitions()
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
        let resident = open(&self.key_path, self.phase2, self.guest.open()?)
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
        let [version, about, input_help] = self.guest.words();
        types::Circuit {
            digest: self.digest.to_string(),
            name: self.name().to_owned(),
            key: self.key.clone(),
            kind: self.guest.kind().to_owned(),
            version,
            about,
            input_help,
            component: self.guest.code_digest().to_string(),
            shape: self.facts.shape.clone(),
            publics: self.facts.publics,
            aux: self.facts.aux,
            constraints: self.facts.constraints,
            partitions: self.partitions(),
            key_bytes: self.facts.key_bytes,
            proven: self.facts.proven,
            resident: self.is_resident(),
            pinned,
            source: self.source.name().to_owned(),
            limits: self.limits().named().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }
}

impl Facts {
    fn of(resident: &Resident, key_bytes: u64) -> Self {
        let (shape, bound) = (resident.guest.r1cs(), zkhost_groth16::Prover::bound(resident.prover.as_ref()));
        Self {
            engine: resident.circuit.id,
            dimensions: KeyDimensions::of(&bound.key, &bound.r1cs),
            shape: shape.hash().to_string(),
            publics: shape.public_count.into(),
            aux: shape.aux_count.into(),
            constraints: shape.constraints() as u64,
            key_bytes,
            shape_bytes: shape_bytes(shape),
            proven: bound.key.proven,
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

fn open(path: &Path, phase2: Phase2, guest: OpenGuest) -> Result<Resident, String> {
    let with_path = |error: &dyn std::fmt::Display| format!("key {}: {error}", path.display());
    let file = File::open(path).map_err(|error| with_path(&error))?;
    let key = Arc::new(open_image(&file, phase2).map_err(|error| with_path(&error))?);
    let prover = CpuProver::new(key, guest.r1cs().clone()).map_err(|error| with_path(&error))?;
    let bound: &BoundKey = zkhost_groth16::Prover::bound(&prover);
    Ok(Resident { circuit: synthesis::Circuit::of(bound), prover: Arc::new(prover), guest })
}

/// About what a constraint system takes in memory.
fn shape_bytes(shape: &R1cs) -> u64 {
    let terms: u64 = shape.matrices.iter().map(|matrix| matrix.terms() as u64).sum();
    8 * terms + 24 * shape.constraints() as u64 + 32 * shape.dictionary.len() as u64
}

/// The digests of a manifest's circuits, one for each key by name and header: each commits to all that the manifest names.
fn digests(manifest: &Manifest, guest: &Guest, keys: &[(&str, Digest)]) -> Vec<Digest> {
    let field = |hasher: &mut blake3::Hasher, bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    };
    let digest = |(name, key): &(&str, Digest)| {
        let mut hasher = blake3::Hasher::new_derive_key("zkhost 2026 circuit of a manifest");
        field(&mut hasher, manifest.name.as_bytes());
        field(&mut hasher, guest.digest().as_bytes());
        field(&mut hasher, &key.0);
        field(&mut hasher, manifest.params.as_bytes());
        for (name, value) in &manifest.limits {
            field(&mut hasher, name.as_bytes());
            field(&mut hasher, &value.to_le_bytes());
        }
        if !name.is_empty() {
            field(&mut hasher, b"keys");
            for (name, key) in keys {
                field(&mut hasher, name.as_bytes());
                field(&mut hasher, &key.0);
            }
            field(&mut hasher, name.as_bytes());
        }
        hasher.finalize().into()
    };
    keys.iter().map(digest).collect()
}
