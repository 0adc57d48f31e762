//! Groth16 over BLS12-381: constraint systems, assignments, keys and their formats, the CPU prover and the verifier.
//!
//! This crate knows no WebAssembly, no device and no job. Others implement its two traits: [`Prover`] (a CPU here, a GPU
//! in `zkhost-cuda`) and [`SegmentSink`] (what a guest's assignment is written to).

pub mod assignment;
pub mod domain;
#[cfg(target_arch = "x86_64")]
mod doubles;
mod fixed_base;
pub mod formats;
pub mod image;
pub mod key;
pub mod msm;
pub mod points;
pub mod proof;
pub mod prover;
pub mod r1cs;
pub mod scalar;
pub mod secret;
pub mod setup;
mod subgroup;
pub mod verify;

pub use assignment::{Assignment, Encoding, SegmentSink};
pub use key::{HBasis, ProvingKey, VerifyingKey};
pub use points::{G1Point, G2Point};
pub use proof::Proof;
pub use prover::{BoundKey, CpuProver, ProveError, Prover};
pub use r1cs::{R1cs, ShapeHash};
pub use scalar::Scalar;
pub use verify::{PreparedVerifyingKey, VerifyError};
