//! For operators: health, versions, metrics, the dashboard.

use super::problem::Refused;
use super::{OPENAPI, Shared, operator};
use crate::access::Identity;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Json, Response};
use serde_json::{Value, json};
use zkhost_client::types::{Health, Version};
use zkhost_engine::timeline::Span;

/// Spans of the engine that the dashboard shows at most.
const SPANS_SHOWN_MAX: usize = 400;

/// `GET /`: a page that shows `/v1/overview`.
pub async fn dashboard() -> Response {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                  frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    let headers = [(header::CONTENT_SECURITY_POLICY, policy), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, Html(include_str!("dashboard.html"))).into_response()
}

/// `GET /openapi.json`
pub async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// `GET /v1/health`: whether the process answers.
pub async fn health(State(host): Shared) -> Json<Health> {
    Json(host.health())
}

/// `GET /v1/ready`: whether it takes jobs.
pub async fn ready(State(host): Shared) -> Response {
    let health = host.health();
    let status = if health.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

/// `GET /v1/version`
pub async fn version(State(host): Shared) -> Json<Version> {
    Json(host.version().clone())
}

/// `GET /metrics`
pub async fn metrics(State(host): Shared, Extension(identity): Extension<Identity>) -> Result<Response, Refused> {
    operator(&identity)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = host.metrics().text(&host);
    let text = text.map_err(|_| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "metrics-failed", "no metrics"))?;
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// `GET /v1/overview`: what the dashboard shows.
pub async fn overview(State(host): Shared, Extension(identity): Extension<Identity>) -> Result<Json<Value>, Refused> {
    operator(&identity)?;
    let gathered = tokio::task::spawn_blocking(move || {
        let filter = crate::store::Filter { limit: 50, ..Default::default() };
        let jobs = host.jobs(&filter)?.0;
        let usage = host.engine().usage().ok();
        let timeline = host.engine().timeline().ok();
        let spans: Vec<&Span> = timeline.iter().flat_map(|timeline| timeline.spans()).collect();
        let newest = &spans[spans.len().saturating_sub(SPANS_SHOWN_MAX)..];
        let span = |span: &&Span| json!({ "track": span.track.to_string(), "kind": span.category.name(), "start": span.start.0, "end": span.end.0 });
        let engine = &host.config().engine;
        Ok::<_, Refused>(json!({
            "health": host.health(),
            "version": host.version(),
            "circuits": host.registry().list(),
            "jobs": jobs,
            "spans": newest.iter().map(span).collect::<Vec<_>>(),
            "budget": usage.map(|(usage, counters)| json!({
                "guests": [usage.host_bytes, engine.guest_bytes_max],
                "pinned": [usage.pinned_bytes, engine.arena_bytes],
                "devices": usage.device_bytes,
                "retries": counters.retries,
                "faulty_proofs": counters.faulty_proofs,
                "device_losses": counters.device_losses,
            })),
        }))
    });
    let panicked =
        |_| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "host-panicked", "a thread of the host panicked");
    Ok(Json(gathered.await.map_err(panicked)??))
}
