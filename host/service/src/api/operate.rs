//! For operators: health, versions, metrics, the dashboard.

use super::problem::Refused;
use super::{OPENAPI, Shared, operator};
use crate::access::Identity;
use crate::host::{Host, now_ms};
use crate::store::Filter;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use zkhost_client::types::{Health, JobState, Version};
use zkhost_engine::budget::Usage;
use zkhost_engine::device::Device;
use zkhost_engine::engine::Stopped;
use zkhost_engine::ids::{DeviceId, SlotId};
use zkhost_engine::timeline::{Span, Track};

/// Spans of the engine that the dashboard shows at most.
const SPANS_SHOWN_MAX: usize = 600;

/// Jobs that it shows at most.
const JOBS_SHOWN_MAX: u32 = 30;

/// Failed jobs that it shows at most.
const FAILURES_SHOWN_MAX: u32 = 10;

/// `GET /`: a page that shows `/v1/overview`.
pub async fn dashboard() -> Response {
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'; \
                  base-uri 'none'; form-action 'none'";
    let headers = [(header::CONTENT_SECURITY_POLICY, policy), (header::REFERRER_POLICY, "no-referrer")];
    (headers, part("text/html; charset=utf-8", include_str!("dashboard/page.html"))).into_response()
}

/// `GET /dashboard.css`
pub async fn dashboard_style() -> Response {
    part("text/css; charset=utf-8", include_str!("dashboard/style.css"))
}

/// `GET /dashboard.js`
pub async fn dashboard_script() -> Response {
    part("text/javascript; charset=utf-8", include_str!("dashboard/script.js"))
}

/// A part of the dashboard. Asked for anew each time, for another version of the host has other parts.
fn part(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
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
    let panicked =
        |_| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "host-panicked", "a thread of the host panicked");
    let gathered = tokio::task::spawn_blocking(move || gather(&host)).await;
    Ok(Json(gathered.map_err(panicked)??))
}

fn gather(host: &Host) -> Result<Value, Refused> {
    let newest = |state, limit| host.jobs(&Filter { state, limit, ..Filter::default() });
    let mut jobs = newest(None, JOBS_SHOWN_MAX)?.0;
    for job in jobs.iter_mut().filter(|job| !job.state.has_ended()) {
        // With its partitions, or with what it waits for.
        *job = host.job(&job.id)?.unwrap_or_else(|| job.clone());
    }
    let engine = host.engine();
    let stopped = |stopped: Stopped| Refused::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", stopped.to_string());
    let (usage, counters) = engine.usage().map_err(stopped)?;
    let spans = engine.newest(SPANS_SHOWN_MAX).map_err(stopped)?;
    let span = |span: &Span| {
        json!({
            "track": span.track.to_string(),
            "kind": span.category.name(),
            "name": span.name,
            "start": span.start.0,
            "end": span.end.0,
        })
    };
    Ok(json!({
        "now_ms": now_ms(),
        "engine_ns": engine.now().0,
        "health": host.health(),
        "version": host.version(),
        "circuits": host.registry().list(),
        "jobs": jobs,
        "failures": newest(Some(JobState::Failed), FAILURES_SHOWN_MAX)?.0,
        "spans": spans.iter().map(span).collect::<Vec<_>>(),
        "tracks": slots(engine.devices()),
        "budget": budget(host, &usage),
        "counters": {
            "retries": counters.retries,
            "faulty_proofs": counters.faulty_proofs,
            "device_losses": counters.device_losses,
        },
    }))
}

/// What spans of each slot are called, of all devices.
fn slots(devices: &[Arc<dyn Device>]) -> Vec<String> {
    let of_device = |(device, slots): (u16, u16)| {
        (0..slots).map(move |index| Track::Slot(SlotId { device: DeviceId(device), index }).to_string())
    };
    (0..).zip(devices.iter().map(|device| device.spec().slots)).flat_map(of_device).collect()
}

/// The three currencies: memory of guests, page-locked memory, memory of each device.
fn budget(host: &Host, usage: &Usage) -> Vec<Value> {
    let engine = &host.config().engine;
    let line = |name: String, used: u64, limit: u64| json!({ "name": name, "used": used, "limit": limit });
    let mut lines = vec![
        line("memory of guests".into(), usage.host_bytes, engine.guest_bytes_max),
        line("arena of assignments".into(), usage.pinned_bytes, engine.arena_bytes),
    ];
    for (index, (device, used)) in host.engine().devices().iter().zip(&usage.device_bytes).enumerate() {
        let name = format!("keys on device {index}: {}", device.describe());
        lines.push(line(name, *used, device.memory().capacity_bytes));
    }
    lines
}
