//! `zkhost doctor`

use crate::circuit::COMPILE_WORKER;
use crate::error::{Code, Failure};
use crate::measure;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use zkhost_groth16::Prover;
use zkhost_runtime::{Cache, Compiler, Runtime};
use zkhost_service::Config;
use zkhost_service::circuits::{Blobs, HostedCircuit, Registry, RegistrySettings};

/// Look whether this machine and a configuration can serve
///
/// Checks driver and GPUs with the rate of their links, the limit of locked memory, the machine's memory, and every circuit of the
/// watched folder with its key, by which it computes a proof to predict how many an hour can be made. Changes nothing. Run it
/// while no host uses the GPUs. Exits with 3 if something keeps the host from working.
#[derive(Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    serve: super::serve::ServeArgs,
}

/// What was found of one thing.
#[derive(Serialize)]
struct Finding {
    what: String,
    state: State,
    found: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    Remark,
    Bad,
}

#[derive(Serialize)]
struct DoctorResult {
    findings: Vec<Finding>,
}

impl fmt::Display for DoctorResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { what, state, found } in &self.findings {
            let mark = match state {
                State::Good => "good  ",
                State::Remark => "note  ",
                State::Bad => "BAD   ",
            };
            writeln!(f, "{mark} {what}: {found}")?;
        }
        Ok(())
    }
}

/// Run the command.
pub fn run(args: &DoctorArgs, output: Output) -> Result<()> {
    let config = args.serve.config()?;
    let mut findings = vec![driver(), locked_memory(&config), processors()];
    findings.extend(gpus(&config));
    findings.extend(memory(&config));
    findings.extend(circuits(&config));
    let bad: Vec<_> = findings.iter().filter(|finding| finding.state == State::Bad).collect();
    if bad.is_empty() {
        output.result(&DoctorResult { findings });
        return Ok(());
    }
    // Programs get one object: the error, which says what is bad.
    let sentences: Vec<_> = bad.iter().map(|Finding { what, found, .. }| format!("{what}: {found}")).collect();
    let message = format!("{} finding(s) keep the host from working: {}", bad.len(), sentences.join("; "));
    output.note(DoctorResult { findings });
    Err(Failure::new(Code::File, message).into())
}

fn finding(what: impl Into<String>, state: State, found: impl Into<String>) -> Finding {
    Finding { what: what.into(), state, found: found.into() }
}

fn driver() -> Finding {
    match std::fs::read_to_string("/proc/driver/nvidia/version") {
        Ok(text) => finding("GPU driver", State::Good, text.lines().next().unwrap_or_default()),
        Err(_) => finding("GPU driver", State::Remark, "none is loaded; proofs are computed on the CPU"),
    }
}

/// The GPUs that the configuration names, each with its memory and link.
fn gpus(config: &Config) -> Vec<Finding> {
    let (devices, remarks) = config.engine.devices.open_all();
    let remarks = remarks.into_iter().map(|remark| finding("GPU", State::Remark, remark));
    let measured = devices.iter().map(|device| {
        let found = device.available_bytes().and_then(|free| {
            let rate = measure::link_rate(device)? / 1e9;
            Ok(format!("{free} bytes free; {rate:.1} GB/s from page-locked memory"))
        });
        match found {
            Ok(found) => finding(device.describe(), State::Good, found),
            Err(error) => finding(device.describe(), State::Bad, error.to_string()),
        }
    });
    measured.chain(remarks).collect()
}

/// Page-locking the arena needs as much, unless the process may lock whatever it likes.
fn locked_memory(config: &Config) -> Finding {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max locked memory"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3)).unwrap_or("unknown").to_owned();
    let needed = config.engine.arena_bytes;
    match soft.parse::<u64>() {
        Ok(limit) if limit < needed => {
            let found = format!("{limit} bytes, the arena has {needed}; with a GPU set LimitMEMLOCK=infinity");
            finding("locked memory", State::Remark, found)
        }
        _ => finding("locked memory", State::Good, format!("limit: {soft}")),
    }
}

fn processors() -> Finding {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    finding("processors", State::Good, count.to_string())
}

/// Whether guests and arena fit the machine's memory.
fn memory(config: &Config) -> Option<Finding> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 =
        info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()?;
    let (total, wanted) = (kib << 10, config.engine.guest_bytes_max.saturating_add(config.engine.arena_bytes));
    let found = format!("{total} bytes; guests and arena may take {wanted}");
    let state = if wanted > total { State::Remark } else { State::Good };
    Some(finding("memory", state, found))
}

/// Load every circuit of the watched folder as `serve` would.
fn circuits(config: &Config) -> Vec<Finding> {
    let list = || -> Result<_> {
        let folder = tempfile::tempdir()?;
        let program = std::env::current_exe()?;
        let compiler = Compiler::Child { program, args: vec![COMPILE_WORKER.into()] };
        let runtime = Runtime::new(compiler, Some(Cache::open(&folder.path().join("code"))?))?;
        let shapes = Cache::open(&folder.path().join("shapes"))?;
        let blobs = Blobs::open(&folder.path().join("blobs"), 0)?;
        let phase2 = config.phase2();
        let settings = RegistrySettings {
            folder: Some(config.circuits_folder()),
            data: folder.path().to_owned(),
            loaded_max: config.circuits.loaded_max,
            phase2,
        };
        let registry = Registry::new(runtime, shapes, blobs, settings)?;
        registry.scan();
        let throughput = registry.all().iter().map(|circuit| throughput(config, circuit)).collect::<Vec<_>>();
        Ok((registry.list(), throughput))
    };
    let watched = config.circuits_folder();
    if !Path::new(&watched).is_dir() {
        return vec![finding("circuits", State::Remark, format!("{} does not exist yet", watched.display()))];
    }
    match list() {
        Err(error) => vec![finding("circuits", State::Bad, error.to_string())],
        Ok((list, throughput)) => {
            let good = list.circuits.iter().map(|circuit| {
                let found = format!("{} constraints, {} bytes of key", circuit.constraints, circuit.key_bytes);
                finding(format!("circuit {}", circuit.name), State::Good, found)
            });
            let bad = list.refused.iter().map(|(folder, error)| finding(folder, State::Bad, error.as_str()));
            good.chain(throughput).chain(bad).collect()
        }
    }
}

/// How many of a circuit's proofs can be made, one after another.
fn throughput(config: &Config, circuit: &HostedCircuit) -> Finding {
    let what = format!("throughput of {}", circuit.name());
    let measured = circuit.resident().map_err(anyhow::Error::from).and_then(|resident| {
        measure::proof_time(config.engine.devices, resident.prover.bound().key.clone(), resident.guest.r1cs().clone())
    });
    match measured {
        Ok((time, device)) => {
            let an_hour = 3600.0 / time.as_secs_f64();
            let found = format!(
                "about {an_hour:.0} proofs an hour by {device}: {:.1} ms each for values half of which are bits, beside the \
                 guest's time",
                time.as_secs_f64() * 1e3
            );
            finding(what, State::Good, found)
        }
        Err(error) => finding(what, State::Bad, error.to_string()),
    }
}
