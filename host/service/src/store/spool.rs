//! Large inputs at rest: files of sealed pieces, written while they arrive, so that none is in memory whole.
//!
//! A file has pieces of [`PIECE_BYTES`], each with its tag; the last one is shorter or as long, and says that it is the last. The
//! salt that opens it is in the job store alone: once the job's row is erased, what a disk may remember of the file stays
//! sealed, even for who has the key.

use super::vault::{CannotOpen, Opened, PieceCipher, TAG_BYTES, Vault};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::NamedTempFile;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of an input that are sealed at a time; smaller inputs are kept in the job store itself.
pub const PIECE_BYTES: usize = 64 * 1024;

/// Why a large input is not kept.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Too much together.
    #[error(
        "inputs that wait take {limit_bytes} bytes of disk, the limit (setting `jobs.inputs_disk_bytes_max`); try again later"
    )]
    Full {
        /// The limit.
        limit_bytes: u64,
    },
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The folder of large inputs.
pub struct Spool {
    folder: PathBuf,
    limit_bytes: u64,
    used_bytes: Arc<AtomicU64>,
}

impl Spool {
    /// Use a folder, made if it is missing, whose files but those that are named are removed: nobody waits for them.
    pub fn open(folder: &Path, limit_bytes: u64, named: &BTreeSet<String>) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut used_bytes = 0;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if named.contains(&*entry.file_name().to_string_lossy()) {
                used_bytes += entry.metadata()?.len();
            } else {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(Self { folder: folder.to_owned(), limit_bytes, used_bytes: Arc::new(AtomicU64::new(used_bytes)) })
    }

    /// Begin to write a job's input.
    pub fn writer(&self, vault: &Vault, job: &str) -> io::Result<SpoolWriter> {
        let file = NamedTempFile::new_in(&self.folder)?;
        let (cipher, salt) = vault.stream(job);
        let counted = Counted { bytes: 0, used_bytes: self.used_bytes.clone() };
        let piece = Zeroizing::new(Vec::with_capacity(PIECE_BYTES + TAG_BYTES));
        Ok(SpoolWriter { file, cipher, salt, piece, counted, limit_bytes: self.limit_bytes })
    }

    /// A whole input; an error of the file system, or that it does not open.
    pub fn read(&self, vault: &Vault, job: &str, name: &str, salt: &[u8]) -> io::Result<Opened> {
        let mut file = File::open(self.folder.join(name))?;
        let mut left = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let mut input = Zeroizing::new(Vec::with_capacity(left));
        let Ok(mut cipher) = vault.reopen(job, salt) else { return Ok(Err(CannotOpen)) };
        let mut piece = Zeroizing::new(Vec::with_capacity(PIECE_BYTES + TAG_BYTES));
        loop {
            let bytes = left.min(PIECE_BYTES + TAG_BYTES);
            piece.resize(bytes, 0);
            file.read_exact(&mut piece)?;
            left -= bytes;
            if cipher.open(&mut piece, left == 0).is_err() {
                return Ok(Err(CannotOpen));
            }
            input.extend_from_slice(&piece);
            if left == 0 {
                return Ok(Ok(input));
            }
        }
    }

    /// A job has ended: remove its input's file.
    pub fn remove(&self, name: &str) {
        let path = self.folder.join(name);
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        match std::fs::remove_file(&path) {
            Ok(()) => drop(self.used_bytes.fetch_sub(bytes, Ordering::Relaxed)),
            // The next start removes it.
            Err(error) => tracing::warn!(path = %path.display(), %error, "an input that is done with is not removed"),
        }
    }
}

/// Bytes on disk, counted while this lives.
struct Counted {
    bytes: u64,
    used_bytes: Arc<AtomicU64>,
}

impl Counted {
    fn add(&mut self, bytes: u64, limit_bytes: u64) -> Result<(), SpoolError> {
        self.bytes += bytes;
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > limit_bytes { Err(SpoolError::Full { limit_bytes }) } else { Ok(()) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// An input that is being written. Its file vanishes unless it is kept.
pub struct SpoolWriter {
    file: NamedTempFile,
    cipher: PieceCipher,
    salt: Vec<u8>,
    /// What is not sealed yet, a piece at most.
    piece: Zeroizing<Vec<u8>>,
    counted: Counted,
    limit_bytes: u64,
}

impl SpoolWriter {
    /// Append.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), SpoolError> {
        while !bytes.is_empty() {
            if self.piece.len() == PIECE_BYTES {
                self.seal(false)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// All is there: make it durable.
    pub fn finish(mut self) -> Result<Spooled, SpoolError> {
        self.seal(true)?;
        self.file.as_file().sync_all()?;
        if let Some(folder) = self.file.path().parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(Spooled { file: self.file, salt: self.salt, counted: self.counted })
    }

    fn seal(&mut self, last: bool) -> Result<(), SpoolError> {
        self.cipher.seal(&mut self.piece, last);
        self.counted.add(self.piece.len() as u64, self.limit_bytes)?;
        self.file.write_all(&self.piece)?;
        self.piece.zeroize();
        Ok(())
    }
}

/// An input that is on disk whole. Its file vanishes unless it is kept.
pub struct Spooled {
    file: NamedTempFile,
    salt: Vec<u8>,
    counted: Counted,
}

impl Spooled {
    /// The file's name and the salt that opens it.
    pub fn row(&self) -> (String, &[u8]) {
        let name = self.file.path().file_name().unwrap_or_default();
        (name.to_string_lossy().into_owned(), &self.salt)
    }

    /// A job has it now; it is removed with [`Spool::remove`].
    pub fn keep(self) {
        let Self { mut file, mut counted, .. } = self;
        counted.bytes = 0;
        file.disable_cleanup(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an input of so many bytes becomes, written in pieces of a size, read again.
    fn check(bytes: usize, step: usize) {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::open(&folder.path().join("input.key")).unwrap();
        let spool = Spool::open(&folder.path().join("inputs"), 1 << 30, &BTreeSet::new()).unwrap();
        let input: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        let mut writer = spool.writer(&vault, "job").unwrap();
        input.chunks(step).for_each(|part| writer.write(part).unwrap());
        let spooled = writer.finish().unwrap();
        let (name, salt) = (spooled.row().0, spooled.row().1.to_vec());
        spooled.keep();
        let path = folder.path().join("inputs").join(&name);
        let at_rest = std::fs::read(&path).unwrap();
        assert_eq!(at_rest.len() as u64, spool.used_bytes.load(Ordering::Relaxed));
        assert!(bytes < 32 || !at_rest.windows(32).any(|window| window == &input[..32]));
        assert_eq!(*spool.read(&vault, "job", &name, &salt).unwrap().unwrap(), input);
        assert_eq!(spool.read(&vault, "other", &name, &salt).unwrap().err(), Some(CannotOpen));
        // Cut to whole pieces, it still does not open.
        let cut = at_rest.len().saturating_sub(1) / (PIECE_BYTES + TAG_BYTES) * (PIECE_BYTES + TAG_BYTES);
        std::fs::write(&path, &at_rest[..cut]).unwrap();
        assert_eq!(spool.read(&vault, "job", &name, &salt).unwrap().err(), Some(CannotOpen));
        std::fs::write(&path, &at_rest).unwrap();
        spool.remove(&name);
        assert_eq!((path.exists(), spool.used_bytes.load(Ordering::Relaxed)), (false, 0));
    }

    #[test]
    fn inputs_of_any_length_are_read_as_they_were_written() {
        for bytes in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 3 * PIECE_BYTES + 7] {
            check(bytes, 10_000);
            check(bytes, 200_000);
        }
    }

    #[test]
    fn the_limit_is_told_and_files_that_nobody_waits_for_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::open(&folder.path().join("input.key")).unwrap();
        let inputs = folder.path().join("inputs");
        let spool = Spool::open(&inputs, 100_000, &BTreeSet::new()).unwrap();
        let mut writer = spool.writer(&vault, "job").unwrap();
        writer.write(&[1; 70_000]).unwrap();
        let error = writer.write(&[1; 70_000]).unwrap_err().to_string();
        assert!(error.contains("100000 bytes") && error.contains("inputs_disk_bytes_max"), "{error}");
        drop(writer);
        let mut writer = spool.writer(&vault, "job").unwrap();
        writer.write(&[1; 90_000]).unwrap();
        let kept = writer.finish().unwrap();
        let name = kept.row().0;
        kept.keep();
        std::fs::write(inputs.join("left"), b"behind").unwrap();
        let spool = Spool::open(&inputs, 100_000, &[name.clone()].into()).unwrap();
        assert!(inputs.join(&name).exists() && !inputs.join("left").exists());
        assert!(spool.used_bytes.load(Ordering::Relaxed) > 90_000);
    }
}
