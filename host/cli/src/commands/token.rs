//! `zkhost token`

use crate::error::{Code, Failure};
use crate::output::Output;
use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt;

/// Make a token for a host that serves
///
/// Prints the token, which is shown this once, and the lines for the host's configuration, which hold only its hash.
#[derive(Args)]
pub struct TokenArgs {
    /// Whose it is: the owner of the jobs submitted with it
    name: String,
    /// What it allows
    #[arg(long, value_enum, default_value = "submit")]
    role: TokenRole,
}

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum TokenRole {
    /// Submit jobs, see and cancel one's own
    Submit,
    /// Everything
    Operate,
}

#[derive(Serialize)]
struct TokenResult<'a> {
    token: String,
    name: &'a str,
    role: TokenRole,
    blake3: String,
}

impl fmt::Display for TokenResult<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            TokenRole::Submit => "submit",
            TokenRole::Operate => "operate",
        };
        writeln!(f, "{}\n\nfor the configuration:\n", self.token)?;
        write!(f, "[[tokens]]\nname = \"{}\"\nrole = \"{role}\"\nblake3 = \"{}\"", self.name, self.blake3)
    }
}

/// Run the command.
pub fn run(args: &TokenArgs, output: Output) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if args.name.is_empty() || !args.name.chars().all(plain) {
        let message = format!("name `{}`: expected letters, digits, `-`, `_` or `.`", args.name.escape_debug());
        return Err(Failure::new(Code::Usage, message).into());
    }
    let (token, blake3) = zkhost_service::access::new_token()
        .map_err(|error| Failure::new(Code::Busy, format!("the system gives no randomness: {error}")))?;
    output.result(&TokenResult { token, name: &args.name, role: args.role, blake3 });
    Ok(())
}
