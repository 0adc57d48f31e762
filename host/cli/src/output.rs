//! What a command says: its result on standard output, for people or as one JSON object, and remarks on standard error.

use crate::error::{Code, code_of, one_line};
use serde::Serialize;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use zkhost_runtime::RunError;

/// How to speak.
#[derive(Clone, Copy)]
pub struct Output {
    json: bool,
}

/// The JSON form of a failure: `{"error": {"code", "exit", "message"}}`.
#[derive(Serialize)]
struct ErrorMessage<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: Code,
    exit: u8,
    message: &'a str,
    /// The guest's stack, innermost first, if it trapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    backtrace: Option<&'a str>,
}

impl Output {
    /// For people, or as JSON.
    pub fn new(json: bool) -> Self {
        Output { json }
    }

    /// Whether to draw progress bars: people watch, on a terminal.
    pub fn interactive(self) -> bool {
        !self.json && std::io::stderr().is_terminal()
    }

    /// The result of a command, the only thing on standard output.
    pub fn result<T: Serialize + Display>(self, result: &T) {
        let text = match self.json {
            true => serde_json::to_string(result).unwrap_or_default(),
            false => result.to_string(),
        };
        print_line(&mut std::io::stdout().lock(), &text);
    }

    /// Text that is the same with and without JSON.
    pub fn text(self, text: &str) {
        print_line(&mut std::io::stdout().lock(), text);
    }

    /// A remark for people; JSON readers do not get it.
    pub fn note(self, text: impl Display) {
        if !self.json {
            print_line(&mut std::io::stderr().lock(), &text.to_string());
        }
    }

    /// The end of a command that failed. Returns its exit code.
    pub fn failure(self, error: &anyhow::Error) -> u8 {
        let (code, message) = (code_of(error), one_line(error));
        let exit = code as u8;
        let backtrace = error.downcast_ref::<RunError>().and_then(|error| error.backtrace.as_deref());
        if self.json {
            let body = ErrorMessage { error: ErrorBody { code, exit, message: &message, backtrace } };
            print_line(&mut std::io::stdout().lock(), &serde_json::to_string(&body).unwrap_or_default());
        } else {
            print_line(&mut std::io::stderr().lock(), &format!("zkhost: {message}"));
            if let Some(backtrace) = backtrace {
                print_line(&mut std::io::stderr().lock(), backtrace);
            }
        }
        exit
    }
}

/// Print a line. A reader that has gone away is no failure of ours.
fn print_line(stream: &mut impl Write, text: &str) {
    let _ = writeln!(stream, "{}", text.trim_end()).and_then(|()| stream.flush());
}
