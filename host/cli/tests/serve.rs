//! The command that serves: signals, crashes, mistakes in its configuration, and the commands that talk to it.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Workplace, path};

/// Crashes in a row. `make soak` sets 100.
fn rounds() -> u32 {
    std::env::var("ZKHOST_KILL_ROUNDS").map_or(3, |rounds| rounds.parse().unwrap())
}

/// A host, killed when dropped.
struct Serving {
    child: Child,
    address: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with Sapling Output and its key as a circuit of the watched folder.
fn with_circuit() -> Workplace {
    let workplace = Workplace::new();
    let folder = workplace.path("data/circuits/sapling-output");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(path("{component:sapling-output}"), folder.join("c.wasm")).unwrap();
    workplace.json("setup {component:sapling-output} --out data/circuits/sapling-output/k.zkimage --insecure-seed 7");
    let manifest = "name = \"sapling-output\"\ncomponent = { file = \"c.wasm\" }\nkey = { file = \"k.zkimage\" }\n";
    std::fs::write(folder.join("manifest.toml"), manifest).unwrap();
    workplace
}

/// Whether a process of its own may mount file systems; some sandboxes forbid it.
fn may_mount() -> bool {
    let try_it = ["-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /tmp"];
    let may = Command::new("unshare").args(try_it).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !may {
        eprintln!("skipped: this system lets no process mount a small disk");
    }
    may
}

/// Serve on a disk of 48 MiB that holds the circuits and nothing else; the socket is beside it.
fn serve_on_small_disk(workplace: &Workplace) -> Serving {
    let command = workplace.command();
    let program = command.get_program().to_owned();
    let script =
        "mount -t tmpfs -o size=48m none disk && cp -r data/. disk && exec \"$0\" serve --data disk --log-format json";
    let mut mounting = Command::new("unshare");
    mounting.args(["-rm", "sh", "-c", script]).arg(program).current_dir(command.get_current_dir().unwrap());
    mounting.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    mounting.env("ZKHOST_LISTEN__UNIX", workplace.path("host.sock")).env("ZKHOST_JOBS__RUNNING_MAX", "1");
    std::fs::create_dir(workplace.path("disk")).unwrap();
    start(workplace, mounting, format!("unix:{}", workplace.path("host.sock").display()))
}

fn serve(workplace: &Workplace) -> Serving {
    let mut command = workplace.command();
    command.args(["serve", "--data", "data", "--log-format", "json"]);
    start(workplace, command, format!("unix:{}", workplace.path("data/zkhost.sock").display()))
}

/// Start a host and wait until it listens and has its circuit.
fn start(workplace: &Workplace, mut command: Command, address: String) -> Serving {
    command.stdout(Stdio::null());
    let log = std::fs::File::options().create(true).append(true).open(workplace.path("log")).unwrap();
    let before = ready_hosts(workplace);
    let child = command.stderr(log).spawn().unwrap();
    let serving = Serving { child, address };
    let began = Instant::now();
    while ready_hosts(workplace) == before {
        assert!(began.elapsed() < Duration::from_secs(120), "{}", log_of(workplace));
        std::thread::sleep(Duration::from_millis(20));
    }
    serving
}

fn log_of(workplace: &Workplace) -> String {
    String::from_utf8(workplace.read("log")).unwrap()
}

/// How many hosts of this folder have come to listen and to load the circuit. Each logs both once.
fn ready_hosts(workplace: &Workplace) -> usize {
    let log = log_of(workplace);
    let count = |text: &str| log.matches(text).count();
    count("\"zkhost listens\"").min(count("\"circuit loaded\""))
}

/// What a command that talks to the host answers; none if it fails.
fn ask(workplace: &Workplace, serving: &Serving, arguments: &str) -> Option<Value> {
    let run = workplace.run(&format!("--json {arguments} --host {}", serving.address));
    (run.code == 0).then(|| serde_json::from_str(&run.stdout).unwrap())
}

fn signal(serving: &Serving, name: &str) {
    assert!(Command::new("kill").args([name, &serving.child.id().to_string()]).status().unwrap().success());
}

/// Two signals, the second once the first was heard: those that come together count as one.
fn signal_twice(workplace: &Workplace, serving: &Serving) {
    let heard = || log_of(workplace).matches("draining: jobs").count();
    let before = heard();
    signal(serving, "-TERM");
    let began = Instant::now();
    while heard() == before {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", log_of(workplace));
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(serving, "-TERM");
}

fn exit_code(mut serving: Serving, within: Duration) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < within {
        if let Some(status) = serving.child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it still runs after {within:?}");
}

const SUBMIT: &str = "submit sapling-output --input {guest:sapling-output/example-input.json}";

#[test]
fn a_job_is_submitted_waited_for_and_its_proof_verifies() {
    let workplace = with_circuit();
    let serving = serve(&workplace);
    let job = ask(&workplace, &serving, &format!("{SUBMIT} --key a --out a.proof")).unwrap();
    assert_eq!(job["state"], "proved");
    let id = job["id"].as_str().unwrap();
    assert_eq!(ask(&workplace, &serving, &format!("status {id}")).unwrap()["id"], id);
    ask(&workplace, &serving, &format!("status {id} --trace trace.json")).unwrap();
    assert!(workplace.json("trace trace.json").is_object());
    assert_eq!(ask(&workplace, &serving, &format!("cancel {id}")).unwrap()["state"], "proved");
    assert_eq!(ask(&workplace, &serving, "jobs --state proved").unwrap()["jobs"].as_array().unwrap().len(), 1);
    let check = "check {component:sapling-output} --input {guest:sapling-output/example-input.json}";
    workplace.write("a.json", workplace.json(check)["public"].to_string());
    workplace.json("verify --key data/circuits/sapling-output/k.zkimage --proof a.proof --public a.json");
    workplace.check_failure("serve --data data", 6, &["in use by another zkhost"]);
    let log = log_of(&workplace);
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
    assert!(log.contains(id));
    let input: Value =
        serde_json::from_slice(&std::fs::read(path("{guest:sapling-output/example-input.json}")).unwrap()).unwrap();
    for (name, value) in input.as_object().unwrap() {
        assert!(!log.contains(value.as_str().unwrap_or("no text")), "{name} is in the log");
    }
}

/// Accepted jobs and recorded proofs survive kill -9, and each job has one result, the same for ever.
#[test]
fn nothing_that_was_accepted_is_lost_when_the_host_is_killed() {
    let workplace = with_circuit();
    let mut accepted: Vec<String> = vec![];
    let mut recorded: BTreeMap<String, Value> = BTreeMap::new();
    for round in 0..rounds() {
        let serving = serve(&workplace);
        let began = Instant::now();
        // At a random moment of the jobs' lives.
        let lifetime = Duration::from_millis(50 + RandomState::new().hash_one(round) % 1200);
        // A page of the list has them all, whatever the number of rounds.
        for job in 0..9 {
            if began.elapsed() >= lifetime {
                break;
            }
            let submitted = ask(&workplace, &serving, &format!("{SUBMIT} --key {round}-{job}"));
            accepted.extend(submitted.map(|job| job["id"].as_str().unwrap().to_owned()));
        }
        std::thread::sleep(lifetime.saturating_sub(began.elapsed()));
        let list = ask(&workplace, &serving, "jobs --limit 1000").unwrap();
        let known: BTreeMap<_, _> =
            list["jobs"].as_array().unwrap().iter().map(|job| (job["id"].as_str().unwrap(), job)).collect();
        assert!(accepted.len() <= 1000 && accepted.iter().all(|id| known.contains_key(id.as_str())), "round {round}");
        for (id, job) in known.into_iter().filter(|(_, job)| job["state"] == "proved") {
            let first = recorded.entry(id.to_owned()).or_insert_with(|| job.clone());
            assert_eq!(first, job, "what is recorded does not change, after {lifetime:?} of round {round}");
        }
        signal(&serving, "-KILL");
        drop(serving);
    }
    assert!(accepted.len() >= rounds() as usize);
    let serving = serve(&workplace);
    for id in &accepted {
        let job = ask(&workplace, &serving, &format!("status {id} --wait --out {id}.proof")).unwrap();
        assert_eq!(job["state"], "proved");
        recorded.get(id).iter().for_each(|first| assert_eq!(**first, job));
        assert_eq!(workplace.read(&format!("{id}.proof")).len(), 192);
    }
}

/// aztec-packages pull request 24562: a clean shutdown threw running proofs away.
#[test]
fn aztec_p24562_the_first_signal_drains_the_second_stops_at_once_and_jobs_resume() {
    let workplace = with_circuit();
    let serving = serve(&workplace);
    let mut ids = vec![];
    for key in 0..3 {
        let job = ask(&workplace, &serving, &format!("{SUBMIT} --key {key}")).unwrap();
        ids.push(job["id"].as_str().unwrap().to_owned());
    }
    signal(&serving, "-TERM");
    assert_eq!(exit_code(serving, Duration::from_secs(60)), Some(0));
    let serving = serve(&workplace);
    for key in 3..12 {
        let job = ask(&workplace, &serving, &format!("{SUBMIT} --key {key}")).unwrap();
        ids.push(job["id"].as_str().unwrap().to_owned());
    }
    signal_twice(&workplace, &serving);
    assert_eq!(exit_code(serving, Duration::from_secs(5)), Some(0));
    let serving = serve(&workplace);
    for id in ids {
        assert_eq!(ask(&workplace, &serving, &format!("status {id} --wait")).unwrap()["state"], "proved");
    }
}

/// A second signal while circuits are being loaded for the first time, which can take minutes.
#[test]
fn a_second_signal_stops_a_host_that_loads_its_circuits() {
    let workplace = with_circuit();
    // Circuits enough that they are not loaded yet when the signals come.
    for copy in 0..40 {
        let folder = workplace.path(&format!("data/circuits/copy-{copy}"));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["c.wasm", "k.zkimage"] {
            let original = workplace.path("data/circuits/sapling-output").join(file);
            std::fs::hard_link(original, folder.join(file)).unwrap();
        }
        let files = "component = { file = \"c.wasm\" }\nkey = { file = \"k.zkimage\" }\n";
        std::fs::write(folder.join("manifest.toml"), format!("name = \"copy-{copy}\"\n{files}")).unwrap();
    }
    let serving = serve(&workplace);
    signal_twice(&workplace, &serving);
    assert_eq!(exit_code(serving, Duration::from_secs(5)), Some(0));
}

#[test]
fn a_full_disk_refuses_with_a_sentence_and_loses_nothing() {
    if !may_mount() {
        return;
    }
    let workplace = with_circuit();
    let serving = serve_on_small_disk(&workplace);
    let example = std::fs::read_to_string(path("{guest:sapling-output/example-input.json}")).unwrap();
    for (name, bytes) in [("small.json", 40_000), ("large.json", 400_000)] {
        workplace.write(name, format!("{example}{}", " ".repeat(bytes)));
    }
    let run = |arguments: &str| {
        let run = workplace.run(&format!("--json {arguments} --host {}", serving.address));
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        match run.code {
            0 => Ok(answer["id"].as_str().unwrap().to_owned()),
            _ => Err(answer["error"]["message"].as_str().unwrap().to_owned()),
        }
    };
    let submit = |name: &str, key: &str| run(&format!("submit sapling-output --input {name} --key {key}"));
    let mut accepted: Vec<_> = (0..3).map(|key| submit("small.json", &format!("before-{key}")).unwrap()).collect();
    // The disk as the host sees it.
    let disk = PathBuf::from(format!("/proc/{}/root{}", serving.child.id(), workplace.path("disk").display()));
    let mut filler = std::fs::File::create(disk.join("filler")).unwrap();
    let full = std::io::copy(&mut std::io::repeat(1), &mut filler).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    drop(filler);
    let check_full = |sentence: String| {
        assert!(sentence.contains("disk-full") && sentence.contains("free some space"), "{sentence}");
    };
    check_full(submit("large.json", "large").unwrap_err());
    // The log of the store may have some room of its own left.
    let refused = (0..1000).find_map(|key| {
        let submitted = submit("small.json", &format!("full-{key}"));
        submitted.map(|id| accepted.push(id)).err()
    });
    check_full(refused.expect("a full disk takes no more"));
    let last = accepted.last().unwrap();
    let _ = run(&format!("cancel {last}")).map_err(check_full);
    std::fs::remove_file(disk.join("filler")).unwrap();
    for id in &accepted {
        let state = ask(&workplace, &serving, &format!("status {id}")).unwrap()["state"].clone();
        if id == last && state == "cancelled" {
            continue;
        }
        assert_eq!(ask(&workplace, &serving, &format!("status {id} --wait")).unwrap()["state"], "proved");
    }
    submit("large.json", "large").unwrap();
    assert!(log_of(&workplace).lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn mistakes_in_the_configuration_are_told_with_their_place() {
    let workplace = Workplace::new();
    workplace.write("bad.toml", "[jobs]\nruning_max = 3\n");
    workplace.check_failure("serve --config bad.toml", 3, &["bad.toml", "line 2", "unknown field `runing_max`"]);
    workplace.check_failure("serve --config none.toml", 3, &["none.toml", "cannot read"]);
    workplace.check_failure("serve --tcp 0.0.0.0:1", 2, &["no loopback address", "listen.tls"]);
    workplace.check_failure(
        "submit a --input {guest:sapling-output/example-input.json} --host unix:/none",
        3,
        &["cannot reach"],
    );
    workplace.check_failure("doctor --config bad.toml", 3, &["unknown field"]);
}

#[test]
fn doctor_names_a_circuit_that_cannot_be_loaded() {
    let workplace = with_circuit();
    let good = workplace.json("doctor --data data");
    let findings = good["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["what"] == "circuit sapling-output" && finding["state"] == "good"));
    let throughput = findings.iter().find(|finding| finding["what"] == "throughput of sapling-output").unwrap();
    assert!(throughput["found"].as_str().unwrap().contains("proofs an hour by CPU"), "{throughput}");
    let key: PathBuf = workplace.path("data/circuits/sapling-output/k.zkimage");
    damage(&key);
    let run = workplace.run("doctor --data data");
    assert_eq!(run.code, 3, "{}", run.stdout);
    assert!(run.stderr.contains("BAD") && run.stderr.contains("k.zkimage"), "{}", run.stderr);
}

fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
}
