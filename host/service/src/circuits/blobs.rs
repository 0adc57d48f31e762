//! Uploaded files: stored under the digest of their content, whole or not at all.

use crate::Digest;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// How old an upload that no manifest names has to be to be removed at a start.
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
    /// A bug.
    #[error("a thread of the host panicked, which is a bug; nothing else is affected")]
    Panicked,
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
pub struct Blobs(Arc<Place>);

struct Place {
    folder: PathBuf,
    limit_bytes: u64,
    /// Bytes of uploads that are under way, all of them.
    unfinished_bytes: AtomicU64,
    /// Held by the one that gets its name now.
    finishing: Mutex<()>,
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
        let folder = folder.to_owned();
        Ok(Self(Arc::new(Place {
            folder,
            limit_bytes,
            unfinished_bytes: AtomicU64::new(0),
            finishing: Mutex::default(),
        })))
    }

    /// Where a file is, whether it exists or not.
    pub fn path(&self, digest: Digest) -> PathBuf {
        self.0.folder.join(digest.to_string())
    }

    /// Begin to store a file.
    pub fn writer(&self) -> Result<BlobWriter, BlobError> {
        let place = self.0.clone();
        let used_bytes = place.used_bytes().map_err(|cause| place.io(cause))?;
        let room_bytes = place.limit_bytes.saturating_sub(used_bytes);
        let file = NamedTempFile::new_in(&place.folder).map_err(|cause| place.io(cause))?;
        Ok(BlobWriter { file, hasher: blake3::Hasher::new(), counted: Counted { bytes: 0, place }, room_bytes })
    }

    /// Remove files that no manifest names: those that are not `kept` and are older than a day, or any age if `all`.
    pub fn remove_unnamed(&self, kept: impl Fn(Digest) -> bool, all: bool) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.0.folder)? {
            let entry = entry?;
            let Ok(digest) = entry.file_name().to_string_lossy().parse::<Digest>() else { continue };
            let age = SystemTime::now().duration_since(entry.metadata()?.modified()?).unwrap_or_default();
            if !kept(digest) && (all || age > UNNAMED_AGE) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Place {
    /// Bytes of finished uploads; the others are counted as they come.
    fn used_bytes(&self) -> io::Result<u64> {
        let mut sum = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().parse::<Digest>().is_ok() {
                // One that is unloaded at this moment is gone.
                sum += entry.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        Ok(sum)
    }

    fn io(&self, cause: io::Error) -> BlobError {
        BlobError::Io { path: self.folder.clone(), cause }
    }
}

/// A file that is being stored. It vanishes unless it is finished.
pub struct BlobWriter {
    file: NamedTempFile,
    hasher: blake3::Hasher,
    counted: Counted,
    /// What uploads under way may take together, as it was when this one began.
    room_bytes: u64,
}

/// Bytes of one upload, counted among those of all until it ends.
struct Counted {
    bytes: u64,
    place: Arc<Place>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.place.unfinished_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl BlobWriter {
    /// Append.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let (more, place) = (bytes.len() as u64, &self.counted.place);
        let before = place.unfinished_bytes.fetch_add(more, Ordering::Relaxed);
        self.counted.bytes += more;
        if before + more > self.room_bytes {
            return Err(BlobError::Full { limit_bytes: place.limit_bytes });
        }
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|cause| place.io(cause))
    }

    /// Refuse now what would not fit.
    pub fn expect(&self, bytes: u64) -> Result<(), BlobError> {
        let place = &self.counted.place;
        match place.unfinished_bytes.load(Ordering::Relaxed).saturating_add(bytes) > self.room_bytes {
            true => Err(BlobError::Full { limit_bytes: place.limit_bytes }),
            false => Ok(()),
        }
    }

    /// Append, on a thread that may wait for the disk.
    pub async fn append(mut self, piece: Bytes) -> Result<Self, BlobError> {
        blocking(move || self.write(&piece).map(|()| self)).await
    }

    /// As [`Self::finish`], on a thread that may wait for the disk.
    pub async fn complete(self) -> Result<(Digest, u64), BlobError> {
        blocking(move || self.finish()).await
    }

    /// All is there: make it durable and give it its name. Returns digest and length.
    pub fn finish(self) -> Result<(Digest, u64), BlobError> {
        let Self { file, hasher, counted, .. } = self;
        let (digest, place) = (Digest::from(hasher.finalize()), &counted.place);
        file.as_file().sync_all().map_err(|cause| place.io(cause))?;
        let _one = place.finishing.lock().unwrap_or_else(PoisonError::into_inner);
        // Others have finished since this one began.
        if place.used_bytes().map_err(|cause| place.io(cause))? + counted.bytes > place.limit_bytes {
            return Err(BlobError::Full { limit_bytes: place.limit_bytes });
        }
        let persist = || -> io::Result<()> {
            file.persist(place.folder.join(digest.to_string())).map_err(|error| error.error)?;
            File::open(&place.folder)?.sync_all()
        };
        persist().map_err(|cause| place.io(cause))?;
        Ok((digest, counted.bytes))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(BlobError::Panicked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_at_a_time_share_one_room() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(folder.path(), 100).unwrap();
        let (mut first, mut second) = (blobs.writer().unwrap(), blobs.writer().unwrap());
        first.write(&[1; 60]).unwrap();
        assert!(matches!(second.write(&[2; 60]), Err(BlobError::Full { limit_bytes: 100 })));
        drop(second);
        assert_eq!(first.finish().unwrap().1, 60);
        let (mut third, mut fourth) = (blobs.writer().unwrap(), blobs.writer().unwrap());
        third.write(&[3; 20]).unwrap();
        third.finish().unwrap();
        fourth.write(&[4; 21]).unwrap();
        assert!(fourth.finish().is_err(), "what ended meanwhile counts");
    }
}
