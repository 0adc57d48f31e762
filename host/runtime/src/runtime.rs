//! From a component's bytes to a circuit that can be called.

use crate::bindings::GuestPre;
use crate::cache::{Cache, Key};
use crate::circom::{self, Circom};
use crate::circuit::Circuit;
use crate::compile::{CompileFailure, Compiler, Kind};
use crate::engine::Engines;
use crate::error::{LoadError, printable, printable_lines};
use crate::imports;
use crate::limits::Limits;
use crate::state::State;
use crate::world::check_size;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;
use wasmtime::Module;
use wasmtime::component::{Component, Linker};

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
#[error("the WebAssembly engine cannot start on this machine: {0}")]
pub struct StartError(String);

/// Loads circuits. One serves a whole process; circuits outlive it.
pub struct Runtime {
    engines: Engines,
    linker: Linker<State>,
    compiler: Compiler,
    cache: Option<Cache>,
}

impl Runtime {
    /// A runtime that compiles with `compiler` and keeps native code in `cache`, if there is one.
    pub fn new(compiler: Compiler, cache: Option<Cache>) -> Result<Self, StartError> {
        let start_error = |error: wasmtime::Error| StartError(format!("{error:#}"));
        let engines = Engines::new().map_err(start_error)?;
        let mut linker = Linker::new(engines.of(Kind::Component));
        imports::add_to_linker(&mut linker).map_err(start_error)?;
        Ok(Runtime { engines, linker, compiler, cache })
    }

    /// Load a component from a file; its name without the extension becomes the circuit's.
    pub fn load_file(&self, path: &Path, limits: Limits) -> Result<Circuit, LoadError> {
        let (name, component) = read_file(path, &limits)?;
        self.load(&name, &component, limits)
    }

    /// As [`Self::load_file`], a witness module that circom's compiler wrote.
    pub fn load_circom_file(&self, path: &Path, limits: Limits) -> Result<Circom, LoadError> {
        let (name, module) = read_file(path, &limits)?;
        self.load_circom(&name, &module, limits)
    }

    /// Load a component: check it against the contract and the limits, compile it or take its code from the cache, link.
    ///
    /// `name` is what errors call the circuit. A component whose code is in the cache was checked when the code was made;
    /// limits that were lowered since then apply when it runs.
    pub fn load(&self, name: &str, component: &[u8], limits: Limits) -> Result<Circuit, LoadError> {
        let refuse = |reason: String| refused(name, reason);
        check_size(component, &limits).map_err(refuse)?;
        let digest = blake3::hash(component);
        let engine = self.engines.of(Kind::Component);
        let (compiled, warning) = self.compiled(name, Kind::Component, (component, digest), &limits, |code| {
            // SAFETY: `compiled` gives its own code only.
            unsafe { Component::deserialize(engine, code) }
        })?;
        let pre = self.linker.instantiate_pre(&compiled).and_then(GuestPre::new);
        let pre = pre.map_err(|error| refuse(format!("the component does not link: {error:#}")))?;
        Ok(Circuit::new(name, digest, engine.clone(), pre, limits, warning))
    }

    /// Load a witness module that circom's compiler wrote: the same sandbox, limits and cache.
    pub fn load_circom(&self, name: &str, module: &[u8], limits: Limits) -> Result<Circom, LoadError> {
        let refuse = |reason: String| refused(name, reason);
        check_size(module, &limits).map_err(refuse)?;
        let digest = blake3::hash(module);
        let (compiled, warning) = self.compiled(name, Kind::Circom, (module, digest), &limits, |code| {
            // SAFETY: `compiled` gives its own code only.
            unsafe { Module::deserialize(self.engines.of(Kind::Circom), code) }
        })?;
        let pre = circom::link(&compiled);
        let pre = pre.map_err(|error| refuse(format!("the module does not link: {error:#}")))?;
        Ok(Circom::new(name, pre, limits, warning))
    }

    /// A file's code as `load` makes a value of it, from the cache or compiled anew, and a warning if it could not be kept.
    ///
    /// What `load` is given is what wasmtime's compiler wrote. It comes either from the child that this host started for
    /// this very file, or from the cache, which holds nothing else, is writable by nobody but the user this process runs
    /// as, and has just compared its digest (see the module `cache`). Nobody who could change it meanwhile shares it, and
    /// wasmtime checks that its version and settings are this engine's, and whether it is a component's or a module's.
    fn compiled<T>(
        &self,
        name: &str,
        kind: Kind,
        (bytes, digest): (&[u8], blake3::Hash),
        limits: &Limits,
        load: impl Fn(&[u8]) -> wasmtime::Result<T>,
    ) -> Result<(T, Option<String>), LoadError> {
        let key = Key::new(digest, self.engines.of(kind));
        let cached = self.cache.as_ref().and_then(|cache| cache.load(&key, limits.native_code_bytes));
        // Code that no longer loads is as good as absent.
        if let Some(value) = cached.and_then(|code| load(&code).ok()) {
            return Ok((value, None));
        }
        let failed = |reason: String| LoadError::Compile { circuit: printable(name), reason: printable_lines(&reason) };
        let started = Instant::now();
        let code = self.compiler.compile(kind, bytes, limits).map_err(|failure| match failure {
            CompileFailure::Refused(reason) => refused(name, reason),
            CompileFailure::Failed(reason) => failed(reason),
        })?;
        let value = load(&code).map_err(|error| {
            failed(format!("the compiler's code does not load; is it another version of this program? {error:#}"))
        })?;
        tracing::debug!(circuit = name, took = ?started.elapsed(), bytes = code.len(), "compiled");
        Ok((value, self.store(&key, &code)))
    }

    /// Keep code for the next time. A cache that cannot be written costs time, not the circuit, so it is but a warning.
    fn store(&self, key: &Key, code: &[u8]) -> Option<String> {
        let error = self.cache.as_ref()?.store(key, code).err()?;
        Some(format!("native code could not be cached, so it will be compiled again: {error}"))
    }
}

/// A file within the limit, and its name without the extension.
fn read_file(path: &Path, limits: &Limits) -> Result<(String, Vec<u8>), LoadError> {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    let read = || {
        let mut bytes = Vec::new();
        // One byte more than the limit, so that a file beyond it is seen to be.
        File::open(path)?.take(limits.component_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok((name.into_owned(), bytes)),
        Err(source) => Err(LoadError::Read { circuit: printable(&name), path: path.display().to_string(), source }),
    }
}

/// Reasons may quote names that the file chose.
fn refused(name: &str, reason: String) -> LoadError {
    LoadError::Refused { circuit: printable(name), reason: printable_lines(&reason) }
}
