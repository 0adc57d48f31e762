//! CUDA kernels, device memory and the Groth16 prover on a GPU.
//!
//! Everything runs on streams it is given, with scratch memory it is given; there is no state in static memory, and no
//! allocation or wait for the whole device in the steady state. The driver's library is loaded when a device is opened,
//! so that a program with this crate in it runs without one.

pub mod device;
pub mod error;
pub mod memory;

pub use device::{Device, DeviceChoice, Kernel, Stream};
pub use error::CudaError;
pub use memory::{Arena, Buffer, PinnedBuffer, Slice};
