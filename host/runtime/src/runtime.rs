//! From a component's bytes to a circuit that can be called.

use crate::bindings::GuestPre;
use crate::cache::{Cache, Key};
use crate::circuit::Circuit;
use crate::compile::{CompileFailure, Compiler};
use crate::engine;
use crate::error::{LoadError, printable};
use crate::imports;
use crate::limits::Limits;
use crate::state::State;
use crate::world::check_size;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
#[error("the WebAssembly engine cannot start on this machine: {0}")]
pub struct StartError(String);

/// Loads circuits. One serves a whole process; circuits outlive it.
pub struct Runtime {
    engine: Engine,
    linker: Linker<State>,
    compiler: Compiler,
    cache: Option<Cache>,
}

impl Runtime {
    /// A runtime that compiles with `compiler` and keeps native code in `cache`, if there is one.
    pub fn new(compiler: Compiler, cache: Option<Cache>) -> Result<Self, StartError> {
        let start_error = |error: wasmtime::Error| StartError(format!("{error:#}"));
        let engine = engine::with_clock().map_err(start_error)?;
        let mut linker = Linker::new(&engine);
        imports::add_to_linker(&mut linker).map_err(start_error)?;
        Ok(Runtime { engine, linker, compiler, cache })
    }

    /// Load a component from a file; its name without the extension becomes the circuit's.
    pub fn load_file(&self, path: &Path, limits: Limits) -> Result<Circuit, LoadError> {
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
        let read = || {
            let mut component = Vec::new();
            // One byte more than the limit, so that a file beyond it is seen to be.
            File::open(path)?.take(limits.component_bytes.saturating_add(1)).read_to_end(&mut component)?;
            Ok(component)
        };
        let component = read().map_err(|source| LoadError::Read {
            circuit: printable(&name),
            path: path.display().to_string(),
            source,
        })?;
        self.load(&name, &component, limits)
    }

    /// Load a component: check it against the contract and the limits, compile it or take its code from the cache, link.
    ///
    /// `name` is what errors call the circuit. A component whose code is in the cache was checked when the code was made;
    /// limits that were lowered since then apply when it runs.
    pub fn load(&self, name: &str, component: &[u8], limits: Limits) -> Result<Circuit, LoadError> {
        let refused = |reason| LoadError::Refused { circuit: printable(name), reason };
        check_size(component, &limits).map_err(refused)?;
        let digest = blake3::hash(component);
        let key = Key::new(digest, &self.engine);
        let mut warning = None;
        let compiled = match self.cached(&key, &limits) {
            Some(compiled) => compiled,
            None => {
                let started = Instant::now();
                let code = self.compiler.compile(component, &limits).map_err(|failure| match failure {
                    CompileFailure::Refused(reason) => refused(reason),
                    CompileFailure::Failed(reason) => LoadError::Compile { circuit: printable(name), reason },
                })?;
                let compiled = self.deserialize(&code).map_err(|error| LoadError::Compile {
                    circuit: printable(name),
                    reason: format!(
                        "the compiler's code does not load; is it another version of this program? {error:#}"
                    ),
                })?;
                tracing::debug!(circuit = name, took = ?started.elapsed(), bytes = code.len(), "compiled a component");
                warning = self.store(&key, &code);
                compiled
            }
        };
        let pre = self.linker.instantiate_pre(&compiled).and_then(GuestPre::new);
        let pre =
            pre.map_err(|error| refused(format!("the component does not link: {}", printable(&format!("{error:#}")))))?;
        Ok(Circuit::new(name, digest, self.engine.clone(), pre, limits, warning))
    }

    /// A component from the cache. Code that no longer loads is as good as absent.
    fn cached(&self, key: &Key, limits: &Limits) -> Option<Component> {
        let code = self.cache.as_ref()?.load(key, limits.native_code_bytes)?;
        self.deserialize(&code).ok()
    }

    /// Keep code for the next time. A cache that cannot be written costs time, not the circuit, so it is but a warning.
    fn store(&self, key: &Key, code: &[u8]) -> Option<String> {
        let error = self.cache.as_ref()?.store(key, code).err()?;
        Some(format!("native code could not be cached, so it will be compiled again: {error}"))
    }

    fn deserialize(&self, code: &[u8]) -> wasmtime::Result<Component> {
        // SAFETY: the bytes are what wasmtime's compiler wrote. They come either from the child that this host started
        // for this very component, or from the cache, which holds nothing else, is writable by nobody but the user this
        // process runs as, and has just compared their digest (see the module `cache`). They are not shared with anyone
        // who could change them meanwhile, and wasmtime checks that its version and settings are this engine's.
        unsafe { Component::deserialize(&self.engine, code) }
    }
}
