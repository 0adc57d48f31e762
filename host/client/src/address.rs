//! Where a host listens.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a host listens, as a user writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `unix:/run/zkhost/zkhost.sock`
    Unix(PathBuf),
    /// `http://127.0.0.1:7878`: a name or address and a port.
    Http(String),
    /// `https://prover.example.org:7878`: the same, by TLS.
    Https(String),
}

/// What was given is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of a host; expected unix:/PATH, http://HOST:PORT or https://HOST:PORT")]
pub struct BadAddress(String);

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:").filter(|path| path.starts_with('/')) {
            return Ok(Self::Unix(path.into()));
        }
        let (tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), None) => (false, rest),
            (None, Some(rest)) => (true, rest),
            _ => return Err(bad()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(bad)?;
        let plain = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
        if !plain || port.parse::<u16>().is_err() {
            return Err(bad());
        }
        Ok(if tls { Self::Https(rest.to_owned()) } else { Self::Http(rest.to_owned()) })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Http(authority) => write!(f, "http://{authority}"),
            Self::Https(authority) => write!(f, "https://{authority}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_are_read_and_written_alike_and_others_are_refused() {
        for text in ["unix:/run/zkhost.sock", "http://127.0.0.1:7878", "http://[::1]:1", "https://a.example:443"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "unix:relative", "http://host", "http://host:99999", "ftp://h:1", "http://u@h:1", "http://:1"]
        {
            assert!(text.parse::<Address>().unwrap_err().to_string().contains("expected unix:/PATH"), "{text}");
        }
    }
}
