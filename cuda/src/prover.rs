//! The prover on a device: formulas (1) to (3) of the design's prover algebra.
//!
//! A slot has two streams for kernels: one unpacks the assignment and runs the multiplications by A, B and L', the other
//! evaluates the constraints, transforms, and runs the multiplication by the quotient points. A third one copies what is
//! streamed.

use std::{
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

use blstrs::G1Projective;
use rand_core::OsRng;
use zkhost_groth16::{
    Assignment, BoundKey, Proof, ProveError, Prover, ProvingKey, R1cs,
    msm::{Plan as HostPlan, Query as HostQuery},
    prover::BaseProof,
    scalar::Limbs,
};

use crate::{
    assignment::DeviceAssignment,
    device::{Device, DeviceChoice, Event, Stream},
    error::CudaError,
    key::{CudaKey, HostKey, KeyDimensions, Layout},
    memory::{Arena, Buffer, Slice},
    monitor::{Events, Monitor, Phase, Work},
    msm::{G1, G2, Scalars, Windows},
    query::{Pending, Query},
};

/// Room for the few points that a multiplication leaves for the host, in bytes.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// Phases of one proof that are timed. One with a resident key has nine; a streamed one has two for each chunk.
const PHASES_MAX: usize = 1024;
/// How often a slot looks whether its work is done or not wanted any more.
const POLL: Duration = Duration::from_micros(50);

/// Scratch memory of a proof, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct SlotSizes {
    witness: usize,
    quotient: usize,
}

impl SlotSizes {
    pub(crate) fn new(device: &Device, key: &KeyDimensions, layout: &Layout) -> Result<Self, CudaError> {
        let (variables, n, chunk) = (key.variables(), key.domain(), layout.chunk);
        let meanwhile = [
            Query::<G1>::scratch_bytes(device, key.a, variables, layout.a, chunk)?,
            Query::<G2>::scratch_bytes(device, key.b, variables, layout.b, chunk)?,
            Query::<G1>::scratch_bytes(device, variables, variables, layout.l, chunk)?,
        ];
        // Plans of resident queries stay until their sums are taken; what a query needs meanwhile is used again by the next.
        let plan = |w: Windows| Arena::bytes_for::<[u32; 2]>(variables * w.count() as usize) + RESULT_BYTES_MAX;
        let plans = if chunk.is_none() { plan(layout.a) + plan(layout.b) + plan(layout.l) } else { 0 };
        Ok(Self {
            witness: DeviceAssignment::bytes(key.publics, key.aux) + plans + meanwhile.into_iter().fold(0, usize::max),
            quotient: Arena::bytes_for::<Limbs>(2 * n)
                + key.circuit_scratch_bytes()
                + RESULT_BYTES_MAX
                + Query::<G1>::scratch_bytes(device, n, n, layout.h, chunk)?,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        Arena::bytes_for::<u8>(self.witness) + self.quotient
    }
}

/// A proof that a slot made, not verified, and where its time went.
pub struct Proved {
    /// The proof, re-randomised.
    pub proof: Proof,
    /// When the slot began, by the host's clock.
    pub began: Instant,
    /// What it did since, by the device's.
    pub phases: Vec<Phase>,
}

/// Streams, events and scratch memory of one proof at a time, by any key whose proofs fit in; all of it exists from the
/// start, so that a proof allocates no memory of the device.
pub struct Slot {
    witness: Stream,
    quotient: Stream,
    copies: Stream,
    memory: Buffer<u8>,
    events: Events,
    uploaded: Event,
    done: [Event; 2],
    /// Whether a proof that was stopped left work on the streams.
    behind: bool,
}

impl Slot {
    /// A slot with so much scratch memory; see [`crate::KeyPlan::scratch_bytes`].
    pub fn new(device: &Arc<Device>, scratch_bytes: usize) -> Result<Self, CudaError> {
        let copies = device.stream()?;
        Ok(Self {
            witness: device.stream()?,
            quotient: device.stream()?,
            memory: device.allocate(scratch_bytes)?,
            events: Events::new(&copies, PHASES_MAX)?,
            copies,
            uploaded: device.event()?,
            done: [device.event()?, device.event()?],
            behind: false,
        })
    }

    /// A proof with fresh blinding, not verified. The assignment must have the key's dimensions. As soon as `stop` says so,
    /// nothing more is queued, and the answer is [`CudaError::Stopped`]; it is asked more often than every 50 ms.
    pub fn prove(
        &mut self,
        key: &CudaKey,
        assignment: &Assignment,
        stop: &dyn Fn() -> bool,
    ) -> Result<Proved, CudaError> {
        let (base, began, phases) = self.base(key, assignment, stop)?;
        let vk = &key.host.bound().key.vk;
        let proof = base
            .randomise(vk, &mut OsRng)
            .unwrap_or_else(|| base.randomise_identity(vk, &host_b_g1(key, assignment), &mut OsRng));
        Ok(Proved { proof, began, phases })
    }

    fn base(
        &mut self,
        key: &CudaKey,
        assignment: &Assignment,
        stop: &dyn Fn() -> bool,
    ) -> Result<(BaseProof, Instant, Vec<Phase>), CudaError> {
        // What a proof that was stopped left on one stream may use the memory of the others.
        self.witness.wait_for(&self.quotient)?;
        self.witness.wait_for(&self.copies)?;
        if self.behind {
            // That may take a while, in which this one may be stopped, too.
            self.witness.record(&self.uploaded)?;
            self.wait(&self.uploaded, &|| if stop() { Err(CudaError::Stopped) } else { Ok(()) })?;
        }
        let monitor = Monitor::start(&self.events, &self.witness, stop)?;
        let began = monitor.began();
        let mut uploading = true;
        let base = self.compute(key, assignment, &monitor, &mut uploading);
        self.behind = base.is_err();
        if base.is_err() {
            // Nothing may read the assignment when its borrow ends; what else is queued reads the slot's own memory.
            if uploading {
                self.witness.record(&self.uploaded)?;
            }
            self.wait(&self.uploaded, &|| Ok(()))?;
        }
        // Nothing of the assignment may stay; the next proof begins on this stream.
        self.witness.wait_for(&self.quotient)?;
        self.witness.wait_for(&self.copies)?;
        self.witness.clear(self.memory.as_slice().slice(0, key.scratch_bytes())?)?;
        Ok((base?, began, monitor.phases()?))
    }

    fn compute(
        &self,
        key: &CudaKey,
        assignment: &Assignment,
        monitor: &Monitor<'_>,
        uploading: &mut bool,
    ) -> Result<BaseProof, CudaError> {
        let (witness_memory, quotient_memory) = self.split(key)?;
        let mut arena = Arena::over(witness_memory);
        // SAFETY: the caller waits for the event below before it gives the assignment back.
        let assigned = unsafe { DeviceAssignment::upload(&self.witness, &mut arena, assignment, monitor)? };
        self.witness.record(&self.uploaded)?;
        *uploading = false;
        self.quotient.wait_for(&self.witness)?;
        let mut quotient_arena = Arena::over(quotient_memory);
        let h = self.quotient(key, &mut quotient_arena, &assigned, monitor)?;

        let scalars = assigned.scalars();
        let streams = (&self.witness, &self.copies);
        let l = key.l.multiply(streams, &mut arena, &scalars, ("L multiplication", monitor))?;
        let a = key.a.multiply(streams, &mut arena, &scalars, ("A multiplication", monitor))?;
        let b = key.b.multiply(streams, &mut arena, &scalars, ("B multiplication", monitor))?;
        for (stream, done) in [&self.witness, &self.quotient].into_iter().zip(&self.done) {
            stream.record(done)?;
            self.wait(done, &|| monitor.check())?;
        }
        let vk = &key.host.bound().key.vk;
        let (a, l) = (a.finish(&self.witness)? + vk.alpha_g1, l.finish(&self.witness)?);
        Ok(BaseProof { a, b: b.finish(&self.witness)? + vk.beta_g2, c: h.finish(&self.quotient)? + l })
    }

    /// The memory of the two streams.
    fn split(&self, key: &CudaKey) -> Result<(Slice<'_, u8>, Slice<'_, u8>), CudaError> {
        let (memory, SlotSizes { witness, quotient }) = (self.memory.as_slice(), key.sizes);
        let parts = memory.slice(0, witness).and_then(|first| {
            let second = memory.slice(Arena::bytes_for::<u8>(witness), quotient)?;
            Ok((first, second))
        });
        parts.map_err(|_| CudaError::ArenaFull {
            asked_bytes: key.scratch_bytes(),
            used_bytes: 0,
            arena_bytes: memory.bytes(),
        })
    }

    /// Queues the sum over the quotient points.
    fn quotient<'a>(
        &self,
        key: &CudaKey,
        arena: &mut Arena<'a>,
        assigned: &DeviceAssignment<'_>,
        monitor: &Monitor<'_>,
    ) -> Result<Pending<'a, G1>, CudaError> {
        let n = key.domain.len();
        let vectors = arena.take::<Limbs>(2 * n)?;
        let stream = &self.quotient;
        monitor.phase(stream, (Work::Kernels, "constraints", 0), || {
            key.circuit.evaluate(stream, arena, assigned.z(), vectors)
        })?;
        monitor.phase(stream, (Work::Kernels, "transforms", 0), || {
            key.domain.coset_product(stream, vectors, &key.shift)
        })?;
        let scalars = Scalars::dense(vectors.slice(0, n)?);
        key.h.multiply((stream, &self.copies), arena, &scalars, ("H multiplication", monitor))
    }

    /// Waits for an event, as long as `go_on` does not fail.
    fn wait(&self, event: &Event, go_on: &dyn Fn() -> Result<(), CudaError>) -> Result<(), CudaError> {
        while !event.has_fired()? {
            go_on()?;
            sleep(POLL);
        }
        Ok(())
    }

    /// Bytes of its memory that are not zero, by copying all of it to the host. After a proof, finished or not, there are none
    /// in what the proof used: for whoever wants to see that nothing of an assignment stays.
    pub fn dirty_bytes(&self) -> Result<usize, CudaError> {
        let bytes = self.witness.to_vec(self.memory.as_slice())?;
        Ok(bytes.iter().filter(|&&byte| byte != 0).count())
    }

    /// Whether the device's context is lost, and the slot with it.
    pub fn is_lost(&self) -> bool {
        self.witness.synchronize().is_err_and(|error| error.is_sticky())
    }
}

/// B in G1 with s = 0. It is not on the device: only proofs with given r and s, and some by degenerate keys, need it.
fn host_b_g1(key: &CudaKey, assignment: &Assignment) -> G1Projective {
    let key = &key.host.bound().key;
    let query = HostQuery::sparse(key.b_density.clone());
    HostPlan::new(assignment).combine(&key.b_g1, &query) + key.vk.beta_g1
}

/// One key and one slot: proves one assignment at a time. For proofs that overlap, use several [`Slot`]s over one
/// [`CudaKey`], or several of these.
pub struct CudaProver {
    key: Arc<CudaKey>,
    slot: Mutex<Slot>,
}

impl CudaProver {
    /// A prover over a resident key. Allocates all its device memory.
    pub fn new(key: Arc<CudaKey>) -> Result<Self, CudaError> {
        let slot = Slot::new(&key.device, key.scratch_bytes())?;
        Ok(Self { slot: Mutex::new(slot), key })
    }
}

impl Prover for CudaProver {
    fn describe(&self) -> String {
        self.key.device.describe()
    }

    fn bound(&self) -> &BoundKey {
        self.key.host.bound()
    }

    fn base(&self, assignment: &Assignment) -> Result<BaseProof, ProveError> {
        // The lock is what makes callers wait for each other. A slot that a panic left works: what is in its memory is
        // cleared behind the next proof.
        let mut slot = self.slot.lock().unwrap_or_else(|e| e.into_inner());
        let base = slot.base(&self.key, assignment, &|| false);
        base.map(|(base, ..)| base).map_err(|e| ProveError::Backend(e.to_string()))
    }

    fn base_b_g1(&self, assignment: &Assignment) -> Result<G1Projective, ProveError> {
        Ok(host_b_g1(&self.key, assignment))
    }
}

/// A prover on the device that was chosen, and a sentence if that is not used.
///
/// The CPU proves when it was chosen, when there is no usable device or too little memory on it, and, unless a device was
/// asked for by number, when the domain is so small that the CPU is as fast. A key whose H query is not in quotient points
/// is converted first, which for large domains is worth doing once and storing: see [`crate::to_quotient_points`].
pub fn open_prover(
    choice: DeviceChoice,
    key: Arc<ProvingKey>,
    r1cs: Arc<R1cs>,
) -> Result<(Box<dyn Prover>, Option<String>), ProveError> {
    let cpu = |key, r1cs| -> Result<Box<dyn Prover>, ProveError> {
        let prover = zkhost_groth16::CpuProver::new(key, r1cs).map_err(|e| ProveError::Backend(e.to_string()))?;
        Ok(Box::new(prover))
    };
    if choice == DeviceChoice::Auto && key.log2_domain < LOG_DOMAIN_MIN {
        return Ok((cpu(key, r1cs)?, None));
    }
    let (device, why) = choice.open();
    let Some(device) = device else { return Ok((cpu(key, r1cs)?, why)) };
    let opened =
        HostKey::converted(&device, key.clone(), r1cs.clone()).and_then(|host| CudaKey::beside(&device, host, 1));
    match opened.and_then(|key| CudaProver::new(Arc::new(key))) {
        Ok(prover) => Ok((Box::new(prover), None)),
        Err(error) => Ok((cpu(key, r1cs)?, Some(format!("{error}; using the CPU")))),
    }
}

/// Below a domain of 2^this the CPU proves, unless a device was asked for by number. Measured, squarings on an H200 beside
/// 16 threads: 3.3 ms for any domain up to 2^8, mostly launches and blinding, beside 3.1 ms at 2^6 and 4.6 ms at 2^8.
pub const LOG_DOMAIN_MIN: u32 = 7;
