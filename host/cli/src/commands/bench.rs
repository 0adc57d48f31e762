//! `zkhost bench`

use crate::circuit::{CircuitArgs, Job, Loaded};
use crate::commands::synthesis_report::SynthesisReport;
use crate::device::DeviceArgs;
use crate::keys;
use crate::output::Output;
use crate::progress::{Stage, Stages, Table};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use zkhost_groth16::{ProveError, Prover};

/// Runs at most.
const RUNS_MAX: u32 = 1_000;

/// Time the stages of proving an input, and say what bounds them
///
/// Besides the stages, the circuit's synthesis is measured: the variables by kind, what assigning costs a constraint, bytes
/// handed over, memory of an instance, and how all of it scales with threads. Without a key, nothing is proved.
#[derive(Args)]
#[command(after_help = "\
Example:
  zkhost bench spend.wasm --key spend.zkimage --input input.json --runs 9
  zkhost bench spend.wasm --input input.json")]
pub struct BenchArgs {
    #[command(flatten)]
    circuit: CircuitArgs,
    /// The key image, made by `zkhost setup` or `zkhost import-key` for this circuit; without one nothing is proved
    #[arg(long, short, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    phase2: keys::Phase2Args,
    /// The input, a file in the circuit's own form
    #[arg(long, short, value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    device: DeviceArgs,
    /// How many times to prove; the median of each stage is shown
    #[arg(long, short, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    runs: u32,
}

#[derive(Serialize)]
struct BenchResult {
    runs: u32,
    /// What proved, if anything did.
    prover: Option<String>,
    constraints: usize,
    partitions: u32,
    /// Medians.
    stages: Vec<Stage>,
    synthesis: SynthesisReport,
}

impl fmt::Display for BenchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BenchResult { runs, prover, constraints, partitions, stages, synthesis } = self;
        let prover = prover.as_deref().unwrap_or("nothing proved");
        writeln!(f, "{constraints} constraints, {partitions} partition(s), {prover}: medians of {runs} runs")?;
        write!(f, "{}\n{synthesis}", Table(stages))
    }
}

/// Run the command. Components and shapes come from the cache from the second run on, as they do in use.
pub fn run(args: &BenchArgs, output: Output) -> Result<()> {
    let mut runs = Vec::new();
    let mut last = None;
    for _ in 0..args.runs {
        let mut stages = Stages::new(output);
        let loaded = args.circuit.load(&mut stages)?;
        let input = loaded.read_input(&args.input)?;
        let layout = loaded.plan(&mut stages)?;
        let shape = loaded.shape(&mut stages)?;
        let job = Job { input: &input, layout: &layout, shape: &shape };
        let prover = args.key.as_ref().map(|path| -> Result<_> {
            let key = stages.run("open key", || keys::open(path, args.phase2.phase2()))?;
            let prover = stages.run("prepare", || args.device.prover(path, key, Arc::clone(&shape), output))?;
            prove_partitions(&loaded, &job, prover.as_ref(), &mut stages)?;
            Ok(prover.describe())
        });
        runs.push(stages.finish());
        last = Some((loaded, input, layout, shape, prover.transpose()?));
    }
    let Some((loaded, input, layout, shape, prover)) = last else { return Ok(()) };
    let stages = medians(&runs);
    let prove = stages.iter().find(|stage| stage.name == "prove").map(|stage| stage.milliseconds);
    let job = Job { input: &input, layout: &layout, shape: &shape };
    let synthesis = SynthesisReport::new(&loaded, &job, args.runs, prove)?;
    let (constraints, partitions) = (shape.constraints(), layout.partitions);
    output.result(&BenchResult { runs: args.runs, prover, constraints, partitions, stages, synthesis });
    Ok(())
}

/// Prove all partitions, one stage after the other, so that each has a time of its own. As many partitions are assigned
/// together as there are threads.
fn prove_partitions(loaded: &Loaded, job: &Job<'_>, prover: &dyn Prover, stages: &mut Stages) -> Result<()> {
    let partitions = job.layout.partitions;
    let step = u32::try_from(rayon::current_num_threads()).unwrap_or(u32::MAX);
    let mut next = 0;
    while next < partitions {
        let range = next..next.saturating_add(step).min(partitions);
        next = range.end;
        let assignments = stages.run("assign", || loaded.assign(job, range.clone()))?;
        stages.count("prove", u64::from(partitions), |bar| -> Result<()> {
            for (partition, assignment) in range.zip(assignments) {
                bar.set_position(u64::from(partition));
                match prover.prove(&assignment) {
                    Ok(_) => {}
                    Err(ProveError::Unsatisfied(broken)) => {
                        return Err(loaded.name_constraint(partition, broken).into());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The median time of each stage. All runs have the same stages.
fn medians(runs: &[Vec<Stage>]) -> Vec<Stage> {
    let median = |(index, stage): (usize, &Stage)| {
        let mut times: Vec<f64> = runs.iter().map(|run| run[index].milliseconds).collect();
        times.sort_by(f64::total_cmp);
        let middle = times.len() / 2;
        let milliseconds = match times.len() % 2 {
            0 => (times[middle - 1] + times[middle]) / 2.0,
            _ => times[middle],
        };
        Stage { name: stage.name, milliseconds }
    };
    runs.first().into_iter().flatten().enumerate().map(median).collect()
}
