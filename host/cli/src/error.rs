//! What a failure means to whoever called the command: its exit code, decided here and nowhere else.

use serde::Serialize;
use zkhost_cuda::CudaError;
use zkhost_engine::circom::CircomError;
use zkhost_groth16::r1cs::CheckError;
use zkhost_groth16::{ProveError, VerifyError};
use zkhost_runtime::{Fault, LoadError, Refusal, RunError};

/// The exit codes of the command; 0 means done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A proof does not verify or a constraint does not hold: the answer to the question is no.
    False = 1,
    /// The command line asks for something that cannot be.
    Usage = 2,
    /// An input or a file is missing, malformed, or not the one that was expected.
    File = 3,
    /// A circuit cannot be loaded, trapped, misbehaved or passed a limit.
    Guest = 4,
    /// A device failed.
    Device = 5,
    /// All instances are in use, or the run was cancelled.
    Busy = 6,
}

/// A failure that this crate itself finds.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    code: Code,
    message: String,
}

impl Failure {
    /// A failure with a sentence: what, where, what was expected, what to do next.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }
}

/// The exit code of an error: that of the first link of its chain that has one.
///
/// What no link knows is an input or a file: libraries' errors about keys, proofs and formats, and the system's about
/// files, all are.
pub fn code_of(error: &anyhow::Error) -> Code {
    error.chain().find_map(code_of_link).unwrap_or(Code::File)
}

fn code_of_link(link: &(dyn std::error::Error + 'static)) -> Option<Code> {
    if let Some(failure) = link.downcast_ref::<Failure>() {
        return Some(failure.code);
    }
    if let Some(error) = link.downcast_ref::<RunError>() {
        return Some(code_of_fault(&error.fault));
    }
    if let Some(error) = link.downcast_ref::<CircomError>() {
        return Some(match error {
            CircomError::Run(error) => code_of_fault(&error.fault),
            CircomError::Check(CheckError::Unsatisfied(_)) => Code::False,
            _ => Code::File,
        });
    }
    if let Some(error) = link.downcast_ref::<VerifyError>() {
        return Some(code_of_verify(error));
    }
    if let Some(error) = link.downcast_ref::<ProveError>() {
        return Some(match error {
            ProveError::Mismatch(_) => Code::Guest,
            ProveError::Backend(_) => Code::Device,
            _ => Code::False,
        });
    }
    if let Some(error) = link.downcast_ref::<CheckError>() {
        return Some(if matches!(error, CheckError::Unsatisfied(_)) { Code::False } else { Code::Guest });
    }
    if link.is::<CudaError>() {
        return Some(Code::Device);
    }
    match link.downcast_ref::<LoadError>()? {
        LoadError::Read { .. } => Some(Code::File),
        _ => Some(Code::Guest),
    }
}

fn code_of_verify(error: &VerifyError) -> Code {
    match error {
        VerifyError::Invalid => Code::False,
        VerifyError::InBatch { cause, .. } => code_of_verify(cause),
        _ => Code::File,
    }
}

fn code_of_fault(fault: &Fault) -> Code {
    match fault {
        Fault::Refused { kind: Refusal::BadParams | Refusal::BadInput | Refusal::Unsupported, .. } => Code::File,
        Fault::Refused { kind: Refusal::Unsatisfied, .. } => Code::False,
        Fault::Busy { .. } | Fault::HostMemory(_) | Fault::Cancelled => Code::Busy,
        _ => Code::Guest,
    }
}

/// An error chain on one line: each cause after a colon, unless the link before it already says it.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for link in error.chain() {
        let text = link.to_string();
        if line.contains(text.as_str()) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    line
}
