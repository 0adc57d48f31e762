//! The memory of one instance of a guest while it assigns a segment, whatever the size of the partition, beside the whole
//! witness as 32-byte elements, which other provers hold: `guest_memory`. And how long an instance takes to open an input,
//! beside parsing it natively: `guest_open`, in milliseconds.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use zkhost_benches::{Measurement, milliseconds, paired, timed};
use zkhost_groth16::Assignment;
use zkhost_groth16::assignment::{SegmentLimits, SegmentWriter};
use zkhost_runtime::{Circuit, Compiler, Input, Limits, Runtime};

/// What every job has: labels of 14 parents in trees of 512 nodes.
const PARENTS: u64 = 14;
/// Times that an input is opened.
const OPENINGS: usize = 21;
/// Aux variables of a partition whose constraints are checked.
const CHECKED_AUX_MAX: u64 = 1 << 22;

fn main() {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-circuits");
    let runtime = Runtime::new(Compiler::InProcess, None).expect("the runtime starts");
    let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
    let component = guests.join("target/components/replica.wasm");
    let circuit = runtime.load_file(&component, limits).expect("run `make guests` first");
    for (case, partitions, challenges, layers, hashed_labels) in [
        ("one small challenge", 1, 1, 2, 1),
        ("a partition of domain 2^22", 1, 8, 2, 14),
        ("40 partitions of domain 2^22", 40, 8, 2, 14),
        ("a partition of domain 2^27", 1, 18, 11, 37),
    ] {
        let params = json!({
            "partitions": partitions, "challenges": challenges, "layers": layers, "base_parents": 6,
            "expander_parents": 8, "hashed_labels": hashed_labels, "depth": 3,
        });
        measure(&circuit, case, &params, &guests);
    }
}

fn measure(circuit: &Circuit, case: &str, params: &Value, guests: &Path) {
    let input = labelling(params, guests);
    let challenges = params["challenges"].as_u64().expect("a number");
    let params = params.to_string();
    let layout = circuit.plan(params.as_bytes()).expect("it plans");
    let aux: u64 = layout.segments.iter().map(|segment| segment.aux_count).sum();
    // Recording the constraints of the largest partition would take minutes and gigabytes.
    let checked = aux < CHECKED_AUX_MAX;
    open(circuit, case, &params, &input, checked);
    let mut job = circuit.open(params.as_bytes(), &Input::from(input)).expect("an input");
    let mut written = Vec::new();
    for (i, segment) in layout.segments.iter().enumerate() {
        let limits = SegmentLimits {
            aux_count: segment.aux_count,
            full_max: segment.full_max,
            public_count: if i == 0 { 2 + challenges * (1 + PARENTS) } else { 0 },
        };
        let writer = SegmentWriter::on_heap(layout.encoding, limits).expect("there is memory");
        written.push(job.assign(0, i as u32, writer).expect("it assigns").finish().expect("it is complete"));
    }
    if checked {
        let shape = circuit.record_shape(params.as_bytes(), false).expect("it records");
        shape.check(&Assignment::new(written)).expect("every constraint holds");
    }
    let mebibytes = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    let measurement = Measurement {
        bench: "guest_memory",
        case,
        ours: mebibytes(job.memory_bytes()),
        peer: Some("the partition's witness as elements"),
        peer_value: Some(mebibytes(32 * aux)),
        unit: "MiB",
        checked,
    };
    measurement.record().expect("results can be written");
}

/// Open an input again and again, each time in an instance of its own as every worker does.
fn open(circuit: &Circuit, case: &str, params: &str, json: &[u8], checked: bool) {
    let input = Input::from(json.to_vec());
    let ours = || timed(|| circuit.open(params.as_bytes(), &input).expect("an input"));
    let peer = || timed(|| serde_json::from_slice::<Value>(json).expect("JSON"));
    let (ours, peer) = paired(OPENINGS, ours, peer);
    let measurement = Measurement {
        bench: "guest_open",
        case: &format!("{case}, {:.1} MB", json.len() as f64 / 1e6),
        ours: milliseconds(ours),
        peer: Some("serde_json, native, to a value"),
        peer_value: Some(milliseconds(peer)),
        unit: "ms",
        // What was opened is assigned, and checked where that is feasible, after this.
        checked,
    };
    measurement.record().expect("results can be written");
}

/// An input, from the generator among the guest's examples.
fn labelling(params: &Value, guests: &Path) -> Vec<u8> {
    let generator = ["run", "--quiet", "--release", "--locked", "--package", "replica", "--example", "labelling", "--"];
    let output = Command::new("cargo").current_dir(guests).args(generator).arg(params.to_string()).output();
    let output = output.expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
