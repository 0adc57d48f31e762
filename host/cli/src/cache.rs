//! Recorded shapes on disk, by component and parameters, so that a circuit is asked for its shape once.
//!
//! Each file carries a digest of its content. A shape from here is trusted as far as the cache's folder, which only its
//! owner may write; a key is bound to the hash of the shape itself, so a wrong one does not prove anything false.

use crate::files::Draft;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::BufWriter;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zkhost_groth16::R1cs;
use zkhost_groth16::formats::{read_shape, write_shape};

/// Bytes that recorded shapes may take on disk; the oldest go first.
const SHAPE_CACHE_BYTES_MAX: u64 = 8 << 30;

/// A folder of recorded shapes.
pub struct ShapeCache {
    folder: PathBuf,
}

impl ShapeCache {
    /// Open the folder, making it if it is missing. It must be private to its owner.
    pub fn open(folder: &Path) -> Result<Self> {
        let doing = || format!("cannot use {} for recorded shapes", folder.display());
        fs::DirBuilder::new().mode(0o700).recursive(true).create(folder).with_context(doing)?;
        let metadata = fs::symlink_metadata(folder).with_context(doing)?;
        let mode = metadata.permissions().mode() & 0o777;
        ensure!(metadata.is_dir(), "{}: it is no folder", doing());
        ensure!(mode & 0o022 == 0, "{}: others may write there (mode {mode:o}); use chmod 700", doing());
        let parent = folder.parent().unwrap_or(folder);
        let owner = fs::metadata(parent).with_context(doing)?.uid();
        ensure!(owner == metadata.uid(), "{}: it belongs to another user than the folder around it", doing());
        Ok(ShapeCache { folder: folder.to_owned() })
    }

    /// The shape of a component and parameters, if it is there and whole.
    pub fn load(&self, component: &blake3::Hash, params: &[u8]) -> Option<R1cs> {
        read_shape(&fs::read(self.path(component, params)).ok()?).ok()
    }

    /// Keep a shape. If that fails, it is recorded again next time.
    pub fn store(&self, component: &blake3::Hash, params: &[u8], shape: &R1cs) {
        let path = self.path(component, params);
        let write = || -> Result<()> {
            let mut draft = Draft::new(&path)?;
            write_shape(shape, BufWriter::new(draft.file()))?;
            draft.keep()
        };
        let _ = write().and_then(|()| Ok(self.prune()?));
    }

    fn path(&self, component: &blake3::Hash, params: &[u8]) -> PathBuf {
        let mut hasher = blake3::Hasher::new_derive_key("zkhost 2026 cache of recorded shapes");
        hasher.update(component.as_bytes());
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        hasher.update(params);
        self.folder.join(hasher.finalize().to_hex().as_str())
    }

    /// Remove the oldest shapes until the rest fits.
    fn prune(&self) -> std::io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            files.push((metadata.modified()?, metadata.len(), entry.path()));
        }
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, length, path) in files {
            if bytes <= SHAPE_CACHE_BYTES_MAX {
                break;
            }
            fs::remove_file(path)?;
            bytes -= length;
        }
        Ok(())
    }
}
