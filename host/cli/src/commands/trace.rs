//! `zkhost trace`

use crate::files;
use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use zkhost_engine::timeline::{Category, Summary, TRACE_BYTES_MAX, Timeline};

/// Say where the time of a run went
///
/// Reads a trace that `zkhost prove --trace` wrote. The file itself opens in Perfetto, https://ui.perfetto.dev.
#[derive(Args)]
#[command(after_help = "\
Example:
  zkhost prove spend.wasm --key spend.zkimage --input input.json --trace run.json
  zkhost trace run.json --svg run.svg")]
pub struct TraceArgs {
    /// The trace
    trace: PathBuf,
    /// Also draw every worker's and slot's work over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Serialize)]
struct TraceResult {
    milliseconds: f64,
    devices: Vec<DeviceResult>,
    categories: Vec<CategoryResult>,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
struct DeviceResult {
    device: u16,
    /// From its first work to its last.
    milliseconds: f64,
    /// Of that, the time it was busy.
    busy_milliseconds: f64,
    /// Whether that is the time of kernels, by the device's own events.
    by_device_events: bool,
    copied_bytes: u64,
    /// Time in which the link was busy.
    link_milliseconds: f64,
    /// Time in which slots copied, all slots together.
    copy_milliseconds: f64,
    /// Of that, the time in which another slot's kernels ran.
    hidden_copy_milliseconds: f64,
    gaps: Vec<GapResult>,
}

#[derive(Serialize)]
struct GapResult {
    cause: &'static str,
    milliseconds: f64,
}

#[derive(Serialize)]
struct CategoryResult {
    name: &'static str,
    spans: usize,
    /// The sum of the spans, which may overlap.
    milliseconds: f64,
}

impl From<&Summary> for TraceResult {
    fn from(summary: &Summary) -> Self {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        let devices = summary.devices.iter().map(|device| DeviceResult {
            device: device.device.0,
            milliseconds: ms(device.wall_nanos),
            busy_milliseconds: ms(device.busy_nanos),
            by_device_events: device.by_device_events,
            copied_bytes: device.copied_bytes,
            link_milliseconds: ms(device.link_nanos),
            copy_milliseconds: ms(device.copy_nanos),
            hidden_copy_milliseconds: ms(device.hidden_copy_nanos),
            gaps: device
                .gaps
                .iter()
                .map(|&(gap, nanos)| GapResult { cause: gap.name(), milliseconds: ms(nanos) })
                .collect(),
        });
        let category = |&(category, nanos, spans): &(Category, u64, usize)| CategoryResult {
            name: category.name(),
            spans,
            milliseconds: ms(nanos),
        };
        Self {
            milliseconds: ms(summary.wall_nanos),
            devices: devices.collect(),
            categories: summary.categories.iter().map(category).collect(),
            text: summary.to_string(),
        }
    }
}

impl fmt::Display for TraceResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

/// Run the command.
pub fn run(args: &TraceArgs, output: Output) -> Result<()> {
    let bytes = files::read(&args.trace, "the trace", TRACE_BYTES_MAX as u64)?;
    let timeline = Timeline::read_trace(&bytes).with_context(|| args.trace.display().to_string())?;
    args.svg.as_ref().map(|path| files::write(path, timeline.waterfall_svg().as_bytes())).transpose()?;
    output.result(&TraceResult::from(&timeline.summary()));
    Ok(())
}
