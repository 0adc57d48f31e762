//! The host as a service: circuits that are dropped in, jobs that survive a crash, an HTTP interface to both.
//!
//! ```text
//! HTTP ─▶ access ─▶ api ─▶ Host ─┬─ Registry: circuits by digest; keys opened when needed
//!                                ├─ Store: SQLite; accepted jobs, sealed inputs, proofs
//!                                └─ Queue ─▶ job threads ─▶ Engine ─▶ proofs, verified
//! ```
//!
//! A job is accepted when it is on disk, and its proof is told when that is. What runs when the process dies is queued again.

pub mod access;
pub mod api;
pub mod circuits;
pub mod config;
mod devices;
mod digest;
mod host;
mod input;
mod listen;
pub mod metrics;
mod oci;
mod queue;
mod scalars;
mod server;
mod stages;
pub mod store;

pub use config::Config;
pub use digest::{BadDigest, Digest};
pub use host::{Host, HostParts, StartError};
pub use server::{Server, ServerError};
