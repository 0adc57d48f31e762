//! How benchmarks measure and where their results go.
//!
//! Machines are shared, so a benchmark alternates with its peer, run by run, and compares the medians: what disturbs one
//! disturbs the other.

use serde::Serialize;
use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// One result. Values are times or bytes, so lower is better, unless the unit is `%` or a rate such as `GB/s`.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement<'a> {
    /// What was measured.
    pub bench: &'a str,
    /// Which variant of it.
    pub case: &'a str,
    /// Our value.
    pub ours: f64,
    /// What it is compared with, if there is anything.
    pub peer: Option<&'a str>,
    /// The peer's value in the same run.
    pub peer_value: Option<f64>,
    /// The unit of both.
    pub unit: &'a str,
    /// Whether what was computed was checked in the same run.
    pub checked: bool,
}

/// A result as it is written: with where, when and of what it was measured.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    measurement: &'a Measurement<'a>,
    machine: String,
    date: String,
    commit: String,
}

impl Measurement<'_> {
    /// Print the result and append it to `benches/results/BENCH.jsonl`, or to the folder that `ZKHOST_BENCH_RESULTS` names:
    /// on a machine without this repository, which cannot tell its commit (`ZKHOST_BENCH_COMMIT`), or that is named better
    /// by its GPU (`ZKHOST_BENCH_MACHINE`).
    pub fn record(&self) -> std::io::Result<()> {
        let peer = match (self.peer, self.peer_value) {
            (Some(peer), Some(value)) => format!("; {peer}: {value:.3} {}", self.unit),
            _ => String::new(),
        };
        println!("{} {}: {:.3} {}{peer}", self.bench, self.case, self.ours, self.unit);
        let line = Line {
            measurement: self,
            machine: env::var("ZKHOST_BENCH_MACHINE").unwrap_or_else(|_| machine()),
            date: output("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
            commit: env::var("ZKHOST_BENCH_COMMIT")
                .unwrap_or_else(|_| output("git", &["rev-parse", "--short", "HEAD"])),
        };
        let folder = env::var_os("ZKHOST_BENCH_RESULTS")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("results"), PathBuf::from);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(self.bench).with_extension("jsonl");
        let mut file: File = OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(file, "{}", serde_json::to_string(&line)?)
    }
}

/// The processor's model and the number of cores this process may use.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, model)| model));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.unwrap_or("unknown processor"))
}

/// What a program prints, or `unknown`.
fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success());
    let text = output.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The median time of each of two things measured in turn, `runs` times.
pub fn paired(
    runs: usize,
    mut ours: impl FnMut() -> Duration,
    mut peer: impl FnMut() -> Duration,
) -> (Duration, Duration) {
    let (ours, peer) = (0..runs).map(|_| (ours(), peer())).unzip();
    (median(ours), median(peer))
}

/// The median of several times; the lower one of the middle two if their number is even.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) / 2]
}

/// A time in milliseconds.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// How long some work takes; what it makes is dropped afterwards.
pub fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    let made = work();
    let time = started.elapsed();
    drop(made);
    time
}
