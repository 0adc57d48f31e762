//! Reading and writing files: whole or not at all, and never over something that was hard to make.

use crate::error::{Code, Failure};
use crate::interrupt;
use anyhow::{Context, Result};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Read a file of at most `bytes_max` bytes. `-` stands for standard input.
pub fn read(path: &Path, what: &str, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => {
            let file = fs::File::open(path).with_context(|| format!("cannot open {what} {}", path.display()))?;
            // Room for the whole of it, so that a secret is not left behind in a buffer that was outgrown.
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            bytes.reserve_exact(length.min(bytes_max) as usize + 1);
            Box::new(file)
        }
    };
    source
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {what} {}", path.display()))?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("{what} {} is longer than the limit of {bytes_max} bytes", path.display());
        return Err(Failure::new(Code::File, message).into());
    }
    Ok(bytes)
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

/// Refuse to overwrite a file, such as a key, unless that is asked for.
pub fn refuse_overwrite(path: &Path, force: bool) -> Result<()> {
    if !force && path.exists() {
        let message = format!("{} exists and would be overwritten; give another path or --force", path.display());
        return Err(Failure::new(Code::Usage, message).into());
    }
    Ok(())
}

/// A file under way. It stands beside its final path and vanishes unless it is kept.
pub struct Draft {
    file: tempfile::NamedTempFile,
    target: PathBuf,
}

impl Draft {
    /// Start a file that will be at `target`.
    pub fn new(target: &Path) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(".zkhost-").permissions(ordinary_permissions()).tempfile_in(parent(target));
        let file = file.with_context(|| format!("cannot write in the folder of {}", target.display()))?;
        interrupt::begin_draft(file.path());
        Ok(Draft { file, target: target.to_owned() })
    }

    /// The file, open for writing.
    pub fn file(&mut self) -> &mut fs::File {
        self.file.as_file_mut()
    }

    /// Move the file to its path, complete on disk before it appears there.
    pub fn keep(self) -> Result<()> {
        let Draft { file, target } = self;
        let path = file.path().to_owned();
        let kept = file.as_file().sync_all().and_then(|()| file.persist(&target).map_err(|error| error.error));
        interrupt::end_draft(&path);
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
