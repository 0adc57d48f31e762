//! What a circuit may tell its operator.

/// How much a line of log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the author.
    Debug,
    /// For the curious.
    Info,
    /// For the operator.
    Warn,
    /// For the operator, at once.
    Error,
}

/// Write one line of log. Nothing secret belongs in it. The host drops logs unless its operator asks for them; in a native
/// test they go to standard error.
pub fn log(level: Level, message: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::export::log(level, message);
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("{level:?}: {message}");
}
