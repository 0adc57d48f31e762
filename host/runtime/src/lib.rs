//! Loads, sandboxes and runs circuit components.
//!
//! A component is a stranger's program, and its input is secret. It gets the imports of its world (`wit/v0.1`) and
//! nothing else: no clock, no randomness, no files, no sockets. Everything it can use up has a limit ([`Limits`]), a trap
//! costs one instance, and each error says which circuit, partition, segment and export it comes from.
//!
//! ```text
//! Runtime::load ─▶ Circuit ─┬─ describe, plan, record_shape
//!                           └─ open ─▶ Job ── assign(partition, segment, sink)
//! ```
//!
//! Components are compiled in a child process ([`Compiler`]) and native code is cached in a private folder ([`Cache`]).
//! What is written by a guest is copied once, from its memory into a [`zkhost_groth16::SegmentSink`], which checks it.

mod bindings;
mod cache;
mod circuit;
mod compile;
pub mod engine;
mod error;
mod imports;
mod instance;
mod job;
mod layout;
mod limits;
mod observer;
mod runtime;
mod state;
mod synthesise;
mod world;

pub use cache::{CACHE_BYTES_MAX, Cache, CacheError, Key as CacheKey};
pub use circuit::{Circuit, Info};
pub use compile::{Compiler, compile_worker_main};
pub use error::{Export, Fault, LoadError, Place, Refusal, RunError};
pub use job::{Input, Job};
pub use layout::{Layout, PARTITIONS_MAX, SEGMENTS_MAX, Segment};
pub use limits::{CORE_ITEMS_MAX, HOST_CALL_BYTES_MAX, Limits, SINK_CALL_BYTES_MAX, STACK_BYTES_MAX};
pub use observer::{Level, Observer, Silent};
pub use runtime::{Runtime, StartError};
pub use synthesise::Synthesis;
pub use world::{CONTRACT, Examination, examine};
