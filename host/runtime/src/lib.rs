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
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use zkhost_runtime::{Cache, Compiler, Input, Limits, Runtime, Synthesis};
//!
//! // The child is this program: given these arguments, its `main` returns `zkhost_runtime::compile_worker_main()`.
//! let compiler = Compiler::Child { program: std::env::current_exe()?, args: vec!["compile-worker".into()] };
//! let runtime = Runtime::new(compiler, Some(Cache::open("/var/cache/zkhost/native".as_ref())?))?;
//! let circuit = runtime.load_file("sapling-spend.wasm".as_ref(), Limits::default())?;
//! let (layout, shape) = (circuit.plan(b"")?, circuit.record_shape(b"", false)?);
//! let input = Input::from(std::fs::read("input.json")?);
//! let job = Synthesis { params: b"", input: &input, layout: &layout, shape: &shape };
//! let assignments = circuit.synthesise(job, 0..layout.partitions, 4)?;
//! # Ok(())
//! # }
//! ```
//!
//! Witness modules that circom's compiler wrote run in the same sandbox: see [`circom`].
//!
//! Components are compiled in a child process ([`Compiler`]) and native code is cached in a private folder ([`Cache`]).
//! What is written by a guest is copied once, from its memory into a [`zkhost_groth16::SegmentSink`], which checks it.

mod bindings;
mod cache;
pub mod circom;
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
mod settings;
mod state;
mod synthesise;
mod world;

pub use cache::{CACHE_BYTES_MAX, Cache, CacheError, Key as CacheKey};
pub use circom::Circom;
pub use circuit::{Circuit, Info};
pub use compile::{Compiler, compile_worker_main};
pub use error::{Export, Fault, LoadError, Place, Refusal, RunError};
pub use job::{Input, Job};
pub use layout::{Layout, PARTITIONS_MAX, SEGMENTS_MAX, Segment};
pub use limits::{CORE_ITEMS_MAX, HOST_CALL_BYTES_MAX, Limits, SINK_CALL_BYTES_MAX, STACK_BYTES_MAX};
pub use observer::{Level, Observer, Silent};
pub use runtime::{Runtime, StartError};
pub use synthesise::Synthesis;
pub use world::{CONTRACT, Examination, examine, examine_without_wide_arithmetic};
