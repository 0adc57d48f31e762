//! Memory that holds secrets, or what is derived from them.

use bytemuck::Pod;
use std::ops::{Deref, DerefMut};

/// Plain values that are zeroed before their memory is freed. It never grows, as growth would leave copies behind; it has no
/// Debug.
pub(crate) struct SecretBuffer<T: Pod>(Vec<T>);

impl<T: Pod> SecretBuffer<T> {
    /// This many zeros.
    pub fn zeros(len: usize) -> Self {
        Self(vec![T::zeroed(); len])
    }

    /// Take over values. The vector must not have been reallocated since secrets were put into it.
    pub fn new(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T: Pod> Deref for SecretBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Pod> DerefMut for SecretBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Pod> Drop for SecretBuffer<T> {
    fn drop(&mut self) {
        self.0.fill(T::zeroed());
        // Without it the compiler may drop stores to memory that is about to be freed.
        zeroize::optimization_barrier(self.0.as_slice());
    }
}
