//! Errors as RFC 9457 has them, with stable codes.

use crate::access::Denied;
use crate::circuits::{BlobError, RegistryError};
use crate::host::{ReceiveError, SubmitError};
use crate::oci::PullError;
use crate::store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use zkhost_client::types::Problem;

/// A refusal on its way out.
#[derive(Debug)]
pub struct Refused {
    /// What programs look at.
    pub code: &'static str,
    status: StatusCode,
    detail: String,
}

/// The code of an answer that is a problem, for whoever counts them.
#[derive(Clone, Copy)]
pub struct ProblemCode(pub &'static str);

impl Refused {
    /// A refusal with its sentence.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, status, detail: detail.into() }
    }

    /// What was asked is malformed.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    /// There is no such job, or it is somebody else's.
    pub fn no_job(id: &str) -> Self {
        let id: String = id.chars().take(80).collect();
        let detail = format!("no job `{}`; it may have been forgotten (setting `jobs.keep_hours`)", id.escape_debug());
        Self::new(StatusCode::NOT_FOUND, "no-job", detail)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let problem = Problem {
            code: self.code.to_owned(),
            status: self.status.as_u16(),
            title: self.status.canonical_reason().unwrap_or_default().to_owned(),
            detail: self.detail,
        };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(ProblemCode(self.code));
        response
    }
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        let (status, code) = match denied {
            Denied::Unknown => (StatusCode::UNAUTHORIZED, "no-token"),
            Denied::Expired => (StatusCode::UNAUTHORIZED, "token-expired"),
            Denied::Role => (StatusCode::FORBIDDEN, "role"),
            Denied::Rate => (StatusCode::TOO_MANY_REQUESTS, "rate"),
            Denied::Site(_) => (StatusCode::FORBIDDEN, "other-site"),
        };
        Self::new(status, code, denied.to_string())
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        let (status, code) = match error {
            StoreError::Full => (StatusCode::INSUFFICIENT_STORAGE, "disk-full"),
            StoreError::InputsFull(_) => (StatusCode::INSUFFICIENT_STORAGE, "inputs-full"),
            StoreError::Stopped => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "store-failed"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<ReceiveError> for Refused {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::NoRoom => Self::new(StatusCode::SERVICE_UNAVAILABLE, "no-memory", error.to_string()),
            ReceiveError::Store(error) => error.into(),
        }
    }
}

impl From<SubmitError> for Refused {
    fn from(error: SubmitError) -> Self {
        let (status, code) = match error {
            SubmitError::Draining => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
            SubmitError::Busy { .. } => (StatusCode::TOO_MANY_REQUESTS, "queue-full"),
            SubmitError::Key(_) => (StatusCode::BAD_REQUEST, "bad-key"),
            SubmitError::Publics(_) => (StatusCode::BAD_REQUEST, "bad-publics"),
            SubmitError::OtherBody(_) => (StatusCode::CONFLICT, "other-body"),
            SubmitError::Store(error) => return error.into(),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<RegistryError> for Refused {
    fn from(error: RegistryError) -> Self {
        let (status, code) = match error {
            RegistryError::Unknown(_) => (StatusCode::NOT_FOUND, "no-circuit"),
            RegistryError::Ambiguous { .. } => (StatusCode::CONFLICT, "ambiguous-circuit"),
            RegistryError::Refused(_) => (StatusCode::UNPROCESSABLE_ENTITY, "circuit-refused"),
            RegistryError::Full { .. } => (StatusCode::CONFLICT, "circuits-full"),
            RegistryError::Watched(_) => (StatusCode::CONFLICT, "circuit-watched"),
            RegistryError::Io(_) => (StatusCode::INTERNAL_SERVER_ERROR, "registry-failed"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<PullError> for Refused {
    fn from(error: PullError) -> Self {
        let (status, code) = match error {
            PullError::Reference { .. } => (StatusCode::BAD_REQUEST, "bad-reference"),
            PullError::NotAllowed { .. } => (StatusCode::FORBIDDEN, "registry-not-allowed"),
            PullError::Remote { .. } => (StatusCode::BAD_GATEWAY, "pull-failed"),
            PullError::Content { .. } => (StatusCode::BAD_GATEWAY, "pull-content"),
            PullError::Artifact { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "circuit-refused"),
            PullError::Blob(error) => return error.into(),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<BlobError> for Refused {
    fn from(error: BlobError) -> Self {
        let (status, code) = match &error {
            BlobError::Full { .. } => (StatusCode::INSUFFICIENT_STORAGE, "uploads-full"),
            BlobError::Io { cause, .. } if cause.kind() == std::io::ErrorKind::StorageFull => {
                (StatusCode::INSUFFICIENT_STORAGE, "disk-full")
            }
            BlobError::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "host-panicked"),
            BlobError::Io { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "upload-failed"),
        };
        Self::new(status, code, error.to_string())
    }
}
