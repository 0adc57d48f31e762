//! Where there are no vectors whose lanes are known to pay: [`super`] transforms element by element.

use super::Roots;
use crate::scalar::Scalar;

/// log2 of the smallest domain that would be asked for.
pub(super) const LEAST_LOG2: u32 = 8;

/// Never made.
pub(super) enum Lanes {}

impl Lanes {
    /// None.
    pub fn detect(_roots: &Roots, _size_inverse: &Scalar) -> Option<Self> {
        None
    }

    /// Never called.
    pub fn forward(&self, _values: &mut [Scalar], _block: usize, _roots: &Roots) {
        match *self {}
    }

    /// Never called.
    pub fn inverse(&self, _values: &mut [Scalar], _block: usize, _roots: &Roots) {
        match *self {}
    }
}
