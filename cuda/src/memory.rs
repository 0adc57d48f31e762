//! Device memory: buffers that own it, slices that point into it, arenas that lend it for one computation.

use std::{marker::PhantomData, sync::Arc};

use cudarc::driver::{DeviceRepr, result, sys};

use crate::{
    device::Device,
    error::{CudaError, Doing},
};

/// What may lie in device memory: any bytes are a value, and there are no references.
pub trait Plain: bytemuck::Pod + Send + Sync {}
impl<T: bytemuck::Pod + Send + Sync> Plain for T {}

/// Every piece lent by an arena starts at a multiple of this many bytes, so that any vector access is aligned.
const ALIGNMENT_BYTES: usize = 256;

/// Device memory for `len` values of T. Freed when dropped, after what was queued has run (the driver waits).
pub struct Buffer<T> {
    address: u64,
    len: usize,
    device: Arc<Device>,
    kind: PhantomData<T>,
}

impl<T: Plain> Buffer<T> {
    pub(crate) fn new(device: &Arc<Device>, len: usize) -> Result<Self, CudaError> {
        let used_bytes = device.used_bytes();
        let too_much = |asked_bytes| CudaError::OutOfMemory { asked_bytes, used_bytes };
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| too_much(usize::MAX))?;
        device.bind()?;
        device.admit(bytes)?;
        // SAFETY: the context is current; a length of zero is refused by the driver, so at least one byte is asked for.
        let address = match unsafe { result::malloc_sync(bytes.max(1)) } {
            Ok(address) => address,
            Err(_) => {
                device.release(bytes);
                return Err(too_much(bytes));
            }
        };
        Ok(Self { address, len, device: device.clone(), kind: PhantomData })
    }

    /// All of it.
    pub fn as_slice(&self) -> Slice<'_, T> {
        Slice { address: self.address, len: self.len, kind: PhantomData }
    }

    /// The device it is on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        if self.device.bind().is_ok() {
            // SAFETY: the address came from malloc_sync and nobody can hold a slice any more. An error here means that
            // the context is broken, and with it the memory is gone anyway.
            let _ = unsafe { result::free_sync(self.address) };
        }
        self.device.release(bytes);
    }
}

/// Values in device memory that live as long as 'a. Copies of a slice may be written through by kernels, like cells:
/// the order of a stream is what keeps writers and readers apart.
#[repr(C)]
#[derive(Debug)]
pub struct Slice<'a, T> {
    // First, because a kernel's argument is read from the start of this struct.
    address: u64,
    len: usize,
    kind: PhantomData<&'a T>,
}

impl<T> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<'_, T> {}

// SAFETY: as a kernel's argument only the address is read, which is a plain number.
unsafe impl<T> DeviceRepr for Slice<'_, T> {}

impl<'a, T: Plain> Slice<'a, T> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it is.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// `len` values from `start`.
    pub fn slice(&self, start: usize, len: usize) -> Result<Slice<'a, T>, CudaError> {
        match start.checked_add(len) {
            Some(end) if end <= self.len => {
                Ok(Slice { address: self.address + (start * size_of::<T>()) as u64, len, kind: PhantomData })
            }
            _ => Err(CudaError::Unsupported(format!(
                "{len} values from {start} do not lie in a device slice of {} values",
                self.len
            ))),
        }
    }

    /// The same bytes as values of another type.
    pub fn cast<U: Plain>(&self) -> Slice<'a, U> {
        Slice { address: self.address, len: self.bytes() / size_of::<U>(), kind: PhantomData }
    }
}

/// Scratch memory, lent piece by piece to one computation and taken back all at once. Nothing is allocated.
#[derive(Debug)]
pub struct Arena<'a> {
    memory: Slice<'a, u8>,
    used_bytes: usize,
}

impl<'a> Arena<'a> {
    /// An arena over all of `memory`.
    pub fn new(memory: &'a Buffer<u8>) -> Self {
        Self::over(memory.as_slice())
    }

    /// An arena over a part of a buffer, which starts as aligned as pieces are to be.
    pub fn over(memory: Slice<'a, u8>) -> Self {
        Self { memory, used_bytes: 0 }
    }

    /// Bytes that taking `len` values uses up.
    pub const fn bytes_for<T>(len: usize) -> usize {
        (len * size_of::<T>()).next_multiple_of(ALIGNMENT_BYTES)
    }

    /// `len` values, not initialised, until the arena's memory is used again.
    pub fn take<T: Plain>(&mut self, len: usize) -> Result<Slice<'a, T>, CudaError> {
        let asked_bytes = Self::bytes_for::<T>(len);
        let piece = self.memory.slice(self.used_bytes, asked_bytes).map_err(|_| CudaError::ArenaFull {
            asked_bytes,
            used_bytes: self.used_bytes,
            arena_bytes: self.memory.len(),
        })?;
        self.used_bytes += asked_bytes;
        piece.cast::<T>().slice(0, len)
    }

    /// What is left, as an arena of its own: what it lends is free again when it is dropped.
    pub fn rest(&mut self) -> Arena<'_> {
        let left = self.memory.len() - self.used_bytes;
        let memory = Slice { address: self.memory.address + self.used_bytes as u64, len: left, kind: PhantomData };
        Arena { memory, used_bytes: 0 }
    }
}

/// Page-locked host memory: copies to and from it, by any device, run at the link's speed and beside kernels. Zeroed when
/// dropped, because witnesses pass through it.
pub struct PinnedBuffer<T> {
    pointer: *mut T,
    len: usize,
    device: Arc<Device>,
}

// SAFETY: it owns its memory like a Vec does; the values are plain.
unsafe impl<T: Plain> Send for PinnedBuffer<T> {}
// SAFETY: shared references only read.
unsafe impl<T: Plain> Sync for PinnedBuffer<T> {}

impl<T: Plain> PinnedBuffer<T> {
    /// Room for `len` values, zero.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, CudaError> {
        device.bind()?;
        let bytes = len * size_of::<T>();
        device.count_page_lock();
        // SAFETY: the context is current; the memory is page-aligned, which suits any plain T.
        let pointer = unsafe { result::malloc_host(bytes.max(1), sys::CU_MEMHOSTALLOC_PORTABLE) }
            .doing("allocating page-locked memory")?
            .cast::<T>();
        // SAFETY: the allocation is at least so many bytes, and zero bytes are values of T.
        unsafe { std::ptr::write_bytes(pointer.cast::<u8>(), 0, bytes) };
        Ok(Self { pointer, len, device: device.clone() })
    }
}

impl<T> std::ops::Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the allocation holds `len` initialised values and lives as long as self.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }
}

impl<T> std::ops::DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and self is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        // SAFETY: the allocation is at least so many bytes.
        let memory = unsafe { std::slice::from_raw_parts_mut(self.pointer.cast::<u8>(), bytes) };
        zeroize::Zeroize::zeroize(memory);
        if self.device.bind().is_ok() {
            // SAFETY: the pointer came from malloc_host and nobody can hold a slice any more.
            let _ = unsafe { result::free_host(self.pointer.cast()) };
        }
    }
}
