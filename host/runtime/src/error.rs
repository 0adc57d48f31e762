//! What can go wrong, each as a sentence that says where and what to do next.

use crate::limits::grouped;
use std::fmt;
use std::sync::Arc;
use zkhost_groth16::r1cs::ShapeError;

/// Why a component was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be read.
    #[error("circuit `{circuit}`: cannot read {path}: {source}")]
    Read {
        /// What the caller calls the circuit.
        circuit: String,
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The component is not one that this host can run, or it passes a limit. One sentence a line.
    #[error("circuit `{circuit}`: {reason}")]
    Refused {
        /// What the caller calls the circuit.
        circuit: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The compiling process failed: it was killed at a limit, could not be started, or crashed.
    #[error("circuit `{circuit}`: {reason}")]
    Compile {
        /// What the caller calls the circuit.
        circuit: String,
        /// Why, and what to do.
        reason: String,
    },
}

/// An export of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// The start of the component, before any export is called.
    Instantiate,
    /// `describe`.
    Describe,
    /// `plan`.
    Plan,
    /// `record-shape`.
    RecordShape,
    /// `job.open`.
    Open,
    /// `job.assign`.
    Assign,
    /// circom's `setInputSignal` and what belongs to it; the last signal starts the circuit.
    Inputs,
    /// circom's `getWitness`.
    Witness,
}

impl fmt::Display for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Export::Instantiate => "instantiation",
            Export::Describe => "`describe`",
            Export::Plan => "`plan`",
            Export::RecordShape => "`record-shape`",
            Export::Open => "`job.open`",
            Export::Assign => "`job.assign`",
            Export::Inputs => "input signals",
            Export::Witness => "`getWitness`",
        })
    }
}

/// Where in a run something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The export that ran.
    pub export: Export,
    /// The partition and segment, both from 0, if it was `job.assign`.
    pub segment: Option<(u32, u32)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((partition, segment)) = self.segment {
            write!(f, "partition {partition}, segment {segment}, ")?;
        }
        self.export.fmt(f)
    }
}

/// How a circuit answered when it refused: the cases of the contract's `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The parameters are malformed or out of range.
    BadParams,
    /// The input is malformed or out of range.
    BadInput,
    /// No satisfying assignment exists for the input.
    Unsatisfied,
    /// The parameters ask for something this circuit does not do.
    Unsupported,
    /// A fault of the circuit itself.
    Internal,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::BadParams => "bad parameters",
            Refusal::BadInput => "bad input",
            Refusal::Unsatisfied => "the input satisfies no assignment",
            Refusal::Unsupported => "unsupported parameters",
            Refusal::Internal => "the circuit reports a fault of its own",
        })
    }
}

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The circuit answered with an error.
    #[error("{kind}: {message}")]
    Refused {
        /// Which error.
        kind: Refusal,
        /// The circuit's text, control characters stripped.
        message: String,
    },
    /// The guest trapped.
    #[error("the guest trapped: {0}")]
    Trap(String),
    /// The guest misused a host function.
    #[error("the guest misused the host: {0}")]
    Misuse(String),
    /// What the guest returned contradicts itself, the contract or what was recorded.
    #[error("{0}")]
    Contradiction(String),
    /// A limit was passed. It never fits, however often it is tried.
    #[error("{what}; the limit is {limit} (setting `{setting}`)")]
    Limit {
        /// What was asked for.
        what: String,
        /// The limit with its unit.
        limit: String,
        /// The field of [`crate::Limits`] to raise.
        setting: &'static str,
    },
    /// All instances that the limits allow are in use. The same call may succeed later.
    #[error(
        "busy: all {instances} instances that the limits allow are in use; try again when one is done, or raise the \
         setting `instances`"
    )]
    Busy {
        /// The limit.
        instances: u32,
    },
    /// The host has no memory for what is within the limits.
    #[error("{0}")]
    HostMemory(String),
    /// The observer asked to stop, and the guest was stopped.
    #[error("cancelled")]
    Cancelled,
    /// The host itself panicked. The instance is gone; the process lives.
    #[error("the host failed while the guest ran: {0}; please report this")]
    HostPanic(String),
}

impl Fault {
    /// A limit in bytes was passed.
    pub(crate) fn bytes(what: impl Into<String>, limit: u64, setting: &'static str) -> Self {
        Fault::Limit { what: what.into(), limit: format!("{} bytes", grouped(limit)), setting }
    }

    /// What is wrong with a recorded shape; a limit that it passes is told by its setting.
    pub(crate) fn shape(error: ShapeError, otherwise: impl FnOnce(String) -> Fault) -> Self {
        let (what, limit) = match error {
            ShapeError::Limit { what, limit } => (what, limit),
            ShapeError::Memory { .. } => return Fault::HostMemory(error.to_string()),
            _ => return otherwise(error.to_string()),
        };
        let setting = match what {
            "public inputs" => "publics",
            "aux variables" => "aux",
            "constraints" | "row names" => "constraints",
            "terms" => "terms",
            "coefficients" => "coefficients",
            "bytes of row names" => "name_bytes",
            // The field has no larger domain, whatever the settings.
            _ => return otherwise(error.to_string()),
        };
        Fault::count(format!("the circuit has too many {what}"), limit, setting)
    }

    /// A limit on a number of things was passed.
    pub(crate) fn count(what: impl Into<String>, limit: u64, setting: &'static str) -> Self {
        Fault::Limit { what: what.into(), limit: grouped(limit), setting }
    }
}

/// A run of a circuit that failed: where, and what went wrong.
#[derive(Debug, thiserror::Error)]
#[error("circuit `{circuit}`, {place}: {fault}")]
pub struct RunError {
    /// What the caller calls the circuit.
    pub circuit: Arc<str>,
    /// Where.
    pub place: Place,
    /// What.
    pub fault: Fault,
    /// The guest's stack at the time, demangled, innermost first; one frame a line.
    pub backtrace: Option<Box<str>>,
}

/// Text from a guest, safe to print: control characters, which could rewrite a terminal, become spaces.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect()
}

/// As [`printable`], line feeds kept.
pub(crate) fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if c != '\n' && is_unprintable(c) { ' ' } else { c }).collect()
}

/// Control characters, and the invisible characters that change the direction of the text around them.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}
