//! Inputs at rest: sealed with ChaCha20-Poly1305 under a key of their own, derived from the host's key and a random salt.

use chacha20poly1305::aead::{Aead, AeadInOut, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
const SALT_BYTES: usize = 32;

/// Bytes that each sealed piece of a stream has beyond its plain ones.
pub const TAG_BYTES: usize = 16;

/// Why there is no vault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The key's file cannot be read or made.
    #[error("the key of inputs at rest, {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Others can read it.
    #[error("the key of inputs at rest, {}: others may access it (mode {mode:o}); make it private with chmod 600", path.display())]
    Public {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is no key.
    #[error("the key of inputs at rest, {}: {bytes} bytes, expected {KEY_BYTES}", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
}

/// A sealed input does not open: it is damaged, or was sealed with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its sealed input does not open; it is damaged, or the key of inputs at rest was replaced")]
pub struct CannotOpen;

/// An input, if it opens.
pub type Opened = Result<Zeroizing<Vec<u8>>, CannotOpen>;

/// Seals inputs, and hashes them.
pub struct Vault {
    key: Zeroizing<[u8; KEY_BYTES]>,
}

impl Vault {
    /// Use the key in a file; made, for this user alone, if there is none.
    pub fn open(path: &Path) -> Result<Self, VaultError> {
        let failed = |cause| VaultError::Io { path: path.to_owned(), cause };
        if !path.exists() {
            create(path).map_err(failed)?;
        }
        let mut file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(VaultError::Public { path: path.to_owned(), mode });
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(2 * KEY_BYTES));
        Read::by_ref(&mut file).take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        match <[u8; KEY_BYTES]>::try_from(bytes.as_slice()) {
            Ok(key) => Ok(Self { key: Zeroizing::new(key) }),
            Err(_) => Err(VaultError::Length { path: path.to_owned(), bytes: bytes.len() }),
        }
    }

    /// Seal an input for a job: salt, ciphertext, tag.
    pub fn seal(&self, job: &str, input: &[u8]) -> Vec<u8> {
        let salt = new_salt();
        // Each key is used once, so the nonce may be constant.
        let payload = Payload { msg: input, aad: job.as_bytes() };
        let sealed = self.cipher(&salt).encrypt(&Nonce::default(), payload);
        let mut out = salt.to_vec();
        out.extend(sealed.expect("an input in memory is far below the cipher's limit of 2^38 bytes"));
        out
    }

    /// Open what [`Self::seal`] sealed for the job.
    pub fn unseal(&self, job: &str, sealed: &[u8]) -> Opened {
        let (salt, sealed) = sealed.split_first_chunk::<SALT_BYTES>().ok_or(CannotOpen)?;
        let payload = Payload { msg: sealed, aad: job.as_bytes() };
        self.cipher(salt).decrypt(&Nonce::default(), payload).map(Zeroizing::new).map_err(|_| CannotOpen)
    }

    /// Seals a job's input piece by piece. The salt opens it again; without it nobody can.
    pub fn stream(&self, job: &str) -> (PieceCipher, Vec<u8>) {
        let salt = new_salt();
        (PieceCipher::new(self.cipher(&salt), job), salt.to_vec())
    }

    /// Opens what a stream with this salt sealed for the job.
    pub fn reopen(&self, job: &str, salt: &[u8]) -> Result<PieceCipher, CannotOpen> {
        let salt = salt.try_into().map_err(|_| CannotOpen)?;
        Ok(PieceCipher::new(self.cipher(salt), job))
    }

    /// Hashes a job's body, under a key: an input that is easily guessed is not known by its hash on disk.
    pub fn body_hasher(&self) -> blake3::Hasher {
        let key = Zeroizing::new(blake3::derive_key("zkhost 2026 body of a job", &*self.key));
        blake3::Hasher::new_keyed(&key)
    }

    fn cipher(&self, salt: &[u8; SALT_BYTES]) -> ChaCha20Poly1305 {
        let key = Zeroizing::new(*blake3::keyed_hash(&self.key, salt).as_bytes());
        ChaCha20Poly1305::new((&*key).into())
    }
}

fn new_salt() -> [u8; SALT_BYTES] {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).expect("the system has randomness");
    salt
}

/// Seals or opens the pieces of one stream, in order, so that none can be changed, moved, left out or added: each nonce has the
/// piece's number and whether it is the last. This is STREAM of Hoang, Reyhanitabar, Rogaway and Vizár, "Online
/// Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance" (2015), with a constant prefix, as each key is used once.
pub struct PieceCipher {
    cipher: ChaCha20Poly1305,
    job: Vec<u8>,
    next: u32,
}

impl PieceCipher {
    fn new(cipher: ChaCha20Poly1305, job: &str) -> Self {
        Self { cipher, job: job.as_bytes().to_vec(), next: 0 }
    }

    /// Seal the next piece where it is.
    pub fn seal(&mut self, piece: &mut Vec<u8>, last: bool) {
        let nonce = self.nonce(last);
        self.cipher.encrypt_in_place(&nonce, &self.job, piece).expect("a piece is far below the cipher's limit");
    }

    /// Open the next piece where it is.
    pub fn open(&mut self, piece: &mut Vec<u8>, last: bool) -> Result<(), CannotOpen> {
        let nonce = self.nonce(last);
        self.cipher.decrypt_in_place(&nonce, &self.job, piece).map_err(|_| CannotOpen)
    }

    fn nonce(&mut self, last: bool) -> Nonce {
        let mut nonce = Nonce::default();
        nonce[7..11].copy_from_slice(&self.next.to_be_bytes());
        nonce[11] = last.into();
        self.next = self.next.checked_add(1).expect("no input has 2^32 pieces");
        nonce
    }
}

fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(&mut *key).map_err(|error| io::Error::other(error.to_string()))?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&*key)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_input_opens_for_its_job_alone_and_not_when_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys/input.key");
        let vault = Vault::open(&path).unwrap();
        let sealed = vault.seal("job", b"secret");
        assert_ne!(sealed, vault.seal("job", b"secret"), "salts differ");
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
        let again = Vault::open(&path).unwrap();
        assert_eq!(**again.unseal("job", &sealed).unwrap(), *b"secret");
        assert_eq!(again.unseal("other", &sealed).err(), Some(CannotOpen));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(again.unseal("job", &damaged).err(), Some(CannotOpen));
            assert_eq!(again.unseal("job", &sealed[..at]).err(), Some(CannotOpen));
        }
    }

    #[test]
    fn pieces_open_in_their_order_alone_and_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::open(&folder.path().join("input.key")).unwrap();
        let (mut cipher, salt) = vault.stream("job");
        let sealed: Vec<_> = [(b"abc".to_vec(), false), (b"abc".to_vec(), false), (b"".to_vec(), true)]
            .map(|(mut piece, last)| {
                cipher.seal(&mut piece, last);
                piece
            })
            .into();
        assert_ne!(sealed[0], sealed[1]);
        // Pieces by their index, each with whether it is taken for the last one.
        let opened = |job: &str, pieces: &[(usize, bool)]| {
            let mut cipher = vault.reopen(job, &salt).unwrap();
            let mut out = vec![];
            for &(index, last) in pieces {
                let mut piece = sealed[index].clone();
                cipher.open(&mut piece, last)?;
                out.extend(piece);
            }
            Ok(out)
        };
        assert_eq!(opened("job", &[(0, false), (1, false), (2, true)]), Ok(b"abcabc".to_vec()));
        for pieces in [vec![(1, false)], vec![(0, true)], vec![(0, false), (0, false)], vec![(0, false), (2, true)]] {
            assert_eq!(opened("job", &pieces), Err(CannotOpen), "{pieces:?}");
        }
        assert_eq!(opened("other", &[(0, false)]), Err(CannotOpen));
        assert!(vault.reopen("job", &salt[1..]).is_err());
    }

    #[test]
    fn a_key_that_others_can_read_or_of_another_length_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input.key");
        drop(Vault::open(&path).unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Vault::open(&path).err().unwrap().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, [0; 31]).unwrap();
        assert!(Vault::open(&path).err().unwrap().to_string().contains("31 bytes, expected 32"));
    }
}
