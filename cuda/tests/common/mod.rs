//! What the tests on a device share.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard},
};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use zkhost_cuda::{Device, DeviceChoice};

/// A device that no other test of this program uses meanwhile, so that its memory can be counted.
pub struct TestDevice {
    device: Arc<Device>,
    _alone: MutexGuard<'static, ()>,
}

impl Deref for TestDevice {
    type Target = Arc<Device>;

    fn deref(&self) -> &Arc<Device> {
        &self.device
    }
}

/// The first device; none, with a line that says so, where the test cannot run.
pub fn device() -> Option<TestDevice> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let (device, why) = DeviceChoice::Auto.open();
    if device.is_none() {
        eprintln!("skipped: {}", why.unwrap_or_default());
    }
    device.map(|device| TestDevice { device, _alone: alone })
}

/// The same numbers at each run.
pub fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}
