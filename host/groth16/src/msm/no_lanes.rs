//! Where there are no vectors whose lanes are known to pay: all sums are made by [`super::pairwise`].

use super::coordinate::Coordinate;
use super::pairwise::Run;
use crate::points::FpLimbs;

/// Never made.
pub enum Scratch {}

impl Scratch {
    /// None.
    pub fn detect(_points: usize, _elements: usize) -> Option<Self> {
        None
    }

    /// Never called.
    pub fn sum_runs<C: Coordinate, const N: usize>(
        &mut self,
        _points: &mut [[[FpLimbs; N]; 2]],
        _runs: &[Run],
    ) -> bool {
        match *self {}
    }
}
