//! What the tests on a device share.

use std::sync::Arc;

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use zkhost_cuda::{Device, DeviceChoice};

/// The first device; none, with a line that says so, where the test cannot run.
pub fn device() -> Option<Arc<Device>> {
    let (device, why) = DeviceChoice::Auto.open();
    if device.is_none() {
        eprintln!("skipped: {}", why.unwrap_or_default());
    }
    device
}

/// The same numbers at each run.
pub fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}
