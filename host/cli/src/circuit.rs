//! The circuit that a command is about: its component, parameters and limits, and what is kept of it between runs.

use crate::error::{Code, Failure};
use crate::progress::Stages;
use crate::{files, limits};
use anyhow::{Context, Result};
use clap::Args;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zkhost_groth16::formats::{read_shape, write_shape};
use zkhost_groth16::r1cs::{CheckError, Unsatisfied};
use zkhost_groth16::{Assignment, R1cs};
use zkhost_runtime::{
    Cache, CacheKey, Circuit, Compiler, Input, Layout, Limits, Observer, RunError, Runtime, Synthesis,
};

/// The hidden command that compiles for another zkhost.
pub const COMPILE_WORKER: &str = "compile-worker";

/// Bytes of all images of keys in the cache at most.
const KEY_IMAGES_BYTES_MAX: u64 = 32 << 30;
/// Bytes of a recorded shape in the cache at most.
const SHAPE_BYTES_MAX: u64 = 4 << 30;

/// A component and how to run it.
#[derive(Args)]
pub struct CircuitArgs {
    /// The circuit: a component, such as `zkhost build` makes
    pub component: PathBuf,
    /// The circuit's parameters: a file of JSON, or the JSON itself if it starts with `{` [default: the circuit's own]
    #[arg(long, value_name = "JSON")]
    pub params: Option<OsString>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// A circuit whose constraint system a command needs: a component, or what circom wrote.
#[derive(Args)]
pub struct SourceArgs {
    /// The circuit: a component, such as `zkhost build` makes
    #[arg(required_unless_present = "r1cs")]
    component: Option<PathBuf>,
    /// The circuit's parameters: a file of JSON, or the JSON itself if it starts with `{` [default: the circuit's own]
    #[arg(long, value_name = "JSON")]
    params: Option<OsString>,
    /// A circom circuit instead of a component: its constraint system, as `circom --r1cs --prime bls12381` writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["component", "params"], help_heading = "circom")]
    r1cs: Option<PathBuf>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// What a command is about.
pub enum Source<'a> {
    /// A component.
    Component(CircuitArgs),
    /// circom's constraint system.
    Circom(&'a Path),
}

impl SourceArgs {
    /// Which it is.
    pub fn source(&self) -> Result<Source<'_>> {
        match (&self.component, &self.r1cs) {
            (_, Some(r1cs)) => Ok(Source::Circom(r1cs)),
            (Some(component), None) => Ok(Source::Component(CircuitArgs {
                component: component.clone(),
                params: self.params.clone(),
                sandbox: self.sandbox.clone(),
            })),
            (None, None) => Err(Failure::new(Code::Usage, "give a component, or --r1cs").into()),
        }
    }

    /// The files that are read, for what is written not to replace them.
    pub fn files(&self) -> [Option<&Path>; 3] {
        [self.component.as_deref(), self.params.as_ref().map(Path::new), self.r1cs.as_deref()]
    }
}

/// How to run what somebody else wrote.
#[derive(Args, Clone)]
pub struct SandboxArgs {
    /// Set a limit of the circuit, times in seconds; `inspect` lists them all (may be repeated)
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = limits::parse_setting)]
    limits: Vec<limits::Setting>,
    /// Where compiled components, recorded shapes and images of .zkey files are kept [default: zkhost in the user's cache folder]
    #[arg(long, value_name = "FOLDER", env = "ZKHOST_CACHE")]
    cache: Option<PathBuf>,
}

impl SandboxArgs {
    /// The limits to load a circuit with.
    pub fn limits(&self) -> Result<Limits> {
        Ok(limits::with_settings(&self.limits).map_err(|message| Failure::new(Code::Usage, message))?)
    }

    /// Images of keys that came in other formats, each of whose points was checked when its image was made.
    pub fn key_images(&self) -> Result<Cache> {
        Ok(Cache::open(&self.cache_folder()?.join("key-images"))?.holding(KEY_IMAGES_BYTES_MAX))
    }

    fn cache_folder(&self) -> Result<PathBuf> {
        let from = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let default = || Some(from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")))?.join("zkhost"));
        let folder = self.cache.clone().or_else(default);
        let message =
            "there is no HOME to keep compiled components and images of keys in; choose a folder with --cache";
        Ok(folder.ok_or_else(|| Failure::new(Code::Usage, message))?)
    }
}

/// A runtime that compiles in a child of this program and caches code, and the cache of recorded shapes.
pub fn start_runtime(sandbox: &SandboxArgs) -> Result<(Runtime, Cache)> {
    let folder = sandbox.cache_folder()?;
    let cache = Cache::open(&folder.join("code"))?;
    let shapes = Cache::open(&folder.join("shapes"))?;
    let program = std::env::current_exe().context("cannot find this program, to start the compiler with it")?;
    let compiler = Compiler::Child { program, args: vec![COMPILE_WORKER.into()] };
    Ok((Runtime::new(compiler, Some(cache))?, shapes))
}

/// A circuit that is loaded.
pub struct Loaded {
    /// The circuit.
    pub circuit: Circuit,
    /// Its parameters as given; empty for the defaults.
    pub params: Vec<u8>,
    shapes: Cache,
}

impl CircuitArgs {
    /// The component's file and the limits to load it with.
    pub fn component(&self) -> Result<(&Path, Limits)> {
        Ok((&self.component, self.sandbox.limits()?))
    }

    /// Load the circuit.
    pub fn load(&self, stages: &mut Stages) -> Result<Loaded> {
        let (component, limits) = self.component()?;
        let params = self.read_params(&limits)?;
        let (circuit, shapes) = stages.run("load", || -> Result<_> {
            let (runtime, shapes) = start_runtime(&self.sandbox)?;
            Ok((runtime.load_file(component, limits)?, shapes))
        })?;
        if let Some(warning) = circuit.warning() {
            stages.note(warning);
        }
        Ok(Loaded { circuit, params, shapes })
    }

    fn read_params(&self, limits: &Limits) -> Result<Vec<u8>> {
        let Some(params) = &self.params else { return Ok(Vec::new()) };
        match params.to_str() {
            Some(text) if text.starts_with('{') => Ok(text.as_bytes().to_vec()),
            _ => files::read(params.as_ref(), "the parameters", limits.params_bytes),
        }
    }
}

impl Loaded {
    /// How a job divides.
    pub fn plan(&self, stages: &mut Stages) -> Result<Layout> {
        Ok(stages.run("plan", || self.circuit.plan(&self.params))?)
    }

    /// The constraint system, without names: from the cache if it was recorded before.
    pub fn shape(&self, stages: &mut Stages) -> Result<Arc<R1cs>> {
        let key = CacheKey::of_shape(self.circuit.digest(), &self.params);
        if let Some(shape) = stages.run("shape", || self.recorded(&key)) {
            return Ok(Arc::new(shape));
        }
        let shape = stages.run("shape", || self.circuit.record_shape(&self.params, false))?;
        let mut encoded = Vec::new();
        // What cannot be kept is recorded again next time.
        let _ = write_shape(&shape, &mut encoded).and_then(|()| self.shapes.store(&key, &encoded));
        Ok(Arc::new(shape))
    }

    /// The shape in the cache, if it is within the limits in force now.
    fn recorded(&self, key: &CacheKey) -> Option<R1cs> {
        let limits = self.circuit.limits();
        let shape = read_shape(&self.shapes.load(key, SHAPE_BYTES_MAX)?).ok()?;
        let terms: u64 = shape.matrices.iter().map(|matrix| matrix.terms() as u64).sum();
        let fits = u64::from(shape.public_count) <= limits.publics
            && u64::from(shape.aux_count) <= limits.aux
            && shape.constraints() as u64 <= limits.constraints
            && terms <= limits.terms
            && shape.dictionary.len() as u64 <= limits.coefficients;
        fits.then_some(shape)
    }

    /// Read an input within the circuit's limit. It is secret.
    pub fn read_input(&self, path: &Path) -> Result<Input> {
        let mut bytes = files::read_secret(path, "the input", self.circuit.limits().input_bytes)?;
        Ok(std::mem::take(&mut *bytes).into())
    }

    /// The assignments of some partitions.
    pub fn assign(&self, job: &Job<'_>, partitions: Range<u32>) -> Result<Vec<Assignment>, RunError> {
        let Job { input, layout, shape } = *job;
        let synthesis = Synthesis { params: &self.params, input, layout, shape };
        self.circuit.synthesise(synthesis, partitions, rayon::current_num_threads())
    }

    /// The failure of a constraint that does not hold, by its path. Paths are not kept, so the shape is recorded anew; if
    /// that fails, the constraint's number has to do.
    pub fn name_constraint(&self, partition: u32, broken: Unsatisfied) -> Failure {
        let named = self.circuit.record_shape(&self.params, true).ok();
        let name = named.and_then(|named| named.names.into_iter().nth(broken.index));
        let broken = Unsatisfied { name, ..broken };
        let message = format!(
            "circuit `{}`, partition {partition}: {broken}; the input has no proof, or the circuit assigns it wrongly",
            self.circuit.name()
        );
        Failure::new(Code::False, message)
    }

    /// Check an assignment; a broken constraint is named.
    pub fn check(&self, shape: &R1cs, partition: u32, assignment: &Assignment) -> Result<()> {
        match shape.check(assignment) {
            Ok(()) => Ok(()),
            Err(CheckError::Unsatisfied(broken)) => Err(self.name_constraint(partition, broken).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The same circuit, watched.
    pub fn observed(self, observer: Arc<dyn Observer>) -> Self {
        Loaded { circuit: self.circuit.observed(observer), ..self }
    }
}

/// What to assign.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The input.
    pub input: &'a Input,
    /// How it divides.
    pub layout: &'a Layout,
    /// The constraint system.
    pub shape: &'a R1cs,
}
