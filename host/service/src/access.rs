//! Who asks, and what they may do.

use crate::config::{Role, Token};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The owner of jobs that are submitted without a token.
pub const LOCAL_OWNER: &str = "local";

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Where a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The Unix socket, which the file system guards.
    Unix,
    /// The TCP address.
    Tcp,
}

/// Who asks.
#[derive(Clone)]
pub struct Identity {
    /// The owner of what they submit.
    pub owner: Arc<str>,
    /// What they may do.
    pub role: Role,
    /// Bytes of one input, if their token says so.
    pub input_bytes_max: Option<u64>,
    pace: Option<Arc<Pace>>,
}

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No token, or one that is not known.
    #[error(
        "a token is needed: send `Authorization: Bearer TOKEN` with one that this host's operator made (`zkhost token`)"
    )]
    Unknown,
    /// It is too old.
    #[error("the token has expired; ask this host's operator for another")]
    Expired,
    /// It allows less.
    #[error("this needs a token with the role `operate`")]
    Role,
    /// Too many jobs.
    #[error("the token's rate of jobs a minute is used up; submit again in a few seconds")]
    Rate,
    /// A browser was sent here by a page of somebody else.
    #[error(
        "the request comes from another site's page (header `{0}`); without tokens this host answers local programs only"
    )]
    Site(&'static str),
}

/// Knows the tokens.
pub struct Access {
    tokens: HashMap<[u8; 32], Known>,
}

struct Known {
    identity: Identity,
    expires_unix: Option<i64>,
}

/// A bucket of jobs that fills at a steady rate, up to a minute's worth.
struct Pace {
    per_minute: f64,
    level: Mutex<(f64, Instant)>,
}

impl Access {
    /// The tokens of a configuration that was checked.
    pub fn new(tokens: &[Token]) -> Self {
        let known = |token: &Token| {
            let digest: crate::Digest = token.blake3.parse().ok()?;
            let pace = token.jobs_per_minute.map(|rate| {
                let level = Mutex::new((f64::from(rate), Instant::now()));
                Arc::new(Pace { per_minute: rate.into(), level })
            });
            let owner = token.name.as_str().into();
            let identity = Identity { owner, role: token.role, input_bytes_max: token.input_bytes_max, pace };
            Some((digest.0, Known { identity, expires_unix: token.expires.as_ref().and_then(end_of_day) }))
        };
        Self { tokens: tokens.iter().filter_map(known).collect() }
    }

    /// Whether the TCP address is open to every local program.
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Who asks, by the door and the header `Authorization`.
    pub fn identify(&self, door: Door, authorization: Option<&str>) -> Result<Identity, Denied> {
        let token = authorization.and_then(|header| header.strip_prefix("Bearer "));
        match token {
            None if door == Door::Unix || self.is_open() => Ok(Identity::local()),
            None => Err(Denied::Unknown),
            Some(token) => {
                // Looking up a hash tells nothing of the token by its time.
                let known = self.tokens.get(blake3::hash(token.trim().as_bytes()).as_bytes()).ok_or(Denied::Unknown)?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
                match known.expires_unix {
                    Some(end) if now >= end => Err(Denied::Expired),
                    _ => Ok(known.identity.clone()),
                }
            }
        }
    }
}

impl Identity {
    /// Whoever can reach a door that asks for no token.
    pub fn local() -> Self {
        Self { owner: LOCAL_OWNER.into(), role: Role::Operate, input_bytes_max: None, pace: None }
    }

    /// Whether they may do what this role may.
    pub fn require(&self, role: Role) -> Result<(), Denied> {
        if self.role >= role { Ok(()) } else { Err(Denied::Role) }
    }

    /// Whether they may see what belongs to an owner.
    pub fn may_see(&self, owner: &str) -> bool {
        self.role == Role::Operate || *self.owner == *owner
    }

    /// Count a job against their rate.
    pub fn count_job(&self) -> Result<(), Denied> {
        let Some(pace) = &self.pace else { return Ok(()) };
        let mut level = pace.level.lock().unwrap_or_else(PoisonError::into_inner);
        let (jobs, at) = *level;
        let jobs = (jobs + at.elapsed().as_secs_f64() * pace.per_minute / 60.0).min(pace.per_minute);
        *level = (if jobs >= 1.0 { jobs - 1.0 } else { jobs }, Instant::now());
        if jobs >= 1.0 { Ok(()) } else { Err(Denied::Rate) }
    }
}

/// A new token and its hash.
pub fn new_token() -> Result<(String, String), getrandom::Error> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes)?;
    let token = format!("zkh_{}", hex::encode(bytes));
    let hash = blake3::hash(token.as_bytes()).to_string();
    Ok((token, hash))
}

/// The second at which a day is over, since 1970; none if the date has none.
fn end_of_day(date: &toml::value::Datetime) -> Option<i64> {
    let date = date.date?;
    // Days from the civil calendar, after Howard Hinnant: years begin in March, so that leap days come last.
    let (month, day) = (i64::from(date.month), i64::from(date.day));
    let year = i64::from(date.year) - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((days + 1) * 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(role: Role, expires: Option<&str>) -> (String, Access) {
        let (token, blake3) = new_token().unwrap();
        let expires = expires.map(|date| date.parse().unwrap());
        let entry = Token { name: "ci".into(), blake3, role, expires, jobs_per_minute: Some(3), input_bytes_max: None };
        (format!("Bearer {token}"), Access::new(&[entry]))
    }

    fn check(access: &Access, door: Door, header: Option<&str>, expected: Result<&str, Denied>) {
        let found = access.identify(door, header);
        assert_eq!(found.map(|identity| identity.owner.to_string()), expected.map(str::to_owned));
    }

    #[test]
    fn only_known_tokens_pass_and_the_unix_socket_needs_none() {
        let (header, access) = token(Role::Submit, None);
        check(&access, Door::Tcp, Some(&header), Ok("ci"));
        check(&access, Door::Tcp, None, Err(Denied::Unknown));
        check(&access, Door::Unix, None, Ok(LOCAL_OWNER));
        check(&access, Door::Unix, Some("Bearer zkh_00"), Err(Denied::Unknown));
        check(&access, Door::Tcp, Some(&header[..header.len() - 1]), Err(Denied::Unknown));
        check(&Access::new(&[]), Door::Tcp, None, Ok(LOCAL_OWNER));
    }

    #[test]
    fn a_token_is_good_until_the_end_of_its_last_day() {
        let (header, access) = token(Role::Submit, Some("2020-02-29"));
        check(&access, Door::Tcp, Some(&header), Err(Denied::Expired));
        let (header, access) = token(Role::Submit, Some("9999-12-31"));
        check(&access, Door::Tcp, Some(&header), Ok("ci"));
        for (date, end) in [("1970-01-01", 86_400), ("2000-02-29", 951_868_800), ("2026-11-29", 1_795_996_800)] {
            assert_eq!(end_of_day(&date.parse().unwrap()), Some(end), "{date}");
        }
    }

    #[test]
    fn a_submitter_may_not_operate_and_is_paced() {
        let (header, access) = token(Role::Submit, None);
        let identity = access.identify(Door::Tcp, Some(&header)).unwrap();
        assert_eq!(identity.require(Role::Operate), Err(Denied::Role));
        assert!(identity.may_see("ci") && !identity.may_see("other"));
        let taken = (0..5).filter(|_| identity.count_job().is_ok()).count();
        assert_eq!(taken, 3);
    }
}
