//! Circuits from an OCI registry, by digest: the artifact that `oras push` makes of a circuit's folder, its manifest one
//! of the layers, each layer titled with its file's name. Nothing is believed but digests: that of the artifact is the
//! operator's, and its manifest has those of the layers.
//!
//! Sources: OCI distribution specification 1.1 (pulling), OCI image specification 1.1 (manifest, title annotation).

mod http;
mod reference;

pub use reference::Reference;

use crate::Digest;
use crate::circuits::{BlobError, Blobs, FileRef, MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest};
use crate::config::RegistryAllowed;
use bytes::Bytes;
use http::Remote;
use ring::digest::{Context, SHA256};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of an artifact's manifest at most.
pub const ARTIFACT_BYTES_MAX: u64 = 1 << 20;

/// Layers of an artifact at most.
pub const LAYERS_MAX: usize = 64;

/// How long one pull may take, keys of many gigabytes included.
const PULL_TIME_MAX: Duration = Duration::from_secs(4 * 3600);

/// The media types of manifests that are understood; both have the same form.
const MANIFEST_TYPES: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";

/// The annotation by which a layer says its file's name.
const TITLE: &str = "org.opencontainers.image.title";

/// Why nothing was pulled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// What was asked for.
    #[error("`{reference}` is no reference by digest: {reason}; expected REGISTRY/NAME@sha256:DIGEST")]
    Reference {
        /// What was given.
        reference: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The operator does not want it.
    #[error("registry `{host}` is not among those allowed ({allowed}); setting `circuits.registries`")]
    NotAllowed {
        /// The registry.
        host: String,
        /// Those that are.
        allowed: String,
    },
    /// The registry did not answer, or not as it should.
    #[error("registry {host}, {what}: {reason}")]
    Remote {
        /// The registry.
        host: String,
        /// What was asked of it.
        what: String,
        /// What happened.
        reason: String,
    },
    /// What came is not what was asked for.
    #[error("{what}: {reason}; the registry, or something on the way, gives other bytes than the digest names")]
    Content {
        /// The manifest or the file.
        what: String,
        /// The difference.
        reason: String,
    },
    /// The artifact holds no circuit.
    #[error("artifact {reference}: {reason}")]
    Artifact {
        /// The artifact.
        reference: String,
        /// Why.
        reason: String,
    },
    /// There is no room for its files.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// The parts of an artifact's manifest that matter here.
#[derive(Deserialize)]
struct Artifact {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Pull a circuit's files into the uploads. Returns its manifest, in which they are named by BLAKE3. Digests of what came are
/// in `stored`, also when the pull fails.
pub async fn pull(
    reference: &Reference,
    allowed: &[RegistryAllowed],
    idle: Duration,
    blobs: &Blobs,
    stored: &mut Vec<Digest>,
) -> Result<Manifest, PullError> {
    let Some(settings) = allowed.iter().find(|registry| registry.host == reference.host) else {
        let names: Vec<_> = allowed.iter().map(|registry| registry.host.as_str()).collect();
        let allowed = if names.is_empty() { "none is".to_owned() } else { names.join(", ") };
        return Err(PullError::NotAllowed { host: reference.host.clone(), allowed });
    };
    let remote = Remote::new(settings, &reference.name, idle)?;
    let mut pull = Pull { reference, remote, blobs, stored };
    match tokio::time::timeout(PULL_TIME_MAX, pull.circuit()).await {
        Ok(manifest) => manifest,
        Err(_) => Err(pull.remote.failed("the pull", format!("it took longer than {} s", PULL_TIME_MAX.as_secs()))),
    }
}

struct Pull<'a> {
    reference: &'a Reference,
    remote: Remote<'a>,
    blobs: &'a Blobs,
    stored: &'a mut Vec<Digest>,
}

impl Pull<'_> {
    async fn circuit(&mut self) -> Result<Manifest, PullError> {
        let layers = self.layers().await?;
        let layer = self.layer(&layers, MANIFEST_FILE)?;
        if layer.size > MANIFEST_BYTES_MAX as u64 {
            return Err(
                self.artifact(format!("{MANIFEST_FILE} has {} bytes; the limit is {MANIFEST_BYTES_MAX}", layer.size))
            );
        }
        let text = self.small(layer).await?;
        let text = String::from_utf8(text).map_err(|_| self.artifact(format!("{MANIFEST_FILE} is no UTF-8 text")))?;
        let mut manifest =
            Manifest::parse(&text).map_err(|error| self.artifact(format!("{MANIFEST_FILE}: {error}")))?;
        let mut pulled: BTreeMap<String, Digest> = BTreeMap::new();
        let named = |what: &str, file: &FileRef| {
            file.file.clone().ok_or_else(|| format!("{what}: a manifest in an artifact names its files by `file`"))
        };
        let names = manifest.files.try_map(named).map_err(|reason| self.artifact(reason))?;
        // Before the first is fetched.
        names.iter().try_for_each(|(_, name)| self.layer(&layers, name).map(drop))?;
        for (_, name) in names.iter() {
            if !pulled.contains_key(name) {
                let digest = self.file(self.layer(&layers, name)?, name).await?;
                pulled.insert(name.clone(), digest);
            }
        }
        let by_digest = |what: &str, file: &FileRef| {
            let found = file.file.as_ref().and_then(|name| pulled.get(name)).copied();
            match (found, file.digest()) {
                (Some(found), Some(expected)) if found != expected => {
                    Err(format!("{what} has BLAKE3 {found}, its manifest says {expected}"))
                }
                (found, _) => Ok(FileRef { file: None, blake3: found.map(|digest| digest.to_string()) }),
            }
        };
        manifest.files = manifest.files.try_map(by_digest).map_err(|reason| self.artifact(reason))?;
        Ok(manifest)
    }

    /// The layers by their titles.
    async fn layers(&mut self) -> Result<BTreeMap<String, Layer>, PullError> {
        let digest = format!("sha256:{}", hex::encode(self.reference.sha256));
        let path = format!("/v2/{}/manifests/{digest}", self.reference.name);
        let mut body = self.remote.get(&path, MANIFEST_TYPES).await?;
        let mut content = Checked::new("the artifact's manifest".into(), self.reference.sha256);
        let mut bytes = Vec::new();
        while let Some(piece) = body.piece().await? {
            content.take(&piece, ARTIFACT_BYTES_MAX)?;
            bytes.extend_from_slice(&piece);
        }
        content.end()?;
        let artifact: Artifact =
            serde_json::from_slice(&bytes).map_err(|error| self.artifact(format!("its manifest: {error}")))?;
        if artifact.layers.len() > LAYERS_MAX {
            return Err(self.artifact(format!("it has {} layers; the limit is {LAYERS_MAX}", artifact.layers.len())));
        }
        let titled = |mut layer: Layer| Some((layer.annotations.remove(TITLE)?, layer));
        Ok(artifact.layers.into_iter().filter_map(titled).collect())
    }

    fn layer<'l>(&self, layers: &'l BTreeMap<String, Layer>, title: &str) -> Result<&'l Layer, PullError> {
        let titles = || layers.keys().map(|title| title.escape_debug().to_string()).collect::<Vec<_>>().join(", ");
        layers.get(title).ok_or_else(|| {
            self.artifact(format!(
                "no layer is titled `{title}` (there are: {}); push the circuit's folder with ORAS",
                titles()
            ))
        })
    }

    /// A layer in memory, whose size was checked.
    async fn small(&mut self, layer: &Layer) -> Result<Vec<u8>, PullError> {
        let mut bytes = Vec::new();
        let (mut body, mut content) = self.open(layer, MANIFEST_FILE).await?;
        while let Some(piece) = body.piece().await? {
            content.take(&piece, layer.size)?;
            bytes.extend_from_slice(&piece);
        }
        content.end_at(layer.size)?;
        Ok(bytes)
    }

    /// A layer on disk, among the uploads.
    async fn file(&mut self, layer: &Layer, name: &str) -> Result<Digest, PullError> {
        let mut writer = self.blobs.writer()?;
        writer.expect(layer.size)?;
        let (mut body, mut content) = self.open(layer, name).await?;
        while let Some(piece) = body.piece().await? {
            content.take(&piece, layer.size)?;
            writer = writer.append(piece).await?;
        }
        content.end_at(layer.size)?;
        let (digest, _) = writer.complete().await?;
        self.stored.push(digest);
        Ok(digest)
    }

    async fn open(&mut self, layer: &Layer, name: &str) -> Result<(http::Body, Checked), PullError> {
        let sha256 = reference::sha256(&layer.digest).ok_or_else(|| {
            self.artifact(format!("the digest of `{name}` is not `sha256:` and 64 hexadecimal digits"))
        })?;
        let path = format!("/v2/{}/blobs/sha256:{}", self.reference.name, hex::encode(sha256));
        Ok((self.remote.get(&path, "*/*").await?, Checked::new(format!("`{name}`"), sha256)))
    }

    fn artifact(&self, reason: String) -> PullError {
        PullError::Artifact { reference: self.reference.to_string(), reason }
    }
}

/// Bytes that have to have a digest.
struct Checked {
    what: String,
    expected: [u8; 32],
    context: Context,
    bytes: u64,
}

impl Checked {
    fn new(what: String, expected: [u8; 32]) -> Self {
        Self { what, expected, context: Context::new(&SHA256), bytes: 0 }
    }

    fn take(&mut self, piece: &Bytes, bytes_max: u64) -> Result<(), PullError> {
        self.bytes += piece.len() as u64;
        if self.bytes > bytes_max {
            return Err(self.differs(format!("it has more than {bytes_max} bytes")));
        }
        self.context.update(piece);
        Ok(())
    }

    fn end_at(self, bytes: u64) -> Result<(), PullError> {
        if self.bytes != bytes {
            return Err(self.differs(format!("it ended after {} of {bytes} bytes", self.bytes)));
        }
        self.end()
    }

    fn end(self) -> Result<(), PullError> {
        let found = self.context.clone().finish();
        if found.as_ref() == self.expected {
            return Ok(());
        }
        let (found, expected) = (hex::encode(found), hex::encode(self.expected));
        Err(self.differs(format!("it has SHA-256 {found}, {expected} was expected")))
    }

    fn differs(&self, reason: String) -> PullError {
        PullError::Content { what: self.what.clone(), reason }
    }
}
