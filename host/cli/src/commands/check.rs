//! `zkhost check`

use crate::circuit::{CircuitArgs, Job};
use crate::device::DeviceArgs;
use crate::output::Output;
use crate::progress::{Stage, Stages, Table};
use crate::scalars;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use zkhost_runtime::{Level, Observer, Place};

/// Check that an input satisfies a circuit, without proving it
///
/// The circuit is assigned and every constraint evaluated. If one does not hold, the first is named by its path in the
/// circuit, and the exit code is 1.
#[derive(Args)]
#[command(after_help = "\
Example:
  zkhost check output.wasm --input example-input.json")]
pub struct CheckArgs {
    #[command(flatten)]
    circuit: CircuitArgs,
    /// The input, a file in the circuit's own form, `-` for standard input; it stays secret
    #[arg(long, short, value_name = "FILE")]
    input: PathBuf,
    /// Show what the circuit logs; only the author of a circuit knows whether that is secret
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

#[derive(Serialize)]
struct CheckResult {
    partitions: u32,
    /// Constraints of each partition; all hold.
    constraints: usize,
    /// Public inputs, for each partition if there are several.
    public: Value,
    stages: Vec<Stage>,
}

impl fmt::Display for CheckResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckResult { partitions, constraints, public, stages } = self;
        writeln!(f, "satisfied: all {constraints} constraints hold in {partitions} partition(s)")?;
        writeln!(f, "public inputs {public:#}\n{}", Table(stages))
    }
}

/// Shows a circuit's log.
struct Log(Output);

impl Observer for Log {
    fn wants_logs(&self) -> bool {
        true
    }

    fn log(&self, place: Place, level: Level, line: &str) {
        self.0.note(format_args!("{level:?} ({place}): {line}"));
    }
}

/// Run the command.
pub fn run(args: &CheckArgs, output: Output) -> Result<()> {
    let mut stages = Stages::new(output);
    let mut loaded = args.circuit.load(&mut stages)?;
    if args.log {
        loaded = loaded.observed(Arc::new(Log(output)));
    }
    let input = loaded.read_input(&args.input)?;
    let layout = loaded.plan(&mut stages)?;
    let shape = loaded.shape(&mut stages)?;
    let job = Job { input: &input, layout: &layout, shape: &shape };

    let mut checker = args.device.checker(&shape, output)?;
    let mut publics = Vec::new();
    for partition in 0..layout.partitions {
        for assignment in stages.run("assign", || loaded.assign(&job, partition..partition + 1))? {
            stages.run("check", || {
                match checker.as_mut().map(|checker| checker.first_broken(&assignment)).transpose()? {
                    Some(None) => Ok(()),
                    // Also for the name of a constraint that the device found broken.
                    None | Some(Some(_)) => loaded.check(&shape, partition, &assignment),
                }
            })?;
            publics.push(assignment.publics().to_vec());
        }
    }
    output.result(&CheckResult {
        partitions: layout.partitions,
        constraints: shape.constraints(),
        public: scalars::to_json(&publics),
        stages: stages.finish(),
    });
    Ok(())
}
