//! The limits of a circuit on the command line: `--limit NAME=VALUE`.

use zkhost_runtime::Limits;

/// A limit that was set by hand.
#[derive(Clone)]
pub struct Setting {
    name: String,
    value: u64,
}

/// Parse `NAME=VALUE`.
pub fn parse_setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as memory_bytes=2000000000")?;
    let value = value.replace('_', "").parse().map_err(|_| format!("`{value}` is no whole number"))?;
    Limits::default().set(name, value)?;
    Ok(Setting { name: name.to_owned(), value })
}

/// The default limits with some of them set by hand.
pub fn with_settings(settings: &[Setting]) -> Result<Limits, String> {
    let mut limits = Limits::default();
    settings.iter().try_for_each(|setting| limits.set(&setting.name, setting.value))?;
    Ok(limits)
}
