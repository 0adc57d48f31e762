//! Key files: images for proving, verifying keys for verifying.

use crate::files::Draft;
use anyhow::{Context, Result};
use clap::Args;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use zkhost_groth16::formats::write_vk;
use zkhost_groth16::image::{open_image, write_image};
use zkhost_groth16::key::Phase2;
use zkhost_groth16::{ProvingKey, VerifyingKey};

/// Which keys are taken.
#[derive(Args)]
pub struct Phase2Args {
    /// Take a key without a second phase (delta = gamma), by which anyone can forge proofs: for tests only
    #[arg(long)]
    insecure_test_key: bool,
}

impl Phase2Args {
    /// Whether a second phase is required.
    pub fn phase2(&self) -> Phase2 {
        match self.insecure_test_key {
            true => Phase2::MayBeMissingForTests,
            false => Phase2::Required,
        }
    }
}

/// Map a key image and check all of it.
pub fn open(path: &Path, phase2: Phase2) -> Result<Arc<ProvingKey>> {
    let file = File::open(path).with_context(|| format!("cannot open the key {}", path.display()))?;
    let key = open_image(&file, phase2)
        .with_context(|| format!("key {} (images come from `zkhost setup` and `zkhost import-key`)", path.display()))?;
    Ok(Arc::new(key))
}

/// A key image, written beside its path and not yet kept.
pub fn draft_image(path: &Path, key: &ProvingKey) -> Result<Draft> {
    let mut draft = Draft::new(path)?;
    write_image(key, BufWriter::new(draft.file())).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(draft)
}

/// A verifying key, written beside its path and not yet kept.
pub fn draft_vk(path: &Path, vk: &VerifyingKey) -> Result<Draft> {
    let mut draft = Draft::new(path)?;
    write_vk(vk, BufWriter::new(draft.file())).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(draft)
}
