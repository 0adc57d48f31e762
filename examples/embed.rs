//! The engine as a library in another program: load a circuit component, prove an input of it on the CPU, keep a trace.
//!
//! ```text
//! make guests
//! cargo run --release -p zkhost-tests --example embed -- \
//!     guest-circuits/target/components/merkle-poseidon.wasm guest-circuits/merkle-poseidon/example-input.json trace.json
//! ```
//!
//! The trace opens in Perfetto (<https://ui.perfetto.dev>).

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;
use zkhost_engine::arena::{Arena, Ordinary, slabs_on_every_node};
use zkhost_engine::budget::Pool;
use zkhost_engine::component::ComponentJob;
use zkhost_engine::device::ProverDevice;
use zkhost_engine::failure::Outcome;
use zkhost_engine::ids::{JobId, Priority};
use zkhost_engine::scheduler::{Config, DeviceSpec, Role};
use zkhost_engine::synthesis::Circuit;
use zkhost_engine::{Engine, EngineConfig, JobRequest};
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{CpuProver, HBasis, Prover};
use zkhost_runtime::{Compiler, Input, Limits, Runtime, Silent};

const GIBIBYTE: u64 = 1 << 30;
/// Parameters: the circuit's defaults.
const PARAMS: &[u8] = b"";

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(component), Some(input)) = (arguments.next(), arguments.next()) else {
        bail!("usage: embed CIRCUIT.wasm INPUT.json [TRACE.json]");
    };
    let trace = arguments.next();
    let input_bytes = fs::read(&input).with_context(|| format!("reading {}", input.display()))?;

    // A circuit: its plan, its shape, and a key that is good for development only, for this program made it.
    let runtime = Runtime::new(Compiler::InProcess, None)?;
    let guest = runtime.load_file(&component, Limits::default())?;
    let layout = guest.plan(PARAMS)?;
    let shape = Arc::new(guest.record_shape(PARAMS, false)?);
    let key = setup(&shape, &ToxicWaste::random(), HBasis::QuotientPoints)?;
    let prover = Arc::new(CpuProver::new(Arc::new(key), shape.clone())?);
    let circuit = Circuit::of(prover.bound());

    // A device that proves it. GPUs would come first in the list, with the CPU as the last resort.
    let cpu = ProverDevice::new(
        prover.describe(),
        DeviceSpec { slots: 1, role: Role::Primary, node: 0 },
        Pool { capacity_bytes: 8 * GIBIBYTE, head_room_bytes: 0 },
    );
    cpu.add(circuit.id, fs::metadata(&component)?.len(), prover);

    // An engine: memory for assignments and guests, threads for both.
    let arena = Arena::new(&slabs_on_every_node(GIBIBYTE / 4), Arc::new(Ordinary))?;
    let threads = std::thread::available_parallelism()?.get();
    let config = EngineConfig {
        scheduler: Config { synthesis_workers: threads, ..Config::default() },
        host: Pool { capacity_bytes: threads as u64 * 4 * GIBIBYTE, head_room_bytes: 0 },
        pinned_head_room_bytes: 0,
    };
    let engine = Engine::start(config, vec![Arc::new(cpu)], arena)?;

    // A job. Its body is what makes a repeated submission the same job.
    let mut body = blake3::Hasher::new();
    body.update(&circuit.id.0).update(PARAMS).update(&input_bytes);
    let input = Input::from(input_bytes);
    let synthesis = ComponentJob::new(&guest, PARAMS, &input, (&layout, &shape), Arc::new(Silent))?;
    let job = engine.submit(JobRequest {
        id: JobId { owner: "embed".into(), name: "first".into() },
        body: body.finalize().into(),
        circuit,
        priority: Priority::Normal,
        time_limit: None,
        synthesis: Arc::new(synthesis),
    })?;
    match &*job.wait()? {
        Outcome::Proved(proved) => println!("{} bytes of proofs, verified", proved.proofs.len()),
        Outcome::Failed(failure) => bail!("{failure}"),
        Outcome::Cancelled => bail!("the job was cancelled"),
    }

    let timeline = engine.timeline()?;
    print!("{}", timeline.summary());
    if let Some(path) = trace {
        timeline.write_trace(BufWriter::new(File::create(&path)?))?;
        fs::write(path.with_extension("svg"), timeline.waterfall_svg())?;
    }
    Ok(())
}
