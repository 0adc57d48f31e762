//! Ctrl-C: leave at once, with nothing half made.

use crate::error::Code;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files under way; they vanish when the command is interrupted.
static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Handle Ctrl-C and a request to terminate. Without a handler the system ends the process, only less tidily.
pub fn install() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            for draft in drafts().iter() {
                let _ = std::fs::remove_file(draft);
            }
            eprintln!("zkhost: cancelled");
            std::process::exit(Code::Busy as i32);
        }
    });
}

/// A file is under way.
pub fn begin_draft(path: &Path) {
    drafts().push(path.to_owned());
}

/// It is no more: kept or gone.
pub fn end_draft(path: &Path) {
    drafts().retain(|draft| draft != path);
}

fn drafts() -> MutexGuard<'static, Vec<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}
