//! `zkhost new`

use crate::error::{Code, Failure};
use crate::files;
use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// The files of a new circuit, and where they go.
const TEMPLATE: [(&str, &str); 5] = [
    ("Cargo.toml", include_str!("../../template/Cargo.toml.in")),
    ("src/lib.rs", include_str!("../../template/src/lib.rs.in")),
    ("example-input.json", include_str!("../../template/example-input.json")),
    ("README.md", include_str!("../../template/README.md.in")),
    (".gitignore", include_str!("../../template/gitignore")),
];

/// Characters of a name at most, as in the contract.
const NAME_CHARS_MAX: usize = 64;

/// Start a circuit from a template
///
/// Makes a folder with a crate that builds, checks and proves as it is: knowledge of two factors of a public number.
#[derive(Args)]
#[command(after_help = "\
Example:
  zkhost new my-circuit && zkhost build my-circuit")]
pub struct NewArgs {
    /// The name of the crate and its folder: lower-case letters, digits and `-`
    name: String,
    /// The folder of the crate zkhost-guest [default: guest-circuits/sdk in this folder or one around it]
    #[arg(long, value_name = "FOLDER")]
    sdk: Option<PathBuf>,
}

#[derive(Serialize)]
struct NewResult {
    /// The folder that was made.
    folder: PathBuf,
}

impl fmt::Display for NewResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        write!(
            f,
            "{folder}: a circuit in {folder}/src/lib.rs; next: `zkhost build {folder}`, and see {folder}/README.md"
        )
    }
}

/// Run the command.
pub fn run(args: &NewArgs, output: Output) -> Result<()> {
    check_name(&args.name).map_err(|message| Failure::new(Code::Usage, message))?;
    let folder = PathBuf::from(&args.name);
    if folder.exists() {
        let message = format!("{} exists; choose another name", folder.display());
        return Err(Failure::new(Code::Usage, message).into());
    }
    let sdk = find_sdk(args.sdk.as_deref())?;
    let sdk = serde_json::Value::from(sdk.display().to_string()).to_string();
    for (path, template) in TEMPLATE {
        let path = folder.join(path);
        files::create_parents(&path)?;
        files::write(&path, template.replace("{name}", &args.name).replace("{sdk}", &sdk).as_bytes())?;
    }
    output.result(&NewResult { folder });
    Ok(())
}

/// What both cargo and the contract take for a name.
fn check_name(name: &str) -> Result<(), String> {
    let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase());
    let fits = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    match starts_well && fits && name.len() <= NAME_CHARS_MAX {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is no name for a circuit: a lower-case letter, then lower-case letters, digits and `-`, at most \
             {NAME_CHARS_MAX}"
        )),
    }
}

/// The SDK's folder: the one given, or that of the zkhost checkout one works in.
fn find_sdk(given: Option<&Path>) -> Result<PathBuf> {
    let here = std::env::current_dir().context("there is no current folder")?;
    let is_sdk = |folder: &PathBuf| folder.join("Cargo.toml").is_file();
    let found = match given {
        Some(folder) => Some(here.join(folder)).filter(is_sdk),
        None => here.ancestors().map(|folder| folder.join("guest-circuits/sdk")).find(is_sdk),
    };
    found.ok_or_else(|| {
        let message = "the crate zkhost-guest was not found; give its folder, guest-circuits/sdk of a zkhost checkout, \
                       with --sdk";
        Failure::new(Code::Usage, message).into()
    })
}
