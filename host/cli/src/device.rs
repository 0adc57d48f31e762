//! Where things are computed: the CPU or a CUDA device.

use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use std::path::Path;
use std::sync::Arc;
use zkhost_cuda::{
    Device, DeviceChecker, DeviceChoice, DeviceMultiples, LOG_DOMAIN_MIN, open_prover, to_quotient_points,
};
use zkhost_groth16::{HBasis, Prover, ProvingKey, R1cs};

/// The choice on the command line.
#[derive(Args)]
pub struct DeviceArgs {
    /// Where to compute: `auto` (the first CUDA device that works, else the CPU), `cpu`, `cuda:N`, or `cuda` (all of them)
    #[arg(long, value_name = "DEVICE", env = "ZKHOST_DEVICE", default_value_t)]
    device: DeviceChoice,
}

impl DeviceArgs {
    /// The choice.
    pub fn choice(&self) -> DeviceChoice {
        self.device
    }

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

    /// What computes a key's points for this circuit, if a device does.
    pub fn multiples(&self, shape: &R1cs, output: Output) -> Result<Option<DeviceMultiples>> {
        Ok(self.open(shape, output).map(|device| DeviceMultiples::new(&device)).transpose()?)
    }

    /// The key with its H query as quotient points, which is how a device proves, where there is a device to convert it;
    /// else the key as it is.
    pub fn convert(&self, key: ProvingKey, shape: &R1cs, output: Output) -> Result<ProvingKey> {
        if key.h_basis == HBasis::QuotientPoints {
            return Ok(key);
        }
        match self.open(shape, output) {
            Some(device) => Ok(to_quotient_points(&device, &key, shape)?),
            None => Ok(key),
        }
    }

    /// What checks assignments of this circuit, if a device does.
    pub fn checker(&self, shape: &Arc<R1cs>, output: Output) -> Result<Option<DeviceChecker>> {
        let device = self.open(shape, output);
        Ok(device.map(|device| DeviceChecker::new(&device, Arc::clone(shape))).transpose()?)
    }

    /// The device, if there is one that is worth its start for this circuit. That one which was asked for is not used is
    /// worth a remark.
    fn open(&self, shape: &R1cs, output: Output) -> Option<Arc<Device>> {
        if self.device == DeviceChoice::Auto && shape.log2_domain() < LOG_DOMAIN_MIN {
            return None;
        }
        let (device, remark) = self.device.open();
        if let Some(remark) = remark.filter(|_| self.device != DeviceChoice::Auto) {
            output.note(remark);
        }
        device
    }
}
