//! Which Rust compiles a guest.

use crate::error::{Code, Failure};
use anyhow::Result;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The target of every guest.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// A Rust that can build [`TARGET`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// rustup has the target's standard library.
    Rustup,
    /// Debian's compiler, which builds the standard library from Debian's copy of its source.
    Debian,
}

/// Where Debian's packages put things.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

impl Toolchain {
    /// rustup's, if it has the target for the toolchain that `folder` selects; otherwise Debian's.
    pub fn choose(folder: &Path) -> Result<Self> {
        if rustup_has_target(folder) {
            return Ok(Toolchain::Rustup);
        }
        if Path::new(DEBIAN_CARGO).is_file() && debian_library_source().is_some() {
            return Ok(Toolchain::Debian);
        }
        Err(Failure::new(
            Code::File,
            format!(
                "no Rust on this machine can build {TARGET}. Install it with `rustup target add {TARGET}`; where rustup \
                 cannot, on Debian: `apt-get install rustc-web cargo-web rust-web-src rust-web-llvm lld-22`"
            ),
        )
        .into())
    }

    /// A cargo command of this toolchain that runs in `folder`.
    pub fn cargo(self, folder: &Path) -> Command {
        let mut command = match self {
            Toolchain::Rustup => Command::new("cargo"),
            Toolchain::Debian => {
                let mut command = Command::new(DEBIAN_CARGO);
                // Building the standard library is an unstable feature of cargo.
                command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTUP_TOOLCHAIN");
                command
            }
        };
        // What a surrounding cargo set for its own build is not meant for this one.
        command.current_dir(folder).env_remove("CARGO").env_remove("RUSTC_WRAPPER").env_remove("RUSTFLAGS");
        command
    }

    /// Arguments that this toolchain's builds need.
    pub fn build_arguments(self) -> &'static [&'static str] {
        match self {
            Toolchain::Rustup => &[],
            Toolchain::Debian => &["-Zbuild-std=std,panic_abort"],
        }
    }

    /// The folders in which this toolchain finds the standard library's source, which panic messages would name.
    pub fn library_sources(self, folder: &Path) -> Vec<String> {
        let rustc = match self {
            Toolchain::Rustup => "rustc",
            Toolchain::Debian => DEBIAN_RUSTC,
        };
        let mut command = Command::new(rustc);
        command.current_dir(folder).args(["--print", "sysroot"]);
        let source = output_of(&mut command).map(|sysroot| Path::new(sysroot.trim()).join("lib/rustlib/src/rust"));
        // Debian's is a link, and the compiler may name either end.
        let real = source.as_ref().and_then(|source| source.canonicalize().ok());
        [source, real].into_iter().flatten().map(|path| path.display().to_string()).collect()
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Toolchain::Rustup => write!(f, "rustup's {TARGET}"),
            Toolchain::Debian => write!(f, "Debian's rustc-web, building the standard library for {TARGET}"),
        }
    }
}

fn rustup_has_target(folder: &Path) -> bool {
    let mut command = Command::new("rustup");
    command.current_dir(folder).args(["target", "list", "--installed"]);
    output_of(&mut command).is_some_and(|targets| targets.lines().any(|target| target == TARGET))
}

fn debian_library_source() -> Option<()> {
    let sysroot = output_of(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"]))?;
    Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file().then_some(())
}

/// What a command prints, if it exists and succeeds.
fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
