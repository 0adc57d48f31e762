//! Reading and writing files: whole or not at all, and never over something that is still needed.

use crate::error::{Code, Failure};
use crate::interrupt::Pending;
use anyhow::{Context, Result};
use memmap2::Mmap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Bytes for which there is room at first, when a file does not tell its length.
const FIRST_ROOM_BYTES: usize = 64 * 1024;

/// Read a file of at most `bytes_max` bytes. `-` stands for standard input.
pub fn read(path: &Path, what: &str, bytes_max: u64) -> Result<Vec<u8>> {
    Ok(std::mem::take(&mut *read_secret(path, what, bytes_max)?))
}

/// As [`read`], for what is secret: no copy of it is left in memory that was given back.
pub fn read_secret(path: &Path, what: &str, bytes_max: u64) -> Result<Zeroizing<Vec<u8>>> {
    let opened = match path.as_os_str() == "-" {
        // Past the library's buffer, which would keep a copy.
        true => std::io::stdin().as_fd().try_clone_to_owned().map(File::from),
        false => File::open(path),
    };
    let mut file = opened.with_context(|| format!("cannot open {what} {}", path.display()))?;
    let mut bytes = Zeroizing::new(Vec::new());
    loop {
        if bytes.len() as u64 > bytes_max {
            let message = format!("{what} {} is longer than the limit of {bytes_max} bytes", path.display());
            return Err(Failure::new(Code::File, message).into());
        }
        if bytes.len() == bytes.capacity() {
            grow(&mut bytes, &file, bytes_max).with_context(|| format!("no memory for {what} {}", path.display()))?;
        }
        let start = bytes.len();
        let room = bytes.capacity();
        bytes.resize(room, 0);
        let count = file.read(&mut bytes[start..]).with_context(|| format!("cannot read {what} {}", path.display()))?;
        bytes.truncate(start + count);
        if count == 0 {
            return Ok(bytes);
        }
    }
}

/// Map a file that is too large to be read; its pages come and go as they are used.
pub fn map(path: &Path, what: &str) -> Result<Mmap> {
    let file = File::open(path).with_context(|| format!("cannot open {what} {}", path.display()))?;
    // SAFETY: the mapping is private and read-only, and only this function's caller has it. That nobody changes the file
    // meanwhile is its owner's duty, as for every program that maps a file its user names.
    unsafe { Mmap::map(&file) }.with_context(|| format!("cannot read {what} {}", path.display()))
}

/// Make room for what the file has, or for twice as much as there is; the smaller buffer is zeroed. One byte more than the
/// limit may be read, to see that it is passed.
fn grow(bytes: &mut Zeroizing<Vec<u8>>, file: &File, bytes_max: u64) -> Result<()> {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let length = usize::try_from(length.min(bytes_max).saturating_add(1)).unwrap_or(usize::MAX);
    let room = length.max(bytes.len().saturating_mul(2)).max(FIRST_ROOM_BYTES);
    let mut larger = Zeroizing::new(Vec::new());
    larger.try_reserve_exact(room)?;
    larger.extend_from_slice(bytes);
    *bytes = larger;
    Ok(())
}

/// Make the folder in which a file will stand.
pub fn create_parents(path: &Path) -> Result<()> {
    let parent = parent(path);
    fs::create_dir_all(&parent).with_context(|| format!("cannot make the folder {}", parent.display()))
}

/// Write a file whole or not at all, in place of one that may be there.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut draft = Draft::new(path)?;
    draft.file().write_all(bytes).with_context(|| format!("cannot write {}", path.display()))?;
    draft.keep()
}

/// Refuse outputs that are the same file, or one that the command reads.
pub fn check_outputs(outputs: &[Option<&Path>], inputs: &[Option<&Path>]) -> Result<()> {
    let mut taken: Vec<_> = inputs.iter().flatten().map(|path| real(path)).collect();
    for path in outputs.iter().flatten() {
        let real = real(path);
        if taken.contains(&real) {
            let message =
                format!("{} would be written over another file of this command; choose another", path.display());
            return Err(Failure::new(Code::Usage, message).into());
        }
        taken.push(real);
    }
    Ok(())
}

/// Refuse to overwrite a key, unless that is asked for.
pub fn refuse_overwrite(path: &Path, force: bool) -> Result<()> {
    if !force && path.exists() {
        let message = format!("{} exists and would be overwritten; give another path or --force", path.display());
        return Err(Failure::new(Code::Usage, message).into());
    }
    Ok(())
}

/// The one path of a file, whether it exists or not.
fn real(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    path.canonicalize()
        .or_else(|_| Ok(parent(path).canonicalize()?.join(name)))
        .unwrap_or_else(|_: std::io::Error| path.into())
}

/// A file under way. It stands beside its final path and vanishes unless it is kept.
pub struct Draft {
    file: tempfile::NamedTempFile,
    target: PathBuf,
    _pending: Pending,
}

impl Draft {
    /// Start a file that will be at `target`.
    pub fn new(target: &Path) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(".zkhost-").permissions(ordinary_permissions()).tempfile_in(parent(target));
        let file = file.with_context(|| format!("cannot write in the folder of {}", target.display()))?;
        let pending = Pending::new(file.path());
        Ok(Draft { file, target: target.to_owned(), _pending: pending })
    }

    /// The file, open for writing.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Move the file to its path, complete on disk before it appears there.
    pub fn keep(self) -> Result<()> {
        let Draft { file, target, _pending } = self;
        let kept = file.as_file().sync_all().and_then(|()| file.persist(&target).map_err(|error| error.error));
        kept.map(drop).with_context(|| format!("cannot write {}", target.display()))
    }
}

/// Keys, proofs and components are public, so they get the permissions that any new file would: these less the umask.
fn ordinary_permissions() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
