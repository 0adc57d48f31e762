//! From a guest crate to a component: choose a toolchain, compile to a core module, encode the component. A module of another
//! language is encoded as it is.
//!
//! The crate is an ordinary library; `cargo rustc --crate-type cdylib` makes a module of it. Flags and profile are fixed
//! here, so that the same source gives the same component whoever builds it, and no path of the machine is in it.

mod cargo;
mod component;
mod inversion;
mod patch;
mod toolchain;

use crate::error::{Code, Failure};
use crate::files;
use anyhow::Result;
use cargo::{Compilation, Workspace};
use std::path::{Path, PathBuf};
pub use toolchain::Toolchain;
use zkhost_runtime::Limits;

/// What to build.
pub struct Request<'a> {
    /// The folder of the crate, or of its workspace.
    pub folder: &'a Path,
    /// The package, where the folder is a workspace of several.
    pub package: Option<&'a str>,
    /// Let the host invert field elements of the `bls12_381` crate.
    pub host_inversion: bool,
    /// Use wide arithmetic, which a host may lack.
    pub wide_arithmetic: bool,
    /// Refuse to change Cargo.lock.
    pub locked: bool,
    /// Where to write the component; by default `components/NAME.wasm` in the target folder.
    pub out: Option<&'a Path>,
}

/// What was built.
pub struct Built {
    /// The package's name.
    pub name: String,
    /// The component's file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What it imports.
    pub imports: Vec<String>,
    /// What compiled it; none if it came as a module.
    pub toolchain: Option<Toolchain>,
}

/// Build a component. Cargo's own messages go to standard error.
pub fn build(request: &Request<'_>) -> Result<Built> {
    if !request.folder.join("Cargo.toml").is_file() {
        return Err(Failure::new(
            Code::File,
            format!(
                "{} has no Cargo.toml: give the folder of a guest crate, or start one with `zkhost new NAME`",
                request.folder.display()
            ),
        )
        .into());
    }
    let toolchain = Toolchain::choose(request.folder)?;
    let workspace = Workspace::read(&toolchain, request.folder, request.locked)?;
    let package = workspace.package(request.folder, request.package)?;
    let patched = request.host_inversion.then(|| inversion::patched_crate(&workspace)).transpose()?;
    let Request { locked, wide_arithmetic, .. } = *request;
    let compilation = Compilation { patched: patched.as_deref(), locked, wide_arithmetic };
    let module = cargo::compile(&toolchain, &workspace, package, &compilation)?;
    let (component, imports) = component::encode_package(&package.name, &module)?;

    let path = match request.out {
        Some(out) => out.to_owned(),
        None => workspace.target_directory.join("components").join(format!("{}.wasm", package.name)),
    };
    write(package.name.clone(), path, &component, imports, Some(toolchain))
}

/// Encode a module that some other compiler made as a component.
pub fn encode_module(module: &Path, out: &Path) -> Result<Built> {
    let bytes = files::read(module, "the module", Limits::default().component_bytes)?;
    let (component, imports) = component::encode_module(module, bytes)?;
    let name = module.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    write(name, out.to_owned(), &component, imports, None)
}

fn write(
    name: String,
    path: PathBuf,
    component: &[u8],
    imports: Vec<String>,
    toolchain: Option<Toolchain>,
) -> Result<Built> {
    files::create_parents(&path)?;
    files::write(&path, component)?;
    Ok(Built { name, path, bytes: component.len() as u64, imports, toolchain })
}
