//! The HTTP interface, version 1. `openapi.json` describes it, and a test holds the two together.

mod body;
mod circuits;
mod extract;
mod jobs;
mod operate;
mod problem;

pub use problem::{ProblemCode, Refused};

use crate::access::{Denied, Door, Identity};
use crate::circuits::{HostedCircuit, RegistryError};
use crate::config::Role;
use crate::host::Host;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::sync::Arc;

/// The description of this interface.
pub const OPENAPI: &str = include_str!("openapi.json");

/// What every handler knows.
pub type Shared = State<Arc<Host>>;

/// The interface of a host.
pub fn router(host: Arc<Host>) -> Router {
    Router::new()
        .route("/", get(operate::dashboard))
        .route("/dashboard.css", get(operate::dashboard_style))
        .route("/dashboard.js", get(operate::dashboard_script))
        .route("/metrics", get(operate::metrics))
        .route("/openapi.json", get(operate::openapi))
        .route("/v1/health", get(operate::health))
        .route("/v1/ready", get(operate::ready))
        .route("/v1/version", get(operate::version))
        .route("/v1/overview", get(operate::overview))
        .route("/v1/blobs", post(circuits::upload))
        .route("/v1/pull", post(circuits::pull))
        .route("/v1/circuits", get(circuits::list).post(circuits::load))
        .route("/v1/circuits/{circuit}", get(circuits::inspect).delete(circuits::unload))
        .route("/v1/circuits/{circuit}/{action}", post(circuits::act))
        .route("/v1/jobs", get(jobs::list).post(jobs::submit))
        .route("/v1/jobs/{id}", get(jobs::status))
        .route("/v1/jobs/{id}/cancel", post(jobs::cancel))
        .route("/v1/jobs/{id}/events", get(jobs::events))
        .route("/v1/jobs/{id}/proof", get(jobs::proof))
        .route("/v1/jobs/{id}/trace", get(jobs::trace))
        .route("/v1/verify", post(jobs::verify))
        .fallback(async || Refused::new(StatusCode::NOT_FOUND, "no-route", "there is no such path; see /openapi.json"))
        .method_not_allowed_fallback(async || {
            let detail = "the path does not take this method; see /openapi.json";
            Refused::new(StatusCode::METHOD_NOT_ALLOWED, "no-method", detail)
        })
        .layer(from_fn_with_state(host.clone(), guard))
        .with_state(host)
}

/// Find out who asks, and count what is refused.
async fn guard(State(host): Shared, mut request: Request, next: Next) -> Response {
    let door = request.extensions().get::<Door>().copied().unwrap_or(Door::Tcp);
    let response = match identify(&host, door, &request) {
        Ok(Some(identity)) => {
            request.extensions_mut().insert(identity);
            next.run(request).await
        }
        Ok(None) => next.run(request).await,
        Err(denied) => Refused::from(denied).into_response(),
    };
    if let Some(ProblemCode(code)) = response.extensions().get() {
        host.metrics().refused(code);
    }
    response
}

/// Who asks; none for what anybody may have.
fn identify(host: &Host, door: Door, request: &Request) -> Result<Option<Identity>, Denied> {
    let open = matches!(
        request.uri().path(),
        "/" | "/dashboard.css" | "/dashboard.js" | "/openapi.json" | "/v1/health" | "/v1/ready"
    );
    if open && request.method() == Method::GET {
        return Ok(None);
    }
    let headers = request.headers();
    if door == Door::Tcp && host.access().is_open() {
        refuse_other_sites(headers)?;
    }
    let authorization = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
    host.access().identify(door, authorization).map(Some)
}

/// Without tokens, a page of another site must not reach the host through its reader's browser, neither directly nor by a
/// name that it lets point to this machine.
fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Denied> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_local = |authority: &str| {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        matches!(host, "localhost" | "[::1]") || host.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
    };
    match (text(header::HOST), text(header::ORIGIN)) {
        (host, _) if !host.is_some_and(is_local) => Err(Denied::Site("host")),
        (_, Some(origin)) if !origin.split_once("://").is_some_and(|(_, authority)| is_local(authority)) => {
            Err(Denied::Site("origin"))
        }
        _ => Ok(()),
    }
}

/// The circuit that somebody names. While circuits are being loaded, one that is not there yet is no mistake of theirs.
fn find_circuit(host: &Host, text: &str) -> Result<Arc<HostedCircuit>, Refused> {
    host.registry().find(text).map_err(|error| match error {
        RegistryError::Unknown(_) if !host.has_scanned() => {
            let detail =
                "circuits are being loaded since the host's start, and this one is not among them yet; try again";
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, "loading", detail)
        }
        error => error.into(),
    })
}

/// Whether they may operate.
fn operator(identity: &Identity) -> Result<(), Refused> {
    Ok(identity.require(Role::Operate)?)
}
