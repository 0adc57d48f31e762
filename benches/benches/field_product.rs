//! A field product in the sandbox, in a chain, beside blst's native: `field_product`; and an inversion in a batch beside
//! blst's single ones: `field_inversion`. Both in nanoseconds.

use blstrs::Scalar;
use ff::Field;
use serde_json::json;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use zkhost_benches::{Measurement, paired};
use zkhost_groth16::Assignment;
use zkhost_groth16::assignment::SegmentWriter;
use zkhost_runtime::{Circuit, Compiler, Input, Limits, Runtime};

const RUNS: usize = 15;
const PRODUCTS: u32 = 1_000_000;
const INVERSIONS: u32 = 10_000;
const START: u64 = 3;

fn main() {
    let component = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-circuits/target/components/arithmetic.wasm");
    let runtime = Runtime::new(Compiler::InProcess, None).expect("the runtime starts");
    let circuit = runtime.load_file(&component, Limits::default()).expect("run `make guests` first");
    let start = Scalar::from(START);
    let chain = || {
        let factor = black_box(start + Scalar::ONE);
        (0..PRODUCTS).fold(start, |x, _| x * factor)
    };
    let inverses = || {
        let inverse = |i| (start + Scalar::from(u64::from(i))).invert().expect("not zero");
        (0..INVERSIONS).map(inverse).sum::<Scalar>()
    };
    measure(&circuit, "field_product", "a chain", (PRODUCTS, 0), |guest| {
        let product = chain();
        // Without inversions their sum is zero, so the public sum is the chain's end.
        assert_eq!(guest.publics()[1], product, "the ends are equal");
        chain
    });
    measure(&circuit, "field_inversion", "in a batch", (0, INVERSIONS), |guest| {
        assert_eq!(guest.publics()[1], start + inverses(), "the sums are equal");
        inverses
    });
}

/// Assign in the sandbox, then compute natively what `native` gives for the guest's assignment, in turn.
fn measure<N: Fn() -> Scalar>(
    circuit: &Circuit,
    bench: &str,
    case: &str,
    (products, inversions): (u32, u32),
    native: impl FnOnce(&Assignment) -> N,
) {
    let params = json!({ "products": products, "inversions": inversions }).to_string();
    let (layout, shape) = (
        circuit.plan(params.as_bytes()).expect("it plans"),
        circuit.record_shape(params.as_bytes(), false).expect("it records"),
    );
    let limits = circuit.segment_limits(&layout, &shape).expect("plan and shape agree")[0];
    let input = Input::from(json!({ "start": START }).to_string().into_bytes());
    let mut job = circuit.open(params.as_bytes(), &input).expect("an input");
    let mut assign = || {
        let started = Instant::now();
        let writer = SegmentWriter::on_heap(layout.encoding, limits).expect("there is memory");
        let segment = job.assign(0, 0, writer).expect("it assigns").finish().expect("it is complete");
        (started.elapsed(), Assignment::new(vec![segment]))
    };
    let (_, assignment) = assign();
    shape.check(&assignment).expect("every constraint holds");
    let native = native(&assignment);
    let timed = || {
        let started = Instant::now();
        black_box(native());
        started.elapsed()
    };
    let (ours, peer) = paired(RUNS, || assign().0, timed);
    let per = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(products + inversions);
    let measurement = Measurement {
        bench,
        case,
        ours: per(ours),
        peer: Some("blst native"),
        peer_value: Some(per(peer)),
        unit: "ns",
        checked: true,
    };
    measurement.record().expect("results can be written");
}
