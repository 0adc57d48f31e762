//! Host inversion: the published `bls12_381` crate with a small patch that asks the host for inverses.

use super::cargo::Workspace;
use super::patch;
use crate::error::{Code, Failure};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The crate that is patched, and the version that the patch fits.
const CRATE: (&str, &str) = ("bls12_381", "0.9.0");

/// The patch itself, with the reason for it.
const PATCH: &str = include_str!("../../../../guest-circuits/patches/bls12_381-host-inversion.patch");

/// The folder of the patched crate, under the workspace's target folder; it is made when first needed.
pub fn patched_crate(workspace: &Workspace) -> Result<PathBuf> {
    let (name, version) = CRATE;
    let published = workspace
        .packages
        .iter()
        .find(|package| package.name == name && package.version == version && package.source.is_some())
        .ok_or_else(|| {
            Failure::new(
                Code::Usage,
                format!(
                    "--host-inversion patches {name} {version} from crates.io, which this crate does not depend on; build \
                     without it (the field `zkhost_guest::Fr` asks the host anyway)"
                ),
            )
        })?;

    // A change of the patch makes another folder, and an old one is never half made.
    let digest = blake3::hash(PATCH.as_bytes()).to_hex();
    let parent = workspace.target_directory.join("zkhost").join(&digest[..16]);
    let folder = parent.join(format!("{name}-{version}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    let doing = || format!("cannot make a patched copy of {name} in {}", parent.display());
    fs::create_dir_all(&parent).with_context(doing)?;
    let draft = tempfile::tempdir_in(&parent).with_context(doing)?;
    copy_folder(published.folder(), draft.path()).with_context(doing)?;
    patch::apply(PATCH, draft.path()).with_context(doing)?;
    match fs::rename(draft.path(), &folder) {
        // Another build was faster.
        Err(_) if folder.is_dir() => Ok(folder),
        moved => moved.with_context(doing).map(|()| folder),
    }
}

/// Copy what a build needs of a published crate: its manifest and its source.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(from.join("Cargo.toml"), to.join("Cargo.toml"))?;
    copy_tree(&from.join("src"), &to.join("src"))
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_tree(&entry.path(), &target)?,
            false => fs::copy(entry.path(), target).map(drop)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Toolchain;

    const GUESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-circuits");

    /// The guests' workspace as cargo describes it, with a target folder of this test's own.
    fn guests(target: &Path) -> Workspace {
        let toolchain = Toolchain::choose(Path::new(GUESTS)).unwrap();
        let mut workspace = Workspace::read(&toolchain, Path::new(GUESTS), true).unwrap();
        workspace.target_directory = target.to_owned();
        workspace
    }

    /// All files under a folder, with their contents.
    fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = vec![];
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
                match entry.is_dir() {
                    true => folders.push(entry),
                    false => found.push((entry.strip_prefix(folder).unwrap().to_owned(), fs::read(&entry).unwrap())),
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_patched_crate_differs_from_the_published_one_where_it_inverts() {
        let target = tempfile::tempdir().unwrap();
        let workspace = guests(target.path());
        let patched = patched_crate(&workspace).unwrap();
        let published = workspace.packages.iter().find(|package| (&*package.name, &*package.version) == CRATE).unwrap();
        let source = |name: &str| fs::read_to_string(patched.join("src").join(name)).unwrap();
        assert!(source("host_inversion.rs").contains("invert_one"));
        assert!(source("scalar.rs").contains("host_inversion::invert"));

        let before = files(&published.folder().join("src"));
        let changed: Vec<PathBuf> = (files(&patched.join("src")).into_iter())
            .filter(|file| !before.contains(file))
            .map(|(path, _)| path)
            .collect();
        assert_eq!(changed, ["host_inversion.rs", "lib.rs", "scalar.rs"].map(PathBuf::from));
        assert_eq!(patched_crate(&workspace).unwrap(), patched, "it is made once");
    }

    #[test]
    fn a_crate_without_the_published_field_is_refused() {
        let target = tempfile::tempdir().unwrap();
        let mut workspace = guests(target.path());
        let published = |package: &super::super::cargo::Package| (&*package.name, &*package.version) == CRATE;
        workspace.packages.retain(|package| !published(package));
        let refusal = format!("{:#}", patched_crate(&workspace).unwrap_err());
        for part in ["--host-inversion", "bls12_381 0.9.0", "does not depend on", "build without it"] {
            assert!(refusal.contains(part), "`{part}` is missing in: {refusal}");
        }
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0, "nothing was made");
    }
}
