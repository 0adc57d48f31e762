//! From a component to a verified proof, and what is said when something on the way is wrong.

mod support;

use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Workplace, path};

const OUTPUT: &str = "{component:sapling-output}";
const INPUT: &str = "{guest:sapling-output/example-input.json}";

/// A workplace with a development key for Sapling Output and a proof by it.
fn proved() -> Workplace {
    let workplace = Workplace::new();
    workplace.json(&format!("setup {OUTPUT} --out key.zkimage --vk-out key.vk --insecure-seed 7"));
    workplace.json(&format!(
        "prove {OUTPUT} --key key.zkimage --input {INPUT} --out o.proof --public-out o.json --vk-out again.vk"
    ));
    workplace
}

#[test]
fn inspect_shows_the_published_counts() {
    let workplace = Workplace::new();
    for (circuit, constraints, publics) in [("sapling-output", 7_827, 5), ("sapling-spend", 98_777, 7)] {
        let answer = workplace.json(&format!("inspect {{component:{circuit}}}"));
        assert_eq!(answer["name"], circuit);
        assert_eq!(answer["constraints"], constraints);
        assert_eq!(answer["publics"], publics);
        assert_eq!(answer["limits"]["plan_time"], 10);
    }
}

#[test]
fn check_accepts_an_example_and_gives_its_public_inputs() {
    let answer = Workplace::new().json(&format!("check {OUTPUT} --input {INPUT}"));
    let golden = std::fs::read(path("{fixture:sapling/golden-output.public}")).unwrap();
    let expected: Vec<Value> = golden
        .chunks(32)
        .map(|scalar| json!(format!("0x{}", hex::encode(scalar.iter().rev().copied().collect::<Vec<_>>()))))
        .collect();
    assert_eq!(answer["public"], json!(expected));
}

#[test]
fn a_proof_verifies_by_vk_and_by_image_in_both_forms_of_public_inputs() {
    let workplace = proved();
    assert_eq!(workplace.read("key.vk"), workplace.read("again.vk"));
    assert_eq!(workplace.read("o.proof").len(), 192);
    let inputs: Vec<String> = serde_json::from_slice(&workplace.read("o.json")).unwrap();
    let raw = inputs.iter().flat_map(|input| hex::decode(&input[2..]).unwrap().into_iter().rev().collect::<Vec<_>>());
    workplace.write("o.public", raw.collect::<Vec<_>>());
    for key in ["--vk key.vk", "--key key.zkimage"] {
        for public in ["o.json", "o.public"] {
            let answer = workplace.json(&format!("verify {key} --proof o.proof --public {public}"));
            assert_eq!((&answer["valid"], &answer["proofs"]), (&json!(true), &json!(1)));
        }
    }
    let twice = "verify --vk key.vk --proof o.proof --public o.json --proof o.proof --public o.public";
    assert_eq!(workplace.json(twice)["proofs"], 2);
}

#[test]
fn a_false_proof_or_public_input_exits_with_1() {
    let workplace = proved();
    let mut inputs: Vec<Value> = serde_json::from_slice(&workplace.read("o.json")).unwrap();
    inputs[2] = json!("1");
    workplace.write("wrong.json", json!(inputs).to_string());
    let invalid = "the proof is not valid";
    workplace.check_failure("verify --vk key.vk --proof o.proof --public wrong.json", 1, &[invalid]);
    let batch = "verify --vk key.vk --proof o.proof --public o.json --proof o.proof --public wrong.json";
    workplace.check_failure(batch, 1, &["proof 1 of the batch", invalid]);
    let vk = "verify --vk {fixture:sapling/output.vk} --proof o.proof --public o.json";
    workplace.check_failure(vk, 1, &[invalid]);
}

/// aligned_layer issue 2152: a short proof panicked the verifier.
#[test]
fn aligned_layer_i2152_proofs_of_any_length_are_refused_with_a_sentence() {
    let workplace = proved();
    let proof = workplace.read("o.proof");
    for length in [0, 1, 48, 191, 193, 383] {
        let long = proof.iter().cycle().take(length).copied().collect::<Vec<_>>();
        workplace.write("bad.proof", long);
        workplace.check_failure("verify --vk key.vk --proof bad.proof --public o.json", 3, &["bad.proof", "192"]);
    }
    workplace.write("bad.proof", [0xff; 192]);
    workplace.check_failure("verify --vk key.vk --proof bad.proof --public o.json", 3, &["bad.proof", "A"]);
}

/// snarkjs issue 436: v and v + r were both accepted.
#[test]
fn snarkjs_i436_public_inputs_above_the_modulus_are_refused() {
    let workplace = proved();
    let mut inputs: Vec<Value> = serde_json::from_slice(&workplace.read("o.json")).unwrap();
    inputs[3] = json!("52435875175126190479447740508185965837690552500527637822603658699938581184513");
    workplace.write("r.json", json!(inputs).to_string());
    let verify = "verify --vk key.vk --proof o.proof --public";
    workplace.check_failure(&format!("{verify} r.json"), 3, &["r.json", "scalar 3 is not below the modulus"]);
    workplace.write("r.public", [0xff; 5 * 32]);
    workplace.check_failure(&format!("{verify} r.public"), 3, &["scalar 0 is not below the modulus"]);
    workplace.write("few.json", "[1]");
    workplace.check_failure(&format!("{verify} few.json"), 3, &["1 public inputs", "for 5"]);
}

/// maci issue 443: hours of proving with the wrong key.
#[test]
fn maci_i443_a_key_of_another_circuit_is_refused_before_anything_is_assigned() {
    let workplace = Workplace::new();
    workplace.json("setup {component:hostile} --out other.zkimage --insecure-seed 1");
    workplace.write("input.json", "not even an input");
    let prove = format!("prove {OUTPUT} --key other.zkimage --input input.json");
    workplace.check_failure(&prove, 3, &["other.zkimage", "use the key made for this circuit"]);
}

/// rust-fil-proofs issue 480: a key file of zero bytes counted as present.
#[test]
fn rust_fil_proofs_i480_damaged_key_images_are_refused_with_a_way_forward() {
    let workplace = proved();
    let image = workplace.read("key.zkimage");
    let mut flipped = image.clone();
    flipped[image.len() / 2] ^= 1;
    let short = image[..image.len() - 1].to_vec();
    let long = [image.clone(), vec![0]].concat();
    for bytes in [Vec::new(), short, long, flipped, b"not a key at all".repeat(9)] {
        workplace.write("bad.zkimage", bytes);
        let prove = format!("prove {OUTPUT} --key bad.zkimage --input {INPUT}");
        workplace.check_failure(&prove, 3, &["bad.zkimage", "zkhost import-key"]);
    }
    assert!(!workplace.path("proof.bin").exists());
}

/// circom_runtime issue 7: missing and misspelt inputs passed unnoticed.
#[test]
fn circom_runtime_i7_missing_extra_misspelt_and_mistyped_fields_are_named() {
    let workplace = Workplace::new();
    let example: Value = serde_json::from_slice(&std::fs::read(path(INPUT)).unwrap()).unwrap();
    let case = |edit: &dyn Fn(&mut serde_json::Map<String, Value>), field: &str| {
        let mut input = example.clone();
        edit(input.as_object_mut().unwrap());
        workplace.write("bad.json", input.to_string());
        workplace.check_failure(&format!("check {OUTPUT} --input bad.json"), 3, &["sapling-output", field]);
    };
    case(&|input| drop(input.remove("rcv")), "rcv");
    case(&|input| drop(input.insert("more".into(), json!(1))), "more");
    case(&|input| drop(input.insert("valu".into(), json!(1))), "valu");
    case(&|input| drop(input.insert("value".into(), json!("many"))), "value");
    case(&|input| drop(input.insert("esk".into(), json!("00"))), "esk");
    case(&|input| drop(input.insert("rcm".into(), json!("f".repeat(64)))), "rcm");
    workplace.write("bad.json", "{");
    workplace.check_failure(&format!("check {OUTPUT} --input bad.json"), 3, &["sapling-output"]);
}

/// An input of the circuit that misbehaves on demand.
const HOSTILE_INPUT: &str = r#"{"left": 3, "right": 5}"#;

#[test]
fn guests_that_misbehave_exit_with_4_and_are_named() {
    let workplace = Workplace::new();
    workplace.write("input.json", HOSTILE_INPUT);
    let check = |act: &str, limits: &str, parts: &[&str]| {
        workplace.write("params.json", format!("{{{act}}}"));
        let arguments = format!("check {{component:hostile}} --params params.json --input input.json {limits}");
        workplace.check_failure(&arguments, 4, &[&["circuit `hostile`"], parts].concat());
    };
    check(r#""act": "trap""#, "", &["partition 0, segment 0", "`job.assign`", "trapped"]);
    check(r#""act": "loop""#, "--limit assign_time=1", &["`job.assign`", "assign_time"]);
    check(r#""act": "allocate""#, "--limit memory_bytes=20_000_000", &["memory_bytes"]);
    check(r#""act": "segment-gap", "at": "plan""#, "", &["`plan`", "without gap"]);
    // Too much, too little, unreduced and out of order.
    for act in ["more-groups", "fewer-groups", "nothing", "unreduced", "public-unreduced", "public-twice", "odd-masks"]
    {
        check(&format!(r#""act": "{act}""#), "", &["partition 0, segment 0"]);
    }
    let later = r#""act": "public-from-later-segment", "segments": 2"#;
    check(later, "", &["partition 0, segment"]);
}

#[test]
fn an_unsatisfied_constraint_exits_with_1_and_is_named_by_its_path() {
    let workplace = Workplace::new();
    workplace.write("input.json", HOSTILE_INPUT);
    workplace.write("params.json", r#"{"act": "unsatisfied"}"#);
    let circuit = "{component:hostile} --params params.json";
    let named = ["partition 0", "constraint 0 (", ") is not satisfied"];
    workplace.check_failure(&format!("check {circuit} --input input.json"), 1, &named);
    workplace.json(&format!("setup {circuit} --out key.zkimage --insecure-seed 1"));
    workplace.check_failure(&format!("prove {circuit} --key key.zkimage --input input.json"), 1, &named);
    assert!(!workplace.path("proof.bin").exists());
}

#[test]
fn an_interrupt_exits_with_6() {
    let workplace = Workplace::new();
    workplace.write("input.json", HOSTILE_INPUT);
    let arguments = "--json check {component:hostile} --params {\"act\":\"loop\"} --input input.json";
    let mut command = workplace.command();
    command.args(arguments.split(' ').map(support::expand)).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["error"], json!({"code": "busy", "exit": 6, "message": "cancelled"}));
}

/// `script` gives the command a terminal; TERM and a width are what a bar asks for.
#[test]
fn a_stage_of_more_than_a_second_is_seen_on_a_terminal_and_nowhere_else() {
    let workplace = Workplace::new();
    workplace.write("input.json", HOSTILE_INPUT);
    workplace.write("params.json", r#"{"act": "loop"}"#);
    let program = env!("CARGO_BIN_EXE_zkhost");
    let arguments =
        format!("check {}", support::expand("{component:hostile}")) + " --params params.json --input input.json";
    let check = |how: &str, seen: bool| {
        let line = format!("stty cols 100; {program} {how} {arguments} --limit assign_time=3");
        let mut command = Command::new("script");
        let cache = workplace.command();
        let cache = cache.get_envs().find_map(|(name, value)| (name == "ZKHOST_CACHE").then_some(value?)).unwrap();
        command.current_dir(workplace.path(".")).env("ZKHOST_CACHE", cache).env("TERM", "xterm");
        let output = command.args(["-qefc", &line, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(4));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // The name of the stage.
        assert_eq!(text.contains(" assign "), seen, "{how}: {text:?}");
    };
    check("", true);
    check("--json", false);
}

/// snarkjs issue 152: the process stayed after its work was done, because workers did.
#[test]
fn snarkjs_i152_the_command_ends_when_its_output_does() {
    let workplace = proved();
    let mut command = workplace.command();
    let arguments = format!("bench {OUTPUT} --key key.zkimage --input {INPUT} --runs 1");
    let mut child = command.args(arguments.split(' ').map(support::expand)).stdout(Stdio::piped()).spawn().unwrap();
    std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    let end_of_output = Instant::now();
    assert!(child.wait().unwrap().success());
    assert!(end_of_output.elapsed() < Duration::from_secs(1));
}

#[test]
fn outputs_do_not_replace_what_the_command_reads_or_each_other() {
    let workplace = proved();
    let key = workplace.read("key.zkimage");
    let prove = format!("prove {OUTPUT} --key key.zkimage --input {INPUT}");
    let part = ["would be written over another file of this command"];
    workplace.check_failure(&format!("{prove} --out key.zkimage"), 2, &part);
    workplace.check_failure(&format!("{prove} --out a --public-out ./a"), 2, &part);
    workplace.check_failure(&format!("{prove} --vk-out key.vk"), 2, &["key.vk exists", "--force"]);
    workplace.check_failure(&format!("setup {OUTPUT} --out a --vk-out a"), 2, &part);
    assert_eq!(workplace.read("key.zkimage"), key);
}

#[test]
fn a_damaged_cache_is_made_anew() {
    let workplace = Workplace::new();
    let inspect = || {
        let mut command = workplace.command();
        command.env("ZKHOST_CACHE", workplace.path("cache"));
        let output = command.args(["--json", "inspect", &support::expand(OUTPUT)]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        output.stdout
    };
    let first = inspect();
    for folder in ["cache/code", "cache/shapes"] {
        let entries: Vec<_> = std::fs::read_dir(workplace.path(folder)).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(entries.len(), 1, "{folder}");
        let mut bytes = std::fs::read(&entries[0]).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&entries[0], bytes).unwrap();
    }
    assert_eq!(inspect(), first);
}

#[test]
fn an_input_from_standard_input_is_read() {
    let workplace = Workplace::new();
    let mut command = workplace.command();
    command.args(format!("check {OUTPUT} --input -").split(' ').map(support::expand));
    let input = std::fs::File::open(path(INPUT)).unwrap();
    assert!(command.stdin(input).output().unwrap().status.success());
}

#[test]
fn a_component_that_is_none_is_refused() {
    let workplace = Workplace::new();
    workplace.write("empty.wasm", "");
    workplace.check_failure("inspect empty.wasm", 4, &["empty.wasm", "the file is empty", "zkhost build"]);
    workplace.write("text.wasm", "hello");
    workplace.check_failure("check text.wasm --input empty.wasm", 4, &["circuit `text`"]);
}

#[test]
fn keys_are_not_overwritten_without_force() {
    let workplace = Workplace::new();
    workplace.write("key.zkimage", "precious");
    let setup = "setup {component:hostile} --out key.zkimage --insecure-seed 1";
    workplace.check_failure(setup, 2, &["key.zkimage exists", "--force"]);
    assert_eq!(workplace.read("key.zkimage"), b"precious");
    workplace.json(&format!("{setup} --force"));
    let names: Vec<_> =
        std::fs::read_dir(workplace.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["key.zkimage"], "no half file is left");
}

#[test]
fn setup_from_a_seed_is_repeatable_and_without_one_is_not() {
    let workplace = Workplace::new();
    let image = |options: &str| {
        workplace.json(&format!("setup {{component:hostile}} --out key.zkimage --force {options}"));
        workplace.read("key.zkimage")
    };
    assert_eq!(image("--insecure-seed 5"), image("--insecure-seed 5"));
    assert_ne!(image("--insecure-seed 5"), image("--insecure-seed 6"));
    assert_ne!(image(""), image(""));
}

#[test]
fn several_partitions_give_one_proof_each() {
    let workplace = Workplace::new();
    let circuit = "{component:merkle-poseidon} --params {guest:merkle-poseidon/example-params.json}";
    workplace.json(&format!("setup {circuit} --out key.zkimage --insecure-seed 3"));
    let input = "{guest:merkle-poseidon/example-input.json}";
    let answer =
        workplace.json(&format!("prove {circuit} --key key.zkimage --input {input} --out m.proof --public-out m.json"));
    let partitions = answer["partitions"].as_u64().unwrap();
    assert_eq!(partitions, 3);
    assert_eq!(workplace.read("m.proof").len() as u64, 192 * partitions);
    assert_eq!(workplace.json("verify --key key.zkimage --proof m.proof --public m.json")["proofs"], partitions);
}

#[test]
fn bench_gives_the_median_of_every_stage() {
    let workplace = proved();
    let answer = workplace.json(&format!("bench {OUTPUT} --key key.zkimage --input {INPUT} --runs 3"));
    let stages: Vec<_> = answer["stages"].as_array().unwrap().iter().map(|stage| stage["name"].clone()).collect();
    assert_eq!(json!(stages), json!(["load", "plan", "shape", "open key", "prepare", "assign", "prove"]));
}

#[test]
fn bench_without_a_key_reports_the_synthesis_alone() {
    let workplace = proved();
    let answer = workplace.json(&format!("bench {OUTPUT} --input {INPUT} --runs 1"));
    assert_eq!(answer["prover"], Value::Null);
    let synthesis = &answer["synthesis"];
    let number = |name: &str| synthesis[name].as_f64().unwrap_or_else(|| panic!("{name} is missing: {answer}"));
    // Two mask words for 64 variables, and 32 bytes for each element and public input.
    let (bits, elements, publics) = (number("bits"), number("elements"), number("publics"));
    let masks = 16.0 * ((bits + elements) / 64.0).ceil();
    assert_eq!(number("sink_bytes"), masks + 32.0 * (elements + publics));
    let constraints = answer["constraints"].as_f64().unwrap();
    let per_constraint = 1e6 * number("assign_milliseconds") / constraints;
    assert!((number("nanoseconds_per_constraint") / per_constraint - 1.0).abs() < 1e-9, "{answer}");
    assert!(number("instance_bytes") >= 65_536.0 && number("terms_per_row") > 1.0, "{answer}");
    assert!(number("a_density") > number("b_density"), "{answer}");
    assert_eq!(synthesis["scaling"][0]["threads"], 1);
    let bound = synthesis["bound"].as_str().unwrap();
    assert!(bound.contains("the circuit's synthesis") && bound.contains("nothing is proved"), "{bound}");
}

#[test]
fn the_device_is_chosen_on_the_command_line_or_in_the_environment() {
    let workplace = proved();
    let prove = format!("prove {OUTPUT} --key key.zkimage --input {INPUT} --device");
    let answer = workplace.json(&format!("{prove} cpu"));
    assert!(answer["prover"].as_str().unwrap().starts_with("CPU"), "{answer}");
    // A device that is not there leaves the CPU to prove, with a remark.
    let run = workplace.run(&format!("{prove} cuda:999"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("CPU") && run.stderr.contains("using the CPU"), "{}{}", run.stdout, run.stderr);
    for command in [format!("check {OUTPUT} --input {INPUT}"), format!("setup {OUTPUT} --out other.zkimage")] {
        let run = workplace.run(&format!("{command} --device cuda:999"));
        assert!(run.code == 0 && run.stderr.contains("using the CPU"), "{command}: {}", run.stderr);
    }
    let run = workplace.run(&format!("{prove} gpu"));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("auto, cpu, or cuda:N"), "{}", run.stderr);
}

/// zeto issue 186: keys without a phase-2 contribution, by which anyone can forge proofs, were shipped.
#[test]
fn zeto_i186_keys_without_a_second_phase_are_refused_unless_a_flag_for_tests_is_set() {
    let workplace = proved();
    // alpha, beta in G1; beta, gamma in G2; delta in G1 and G2: 96 and 192 bytes each.
    let mut vk = workplace.read("key.vk");
    vk.copy_within(384..576, 672);
    workplace.write("forgeable.vk", vk);
    let verify = "verify --vk forgeable.vk --proof o.proof --public o.json";
    workplace.check_failure(verify, 3, &["forgeable.vk", "delta equals its gamma", "forge"]);
    workplace.check_failure(&format!("{verify} --insecure-test-key"), 1, &["the proof is not valid"]);
}

#[test]
fn a_trace_says_where_the_time_of_a_run_went() {
    let workplace = proved();
    workplace.json(&format!("prove {OUTPUT} --key key.zkimage --input {INPUT} --out traced.proof --trace run.json"));
    let answer = workplace.json("trace run.json --svg run.svg");
    let names: Vec<_> = answer["categories"].as_array().unwrap().iter().map(|category| &category["name"]).collect();
    for expected in ["synthesis", "proving", "verification", "assembly"] {
        assert!(names.contains(&&json!(expected)), "{names:?}");
    }
    assert_eq!(answer["devices"].as_array().unwrap().len(), 1);
    assert!(workplace.read("run.svg").starts_with(b"<svg"));
}
