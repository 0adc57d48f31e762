//! Stages of a command: how long each took, and a bar on a terminal for those that last.

use crate::output::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::fmt;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A stage that takes longer than this is shown.
const QUIET_TIME: Duration = Duration::from_secs(1);
/// How often a bar moves.
const TICK: Duration = Duration::from_millis(100);

/// The time that a stage took.
#[derive(Clone, Serialize)]
pub struct Stage {
    /// What was done.
    pub name: &'static str,
    /// For how long, in milliseconds.
    pub milliseconds: f64,
}

/// The stages of a command, in order.
pub struct Stages {
    output: Output,
    done: Vec<Stage>,
}

impl Stages {
    /// Nothing was done yet.
    pub fn new(output: Output) -> Self {
        Stages { output, done: Vec::new() }
    }

    /// A remark for people.
    pub fn note(&self, text: &str) {
        self.output.note(text);
    }

    /// Do something of unknown length and note how long it took.
    pub fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        self.count(name, 0, |_| work())
    }

    /// Do `steps` things, of which `work` reports each on the bar, and note how long they took.
    pub fn count<T>(&mut self, name: &'static str, steps: u64, work: impl FnOnce(&ProgressBar) -> T) -> T {
        let start = Instant::now();
        let outcome = self.watch(name, steps, work);
        self.add(name, start.elapsed());
        outcome
    }

    /// Do `steps` things with a bar, and note nothing.
    pub fn watch<T>(&self, name: &'static str, steps: u64, work: impl FnOnce(&ProgressBar) -> T) -> T {
        work(&Bar::new(self.output, name, steps, "{pos}/{len}").bar)
    }

    /// Go through a file of `total` bytes, which `work` reports on the bar, and note how long it took.
    pub fn bytes<T>(&mut self, name: &'static str, total: u64, work: impl FnOnce(&ProgressBar) -> T) -> T {
        let start = Instant::now();
        let outcome = work(&Bar::new(self.output, name, total, "{bytes}/{total_bytes}").bar);
        self.add(name, start.elapsed());
        outcome
    }

    /// Note the time of a stage; stages of one name add up.
    pub fn add(&mut self, name: &'static str, time: Duration) {
        let milliseconds = time.as_secs_f64() * 1e3;
        match self.done.iter_mut().find(|stage| stage.name == name) {
            Some(stage) => stage.milliseconds += milliseconds,
            None => self.done.push(Stage { name, milliseconds }),
        }
    }

    /// What was done.
    pub fn finish(self) -> Vec<Stage> {
        self.done
    }
}

/// A progress bar that appears after [`QUIET_TIME`] and vanishes when dropped.
struct Bar {
    bar: ProgressBar,
    /// Dropped with the bar, which tells the thread that waits to show it.
    _alive: mpsc::Sender<()>,
}

impl Bar {
    fn new(output: Output, name: &'static str, steps: u64, count: &str) -> Self {
        let bar = ProgressBar::with_draw_target((steps > 1).then_some(steps), ProgressDrawTarget::hidden());
        let (alive, gone) = mpsc::channel();
        if output.interactive() {
            let template = match steps > 1 {
                true => format!("{{spinner}} {{msg}} [{{bar:30}}] {count} {{elapsed}}"),
                false => "{spinner} {msg} {elapsed}".into(),
            };
            let style = ProgressStyle::with_template(&template);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_message(name);
            let shown = bar.clone();
            std::thread::spawn(move || {
                if gone.recv_timeout(QUIET_TIME) == Err(mpsc::RecvTimeoutError::Timeout) {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(TICK);
                }
            });
        }
        Bar { bar, _alive: alive }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Stages as a table for people.
pub struct Table<'a>(pub &'a [Stage]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Stage { name, milliseconds } in self.0 {
            writeln!(f, "  {name:<20} {milliseconds:>10.1} ms")?;
        }
        let total = self.0.iter().map(|stage| stage.milliseconds).sum::<f64>();
        write!(f, "  {:<20} {total:>10.1} ms", "total")
    }
}
