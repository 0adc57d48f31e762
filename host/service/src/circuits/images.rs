//! Images of keys that came as `.zkey` files: made when a circuit is first loaded, mapped from then on.

use super::guest::read_file;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use zkhost_groth16::formats::read_zkey;
use zkhost_groth16::image::write_image;
use zkhost_groth16::key::Phase2;
use zkhost_groth16::{ProvingKey, R1cs};

/// Bytes of a `.zkey` file at most; it is in memory while its image is made.
const ZKEY_BYTES_MAX: u64 = 32 << 30;

/// The folder of images.
pub(super) struct Images(PathBuf);

impl Images {
    /// Use a folder, made if it is missing; what was left half written is removed.
    pub fn open(folder: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let images = Self(folder);
        images.remove(|path| path.extension().is_none_or(|extension| extension != "zkimage"))?;
        Ok(images)
    }

    /// The image of a key: the file itself, unless it is snarkjs's.
    pub fn of(&self, key: &Path, r1cs: &R1cs, phase2: Phase2) -> Result<PathBuf, String> {
        let named = |error: &dyn std::fmt::Display| format!("key {}: {error}", key.display());
        let mut start = Vec::new();
        File::open(key).and_then(|file| file.take(4).read_to_end(&mut start)).map_err(|error| named(&error))?;
        if start != *b"zkey" {
            return Ok(key.to_owned());
        }
        let bytes = read_file(key, "key", ZKEY_BYTES_MAX)?;
        let path = self.0.join(format!("{}-{}.zkimage", blake3::hash(&bytes), r1cs.hash()));
        if !path.exists() {
            let zkey = read_zkey(&bytes).map_err(|error| named(&error))?;
            let key = ProvingKey::import_zkey(zkey, r1cs, phase2).map_err(|error| named(&error))?;
            let write = || -> Result<(), String> {
                let said = |error: io::Error| error.to_string();
                let mut file = NamedTempFile::new_in(&self.0).map_err(said)?;
                let mut buffered = BufWriter::new(&mut file);
                write_image(&key, &mut buffered).map_err(|error| error.to_string())?;
                buffered.flush().map_err(said)?;
                drop(buffered);
                file.as_file().sync_all().map_err(said)?;
                file.persist(&path).map(drop).map_err(|error| error.to_string())
            };
            write().map_err(|error| format!("cannot write the key's image {}: {error}", path.display()))?;
        }
        Ok(path)
    }

    /// Remove some. Jobs that have one mapped keep it until they end.
    pub fn remove(&self, unused: impl Fn(&Path) -> bool) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.0)? {
            let path = entry?.path();
            if unused(&path) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}
