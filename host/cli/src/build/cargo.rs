//! Talking to cargo: what a workspace holds, and compiling one package to a core module.

use super::toolchain::{TARGET, Toolchain};
use crate::error::{Code, Failure};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Instructions beyond WebAssembly 1.0 that every host runs.
const TARGET_FEATURES: &str = "target-feature=+simd128,+bulk-memory";
/// Instructions that most hosts run; they make field products ten times faster.
const WIDE_ARITHMETIC: &str = ",+wide-arithmetic";

/// The profile of every component, whatever the crate's own manifest says. Names of functions stay, so that the stack of
/// a trap can be read.
const PROFILE: [(&str, &str); 6] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3"),
    ("CARGO_PROFILE_RELEASE_LTO", "fat"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_STRIP", "debuginfo"),
];

/// What `cargo metadata` says of a workspace.
#[derive(Deserialize)]
pub struct Workspace {
    /// All packages that a build may compile.
    pub packages: Vec<Package>,
    workspace_members: Vec<String>,
    /// Where cargo puts what it builds.
    pub target_directory: PathBuf,
}

/// One package.
#[derive(Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    id: String,
    /// Its Cargo.toml.
    pub manifest_path: PathBuf,
    /// Where it comes from; none for a path on this machine.
    pub source: Option<String>,
}

impl Package {
    /// The folder of its source.
    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}

impl Workspace {
    /// Ask cargo, which also fetches the source of dependencies that are not there yet.
    pub fn read(toolchain: &Toolchain, folder: &Path, locked: bool) -> Result<Self> {
        let mut command = toolchain.cargo(folder);
        command.args(["metadata", "--format-version", "1", "--filter-platform", TARGET, "--quiet"]);
        command.args(locked.then_some("--locked"));
        serde_json::from_slice(&run(&mut command, "cargo metadata")?)
            .context("cargo metadata answered in an unknown form")
    }

    /// The package of that name, or else the one whose folder it is, or else the only one.
    pub fn package(&self, folder: &Path, name: Option<&str>) -> Result<&Package> {
        let members: Vec<_> = self.packages.iter().filter(|p| self.workspace_members.contains(&p.id)).collect();
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let found = match name {
            Some(name) => members.iter().find(|package| package.name == name),
            None if members.len() == 1 => members.first(),
            None => members.iter().find(|package| package.folder() == folder),
        };
        found.copied().ok_or_else(|| {
            let names = members.iter().map(|package| package.name.as_str()).collect::<Vec<_>>().join(", ");
            let problem = match name {
                Some(name) => format!("there is no package `{name}` in {}", folder.display()),
                None => format!("{} is a workspace of several packages", folder.display()),
            };
            Failure::new(Code::Usage, format!("{problem}; choose one with --package: {names}")).into()
        })
    }
}

/// One line of cargo's JSON output.
#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact {
        package_id: String,
        filenames: Vec<PathBuf>,
    },
    #[serde(other)]
    Other,
}

/// How a package is compiled.
pub struct Compilation<'a> {
    /// A folder of a crate that takes the place of the published one of the same name and version.
    pub patched: Option<&'a Path>,
    /// Refuse to change Cargo.lock.
    pub locked: bool,
    /// Use wide arithmetic.
    pub wide_arithmetic: bool,
}

/// Compile a package to a core module and return its bytes.
pub fn compile(
    toolchain: &Toolchain,
    workspace: &Workspace,
    package: &Package,
    compilation: &Compilation<'_>,
) -> Result<Vec<u8>> {
    let Compilation { patched, locked, wide_arithmetic } = *compilation;
    let mut command = toolchain.cargo(package.folder());
    command.args(["rustc", "--lib", "--crate-type", "cdylib", "--release", "--target", TARGET]);
    command.args(["--package", &package.id, "--message-format", "json-render-diagnostics"]);
    command.args(toolchain.build_arguments()).args(locked.then_some("--locked"));
    if let Some(folder) = patched {
        // A path override, unlike a patch, leaves Cargo.lock alone.
        let folder = toml_string(&folder.display().to_string());
        command.arg("--config").arg(format!("paths = [{folder}]"));
    }
    command
        .envs(PROFILE)
        .env("CARGO_ENCODED_RUSTFLAGS", flags(toolchain, workspace, package.folder(), wide_arithmetic));

    let messages = run(&mut command, "cargo rustc")?;
    let artifact = String::from_utf8_lossy(&messages)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter_map(|message| match message {
            Message::CompilerArtifact { package_id, filenames } if package_id == package.id => Some(filenames),
            _ => None,
        })
        .flatten()
        .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
        .with_context(|| format!("cargo built package `{}` but names no .wasm file", package.name))?;
    std::fs::read(&artifact).with_context(|| format!("cannot read the module {}", artifact.display()))
}

/// Compiler flags, separated as cargo wants them: features, and a neutral name for every folder that a panic message
/// would name. Where several prefixes fit, the compiler takes the last.
fn flags(toolchain: &Toolchain, workspace: &Workspace, folder: &Path, wide_arithmetic: bool) -> String {
    let wide = if wide_arithmetic { WIDE_ARITHMETIC } else { "" };
    let mut flags = vec!["-C".to_owned(), format!("{TARGET_FEATURES}{wide}")];
    let mut remap = |from: &str, to: &str| flags.push(format!("--remap-path-prefix={from}={to}"));
    for source in toolchain.library_sources(folder) {
        remap(&source, "/rust");
    }
    // All crates of a registry lie in one folder, those that only the standard library depends on as well.
    let registries: BTreeSet<_> =
        workspace.packages.iter().filter(|p| p.source.is_some()).filter_map(|p| p.folder().parent()).collect();
    for registry in registries {
        remap(&registry.display().to_string(), "/crates");
    }
    for package in workspace.packages.iter().filter(|package| package.source.is_none()) {
        remap(&package.folder().display().to_string(), &format!("/crates/{}-{}", package.name, package.version));
    }
    remap(&workspace.target_directory.display().to_string(), "/target");
    flags.join("\u{1f}")
}

/// Run a command, let its standard error through and return its standard output.
fn run(command: &mut Command, what: &str) -> Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{what}` cannot be started; is cargo installed?"))?;
    if !output.status.success() {
        return Err(Failure::new(Code::File, format!("`{what}` failed; its messages are above")).into());
    }
    Ok(output.stdout)
}

/// A string as TOML writes it; JSON's form is one of TOML's.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
