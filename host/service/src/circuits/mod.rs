//! Circuits: what a manifest describes, loaded, found by digest or name, and unloaded while jobs run.

mod blobs;
mod hosted;
mod manifest;
mod registry;

pub use blobs::{BlobError, BlobWriter, Blobs};
pub use hosted::{HostedCircuit, InUse, LoadFailure, Resident};
pub use manifest::{FileRef, MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest};
pub use registry::{Registry, RegistryError, RegistrySettings, Source};
