//! Names of artifacts: `REGISTRY/NAME@sha256:DIGEST`.

use super::PullError;
use std::fmt;
use std::str::FromStr;

/// Bytes of a reference at most.
const REFERENCE_BYTES_MAX: usize = 512;

/// An artifact by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The registry, with its port if it has one.
    pub host: String,
    /// The repository.
    pub name: String,
    /// SHA-256 of the artifact's manifest.
    pub sha256: [u8; 32],
}

/// The digest in `sha256:` and 64 hexadecimal digits.
pub(super) fn sha256(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text.strip_prefix("sha256:")?, &mut digest).ok()?;
    Some(digest)
}

impl FromStr for Reference {
    type Err = PullError;

    fn from_str(text: &str) -> Result<Self, PullError> {
        let bad = |reason| {
            let reference = text.chars().take(80).flat_map(char::escape_debug).collect();
            PullError::Reference { reference, reason }
        };
        if text.len() > REFERENCE_BYTES_MAX {
            return Err(bad("it is longer than 512 bytes"));
        }
        let (place, digest) = text.split_once('@').ok_or_else(|| bad("it has no digest, and a tag may be moved"))?;
        let sha256 = sha256(digest).ok_or_else(|| bad("its digest is not `sha256:` and 64 hexadecimal digits"))?;
        let (host, name) = place.split_once('/').ok_or_else(|| bad("it does not name a registry"))?;
        let in_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '[' | ']');
        if host.is_empty() || !host.chars().all(in_host) {
            return Err(bad("its registry is no host name"));
        }
        let in_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        let is_part = |part: &str| part.chars().all(in_part) && part.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !name.split('/').all(is_part) {
            return Err(bad("its name has other parts than lower-case letters, digits, `-`, `_` and `.`, or a tag"));
        }
        Ok(Self { host: host.to_owned(), name: name.to_owned(), sha256 })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@sha256:{}", self.host, self.name, hex::encode(self.sha256))
    }
}

#[cfg(test)]
mod tests {
    use super::Reference;

    fn check_refused(text: &str, part: &str) {
        let error = text.parse::<Reference>().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("REGISTRY/NAME@sha256:DIGEST"), "{error}");
    }

    #[test]
    fn references_are_by_digest_and_name_their_registry() {
        let digest = format!("sha256:{}", "0f".repeat(32));
        let text = format!("registry.example:5000/team/circuits/output@{digest}");
        let reference: Reference = text.parse().unwrap();
        assert_eq!(
            (reference.host.as_str(), reference.name.as_str()),
            ("registry.example:5000", "team/circuits/output")
        );
        assert_eq!(reference.to_string(), text);
        check_refused("registry.example/output:latest", "a tag may be moved");
        check_refused(&format!("registry.example/output:latest@{digest}"), "or a tag");
        check_refused("registry.example/output@sha512:00", "its digest");
        check_refused(&format!("output@{digest}"), "does not name a registry");
        for name in ["", "/", "a//b", "../b", "a/../b", "a?b", "A", "a b", "a%2e"] {
            check_refused(&format!("registry.example/{name}@{digest}"), "its name");
        }
        check_refused(&format!("user@registry.example/a@{digest}"), "its digest");
        check_refused(&format!("a b/a@{digest}"), "no host name");
    }
}
