//! Short measurements of this machine, for `doctor`.

use anyhow::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zkhost_cuda::{CudaError, Device, DeviceChoice, PinnedBuffer, open_prover};
use zkhost_groth16::{Assignment, ProvingKey, R1cs, Scalar};

/// Bytes of a copy by which a link is measured.
const COPY_BYTES: usize = 256 << 20;

/// Copies; the median counts.
const COPIES: usize = 9;

/// Proofs; the median counts.
const PROOFS: usize = 3;

/// A proof that takes longer is not repeated.
const PROOF_TIME_MAX: Duration = Duration::from_secs(10);

/// Bytes a second that a device takes from page-locked memory.
pub fn link_rate(device: &Arc<Device>) -> Result<f64, CudaError> {
    let stream = device.stream()?;
    let source = PinnedBuffer::<u8>::new(device, COPY_BYTES)?;
    let target = device.allocate::<u8>(COPY_BYTES)?;
    let times = (0..COPIES).map(|_| {
        let began = Instant::now();
        stream.upload(target.as_slice(), &source).map(|()| began.elapsed())
    });
    Ok(COPY_BYTES as f64 / median(times.collect::<Result<_, _>>()?).as_secs_f64())
}

/// How long a proof takes by a circuit's key, and by what: of an assignment of which one half are bits and the other are as
/// large as scalars get. It satisfies nothing, which does not change the time.
pub fn proof_time(choice: DeviceChoice, key: Arc<ProvingKey>, shape: Arc<R1cs>) -> Result<(Duration, String)> {
    let mut scalar = Scalar::from(7);
    let mut large = || {
        scalar = scalar * scalar + Scalar::from(1);
        scalar
    };
    let publics: Vec<_> = (0..shape.public_count).map(|_| large()).collect();
    let value = |index: u32| if index.is_multiple_of(2) { Scalar::from(u64::from(index % 4 / 2)) } else { large() };
    let aux: Vec<_> = (0..shape.aux_count).map(value).collect();
    let assignment = Assignment::from_values(&publics, &aux);
    let (prover, _) = open_prover(choice, key, shape)?;
    let mut times = vec![];
    while times.len() < PROOFS && times.last().is_none_or(|time| *time < PROOF_TIME_MAX) {
        let began = Instant::now();
        prover.prove_unverified(&assignment)?;
        times.push(began.elapsed());
    }
    Ok((median(times), prover.describe()))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
