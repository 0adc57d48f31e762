//! Asking for memory ahead of its use.

/// Ask for a value that is soon needed to be brought into the nearest cache. A hint: where there is no such instruction,
/// nothing is done.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE_BYTES: usize = 64;
        let bytes = std::ptr::from_ref(value).cast::<i8>();
        for offset in (0..size_of::<T>()).step_by(LINE_BYTES).chain(size_of::<T>().checked_sub(1)) {
            // SAFETY: the address is within a live value, and the instruction, which every x86-64 has, changes no memory.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
