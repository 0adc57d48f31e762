//! Who watches a run: logs, progress, cancelling.

use crate::error::Place;

/// How much a line of log matters.
pub use crate::bindings::zkhost::circuit::report::Level;

/// Watches a run. All methods have defaults that do nothing; they are called on the thread that runs the guest, so they
/// return soon.
pub trait Observer: Send + Sync {
    /// Whether [`Observer::log`] is wanted. Guests handle secrets, so logs are dropped unless their owner asks.
    fn wants_logs(&self) -> bool {
        false
    }
    /// One line of log, control characters stripped, within the circuit's limits.
    fn log(&self, _place: Place, _level: Level, _line: &str) {}
    /// The guest says how many units of the segment's weight are done. The number is the guest's word for it.
    fn progress(&self, _place: Place, _done: u64) {}
    /// Whether to stop the guest. Asked at least every [`crate::engine::TICK`] while it runs.
    fn cancelled(&self) -> bool {
        false
    }
}

/// An observer that asks for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
