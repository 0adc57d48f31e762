//! `zkhost build`

use crate::build::{Request, build};
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Build a guest crate as a component
///
/// The crate is an ordinary Rust library that depends on `zkhost-guest` and calls `export_circuit!`. It is compiled with
/// rustup's wasm32-unknown-unknown if that is installed, otherwise with Debian's rustc-web.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost build                                    the crate in this folder
  zkhost build guest-circuits --package sha256    one package of a workspace
  zkhost build --host-inversion --out spend.wasm  faster for circuits on the bls12_381 crate")]
pub struct BuildArgs {
    /// The folder of the crate, or of its workspace
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The package to build, where the folder is a workspace of several
    #[arg(long, short)]
    package: Option<String>,
    /// Patch the bls12_381 crate, in the target folder, so that the host computes field inverses
    #[arg(long)]
    host_inversion: bool,
    /// Fail rather than change Cargo.lock
    #[arg(long)]
    locked: bool,
    /// Where to write the component [default: components/NAME.wasm in the target folder]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct BuildResult {
    /// The package.
    name: String,
    /// The component's file.
    component: PathBuf,
    /// Its size in bytes.
    bytes: u64,
    /// The interfaces that it imports.
    imports: Vec<String>,
    /// What compiled it.
    toolchain: String,
}

impl fmt::Display for BuildResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BuildResult { name, component, bytes, toolchain, .. } = self;
        write!(f, "{name}: {} ({bytes} bytes), built with {toolchain}", component.display())
    }
}

/// Run the command.
pub fn run(args: &BuildArgs, output: Output) -> Result<()> {
    let built = build(&Request {
        folder: &args.folder,
        package: args.package.as_deref(),
        host_inversion: args.host_inversion,
        locked: args.locked,
        out: args.out.as_deref(),
    })?;
    output.result(&BuildResult {
        name: built.name,
        component: built.path,
        bytes: built.bytes,
        imports: built.imports,
        toolchain: built.toolchain.to_string(),
    });
    Ok(())
}
