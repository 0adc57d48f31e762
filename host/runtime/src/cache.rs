//! Native code on disk, private to this host; and, in folders of their own, other things derived from files.
//!
//! Loading native code means running it with all the rights of this process, so the cache never takes code from outside:
//! - The folder belongs to the user this process runs as, and nobody else may enter or read it (mode 0700). It is opened
//!   once, without following a symbolic link, and checked through that handle; entries are opened relative to it. Who
//!   can write into it can already run programs as this user, and gains nothing by it.
//! - There is no way to import code. Only this crate can make the key of an entry of code, and it stores under it what
//!   this host compiled itself.
//! - An entry's name is a digest over the component's bytes and everything its code depends on (the engine's version,
//!   settings and processor features), so code never serves another component or another engine.
//! - An entry carries a digest of its code and name, against damage. One that is damaged, truncated, renamed or not ours
//!   is compiled anew.
//! - What is checked is what is loaded: an entry is read into memory once, checked there, and loaded from there.
//!
//! The last two are not said of entries that are mapped ([`Cache::file`]): whether such a file is whole is for its format to say.

use crate::compile::REVISION;
use crate::limits::grouped;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use wasmtime::Engine;

/// Bytes that a cache may hold unless it is told otherwise; the entries stored longest ago go first.
pub const CACHE_BYTES_MAX: u64 = 4 << 30;

/// The start of every entry; the digest of the code follows, then the code.
const MAGIC: &[u8; 16] = b"zkhost native 1\n";
/// Entries this process has stored, so that two threads never write under one name.
static STORED: AtomicU64 = AtomicU64::new(0);
/// What is half written for so long was left by a process that was stopped.
const HALF_WRITTEN_MAX: Duration = Duration::from_secs(3600);
const HEADER_BYTES: usize = MAGIC.len() + blake3::OUT_LEN;

/// Why a folder cannot be the cache.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {} as a private cache: {reason}", path.display())]
pub struct CacheError {
    path: PathBuf,
    reason: String,
}

/// A private folder of what was derived from components and keys. Native code has a folder to itself.
pub struct Cache {
    folder: OwnedFd,
    bytes_max: u64,
}

/// The name of an entry: a digest of everything its content depends on.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(blake3::Hash);

impl Key {
    /// The key of something derived from `parts`, by this version of the crate; `context` says what it is, and is nobody else's.
    pub fn of(context: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        for part in [env!("CARGO_PKG_VERSION").as_bytes()].iter().chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Key(hasher.finalize())
    }

    /// The key of the shape that a component records with some parameters.
    pub fn of_shape(component: blake3::Hash, params: &[u8]) -> Self {
        Key::of("zkhost 2026 cache of recorded shapes", &[component.as_bytes(), params])
    }

    /// The key of a component's code under an engine.
    pub(crate) fn new(component: blake3::Hash, engine: &Engine) -> Self {
        let mut hasher = KeyHasher(blake3::Hasher::new_derive_key("zkhost 2026 cache of native code"));
        hasher.write(component.as_bytes());
        hasher.write(env!("CARGO_PKG_VERSION").as_bytes());
        hasher.write(&[REVISION]);
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Key(hasher.0.finalize())
    }

    /// The name of the entry's file.
    fn file_name(&self) -> String {
        self.0.to_hex().to_string()
    }

    /// The digest that an entry of this name carries for its content.
    fn digest(&self, code: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(self.0.as_bytes(), code)
    }
}

/// Feeds what wasmtime hashes to BLAKE3, whose output, unlike a 64-bit one, cannot be made to collide.
struct KeyHasher(blake3::Hasher);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.finalize();
        u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("eight bytes"))
    }
}

impl Cache {
    /// Open a folder as the cache, making it if it is missing.
    pub fn open(path: &Path) -> Result<Self, CacheError> {
        let refuse = |reason: String| CacheError { path: path.to_owned(), reason };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| refuse(error.to_string()))?;
        }
        match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(refuse(error.to_string())),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|error| {
            refuse(match error {
                rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => "it is a symbolic link or not a folder".into(),
                error => error.to_string(),
            })
        })?;
        let stat = rustix::fs::fstat(&folder).map_err(|error| refuse(error.to_string()))?;
        let user = rustix::process::geteuid().as_raw();
        if stat.st_uid != user {
            return Err(refuse(format!("it belongs to user {}, this process runs as user {user}", stat.st_uid)));
        }
        if stat.st_mode & 0o077 != 0 {
            let mode = stat.st_mode & 0o777;
            return Err(refuse(format!("others may access it (mode {mode:o}): make it private with chmod 700")));
        }
        Ok(Cache { folder, bytes_max: CACHE_BYTES_MAX })
    }

    /// The same, with another limit to what it holds than [`CACHE_BYTES_MAX`].
    pub fn holding(self, bytes_max: u64) -> Self {
        Cache { bytes_max, ..self }
    }

    /// The content of an entry, if it is there, whole, and no longer than `bytes_max`.
    pub fn load(&self, key: &Key, bytes_max: u64) -> Option<Vec<u8>> {
        let file = self.file(key)?;
        let mut entry = Vec::new();
        file.take(bytes_max.saturating_add(HEADER_BYTES as u64)).read_to_end(&mut entry).ok()?;
        let code = entry.get(HEADER_BYTES..)?;
        let whole = entry.starts_with(MAGIC) && key.digest(code).as_bytes() == &entry[MAGIC.len()..HEADER_BYTES];
        whole.then(|| entry.split_off(HEADER_BYTES))
    }

    /// Store an entry, with what [`Self::load`] checks.
    pub fn store(&self, key: &Key, code: &[u8]) -> std::io::Result<()> {
        self.store_file(key, code.len() as u64, |file| {
            file.write_all(MAGIC)?;
            file.write_all(key.digest(code).as_bytes())?;
            file.write_all(code)
        })
    }

    /// An entry that [`Self::store_file`] stored, if it is there. Whether it is whole is for its format to say.
    pub fn file(&self, key: &Key) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, key.file_name(), flags, Mode::empty()).ok().map(File::from)
    }

    /// Store a file of about so many bytes as `write` writes it: under another name first, so that nobody reads half of one.
    pub fn store_file(
        &self,
        key: &Key,
        bytes: u64,
        write: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        if bytes > self.bytes_max {
            return Err(std::io::Error::other(format!(
                "it has {} bytes; the cache holds {} in all",
                grouped(bytes),
                grouped(self.bytes_max)
            )));
        }
        // Processes in two containers may have one number.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let count = STORED.fetch_add(1, Ordering::Relaxed);
        let partial = format!("{}.{}.{count}.{now}", key.file_name(), std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.folder, &partial, flags, Mode::RUSR | Mode::WUSR)?);
        let written = write(&mut file).and_then(|()| {
            rustix::fs::renameat(&self.folder, &partial, &self.folder, key.file_name()).map_err(std::io::Error::from)
        });
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.folder, &partial, AtFlags::empty());
        }
        written?;
        self.evict(self.bytes_max)
    }

    /// Remove what was left half written, and the oldest entries until the rest fits. Files of other names are not ours.
    fn evict(&self, bytes_max: u64) -> std::io::Result<()> {
        let mut entries = Vec::new();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for entry in Dir::read_from(&self.folder)? {
            let name = entry?.file_name().to_owned();
            let Some(half_written) = half_written(name.to_bytes()) else { continue };
            // An entry that vanishes meanwhile was removed by another process with the same aim.
            let Ok(stat) = rustix::fs::statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                continue;
            }
            if half_written && now.as_secs().saturating_sub(stat.st_mtime as u64) > HALF_WRITTEN_MAX.as_secs() {
                let _ = rustix::fs::unlinkat(&self.folder, &name, AtFlags::empty());
                continue;
            }
            entries.push(((stat.st_mtime, stat.st_mtime_nsec), stat.st_size as u64, name));
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, name) in entries {
            if total <= bytes_max {
                break;
            }
            let _ = rustix::fs::unlinkat(&self.folder, &name, AtFlags::empty());
            total -= bytes;
        }
        Ok(())
    }
}

/// Whether a file of this name is an entry that is half written; none if the cache gives no such name.
fn half_written(name: &[u8]) -> Option<bool> {
    let (digest, rest) = name.split_at_checked(2 * blake3::OUT_LEN)?;
    let ours = digest.iter().all(u8::is_ascii_hexdigit) && rest.first().is_none_or(|first| *first == b'.');
    ours.then_some(!rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let keys = [1u8, 2, 3].map(|n| Key(blake3::hash(&[n])));
        for (key, age) in keys.iter().zip([30, 20, 10]) {
            cache.store(key, &[7; 1000]).unwrap();
            let file = File::options().write(true).open(folder.path().join("cache").join(key.file_name())).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        let (other, left, fresh) =
            ("sapling-spend.zkey", format!("{}.7.0.1", keys[0].file_name()), format!("{}.7.1.2", keys[0].file_name()));
        for (name, age) in [(other, 100_000), (&left, 100_000), (&fresh, 0)] {
            let file = File::create(folder.path().join("cache").join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        let here = || keys.each_ref().map(|key| cache.load(key, 1000).is_some());
        cache.evict(10_000).unwrap();
        assert_eq!(here(), [true, true, true]);
        let there = |name: &str| folder.path().join("cache").join(name).exists();
        assert_eq!([other, &left, &fresh].map(there), [true, false, true]);
        cache.evict(2_500).unwrap();
        assert_eq!(here(), [false, true, true]);
        cache.evict(0).unwrap();
        assert_eq!(here(), [false, false, false]);
        assert!(there(other), "it is not ours");
        let error = cache.holding(999).store(&keys[0], &[7; 1000]).unwrap_err().to_string();
        assert!(error.contains("1,000 bytes; the cache holds 999"), "{error}");
    }
}
