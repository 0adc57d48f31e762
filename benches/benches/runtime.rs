//! Sapling Spend in the sandbox: its witness pass beside the native one (`spend_witness`), and how long a component whose
//! code is cached takes to load (`component_load`).

use sapling_spend::SaplingSpend;
use std::path::Path;
use std::time::{Duration, Instant};
use zkhost_benches::{Measurement, median, milliseconds, paired};
use zkhost_groth16::assignment::SegmentWriter;
use zkhost_groth16::{Assignment, R1cs};
use zkhost_guest::job::Job as NativeJob;
use zkhost_guest::sink::WitnessSink;
use zkhost_runtime::{Cache, Circuit, Compiler, Input, Job, Layout, Limits, Runtime};

const RUNS: usize = 15;

fn main() {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-circuits");
    let input = std::fs::read(guests.join("sapling-spend/example-input.json")).expect("the guest has an example input");
    let components = guests.join("target/components");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::open(&folder.path().join("cache")).expect("a private cache");
    let runtime = Runtime::new(Compiler::InProcess, Some(cache)).expect("the runtime starts");

    // A process builds its generator tables but once, so this comes first and has one run.
    let native = NativeJob::<SaplingSpend>::open(b"", &input[..], input.len() as u64).expect("the example is an input");
    let native_first = native_assign(&native);
    for (component, suffix) in [("sapling-spend", ""), ("sapling-spend-published", "-published")] {
        let path = components.join(component).with_extension("wasm");
        spend_witness(&runtime, &path, suffix, &input, &native, native_first);
    }
    component_load(&runtime, &components.join("sapling-spend.wasm"));
}

/// A sink that drops what it is given.
struct Discard;

impl WitnessSink for Discard {
    fn write_groups(&mut self, _masks: &[u64], _elements: &[u64]) {}
    fn write_public(&mut self, _elements: &[u64]) {}
    fn progress(&mut self, _aux_written: u64) -> bool {
        true
    }
}

fn native_assign(job: &NativeJob<SaplingSpend>) -> Duration {
    let started = Instant::now();
    job.assign(0, 0, &mut Discard).expect("the example is satisfied");
    started.elapsed()
}

/// One assignment in the sandbox, its copy into host memory and the checks included, and how long it took.
fn sandbox_assign(circuit: &Circuit, job: &mut Job, layout: &Layout, shape: &R1cs) -> (Duration, Assignment) {
    let limits = circuit.segment_limits(layout, shape).expect("plan and shape agree");
    let started = Instant::now();
    let writer = SegmentWriter::on_heap(layout.encoding, limits[0]).expect("there is memory");
    let segment = job.assign(0, 0, writer).expect("the example is satisfied").finish().expect("it is complete");
    (started.elapsed(), Assignment::new(vec![segment]))
}

fn spend_witness(
    runtime: &Runtime,
    component: &Path,
    suffix: &str,
    input: &[u8],
    native: &NativeJob<SaplingSpend>,
    native_first: Duration,
) {
    let circuit = runtime.load_file(component, Limits::default()).expect("run `make guests` first");
    let (layout, shape) = (circuit.plan(b"").expect("it plans"), circuit.record_shape(b"", false).expect("it records"));
    let input = Input::from(input.to_vec());
    let open = || circuit.open(b"", &input).expect("the example is an input");

    let first = |_| {
        let (time, assignment) = sandbox_assign(&circuit, &mut open(), &layout, &shape);
        shape.check(&assignment).expect("every constraint holds");
        time
    };
    let first = median((0..RUNS).map(first).collect());
    let mut job = open();
    sandbox_assign(&circuit, &mut job, &layout, &shape);
    let warm = || {
        let (time, assignment) = sandbox_assign(&circuit, &mut job, &layout, &shape);
        shape.check(&assignment).expect("every constraint holds");
        time
    };
    let (warm, native_warm) = paired(RUNS, warm, || native_assign(native));
    for (case, ours, peer) in [("warm", warm, native_warm), ("first", first, native_first)] {
        let measurement = Measurement {
            bench: "spend_witness",
            case: &format!("{case}{suffix}"),
            ours: milliseconds(ours),
            peer: Some("the same circuit native, bls12_381 as published"),
            peer_value: Some(milliseconds(peer)),
            unit: "ms",
            checked: true,
        };
        measurement.record().expect("results can be written");
    }
}

/// Read, look up, check and map the cached code, link, instantiate, and ask the instance for its description.
fn component_load(runtime: &Runtime, component: &Path) {
    let load = || {
        let started = Instant::now();
        let circuit = runtime.load_file(component, Limits::default()).expect("it loads");
        let info = circuit.describe().expect("it describes itself");
        let time = started.elapsed();
        assert_eq!(info.name, "sapling-spend");
        time
    };
    let time = median((0..4 * RUNS).map(|_| load()).collect());
    let measurement = Measurement {
        bench: "component_load",
        case: "sapling-spend, cached, until described",
        ours: milliseconds(time),
        peer: None,
        peer_value: None,
        unit: "ms",
        checked: true,
    };
    measurement.record().expect("results can be written");
}
