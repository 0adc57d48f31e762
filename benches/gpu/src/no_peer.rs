//! What stands in the peer's place in a build without it.

use std::time::Duration;

use zkhost_cuda::DeviceMultiples;
use zkhost_groth16::{R1cs, Scalar, setup::ToxicWaste};

/// No peer.
pub enum NoPeer {}

impl NoPeer {
    /// Never used.
    pub const NAME: &str = "none";

    /// None.
    pub fn new(_: &R1cs, _: &ToxicWaste, _: &DeviceMultiples, _: &[Scalar]) -> Option<Self> {
        None
    }

    /// Cannot be called.
    pub fn prove(&self, _: Scalar, _: Scalar) -> ([u8; 192], Duration) {
        match *self {}
    }
}
