//! Reading bodies: bounded in bytes, and in how long they may pause.

use super::problem::Refused;
use crate::host::{Host, Received, Receiving};
use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use std::time::Duration;

/// Bytes of a body in JSON or TOML at most.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// The next piece of a body; none at its end.
pub async fn piece(body: &mut Body, idle: Duration) -> Result<Option<Bytes>, Refused> {
    loop {
        let frame = tokio::time::timeout(idle, body.frame()).await.map_err(|_| {
            let detail = format!("the request's body paused for more than {} s", idle.as_secs());
            Refused::new(StatusCode::REQUEST_TIMEOUT, "body-slow", detail)
        })?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(Refused::bad_request(format!("the request's body broke off: {error}"))),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// A whole input, hashed and, where it is to be at rest, sealed while it comes.
pub async fn input(host: &Host, mut body: Body, bytes_max: u64, mut input: Receiving) -> Result<Received, Refused> {
    let idle = Duration::from_secs(host.config().listen.body_idle_seconds);
    // One that is announced to be too long is not waited for.
    check_length(body.size_hint().lower(), bytes_max, "jobs.input_bytes_max")?;
    while let Some(piece) = piece(&mut body, idle).await? {
        check_length(input.bytes() + piece.len() as u64, bytes_max, "jobs.input_bytes_max")?;
        input = input.extend(piece).await?;
    }
    Ok(input.finish().await?)
}

/// A whole text.
pub async fn text(host: &Host, mut body: Body) -> Result<String, Refused> {
    let idle = Duration::from_secs(host.config().listen.body_idle_seconds);
    let mut bytes = Vec::new();
    while let Some(piece) = piece(&mut body, idle).await? {
        check_length((bytes.len() + piece.len()) as u64, TEXT_BYTES_MAX, "none")?;
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).map_err(|_| Refused::bad_request("the request's body is no UTF-8 text"))
}

fn check_length(bytes: u64, bytes_max: u64, setting: &str) -> Result<(), Refused> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let detail = format!("the request's body is longer than {bytes_max} bytes (setting: {setting}, or the token's)");
    Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail))
}
