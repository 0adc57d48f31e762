//! Page-locking memory that somebody else allocated, so that devices copy from it at the link's speed.

use std::{ffi::c_void, ptr::NonNull};

use cudarc::driver::sys;

use crate::{
    device::Device,
    error::{CudaError, Doing},
};

/// Page-locks `bytes` at `memory` for all devices. It takes some 0.1 s for a gigabyte that is faulted in, so it is for
/// start-up.
///
/// # Safety
/// The memory must be mapped, and stay so until [`page_unlock`] or the end of the process.
pub unsafe fn page_lock(device: &Device, memory: NonNull<u8>, bytes: usize) -> Result<(), CudaError> {
    device.bind()?;
    device.count_page_lock();
    // SAFETY: the context is current; the caller says that the range is mapped and stays so.
    unsafe { sys::cuMemHostRegister_v2(memory.as_ptr().cast::<c_void>(), bytes, sys::CU_MEMHOSTREGISTER_PORTABLE) }
        .result()
        .doing("page-locking memory")
}

/// Undoes [`page_lock`].
///
/// # Safety
/// `memory` must be what was page-locked, and no copy from it may be outstanding.
pub unsafe fn page_unlock(device: &Device, memory: NonNull<u8>) -> Result<(), CudaError> {
    device.bind()?;
    // SAFETY: the context is current; the caller says that the range was registered and is not in use.
    unsafe { sys::cuMemHostUnregister(memory.as_ptr().cast::<c_void>()) }.result().doing("unlocking memory")
}
