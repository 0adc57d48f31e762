//! Compiles `kernels/*.cu` to one fat binary each and embeds them.
//!
//! nvcc is looked for in `NVCC`, `CUDA_HOME`, `PATH` and the project's `.venv` (where `pip install` puts it). Without it
//! the crate still builds, has no kernels, and says so when a device is asked for. `ZKHOST_CUDA_ARCH` (say, `sm_90`)
//! restricts the targets while developing; with `ZKHOST_CUDA_REPORT` the build prints registers and spills of every kernel.

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

/// What a release contains: machine code for Ampere and Hopper, and PTX for what comes after.
const TARGETS: [&str; 3] =
    ["arch=compute_80,code=sm_80", "arch=compute_90,code=sm_90", "arch=compute_90,code=compute_90"];

const HOW_TO_GET_NVCC: &str = "zkhost-cuda is built without kernels because nvcc was not found. To have them: set NVCC or CUDA_HOME, \
     or run `python3 -m venv .venv && .venv/bin/pip install nvidia-cuda-nvcc==13.0.* nvidia-cuda-crt==13.0.* \
     nvidia-nvvm==13.0.* nvidia-cuda-runtime==13.0.*` in the root of the project and build again";

fn main() {
    for variable in ["NVCC", "CUDA_HOME", "ZKHOST_CUDA_ARCH", "ZKHOST_CUDA_REPORT"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed=kernels");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let crate_root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let images = match find_nvcc(&crate_root) {
        Some(nvcc) => compile_all(&nvcc, &crate_root.join("kernels"), &out),
        None => {
            println!("cargo::warning={HOW_TO_GET_NVCC}");
            Vec::new()
        }
    };
    let rows: String =
        images.iter().map(|(name, path)| format!("    ({name:?}, include_bytes!({path:?})),\n")).collect();
    let table = format!(
        "/// A fat binary for each file of `kernels/`; empty if there was no nvcc.\n\
         pub(crate) static IMAGES: &[(&str, &[u8])] = &[\n{rows}];\n"
    );
    fs::write(out.join("images.rs"), table).expect("OUT_DIR is writable");
}

/// The first nvcc of those that a user may have meant.
fn find_nvcc(crate_root: &Path) -> Option<PathBuf> {
    let named = env::var_os("NVCC").map(PathBuf::from);
    let in_home = env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin/nvcc"));
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&path).map(|folder| folder.join("nvcc"));
    named.into_iter().chain(in_home).chain(in_path).chain(in_venv(crate_root)).find(|candidate| candidate.is_file())
}

/// Where the wheels put nvcc: `.venv/lib/python3.*/site-packages/nvidia/cu13/bin`.
fn in_venv(crate_root: &Path) -> Vec<PathBuf> {
    let Some(root) = crate_root.parent() else { return Vec::new() };
    let pythons = fs::read_dir(root.join(".venv/lib")).into_iter().flatten().flatten();
    pythons.map(|python| python.path().join("site-packages/nvidia/cu13/bin/nvcc")).collect()
}

/// Compiles each `.cu` file whose result is not there yet; returns names and paths of the fat binaries.
fn compile_all(nvcc: &Path, kernels: &Path, out: &Path) -> Vec<(String, PathBuf)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(kernels).expect("the folder of kernels exists").flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut headers = DefaultHasher::new();
    for header in files.iter().filter(|path| path.extension().is_some_and(|e| e == "cuh")) {
        fs::read(header).expect("a header is readable").hash(&mut headers);
    }
    let flags = flags();
    flags.hash(&mut headers);
    let sources: Vec<&PathBuf> = files.iter().filter(|path| path.extension().is_some_and(|e| e == "cu")).collect();
    let compile = |source: &PathBuf| {
        let name = source.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let mut hasher = headers.clone();
        fs::read(source).expect("a kernel is readable").hash(&mut hasher);
        let image = out.join(format!("{name}-{:016x}.fatbin", hasher.finish()));
        if !image.is_file() {
            compile_one(nvcc, &flags, source, &image);
        }
        (name, image)
    };
    let images: Vec<_> = std::thread::scope(|scope| {
        let jobs: Vec<_> = sources.into_iter().map(|source| scope.spawn(|| compile(source))).collect();
        jobs.into_iter().map(|job| job.join().expect("each file compiles, or the build has stopped")).collect()
    });
    if env::var_os("ZKHOST_CUDA_REPORT").is_some() {
        for (_, image) in &images {
            let report = fs::read_to_string(report_of(image)).expect("a report was written with its image");
            report.lines().for_each(|line| println!("cargo::warning={line}"));
        }
    }
    images
}

/// Where the report of an image is.
fn report_of(image: &Path) -> PathBuf {
    image.with_extension("registers")
}

fn flags() -> Vec<String> {
    let mut flags: Vec<String> =
        ["-fatbin", "-O3", "-std=c++17", "--expt-relaxed-constexpr", "-lineinfo", "-Xptxas", "-v"]
            .map(String::from)
            .into();
    match env::var("ZKHOST_CUDA_ARCH") {
        Ok(arch) => flags.push(format!("-arch={arch}")),
        Err(_) => flags.extend(TARGETS.iter().map(|target| format!("-gencode={target}"))),
    }
    flags
}

/// Runs nvcc; the process stops with its messages when it fails. The image appears under its name only when complete.
fn compile_one(nvcc: &Path, flags: &[String], source: &Path, image: &Path) {
    let partial = image.with_extension(format!("{}.partial", std::process::id()));
    let mut command = Command::new(nvcc);
    command.args(flags).arg("-o").arg(&partial).arg(source);
    let output = command.output().unwrap_or_else(|e| panic!("{} could not be started: {e}", nvcc.display()));
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        panic!("{} failed on {}:\n{messages}", nvcc.display(), source.display());
    }
    fs::write(report_of(image), report(&messages)).expect("OUT_DIR is writable");
    fs::rename(&partial, image).expect("OUT_DIR is writable");
}

/// A line for each kernel and target of ptxas's messages, and for functions that spill.
fn report(messages: &str) -> String {
    let mut report = String::new();
    let (mut kernel, mut spills) = (None, "");
    for line in messages.lines() {
        if let Some((_, entry)) = line.split_once("Compiling entry function ") {
            kernel = Some(entry);
        } else if let (Some(entry), Some((_, used))) = (kernel, line.split_once("Used ")) {
            report += &format!("{entry}: {used}; {spills}\n");
            // What follows is of the functions that it calls.
            kernel = None;
        } else if line.contains("spill stores") {
            spills = line.trim();
            if kernel.is_none() && !spills.ends_with(" 0 bytes spill stores, 0 bytes spill loads") {
                report += &format!("    a function that it calls: {spills}\n");
            }
        }
    }
    report
}
