//! CUDA kernels, device memory and the Groth16 prover on a GPU.
//!
//! Everything runs on streams it is given, with scratch memory it is given; there is no state in static memory, and no
//! allocation or wait for the whole device in the steady state. The driver's library is loaded when a device is opened,
//! so that a program with this crate in it runs without one.

mod assignment;
mod check;
mod circuit;
mod convert;
pub mod device;
pub mod error;
mod key;
pub mod memory;
pub mod monitor;
pub mod msm;
pub mod ntt;
mod page_lock;
mod pinned;
mod prover;
mod query;
mod setup;

pub use check::DeviceChecker;
pub use convert::to_quotient_points;
pub use device::{Device, DeviceChoice, Kernel, Stream};
pub use error::CudaError;
pub use key::{CudaKey, HostKey, KeyDimensions, KeyPlan};
pub use memory::{Arena, Buffer, PinnedBuffer, Slice};
pub use monitor::{Phase, Work};
pub use page_lock::{page_lock, page_unlock};
pub use pinned::PinnedWindow;
pub use prover::{CudaProver, LOG_DOMAIN_MIN, Proved, Slot, open_prover};
pub use setup::DeviceMultiples;
