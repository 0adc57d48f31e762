//! What keeps devices busy and memory bounded: the pinned arena, the budget, partitions on slots, jobs and the timeline.
//!
//! ```text
//! submit ─▶ Scheduler (no threads, no clock, no locks) ─▶ orders ─▶ guests, slots, loaders, checkers
//!              ▲            │ takes from                               │
//!              │            ▼                                          ▼
//!              │         Budget, Arena ─ leases ─▶ guests write ─▶ slots read ─▶ proofs ─▶ verified, in order
//!              └───────────────────────── reports ─────────────────────┘
//! ```
//!
//! [`scheduler`] decides and is simulated on virtual time; [`engine`] carries out with threads. Devices ([`device`]) and
//! circuits ([`synthesis`]) are traits, so that neither a GPU nor a guest is needed to test what is here.

pub mod arena;
pub mod budget;
#[cfg(feature = "components")]
pub mod circom;
#[cfg(feature = "components")]
pub mod component;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
pub mod engine;
pub mod failure;
pub mod ids;
pub mod scheduler;
pub mod simulated;
pub mod synthesis;
pub mod timeline;

pub use engine::{Engine, EngineConfig, JobHandle, JobRequest};
