//! Jobs: submit, watch, list, cancel, take the proof.

use super::body;
use super::extract::{Asked, Named};
use super::problem::Refused;
use super::{Host, Shared, find_circuit};
use crate::access::Identity;
use crate::host::Submit;
use crate::store::Filter;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use zkhost_client::types::{Job, JobList, JobPriority, VerifyRequest};

/// Seconds that a request waits for a job's end at most.
const WAIT_SECONDS_MAX: u64 = 60;

/// Jobs of a page at most.
const PAGE_MAX: u32 = 1000;

/// How often a stream of events looks at the partitions.
const EVENT_PERIOD: Duration = Duration::from_millis(250);

/// The query of a submission.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmitQuery {
    circuit: String,
    priority: Option<String>,
    deadline_ms: Option<u64>,
    wait: Option<u64>,
}

/// `POST /v1/jobs`
pub async fn submit(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Asked(query): Asked<SubmitQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let priority =
        query.priority.as_deref().unwrap_or("normal").parse::<JobPriority>().map_err(Refused::bad_request)?;
    let circuit = find_circuit(&host, &query.circuit)?;
    let text = |name: &str| match headers.get(name).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(Refused::bad_request(format!("the header {name} has characters beyond ASCII"))),
    };
    let bad = |name: &str, error: serde_json::Error| Refused::bad_request(format!("the header {name}: {error}"));
    let metadata = text("zkhost-metadata")?.map(serde_json::from_str::<serde_json::Value>).transpose();
    let metadata = metadata.map_err(|error| bad("zkhost-metadata", error))?.map(|value| value.to_string());
    let publics = text("zkhost-publics")?.map(serde_json::from_str::<Vec<Vec<String>>>).transpose();
    let publics = publics.map_err(|error| bad("zkhost-publics", error))?;
    identity.count_job()?;
    let input = host.receive(&identity, text("idempotency-key")?)?;
    let own_max = identity.input_bytes_max.unwrap_or(u64::MAX);
    let bytes_max = host.config().jobs.input_bytes_max.min(circuit.limits().input_bytes).min(own_max);
    let input = body::input(&host, body, bytes_max, input).await?;
    let deadline = query.deadline_ms.map(Duration::from_millis);
    let submit = Submit { identity, circuit, priority, deadline, metadata, publics, input };
    let id = host.submit(submit).await?;
    wait(&host, &id, query.wait).await;
    let job = host.job(&id)?.ok_or_else(|| Refused::no_job(&id))?;
    let status = if job.state.has_ended() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, [(header::LOCATION, format!("/v1/jobs/{id}"))], Json(job)).into_response())
}

/// The query of a job.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusQuery {
    wait: Option<u64>,
}

/// `GET /v1/jobs/{id}`
pub async fn status(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Named(id): Named<String>,
    Asked(query): Asked<StatusQuery>,
) -> Result<Json<Job>, Refused> {
    own_job(&host, &identity, &id)?;
    wait(&host, &id, query.wait).await;
    own_job(&host, &identity, &id).map(Json)
}

/// `POST /v1/jobs/{id}/cancel`
pub async fn cancel(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Named(id): Named<String>,
) -> Result<Json<Job>, Refused> {
    own_job(&host, &identity, &id)?;
    host.cancel(&id).await?;
    own_job(&host, &identity, &id).map(Json)
}

/// `GET /v1/jobs/{id}/events`: the job whenever it changes, until it ends.
pub async fn events(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Named(id): Named<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refused> {
    let first = own_job(&host, &identity, &id)?;
    let next = move |told: Option<Job>| {
        let (host, id, first) = (host.clone(), id.clone(), first.clone());
        async move {
            let job = match told {
                None => first,
                Some(told) if told.state.has_ended() => return None,
                Some(told) => change(&host, &id, &told).await?,
            };
            let event = Event::default().event(job.state.name()).json_data(&job).ok()?;
            Some((Ok(event), Some(job)))
        }
    };
    Ok(Sse::new(stream::unfold(None, next)).keep_alive(KeepAlive::default()))
}

/// One trace is made at a time: that of a large job is tens of megabytes.
static TRACING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// `GET /v1/jobs/{id}/trace`: what the engine did for the job and when, for Perfetto.
pub async fn trace(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Named(id): Named<String>,
) -> Result<Response, Refused> {
    own_job(&host, &identity, &id)?;
    let one = TRACING.lock().await;
    let traced = tokio::task::spawn_blocking(move || {
        // Until it is made, even if whoever asked is gone.
        let _one = one;
        host.trace(&id)
    });
    let traced = traced.await;
    let Ok(Some(trace)) = traced else {
        let detail = "there is no trace of the job: it has not begun, ended before this start of the host, or so long ago that \
                      the engine forgot when";
        return Err(Refused::new(StatusCode::NOT_FOUND, "no-trace", detail));
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], trace).into_response())
}

/// The form of a proof.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofQuery {
    format: Option<String>,
}

/// `GET /v1/jobs/{id}/proof`
pub async fn proof(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Named(id): Named<String>,
    Asked(query): Asked<ProofQuery>,
) -> Result<Response, Refused> {
    let job = own_job(&host, &identity, &id)?;
    let Some((result, bytes)) = host.result(&id)? else {
        let detail = match &job.failure {
            Some(failure) => format!("the job failed: {}", failure.message),
            None => format!("the job is {} and has no proof", job.state),
        };
        return Err(Refused::new(StatusCode::CONFLICT, "no-proof", detail));
    };
    let of_type = |kind: &'static str, body: Vec<u8>| Ok(([(header::CONTENT_TYPE, kind)], body).into_response());
    match query.format.as_deref() {
        None | Some("json") => Ok(Json(result).into_response()),
        Some("hex") => of_type("text/plain; charset=utf-8", result.proof.into_bytes()),
        Some("bytes") => of_type("application/octet-stream", bytes),
        Some(other) => {
            let other: String = other.chars().take(20).collect();
            Err(Refused::bad_request(format!("format `{}`: there are json, hex and bytes", other.escape_debug())))
        }
    }
}

/// The query of a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    state: Option<String>,
    circuit: Option<String>,
    owner: Option<String>,
    before: Option<u64>,
    limit: Option<u32>,
}

/// `GET /v1/jobs`
pub async fn list(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<JobList>, Refused> {
    let circuit =
        query.circuit.map(|text| text.parse().or_else(|_| find_circuit(&host, &text).map(|circuit| circuit.digest())));
    let owner = if identity.may_see("") { query.owner } else { Some(identity.owner.to_string()) };
    let filter = Filter {
        owner,
        state: query.state.map(|text| text.parse()).transpose().map_err(Refused::bad_request)?,
        circuit: circuit.transpose()?,
        before_seq: query.before,
        limit: query.limit.unwrap_or(100).clamp(1, PAGE_MAX),
    };
    let listed = tokio::task::spawn_blocking(move || host.jobs(&filter)).await;
    let (jobs, next_before) = listed.unwrap_or(Err(crate::store::StoreError::Stopped))?;
    Ok(Json(JobList { jobs, next_before }))
}

/// `POST /v1/verify`
pub async fn verify(State(host): Shared, body: Body) -> Result<Response, Refused> {
    let text = body::text(&host, body).await?;
    let question: VerifyRequest =
        serde_json::from_str(&text).map_err(|error| Refused::bad_request(format!("the request's body: {error}")))?;
    let circuit = find_circuit(&host, &question.circuit)?;
    let answered = tokio::task::spawn_blocking(move || host.verify(&circuit, &question.proof, &question.publics)).await;
    let answer = answered.unwrap_or_else(|_| Err("the verifier panicked, which is a bug".into()));
    Ok(Json(answer.map_err(Refused::bad_request)?).into_response())
}

/// The job once it is another than was told; none if it is forgotten.
async fn change(host: &Host, id: &str, told: &Job) -> Option<Job> {
    loop {
        host.wait(id, EVENT_PERIOD).await;
        let job = host.job(id).ok()??;
        if job != *told {
            return Some(job);
        }
    }
}

/// A job that they may see.
fn own_job(host: &Host, identity: &Identity, id: &str) -> Result<Job, Refused> {
    let job = host.job(id)?.filter(|job| identity.may_see(&job.owner));
    job.ok_or_else(|| Refused::no_job(id))
}

async fn wait(host: &Arc<Host>, id: &str, seconds: Option<u64>) {
    if let Some(seconds) = seconds {
        host.wait(id, Duration::from_secs(seconds.min(WAIT_SECONDS_MAX))).await;
    }
}
