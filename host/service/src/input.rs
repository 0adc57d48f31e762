//! Inputs in memory: counted against a limit, zeroed when dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::{Zeroize, Zeroizing};

/// Counts the bytes of all inputs in memory.
#[derive(Clone)]
pub struct InputMemory {
    used_bytes: Arc<AtomicU64>,
    limit_bytes: u64,
}

/// An input. It has no Debug.
pub struct HeldInput {
    bytes: Zeroizing<Vec<u8>>,
    counted_bytes: u64,
    memory: InputMemory,
}

/// All of the memory for inputs is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl InputMemory {
    /// So many bytes at most.
    pub fn new(limit_bytes: u64) -> Self {
        Self { used_bytes: Arc::default(), limit_bytes }
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// An empty input.
    pub fn hold(&self) -> HeldInput {
        HeldInput { bytes: Zeroizing::default(), counted_bytes: 0, memory: self.clone() }
    }
}

impl HeldInput {
    /// Append. Memory that is outgrown is zeroed.
    pub fn extend(&mut self, more: &[u8]) -> Result<(), NoRoom> {
        let needed = self.bytes.len() + more.len();
        if needed > self.bytes.capacity() {
            self.grow(needed.max(2 * self.bytes.len()))?;
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    fn grow(&mut self, capacity: usize) -> Result<(), NoRoom> {
        let more = capacity as u64 - self.counted_bytes;
        let used = self.memory.used_bytes.fetch_add(more, Ordering::Relaxed);
        self.counted_bytes += more;
        if used + more > self.memory.limit_bytes {
            return Err(NoRoom);
        }
        let mut larger = Vec::with_capacity(capacity);
        larger.extend_from_slice(&self.bytes);
        let mut old = std::mem::replace(&mut self.bytes, Zeroizing::new(larger));
        old.zeroize();
        Ok(())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Hand the bytes over; from here on they are counted by whoever has them.
    pub fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes)
    }
}

impl Drop for HeldInput {
    fn drop(&mut self) {
        self.memory.used_bytes.fetch_sub(self.counted_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_counted_until_they_are_dropped() {
        let memory = InputMemory::new(1000);
        let mut input = memory.hold();
        (0..10).for_each(|byte| input.extend(&[byte; 40]).unwrap());
        assert_eq!((input.bytes().len(), input.bytes()[399]), (400, 9));
        assert_eq!(memory.hold().extend(&[0; 700]), Err(NoRoom));
        assert!(memory.used_bytes() >= 400);
        drop(input);
        assert_eq!(memory.used_bytes(), 0);
        memory.hold().extend(&[0; 1000]).unwrap();
    }
}
