//! Uploaded files: stored under the digest of their content, whole or not at all.

use crate::Digest;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// How long an upload that no manifest names is kept.
const UNNAMED_AGE: Duration = Duration::from_secs(24 * 3600);

/// Why a file was not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The file system failed.
    #[error("cannot store the upload in {}: {cause}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Too much.
    #[error(
        "uploads may take {limit_bytes} bytes together (setting `circuits.uploads_bytes_max`); unload a circuit first"
    )]
    Full {
        /// The limit.
        limit_bytes: u64,
    },
}

/// The folder of uploaded files.
pub struct Blobs {
    folder: PathBuf,
    limit_bytes: u64,
}

impl Blobs {
    /// Use a folder, made if it is missing; what was left half written is removed.
    pub fn open(folder: &Path, limit_bytes: u64) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().parse::<Digest>().is_err() {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(Self { folder: folder.to_owned(), limit_bytes })
    }

    /// Where a file is, whether it exists or not.
    pub fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    /// Begin to store a file.
    pub fn writer(&self) -> Result<BlobWriter, BlobError> {
        let room_bytes = self.limit_bytes.saturating_sub(self.used_bytes().map_err(|cause| self.io(cause))?);
        let file = NamedTempFile::new_in(&self.folder).map_err(|cause| self.io(cause))?;
        let folder = self.folder.clone();
        let limit_bytes = self.limit_bytes;
        Ok(BlobWriter { file, hasher: blake3::Hasher::new(), bytes: 0, room_bytes, limit_bytes, folder })
    }

    /// Remove files that no manifest names: those that are not `kept` and are older than a day, or any age if `all`.
    pub fn remove_unnamed(&self, kept: impl Fn(Digest) -> bool, all: bool) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let Ok(digest) = entry.file_name().to_string_lossy().parse::<Digest>() else { continue };
            let age = SystemTime::now().duration_since(entry.metadata()?.modified()?).unwrap_or_default();
            if !kept(digest) && (all || age > UNNAMED_AGE) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn used_bytes(&self) -> io::Result<u64> {
        std::fs::read_dir(&self.folder)?.try_fold(0, |sum, entry| Ok(sum + entry?.metadata()?.len()))
    }

    fn io(&self, cause: io::Error) -> BlobError {
        BlobError::Io { path: self.folder.clone(), cause }
    }
}

/// A file that is being stored. It vanishes unless it is finished.
pub struct BlobWriter {
    file: NamedTempFile,
    hasher: blake3::Hasher,
    bytes: u64,
    room_bytes: u64,
    limit_bytes: u64,
    folder: PathBuf,
}

impl BlobWriter {
    /// Append.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.room_bytes {
            return Err(BlobError::Full { limit_bytes: self.limit_bytes });
        }
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|cause| BlobError::Io { path: self.folder.clone(), cause })
    }

    /// All is there: make it durable and give it its name. Returns digest and length.
    pub fn finish(self) -> Result<(Digest, u64), BlobError> {
        let Self { file, hasher, bytes, folder, .. } = self;
        let digest = Digest::from(hasher.finalize());
        let persist = || -> io::Result<()> {
            file.as_file().sync_all()?;
            file.persist(folder.join(digest.to_string())).map_err(|error| error.error)?;
            File::open(&folder)?.sync_all()
        };
        persist().map_err(|cause| BlobError::Io { path: folder.clone(), cause })?;
        Ok((digest, bytes))
    }
}
