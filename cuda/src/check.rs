//! Whether assignments satisfy a constraint system, on a device: A z, B z and C z there, row by row.

use std::sync::Arc;

use cudarc::driver::PushKernelArg;
use zkhost_groth16::{Assignment, R1cs, r1cs::MatrixId, scalar::Limbs};

use crate::{
    assignment::DeviceAssignment,
    circuit::DeviceCircuit,
    device::{Device, Stream, grid},
    error::{CudaError, Doing},
    memory::{Arena, Buffer},
    monitor::{Events, Monitor},
};

const THREADS: u32 = 256;

/// All three matrices of a constraint system on a device, with the memory that checking takes.
pub struct DeviceChecker {
    stream: Stream,
    r1cs: Arc<R1cs>,
    circuit: DeviceCircuit,
    events: Events,
    memory: Buffer<u8>,
}

impl DeviceChecker {
    /// Copies the matrices to the device.
    pub fn new(device: &Arc<Device>, r1cs: Arc<R1cs>) -> Result<Self, CudaError> {
        let stream = device.stream()?;
        let circuit = DeviceCircuit::with_matrices(&stream, &r1cs, &MatrixId::ALL)?;
        let bytes = DeviceAssignment::bytes(r1cs.public_count as usize, r1cs.aux_count as usize)
            + Arena::bytes_for::<Limbs>(MatrixId::ALL.len() * r1cs.constraints())
            + circuit.scratch_bytes()
            + Arena::bytes_for::<u32>(1);
        // Nothing is timed.
        let events = Events::new(&stream, 0)?;
        Ok(Self { memory: device.allocate(bytes)?, stream, r1cs, circuit, events })
    }

    /// The first constraint that the assignment breaks, if there is one. It must have the circuit's dimensions.
    pub fn first_broken(&mut self, assignment: &Assignment) -> Result<Option<usize>, CudaError> {
        self.r1cs.check_dimensions(assignment).map_err(|e| CudaError::Unsupported(e.to_string()))?;
        if self.r1cs.constraints() == 0 {
            return Ok(None);
        }
        let first = self.queue_and_read(assignment);
        // Nothing may be in flight when the assignment's borrow ends, and nothing of it may stay.
        let cleared = self.stream.clear(self.memory.as_slice()).and(self.stream.synchronize());
        cleared.and(first)
    }

    fn queue_and_read(&self, assignment: &Assignment) -> Result<Option<usize>, CudaError> {
        let (stream, rows) = (&self.stream, self.r1cs.constraints());
        let mut arena = Arena::new(&self.memory);
        let monitor = Monitor::start(&self.events, stream, &|| false)?;
        // SAFETY: the caller waits for the stream before the assignment's borrow ends.
        let assigned = unsafe { DeviceAssignment::upload(stream, &mut arena, assignment, &monitor)? };
        let products = arena.take::<Limbs>(MatrixId::ALL.len() * rows)?;
        let first = arena.take::<u32>(1)?;
        stream.upload(first, &[u32::MAX])?;
        self.circuit.evaluate(stream, &mut arena, assigned.z(), products)?;
        let [a, b, c] = [0, 1, 2].map(|which| products.slice(which * rows, rows));
        let (a, b, c, count) = (a?, b?, c?, rows as u32);
        let kernel = stream.device().kernel("r1cs_first_broken")?;
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&a).arg(&b).arg(&c).arg(&count).arg(&first);
        // SAFETY: a thread for each of the `count` rows that all three vectors have.
        unsafe { launch.launch(grid(rows.div_ceil(THREADS as usize), THREADS, 0)) }.doing("checking constraints")?;
        let row = stream.to_vec(first)?[0];
        Ok((row != u32::MAX).then_some(row as usize))
    }
}
