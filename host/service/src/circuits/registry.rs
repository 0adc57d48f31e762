//! All circuits: scanned from a folder, uploaded, found, pinned, unloaded.

use super::blobs::Blobs;
use super::hosted::{HostedCircuit, LoadFailure, Loader};
use super::images::Images;
use super::manifest::{FileRef, Files, MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest};
use crate::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::SystemTime;
use zkhost_client::types;
use zkhost_engine::ids::CircuitId;
use zkhost_groth16::key::Phase2;
use zkhost_runtime::{Cache, Runtime};

/// Digits of a digest that stand for it, at least.
const PREFIX_DIGITS_MIN: usize = 8;

/// Where a circuit came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder of the watched folder.
    Folder(PathBuf),
    /// An upload, whose manifest is kept here.
    Upload,
}

impl Source {
    /// In JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Folder(_) => "folder",
            Self::Upload => "upload",
        }
    }
}

/// Why a circuit was not found, loaded or unloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// There is none.
    #[error("no circuit `{0}` is loaded; `GET /v1/circuits` lists those that are, and why others are not")]
    Unknown(String),
    /// There are several.
    #[error("several circuits are called `{name}`: {digests}; name one by its digest, or pin one")]
    Ambiguous {
        /// The name.
        name: String,
        /// Their digests.
        digests: String,
    },
    /// It cannot be used.
    #[error(transparent)]
    Refused(#[from] LoadFailure),
    /// There are too many.
    #[error("{circuits_max} circuits are loaded, the limit (setting `circuits.loaded_max`); unload one first")]
    Full {
        /// The limit.
        circuits_max: usize,
    },
    /// It would come back at once.
    #[error("the circuit comes from the watched folder {}; remove that folder to unload it", .0.display())]
    Watched(PathBuf),
    /// The file system failed.
    #[error("cannot keep the circuit: {0}")]
    Io(#[from] std::io::Error),
}

/// Settings of a registry.
#[derive(Clone, Debug)]
pub struct RegistrySettings {
    /// The watched folder.
    pub folder: Option<PathBuf>,
    /// Where uploaded manifests and pins are kept.
    pub data: PathBuf,
    /// Circuits at most.
    pub loaded_max: usize,
    /// Whether keys without a second phase are taken.
    pub phase2: Phase2,
}

/// All circuits.
pub struct Registry {
    runtime: Runtime,
    shapes: Arc<Cache>,
    blobs: Blobs,
    images: Images,
    settings: RegistrySettings,
    state: RwLock<State>,
    /// One circuit is loaded at a time: compiling and recording take all cores and much memory.
    loading: Mutex<()>,
}

#[derive(Default)]
struct State {
    circuits: BTreeMap<Digest, Arc<HostedCircuit>>,
    pins: BTreeMap<String, Digest>,
    folders: BTreeMap<PathBuf, Scanned>,
    /// Unloaded, and perhaps still in use.
    retired: Vec<Weak<HostedCircuit>>,
}

impl State {
    /// Unload the circuits of a manifest; the jobs that use them keep them. Another folder that holds them is looked at again, as if
    /// it were new: their files were those of the first.
    fn retire(&mut self, bundle: Digest) {
        self.retired.retain(|circuit| circuit.strong_count() > 0);
        let gone = self.circuits.extract_if(.., |_, circuit| circuit.bundle() == bundle);
        self.retired.extend(gone.map(|(_, circuit)| Arc::downgrade(&circuit)));
        self.folders.retain(|_, folder| folder.loaded != Some(bundle));
    }
}

/// What was last seen in a folder.
struct Scanned {
    stamp: Stamp,
    /// The first circuit of the manifest that is loaded from it: the last one that could be.
    loaded: Option<Digest>,
    /// Why what is there now cannot be.
    refused: Option<String>,
}

/// Changes when a file of the folder does: names, lengths and times.
type Stamp = Vec<(std::ffi::OsString, u64, Option<SystemTime>)>;

impl Registry {
    /// An empty registry.
    pub fn new(runtime: Runtime, shapes: Cache, blobs: Blobs, settings: RegistrySettings) -> std::io::Result<Self> {
        std::fs::create_dir_all(settings.data.join("uploads"))?;
        let pins = match std::fs::read(settings.data.join("pins.json")) {
            Ok(bytes) => {
                let pins: BTreeMap<String, String> = serde_json::from_slice(&bytes).unwrap_or_default();
                pins.into_iter().filter_map(|(name, digest)| Some((name, digest.parse().ok()?))).collect()
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        let state = RwLock::new(State { pins, ..State::default() });
        let (shapes, images) = (Arc::new(shapes), Images::open(settings.data.join("images"))?);
        Ok(Self { runtime, shapes, blobs, images, settings, state, loading: Mutex::default() })
    }

    /// Uploaded files.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Load the circuits that were uploaded before. What cannot be loaded any more is logged and kept for another start.
    pub fn load_uploads(&self) -> std::io::Result<()> {
        let mut named = BTreeSet::new();
        let mut unread = false;
        for path in self.upload_manifests()? {
            let manifest = read_manifest(&path);
            unread |= manifest.is_err();
            let loaded = manifest.and_then(|manifest| {
                named.extend(digests_of(&manifest));
                self.load_upload(manifest).map_err(|error| error.to_string())
            });
            if let Err(error) = loaded {
                tracing::error!(manifest = %path.display(), %error, "an uploaded circuit was not loaded");
            }
        }
        // What a manifest that cannot be read names is not known, so nothing can be removed.
        if unread { Ok(()) } else { self.blobs.remove_unnamed(|digest| named.contains(&digest), false) }
    }

    /// Load a circuit whose files were uploaded, and keep its manifest.
    pub fn upload(&self, text: &str) -> Result<Arc<HostedCircuit>, RegistryError> {
        let manifest = Manifest::parse(text).map_err(|error| LoadFailure(format!("the manifest: {error}")))?;
        if manifest.files.iter().any(|(_, file)| file.file.is_some()) {
            let sentence =
                "the manifest of an upload names its files by `blake3` alone, as `POST /v1/blobs` returned it";
            return Err(LoadFailure(sentence.into()).into());
        }
        // Images may have been made of keys that nobody has now.
        let circuit = self.load_upload(manifest).inspect_err(|_| self.tidy_images())?;
        write_whole(&self.manifest_path(circuit.bundle()), text.as_bytes())?;
        Ok(circuit)
    }

    fn load_upload(&self, manifest: Manifest) -> Result<Arc<HostedCircuit>, RegistryError> {
        let file = |what: &str, file: &FileRef| {
            let path = file.digest().map(|digest| self.blobs.path(digest)).filter(|path| path.exists());
            let digest = file.blake3.as_deref().unwrap_or_default();
            path.ok_or_else(|| LoadFailure(format!("{what} {digest} was not uploaded; send it to `POST /v1/blobs`")))
        };
        let files = manifest.files.try_map(file)?;
        self.load(manifest, &files, Source::Upload)
    }

    /// Look at the watched folder: load what is new or changed, unload what is gone. A folder that holds no circuit is
    /// refused with its sentence and changes nothing else. Says whether anything changed.
    pub fn scan(&self) -> bool {
        let Some(folder) = &self.settings.folder else { return false };
        let mut found = BTreeMap::new();
        let entries: std::io::Result<Vec<_>> = std::fs::read_dir(folder).and_then(|entries| entries.collect());
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                let sentence = "the watched folder cannot be read; its circuits stay as they are";
                tracing::error!(folder = %folder.display(), %error, "{sentence}");
                return false;
            }
        };
        for entry in entries {
            if entry.path().join(MANIFEST_FILE).is_file() {
                found.insert(entry.path(), stamp(&entry.path()));
            }
        }
        let gone: Vec<_> = self.read().folders.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        let mut changed = !gone.is_empty();
        gone.iter().for_each(|path| self.forget_folder(path));
        let mut again = false;
        for (path, stamp) in found {
            if self.read().folders.get(&path).is_some_and(|scanned| scanned.stamp == stamp) {
                continue;
            }
            changed = true;
            let (new, refused) = match self.load_folder(&path) {
                Ok(circuit) => {
                    tracing::info!(folder = %path.display(), digest = %circuit.digest(), "circuit loaded");
                    (Some(circuit.digest()), None)
                }
                Err(error) => {
                    tracing::warn!(folder = %path.display(), %error, "circuit refused");
                    (None, Some(error.to_string()))
                }
            };
            let mut state = self.write();
            let old = state.folders.get(&path).and_then(|scanned| scanned.loaded);
            state.folders.insert(path, Scanned { stamp, loaded: new.or(old), refused });
            drop(state);
            // A folder that changed holds another circuit now. One that no longer loads leaves the old one in place.
            if let (Some(old), Some(new)) = (old, new)
                && old != new
            {
                self.let_go(old);
                again = true;
            }
        }
        if again {
            // For a folder that came before in the list and holds what another one let go.
            self.scan();
        }
        if changed {
            self.tidy_images();
        }
        changed
    }

    /// A folder no longer holds a circuit. If it was uploaded as well, that copy takes its place.
    fn let_go(&self, digest: Digest) {
        self.write().retire(digest);
        let path = self.manifest_path(digest);
        if path.exists()
            && let Err(error) =
                read_manifest(&path).map_err(|error| LoadFailure(error).into()).and_then(|text| self.load_upload(text))
        {
            tracing::error!(%digest, %error, "an uploaded circuit was not loaded");
        }
    }

    fn load_folder(&self, folder: &Path) -> Result<Arc<HostedCircuit>, RegistryError> {
        let manifest = read_manifest(&folder.join(MANIFEST_FILE)).map_err(LoadFailure)?;
        let file = |what: &str, file: &FileRef| -> Result<PathBuf, LoadFailure> {
            let Some(name) = &file.file else {
                return Err(LoadFailure(format!("{what}: the manifest of a folder names its files by `file`")));
            };
            let path = folder.join(name);
            match file.digest() {
                None => Ok(path),
                Some(digest) => check_digest(&path, digest).map(|()| path),
            }
        };
        let files = manifest.files.try_map(file)?;
        self.load(manifest, &files, Source::Folder(folder.to_owned()))
    }

    /// Load a circuit for each key of a manifest. Returns the first.
    fn load(
        &self,
        manifest: Manifest,
        files: &Files<PathBuf>,
        source: Source,
    ) -> Result<Arc<HostedCircuit>, RegistryError> {
        let _one = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let circuits_max = self.settings.loaded_max;
        if self.read().circuits.len() + files.keys.len() > circuits_max {
            return Err(RegistryError::Full { circuits_max });
        }
        let phase2 = self.settings.phase2;
        let loader = Loader { runtime: &self.runtime, shapes: &self.shapes, images: &self.images, phase2 };
        let loaded = HostedCircuit::load(&loader, manifest, files, &source)?;
        let mut state = self.write();
        // One that is loaded already stays, with the jobs that use it.
        let mut keep = |circuit: HostedCircuit| {
            state.circuits.entry(circuit.digest()).or_insert_with(|| Arc::new(circuit)).clone()
        };
        let circuits: Vec<_> = loaded.into_iter().map(&mut keep).collect();
        circuits.into_iter().next().ok_or_else(|| LoadFailure("the manifest names no key".into()).into())
    }

    /// The circuit of a digest, of the beginning of one, or of a name; a name stands for the manifest's first key unless one
    /// follows it, after a colon.
    pub fn find(&self, text: &str) -> Result<Arc<HostedCircuit>, RegistryError> {
        let state = self.read();
        if let Some(circuit) = text.parse().ok().and_then(|digest: Digest| state.circuits.get(&digest)) {
            return Ok(circuit.clone());
        }
        if let Some(circuit) = state.pins.get(text).and_then(|digest| state.circuits.get(digest)) {
            return Ok(circuit.clone());
        }
        let is_prefix = text.len() >= PREFIX_DIGITS_MIN && text.chars().all(|c| c.is_ascii_hexdigit());
        let (name, key) = text.split_once(':').map_or((text, None), |(name, key)| (name, Some(key)));
        let matches = |circuit: &&Arc<HostedCircuit>| {
            let is_key = key.map_or(circuit.digest() == circuit.bundle(), |key| circuit.key() == key);
            (circuit.name() == name && is_key) || (is_prefix && circuit.digest().to_string().starts_with(text))
        };
        let found: Vec<_> = state.circuits.values().filter(matches).collect();
        match found.as_slice() {
            [] => Err(RegistryError::Unknown(text.chars().take(80).collect())),
            [one] => Ok((*one).clone()),
            several => {
                let digests = several.iter().map(|circuit| circuit.digest().to_string()).collect::<Vec<_>>();
                Err(RegistryError::Ambiguous { name: text.to_owned(), digests: digests.join(", ") })
            }
        }
    }

    /// The circuit of a digest.
    pub fn get(&self, digest: Digest) -> Option<Arc<HostedCircuit>> {
        self.read().circuits.get(&digest).cloned()
    }

    /// A circuit of this constraint system and key, loaded or still in use.
    pub fn of_engine(&self, id: CircuitId) -> Option<Arc<HostedCircuit>> {
        let state = self.read();
        let retired = state.retired.iter().filter_map(Weak::upgrade);
        let all = state.circuits.values().cloned().chain(retired).filter(|circuit| circuit.engine_id() == id);
        // Of several with one key, one whose key is open.
        all.max_by_key(|circuit| circuit.is_resident())
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<HostedCircuit>> {
        self.read().circuits.values().cloned().collect()
    }

    /// For people.
    pub fn describe(&self, circuit: &HostedCircuit) -> types::Circuit {
        circuit.describe(self.read().pins.get(circuit.name()) == Some(&circuit.digest()))
    }

    /// For people: those that are loaded, and why others are not.
    pub fn list(&self) -> types::CircuitList {
        let circuits = self.all().iter().map(|circuit| self.describe(circuit)).collect();
        let refused =
            |(path, scanned): (&PathBuf, &Scanned)| Some((path.display().to_string(), scanned.refused.clone()?));
        types::CircuitList { circuits, refused: self.read().folders.iter().filter_map(refused).collect() }
    }

    /// Let the circuit's name stand for it, whatever else has that name.
    pub fn pin(&self, circuit: &HostedCircuit) -> Result<(), RegistryError> {
        let mut state = self.write();
        state.pins.insert(circuit.name().to_owned(), circuit.digest());
        let pins: BTreeMap<_, _> = state.pins.iter().map(|(name, digest)| (name, digest.to_string())).collect();
        let text = serde_json::to_vec(&pins).map_err(std::io::Error::other)?;
        Ok(write_whole(&self.settings.data.join("pins.json"), &text)?)
    }

    /// Unload an uploaded circuit, with all keys of its manifest, and remove files that no other one names. Jobs that run keep
    /// it until they end.
    pub fn unload(&self, circuit: &HostedCircuit) -> Result<(), RegistryError> {
        if let Source::Folder(folder) = circuit.source() {
            return Err(RegistryError::Watched(folder.clone()));
        }
        let _one = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        match std::fs::remove_file(self.manifest_path(circuit.bundle())) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        for other in self.all().iter().filter(|other| other.bundle() == circuit.bundle()) {
            other.evict();
        }
        self.write().retire(circuit.bundle());
        // Only its own files: others may be uploads whose manifest is yet to come.
        self.remove_those_unnamed(&digests_of(circuit.manifest()))?;
        Ok(self.remove_images()?)
    }

    /// Remove uploaded files of which nothing came, but those that a circuit names. What cannot be removed now goes at a
    /// start a day later or more, with the files that nobody names; why nothing came is the better answer meanwhile.
    pub fn remove_files(&self, digests: &[Digest]) {
        let _one = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.remove_those_unnamed(&digests.iter().copied().collect()) {
            tracing::error!(%error, "files of a pull that failed cannot be removed");
        }
    }

    /// Under the lock `loading`.
    fn remove_those_unnamed(&self, files: &BTreeSet<Digest>) -> std::io::Result<()> {
        let mut named: BTreeSet<_> = self.all().iter().flat_map(|circuit| digests_of(circuit.manifest())).collect();
        // Also uploads in whose place a folder's circuit is loaded, and those that wait for another start.
        for path in self.upload_manifests()? {
            // What one that cannot be read names is not known, so nothing can be removed.
            let Ok(manifest) = read_manifest(&path) else { return Ok(()) };
            named.extend(digests_of(&manifest));
        }
        self.blobs.remove_unnamed(|digest| named.contains(&digest) || !files.contains(&digest), true)
    }

    /// Remove the images of keys that no loaded circuit has.
    fn remove_images(&self) -> std::io::Result<()> {
        let circuits = self.all();
        self.images.remove(|path| circuits.iter().all(|circuit| circuit.key_path() != path))
    }

    fn tidy_images(&self) {
        let _one = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.remove_images() {
            tracing::error!(%error, "images of keys that are no longer used cannot be removed");
        }
    }

    fn forget_folder(&self, path: &Path) {
        let removed = self.write().folders.remove(path);
        if let Some(Scanned { loaded: Some(digest), .. }) = removed {
            self.let_go(digest);
            tracing::info!(folder = %path.display(), %digest, "circuit unloaded: its folder is gone");
        }
    }

    /// The manifests of uploads. Other files beside them were half written when a host died.
    fn upload_manifests(&self) -> std::io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(self.settings.data.join("uploads"))?;
        let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect())
    }

    fn manifest_path(&self, digest: Digest) -> PathBuf {
        self.settings.data.join("uploads").join(format!("{digest}.toml"))
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_manifest(path: &Path) -> Result<Manifest, String> {
    let mut text = String::new();
    let limit = MANIFEST_BYTES_MAX as u64 + 1;
    let read = std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text));
    read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Manifest::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn check_digest(path: &Path, expected: Digest) -> Result<(), LoadFailure> {
    let mut hasher = blake3::Hasher::new();
    let hashed =
        std::fs::File::open(path).and_then(|file| std::io::copy(&mut std::io::BufReader::new(file), &mut hasher));
    hashed.map_err(|error| LoadFailure(format!("cannot read {}: {error}", path.display())))?;
    let found = Digest::from(hasher.finalize());
    if found == expected {
        return Ok(());
    }
    let path = path.display();
    Err(LoadFailure(format!("{path} has BLAKE3 {found}, its manifest says {expected}; replace the file or the digest")))
}

/// Write a small file whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn stamp(folder: &Path) -> Stamp {
    let mut stamp = Stamp::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Ok(metadata) = entry.metadata() {
            stamp.push((entry.file_name(), metadata.len(), metadata.modified().ok()));
        }
    }
    stamp.sort();
    stamp
}

/// The uploaded files that a manifest names.
fn digests_of(manifest: &Manifest) -> BTreeSet<Digest> {
    manifest.files.iter().filter_map(|(_, file)| file.digest()).collect()
}
