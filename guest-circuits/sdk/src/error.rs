//! Why a circuit refuses.

use std::fmt;

/// Why a circuit refused. The text is a sentence for the user: name the field and what was expected, never a secret value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The parameters are malformed or out of range.
    BadParams(String),
    /// The input is malformed or out of range.
    BadInput(String),
    /// The input is well formed, yet no satisfying assignment exists for it.
    Unsatisfied(String),
    /// The parameters ask for something this circuit does not do.
    Unsupported(String),
    /// A fault of the circuit itself.
    Internal(String),
    /// The host asked to stop.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadParams(text) => write!(f, "bad parameters: {text}"),
            Error::BadInput(text) => write!(f, "bad input: {text}"),
            Error::Unsatisfied(text) => write!(f, "no satisfying assignment: {text}"),
            Error::Unsupported(text) => write!(f, "unsupported: {text}"),
            Error::Internal(text) => write!(f, "fault of the circuit: {text}"),
            Error::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for Error {}

/// What the synthesis errors of both dialects mean to a user.
macro_rules! from_synthesis_error {
    ($dialect:ident) => {
        impl From<$dialect::SynthesisError> for Error {
            fn from(error: $dialect::SynthesisError) -> Self {
                use $dialect::SynthesisError;
                match error {
                    SynthesisError::AssignmentMissing => {
                        Error::Internal("a variable has no value; `open` must give every variable one".into())
                    }
                    SynthesisError::DivisionByZero => Error::Unsatisfied("division by zero".into()),
                    SynthesisError::Unsatisfiable => Error::Unsatisfied("the constraints contradict each other".into()),
                    other => Error::Internal(other.to_string()),
                }
            }
        }
    };
}

#[cfg(feature = "bellman")]
from_synthesis_error!(bellman);
#[cfg(feature = "bellpepper")]
from_synthesis_error!(bellpepper_core);
