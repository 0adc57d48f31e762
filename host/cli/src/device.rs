//! Where proofs are computed: the CPU or a CUDA device.

use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use std::path::Path;
use std::sync::Arc;
use zkhost_cuda::{DeviceChoice, open_prover};
use zkhost_groth16::{Prover, ProvingKey, R1cs};

/// The choice on the command line.
#[derive(Args)]
pub struct DeviceArgs {
    /// Where to compute: `auto` (the first CUDA device that works, else the CPU), `cpu`, or `cuda:N`
    #[arg(long, value_name = "DEVICE", env = "ZKHOST_DEVICE", default_value_t)]
    device: DeviceChoice,
}

impl DeviceArgs {
    /// A prover on the device that was chosen, or on the CPU, with a remark, where that cannot be used. The key, which came
    /// from `path`, must be the circuit's.
    pub fn prover(
        &self,
        path: &Path,
        key: Arc<ProvingKey>,
        shape: Arc<R1cs>,
        output: Output,
    ) -> Result<Box<dyn Prover>> {
        key.check_circuit(&shape).with_context(|| format!("key {}", path.display()))?;
        let (prover, remark) = open_prover(self.device, key, shape)?;
        if let Some(remark) = remark {
            output.note(remark);
        }
        Ok(prover)
    }
}
