//! Keys from elsewhere.

mod support;

use serde_json::json;
use support::{Workplace, path};

const OUTPUT: &str = "{component:sapling-output}";
const INPUT: &str = "{guest:sapling-output/example-input.json}";

#[test]
fn the_ceremony_key_of_sapling_output_proves_under_the_published_verifying_key() {
    let workplace = Workplace::new();
    let import = format!("import-key {OUTPUT} {{key:sapling-output}} --out o.zkimage --vk-out o.vk --input {INPUT}");
    let answer = workplace.json(&import);
    assert_eq!(answer["known"], "sapling-output");
    assert_eq!(answer["proven"], true);
    assert_eq!(answer["trailer_bytes"], 52_836);
    assert_eq!(workplace.read("o.vk"), std::fs::read(path("{fixture:sapling/output.vk}")).unwrap());

    workplace.json(&format!("prove {OUTPUT} --key o.zkimage --input {INPUT} --out o.proof"));
    let public = "{fixture:sapling/golden-output.public}";
    let answer =
        workplace.json(&format!("verify --vk {{fixture:sapling/output.vk}} --proof o.proof --public {public}"));
    assert_eq!(answer["valid"], true);
}

#[test]
fn a_key_of_another_circuit_is_refused() {
    let workplace = Workplace::new();
    let import = "import-key {component:hostile} {key:sapling-output} --out o.zkimage";
    workplace.check_failure(import, 3, &["sapling-output.params", "does not fit the circuit"]);
    assert!(!workplace.path("o.zkimage").exists());
}

/// lotus issue 2237: a checksum mismatch was reported without a way forward.
#[test]
fn lotus_i2237_a_damaged_ceremony_key_is_refused_with_digests_and_a_way_forward() {
    let workplace = Workplace::new();
    let mut bytes = std::fs::read(path("{key:sapling-output}")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    workplace.write("damaged.params", &bytes);
    let import = format!("import-key {OUTPUT} damaged.params --out o.zkimage");
    workplace.check_failure(&import, 3, &["damaged.params", "get it again"]);
    let pinned = format!("{import} --sha256 2f0ebbcbb9bb0bcffe95a397e7eba89c29eb4dde6191c339db88570e3f3fb0e4");
    workplace.check_failure(&pinned, 3, &["SHA-256", "2f0ebbcb", "get it again"]);
    bytes.truncate(1_000);
    workplace.write("damaged.params", &bytes);
    workplace.check_failure(&import, 3, &["damaged.params", "too early"]);
    workplace.write("damaged.params", "");
    workplace.check_failure(&import, 3, &["damaged.params", "empty or incomplete"]);
}

#[test]
fn an_exported_key_comes_back_and_another_circuits_witness_does_not_prove_by_it() {
    let workplace = Workplace::new();
    workplace.json(&format!("setup {OUTPUT} --out s.zkimage --params-out s.params --vk-out s.vk --insecure-seed 9"));
    let answer = workplace.json(&format!("import-key {OUTPUT} s.params --out i.zkimage --vk-out i.vk --input {INPUT}"));
    assert_eq!(answer["proven"], true);
    assert_eq!(answer.get("known"), None);
    assert_eq!(workplace.read("s.vk"), workplace.read("i.vk"));
    // A proof by either image verifies under either verifying key.
    for image in ["s.zkimage", "i.zkimage"] {
        let prove = format!("prove {OUTPUT} --key {image} --input {INPUT} --out o.proof --public-out o.json");
        assert_eq!(workplace.json(&prove)["partitions"], json!(1));
        workplace.json("verify --vk s.vk --proof o.proof --public o.json");
    }
}
