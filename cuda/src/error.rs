//! What can go wrong on a device, as sentences.

use cudarc::driver::DriverError;

/// An error of the device or of its use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// No device can be used at all.
    #[error("no CUDA device can be used: {0}")]
    NoDevice(String),
    /// The text given for a device is not one.
    #[error(
        "{0:?} names no device: expected auto, cpu, or cuda:N with N a device number such as cuda:0, or cuda for all of them"
    )]
    BadDeviceName(String),
    /// A call of the driver failed.
    #[error("the CUDA driver failed while {doing}: {source}")]
    Driver {
        /// What was being done.
        doing: &'static str,
        /// What the driver said.
        source: DriverError,
    },
    /// Device memory ran out.
    #[error(
        "out of device memory: {asked_bytes} bytes were asked for with {used_bytes} in use by this process; \
         use a smaller circuit, fewer provers, or the CPU (--device cpu)"
    )]
    OutOfMemory {
        /// Bytes that were asked for.
        asked_bytes: usize,
        /// Bytes held by this process at that time.
        used_bytes: usize,
    },
    /// A piece of scratch memory was planned too small.
    #[error(
        "the scratch arena of {arena_bytes} bytes is too small: {asked_bytes} more bytes were asked for after {used_bytes}"
    )]
    ArenaFull {
        /// Bytes that were asked for.
        asked_bytes: usize,
        /// Bytes already taken.
        used_bytes: usize,
        /// Size of the arena.
        arena_bytes: usize,
    },
    /// A size or an index that the operation does not take.
    #[error("{0}")]
    Unsupported(String),
    /// The proof is not wanted any more.
    #[error("the proof was stopped before it was done")]
    Stopped,
    /// A result that is checked was wrong.
    #[error("the device computed a wrong result: {0}")]
    WrongResult(String),
}

impl CudaError {
    /// Whether the device's context is lost with everything in it: each later call would fail, too.
    pub fn is_sticky(&self) -> bool {
        use cudarc::driver::sys::CUresult as Code;
        let Self::Driver { source: DriverError(code), .. } = self else { return false };
        matches!(
            code,
            Code::CUDA_ERROR_ILLEGAL_ADDRESS
                | Code::CUDA_ERROR_MISALIGNED_ADDRESS
                | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
                | Code::CUDA_ERROR_INVALID_PC
                | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
                | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
                | Code::CUDA_ERROR_ASSERT
                | Code::CUDA_ERROR_LAUNCH_FAILED
                | Code::CUDA_ERROR_LAUNCH_TIMEOUT
                | Code::CUDA_ERROR_ECC_UNCORRECTABLE
                | Code::CUDA_ERROR_NVLINK_UNCORRECTABLE
                | Code::CUDA_ERROR_CONTEXT_IS_DESTROYED
                | Code::CUDA_ERROR_EXTERNAL_DEVICE
                | Code::CUDA_ERROR_UNKNOWN
        )
    }
}

/// Names what was being done when the driver failed.
pub(crate) trait Doing<T> {
    /// The same result with `doing` in its error.
    fn doing(self, doing: &'static str) -> Result<T, CudaError>;
}

impl<T> Doing<T> for Result<T, DriverError> {
    fn doing(self, doing: &'static str) -> Result<T, CudaError> {
        self.map_err(|source| CudaError::Driver { doing, source })
    }
}
