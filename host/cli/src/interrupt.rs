//! Ctrl-C: leave at once, with nothing half made.

use crate::error::{Code, Failure};
use crate::output::Output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files under way; they vanish when the command is interrupted.
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Handle Ctrl-C and a request to terminate. Without a handler the system ends the process, only less tidily.
pub fn install(output: Output) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            for file in pending().iter() {
                let _ = std::fs::remove_file(file);
            }
            let exit = output.failure(&Failure::new(Code::Busy, "cancelled").into());
            std::process::exit(exit.into());
        }
    });
}

/// A file under way, as long as this lives.
pub struct Pending(PathBuf);

impl Pending {
    /// The file was made.
    pub fn new(path: &Path) -> Self {
        pending().push(path.to_owned());
        Pending(path.to_owned())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        pending().retain(|path| *path != self.0);
    }
}

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}
