//! A circuit's manifest: the TOML that names its component, its key and its limits.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Component, Path};
use zkhost_runtime::Limits;

/// Its name in a folder of the circuits' folder.
pub const MANIFEST_FILE: &str = "manifest.toml";

/// Bytes of a manifest at most.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a circuit's name at most.
const NAME_BYTES_MAX: usize = 64;

/// A manifest. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What jobs may call the circuit: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The component.
    pub component: FileRef,
    /// The key image.
    pub key: FileRef,
    /// The circuit's parameters, JSON as text; empty for its defaults.
    #[serde(default)]
    pub params: String,
    /// Limits by name that differ from the defaults; times in seconds.
    #[serde(default)]
    pub limits: BTreeMap<String, u64>,
}

/// A file that belongs to a circuit: one beside the manifest, an uploaded one, or one that is both named and checked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRef {
    /// Its name in the manifest's folder.
    pub file: Option<String>,
    /// BLAKE3 of its bytes. Required of uploaded files; checked where given.
    pub blake3: Option<String>,
}

impl Manifest {
    /// Read a manifest and check what can be checked without its files.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MANIFEST_BYTES_MAX {
            return Err(format!("the manifest has {} bytes; the limit is {MANIFEST_BYTES_MAX}", text.len()));
        }
        let manifest: Self = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if manifest.name.is_empty() || manifest.name.len() > NAME_BYTES_MAX || !manifest.name.chars().all(plain) {
            let name = manifest.name.escape_debug();
            return Err(format!("name `{name}`: expected 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` or `.`"));
        }
        manifest.component.check("component")?;
        manifest.key.check("key")?;
        manifest.limits()?;
        Ok(manifest)
    }

    /// The limits, defaults included.
    pub fn limits(&self) -> Result<Limits, String> {
        let mut limits = Limits::default();
        self.limits.iter().try_for_each(|(name, value)| limits.set(name, *value))?;
        Ok(limits)
    }
}

impl FileRef {
    fn check(&self, what: &str) -> Result<(), String> {
        if let Some(digest) = &self.blake3 {
            digest.parse::<crate::Digest>().map_err(|error| format!("{what}: {error}"))?;
        }
        match &self.file {
            None if self.blake3.is_none() => Err(format!("{what}: give `file`, or `blake3` of an uploaded file")),
            Some(file) if !is_plain_name(file) => {
                Err(format!("{what}: `{}` is no plain file name of the manifest's folder", file.escape_debug()))
            }
            _ => Ok(()),
        }
    }
}

/// A manifest names no file outside its folder.
fn is_plain_name(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == file)
}

#[cfg(test)]
mod tests {
    use super::Manifest;

    fn check_refused(text: &str, parts: &[&str]) {
        let error = Manifest::parse(text).unwrap_err();
        parts.iter().for_each(|part| assert!(error.contains(part), "`{part}` is not in: {error}"));
    }

    #[test]
    fn a_manifest_is_read_and_mistakes_in_it_get_a_sentence() {
        let files = "component = { file = \"a.wasm\" }\nkey = { file = \"a.zkimage\" }\n";
        let manifest = Manifest::parse(&format!("name = \"a\"\n{files}[limits]\nassign_time = 5")).unwrap();
        assert_eq!(manifest.limits().unwrap().assign_time.as_secs(), 5);
        check_refused(&format!("name = \"a\"\nnmae = 1\n{files}"), &["unknown field `nmae`", "expected one of"]);
        check_refused(&format!("name = \"../a\"\n{files}"), &["name `../a`", "letters"]);
        check_refused(&format!("name = \"a\"\n{files}[limits]\nmemory = 5"), &["no limit `memory`", "memory_bytes"]);
        let outside = "name = \"a\"\nkey = { file = \"k\" }\ncomponent = { file = \"../../etc/passwd\" }";
        check_refused(outside, &["component", "no plain file name"]);
        let neither = "name = \"a\"\nkey = { file = \"k\" }\ncomponent = {}";
        check_refused(neither, &["component: give `file`, or `blake3`"]);
        let short = "name = \"a\"\nkey = { blake3 = \"12\" }\ncomponent = { file = \"c\" }";
        check_refused(short, &["key: `12` is no digest", "64 hexadecimal"]);
    }
}
