//! Memory that holds secrets, or what is derived from them.

use std::ops::{Deref, DerefMut};

/// Plain values, whose default is zero, that are zeroed before their memory is freed. It never grows, as growth would leave
/// copies behind; it has no Debug.
#[derive(Default)]
pub struct SecretBuffer<T: Copy + Default>(Vec<T>);

impl<T: Copy + Default> SecretBuffer<T> {
    /// This many zeros.
    pub fn zeros(len: usize) -> Self {
        Self(vec![T::default(); len])
    }

    /// Take over values. The vector must not have been reallocated since secrets were put into it.
    pub fn new(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T: Copy + Default> Deref for SecretBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for SecretBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy + Default> Drop for SecretBuffer<T> {
    fn drop(&mut self) {
        self.0.fill(T::default());
        // Without it the compiler may drop stores to memory that is about to be freed.
        zeroize::optimization_barrier(self.0.as_slice());
    }
}
