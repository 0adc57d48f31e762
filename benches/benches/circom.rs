//! SHA-256 of 512 bits in circom (62,528 constraints) beside snarkjs: its witness (`circom_witness`), and `.wtns` to proof by a
//! key of our setup (`circom_prove`): snarkjs by its `.zkey`; we by the image of the same key, as `import-key` leaves it, by the
//! `.zkey` itself the first time, when every point is checked, and again, when the cache has its image, as `prove` does.
//!
//! Both sides start from files, as a user does: ours reads module or key, constraint system and witness within the time that is
//! measured, snarkjs is its own command. Native code comes from the cache. Each result is checked by the other side.

use memmap2::Mmap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zkhost_benches::{Measurement, median, milliseconds, paired};
use zkhost_engine::circom::CircomCircuit;
use zkhost_groth16::formats::{Sym, read_r1cs, read_wtns, read_zkey, snarkjs, write_zkey};
use zkhost_groth16::image::{open_image, write_image};
use zkhost_groth16::key::Phase2;
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{CpuProver, HBasis, Prover, ProvingKey, R1cs};
use zkhost_runtime::{Cache, CacheKey, Compiler, Input, Limits, Runtime};

const RUNS: usize = 3;

/// Where everything is.
struct Place {
    root: PathBuf,
    folder: tempfile::TempDir,
}

impl Place {
    fn compiled(&self, file: &str) -> PathBuf {
        self.root.join("build/circom/sha256").join(file)
    }

    fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.compiled(file)).expect("run `make circom-peers` first")
    }

    fn input(&self) -> PathBuf {
        self.root.join("tests/circom/circuits/sha256.json")
    }

    fn at(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Run a command of snarkjs here; files of this bench by name, others by path.
    fn snarkjs(&self, arguments: &[&Path]) -> Duration {
        let started = Instant::now();
        let program = self.root.join("tests/circom/node_modules/.bin/snarkjs");
        let output = Command::new(program).args(arguments).current_dir(&self.folder).output().expect("snarkjs runs");
        let time = started.elapsed();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        time
    }
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository has a root");
    let place = Place { root, folder: tempfile::tempdir().expect("a temporary folder") };
    witness(&place);
    prove(&place);
}

fn witness(place: &Place) {
    let cache = place.at("cache");
    let ours = || {
        let started = Instant::now();
        let cache = Cache::open(&cache).expect("a private cache");
        let runtime = Runtime::new(Compiler::InProcess, Some(cache)).expect("the runtime starts");
        let input = Input::from(std::fs::read(place.input()).expect("the circuit has an input"));
        let circom = runtime.load_circom_file(&place.compiled("circuit.wasm"), Limits::default()).expect("it loads");
        let z = circom.witness(&input, &[]).expect("the input has a witness");
        (started.elapsed(), z)
    };
    let (module, input, wtns) = (place.compiled("circuit.wasm"), place.input(), place.at("w.wtns"));
    let peer = || place.snarkjs(&["wtns".as_ref(), "calculate".as_ref(), &module, &input, &wtns]);
    // The first run compiles and caches.
    let (_, z) = ours();
    peer();
    let theirs = read_wtns(&std::fs::read(&wtns).expect("snarkjs wrote it")).expect("it is a witness");
    assert!(z[..] == theirs[..], "the witnesses are equal");
    let (ours, peer) = paired(RUNS, || ours().0, peer);
    record("circom_witness", "SHA-256 of 512 bits, files to witness", ours, "snarkjs wtns calculate", peer);
}

fn prove(place: &Place) {
    let r1cs = read_r1cs(&place.read("circuit.r1cs")).expect("circom wrote it").r1cs;
    let key = setup(&r1cs, &ToxicWaste::random(), HBasis::OddCoset).expect("a key");
    let (zkey, image, wtns) = (place.at("c.zkey"), place.at("c.zkimage"), place.at("w.wtns"));
    let create = |path: &Path| BufWriter::new(File::create(path).expect("there is room"));
    write_zkey(&key, &r1cs, create(&zkey)).expect("it has the form");
    write_image(&key, create(&image)).expect("there is room");
    let [vk, proof, public] = ["vk.json", "proof.json", "public.json"].map(|name| place.at(name));
    place.snarkjs(&["zkey".as_ref(), "export".as_ref(), "verificationkey".as_ref(), &zkey, &vk]);

    let ours = |open: &dyn Fn(&R1cs) -> ProvingKey| {
        let started = Instant::now();
        let file = read_r1cs(&place.read("circuit.r1cs")).expect("circom wrote it");
        let circuit = CircomCircuit::new(file, Sym::default());
        let z = read_wtns(&std::fs::read(&wtns).expect("it is there")).expect("it is a witness");
        let key = Arc::new(open(circuit.r1cs()));
        // All constraints are checked here, before anything is proved.
        let assignment = circuit.assignment(&z).expect("the witness satisfies the circuit");
        let prover = CpuProver::new(key, circuit.r1cs().clone()).expect("it fits");
        let made = prover.prove(&assignment).expect("it can be proved");
        std::fs::write(&proof, snarkjs::write_proof(&made)).expect("there is room");
        std::fs::write(&public, snarkjs::write_publics(assignment.publics())).expect("there is room");
        let time = started.elapsed();
        place.snarkjs(&["groth16".as_ref(), "verify".as_ref(), &vk, &public, &proof]);
        time
    };
    let by_image = |_: &R1cs| {
        let file = File::open(&image).expect("it is there");
        open_image(&file, Phase2::Required).expect("it is whole")
    };
    let by_zkey = |r1cs: &R1cs| {
        let file = read_zkey(&std::fs::read(&zkey).expect("it is there")).expect("it is a key");
        ProvingKey::import_zkey(file, r1cs, Phase2::Required).expect("it fits")
    };
    // The first time leaves the image in the cache; that is not timed with it.
    let images = Cache::open(&place.at("keys")).expect("a private cache");
    let name = || {
        let file = File::open(&zkey).expect("it is there");
        // SAFETY: it is in a folder of this bench's own, and nobody changes it.
        let bytes = unsafe { Mmap::map(&file) }.expect("a file can be mapped");
        let digest = blake3::Hasher::new().update_rayon(&bytes).finalize();
        CacheKey::of("zkhost benchmark of a kept image", &[digest.as_bytes()])
    };
    let bytes = std::fs::metadata(&image).expect("it is there").len();
    let kept = images.store_file(&name(), bytes, |file| std::io::copy(&mut File::open(&image)?, file).map(drop));
    kept.expect("it is kept");
    let again = |_: &R1cs| {
        let file = images.file(&name()).expect("it was kept");
        open_image(&file, Phase2::Required).expect("it is whole")
    };
    let [their_proof, their_public] = ["their-proof.json", "their-public.json"].map(|name| place.at(name));
    let mut times = [vec![], vec![], vec![], vec![]];
    for _ in 0..RUNS {
        times[0].push(ours(&by_image));
        times[1].push(ours(&by_zkey));
        let peer = ["groth16".as_ref(), "prove".as_ref(), zkey.as_path(), &wtns, &their_proof, &their_public];
        times[2].push(ours(&again));
        times[3].push(place.snarkjs(&peer));
    }
    let [image, zkey, again, peer] = times.map(median);
    place.snarkjs(&["groth16".as_ref(), "verify".as_ref(), &vk, &their_public, &their_proof]);
    record("circom_prove", "SHA-256 of 512 bits, .wtns to proof, key image", image, "snarkjs groth16 prove", peer);
    record("circom_prove", "SHA-256 of 512 bits, .wtns to proof, .zkey", zkey, "snarkjs groth16 prove", peer);
    record("circom_prove", "SHA-256 of 512 bits, .wtns to proof, .zkey again", again, "snarkjs groth16 prove", peer);
}

fn record(bench: &str, case: &str, ours: Duration, peer: &str, peer_time: Duration) {
    let measurement = Measurement {
        bench,
        case,
        ours: milliseconds(ours),
        peer: Some(peer),
        peer_value: Some(milliseconds(peer_time)),
        unit: "ms",
        checked: true,
    };
    measurement.record().expect("results can be written");
}
