//! Circuits: what a manifest describes, loaded, found by digest or name, and unloaded while jobs run.

mod blobs;
mod guest;
mod hosted;
mod images;
mod manifest;
mod registry;

pub use blobs::{BlobError, BlobWriter, Blobs};
pub use guest::{ComponentGuest, OpenGuest};
pub use hosted::{HostedCircuit, InUse, LoadFailure, Resident};
pub use manifest::{FileRef, Files, Key, MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest, Program};
pub use registry::{Registry, RegistryError, RegistrySettings, Source};
