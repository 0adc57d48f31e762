//! Converting proofs, keys and public inputs: what other tools wrote verifies, what comes back is what went in, and what would
//! be lost is said.

mod support;

use serde_json::Value;
use support::{Workplace, path};

const PROOF: &str = "{fixture:circom/edge_pow2/proof.json}";
const VKEY: &str = "{fixture:circom/edge_pow2/vkey.json}";
const PUBLIC: &str = "{fixture:circom/edge_pow2/public.json}";

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(path(&format!("{{fixture:{name}}}"))).unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn files_of_snarkjs_and_zokrates_are_verified_as_they_are() {
    let workplace = Workplace::new();
    let verify =
        format!("verify --vk {VKEY} --vk-format snarkjs --proof {PROOF} --proof-format snarkjs --public {PUBLIC}");
    assert_eq!(workplace.json(&verify)["valid"], true);
    workplace.json("convert vk --from zkey --to bellman {fixture:circom/edge_pow2/circuit.zkey} c.vk");
    assert_eq!(workplace.read("c.vk"), fixture("bellman-golden/snarkjs-edge_pow2.vk"));

    let zokrates = "{fixture:zokrates/proof.json}";
    workplace.json(&format!("convert proof --from zokrates --to bellman {zokrates} z.proof --public-out z.json"));
    let verify = "verify --vk {fixture:zokrates/vk.json} --vk-format zokrates --proof z.proof --public z.json";
    assert_eq!(workplace.json(verify)["valid"], true);
    // Another statement's public inputs.
    workplace.write("other.json", "[\"1\", \"2\"]");
    workplace.check_failure(&verify.replace("z.json", "other.json"), 1, &["not valid"]);
}

#[test]
fn proofs_go_through_every_format_and_come_back() {
    let workplace = Workplace::new();
    workplace.json(&format!("convert proof --from snarkjs --to bellman {PROOF} 0"));
    assert_eq!(workplace.read("0"), fixture("bellman-golden/snarkjs-edge_pow2.proof"));
    let formats = ["arkworks-uncompressed", "gnark", "plutus", "eip2537", "zokrates", "calldata", "snarkjs", "bellman"];
    let mut from = "bellman";
    for (step, to) in formats.into_iter().enumerate() {
        let has_publics = |format| ["zokrates", "calldata"].contains(&format);
        let publics = match (has_publics(from), has_publics(to)) {
            (false, true) => format!("--public {PUBLIC}"),
            (true, false) => "--public-out p.json".into(),
            _ => String::new(),
        };
        workplace.json(&format!("convert proof --from {from} --to {to} {publics} {step} {}", step + 1));
        from = to;
    }
    assert_eq!(workplace.read(&formats.len().to_string()), workplace.read("0"));
    workplace.json("convert public --from zkhost --to snarkjs p.json public.json");
    assert_eq!(json(&workplace.read("public.json")), json(&fixture("circom/edge_pow2/public.json")));
}

#[test]
fn verifying_keys_go_through_every_format_and_come_back() {
    let workplace = Workplace::new();
    workplace.write("0", fixture("circom/edge_pow2/vkey.json"));
    let formats = ["zokrates", "arkworks", "arkworks-uncompressed", "plutus", "snarkjs"];
    let mut from = "snarkjs";
    for (step, to) in formats.into_iter().enumerate() {
        workplace.json(&format!("convert vk --from {from} --to {to} {step} {}", step + 1));
        from = to;
    }
    assert_eq!(json(&workplace.read("5")), json(&workplace.read("0")));
    workplace.json("convert vk --from snarkjs --to solidity 0 Verifier.sol");
    assert!(String::from_utf8(workplace.read("Verifier.sol")).unwrap().contains("INPUTS = 2;"));
}

#[test]
fn public_inputs_go_through_every_format_and_come_back() {
    let workplace = Workplace::new();
    workplace.write("0", fixture("circom/edge_range/public.json"));
    let formats = ["bellman", "eip2537", "zkhost", "snarkjs"];
    let mut from = "snarkjs";
    for (step, to) in formats.into_iter().enumerate() {
        workplace.json(&format!("convert public --from {from} --to {to} {step} {}", step + 1));
        from = to;
    }
    assert_eq!(workplace.read("1"), fixture("bellman-golden/snarkjs-edge_range.public"));
    assert_eq!(json(&workplace.read("4")), json(&workplace.read("0")));
}

#[test]
fn what_would_be_lost_or_is_missing_is_said_and_nothing_is_written() {
    let workplace = Workplace::new();
    let vk = "{fixture:sapling/output.vk}";
    for to in ["snarkjs", "zokrates", "arkworks", "arkworks-uncompressed", "plutus"] {
        let convert = format!("convert vk --from bellman --to {to} {vk} out");
        workplace.check_failure(&convert, 2, &["beta and delta in G1 would be lost", "--allow-loss"]);
        assert!(!workplace.path("out").exists());
        workplace.json(&format!("{convert}-{to} --allow-loss"));
    }
    let back = "convert vk --from snarkjs --to bellman out-snarkjs out";
    workplace.check_failure(back, 2, &["beta and delta in G1, which the file does not have", ".zkey"]);
    workplace.check_failure("convert vk --from snarkjs --to zkey out-snarkjs out", 2, &["zkhost setup"]);
    workplace.check_failure("convert vk --from solidity --to snarkjs out-snarkjs out", 2, &["cannot be read back"]);

    let zokrates = "{fixture:zokrates/proof.json}";
    let lossy = format!("convert proof --from zokrates --to snarkjs {zokrates} out");
    workplace.check_failure(&lossy, 2, &["the public inputs would be lost", "--public-out"]);
    let given = format!("convert proof --from zokrates --to calldata --public {PUBLIC} {zokrates} out");
    workplace.check_failure(&given, 2, &["--public has no place"]);
    let missing = format!("convert proof --from snarkjs --to zokrates {PROOF} out");
    workplace.check_failure(&missing, 2, &["give them with --public"]);
    let none = format!("convert proof --from snarkjs --to bellman --public-out p.json {PROOF} out");
    workplace.check_failure(&none, 2, &["holds no public inputs"]);
    assert!(!workplace.path("out").exists());
    workplace.json(&format!("{lossy} --allow-loss"));
}

#[test]
fn bad_files_are_named_with_what_is_wrong() {
    let workplace = Workplace::new();
    workplace.check_failure("convert proof --from snarkjs --to bellman absent out", 3, &["the proof absent"]);
    let wrong = format!("convert proof --from zokrates --to snarkjs {PROOF} out");
    workplace.check_failure(&wrong, 3, &["ZoKrates proof", "scheme"]);
    workplace.write("r.json", "[\"52435875175126190479447740508185965837690552500527637822603658699938581184513\"]");
    let aliased = "convert public --from snarkjs --to bellman r.json out";
    workplace.check_failure(aliased, 3, &["r.json", "entry 0", "not below the modulus"]);
    let forged = "convert vk --from zkey --to bellman {fixture:negative/no-phase2-contribution.zkey} out";
    workplace.check_failure(forged, 3, &["no phase-2 contribution"]);
    assert!(!workplace.path("out").exists());
    workplace.json(&format!("{forged} --insecure-test-key"));
}
