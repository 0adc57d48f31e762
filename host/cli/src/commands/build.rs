//! `zkhost build`

use crate::build::{Built, Request, build, encode_module};
use crate::error::{Code, Failure};
use crate::files::check_outputs;
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
///
/// Circuits in other languages are compiled by their own compilers; give the core module that comes out of it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost build                                    the crate in this folder
  zkhost build guest-circuits --package sha256    one package of a workspace
  zkhost build --host-inversion --out spend.wasm  faster for circuits on the bls12_381 crate
  zkhost build module.wasm --out circuit.wasm     a module that another compiler made")]
pub struct BuildArgs {
    /// The folder of the crate, or of its workspace; or a core module
    #[arg(default_value = ".", value_name = "FOLDER|MODULE")]
    source: PathBuf,
    /// The package to build, where the folder is a workspace of several
    #[arg(long, short)]
    package: Option<String>,
    /// Patch the bls12_381 crate, in the target folder, so that the host computes field inverses
    #[arg(long)]
    host_inversion: bool,
    /// Do without wide arithmetic, for hosts that refuse it: field products take ten times as long
    #[arg(long)]
    no_wide_arithmetic: bool,
    /// Fail rather than change Cargo.lock
    #[arg(long)]
    locked: bool,
    /// Where to write the component [default for crates: components/NAME.wasm in the target folder]
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
    /// What compiled it, unless it came as a module.
    #[serde(skip_serializing_if = "Option::is_none")]
    toolchain: Option<String>,
}

impl fmt::Display for BuildResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BuildResult { name, component, bytes, toolchain, .. } = self;
        write!(f, "{name}: {} ({bytes} bytes)", component.display())?;
        toolchain.iter().try_for_each(|toolchain| write!(f, ", built with {toolchain}"))
    }
}

/// Run the command.
pub fn run(args: &BuildArgs, output: Output) -> Result<()> {
    let built = match args.source.is_file() {
        true => build_module(args)?,
        false => build(&Request {
            folder: &args.source,
            package: args.package.as_deref(),
            host_inversion: args.host_inversion,
            wide_arithmetic: !args.no_wide_arithmetic,
            locked: args.locked,
            out: args.out.as_deref(),
        })?,
    };
    output.result(&BuildResult {
        name: built.name,
        component: built.path,
        bytes: built.bytes,
        imports: built.imports,
        toolchain: built.toolchain.map(|toolchain| toolchain.to_string()),
    });
    Ok(())
}

fn build_module(args: &BuildArgs) -> Result<Built> {
    let refused = |message: &str| Failure::new(Code::Usage, format!("{}: {message}", args.source.display()));
    if args.package.is_some() || args.host_inversion || args.no_wide_arithmetic || args.locked {
        let message = "--package, --host-inversion, --no-wide-arithmetic and --locked are for crates; this is a file";
        return Err(refused(message).into());
    }
    let out = args.out.as_deref().ok_or_else(|| refused("this is a file; give --out for the component of it"))?;
    check_outputs(&[Some(out)], &[Some(&args.source)])?;
    encode_module(&args.source, out)
}
