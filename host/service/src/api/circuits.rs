//! Circuits: upload, load, list, inspect, pin, preload, evict, unload.

use super::extract::Named;
use super::problem::Refused;
use super::{Shared, body, find_circuit, operator};
use crate::access::Identity;
use crate::circuits::RegistryError;
use crate::host::Host;
use crate::oci;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::Json;
use std::sync::Arc;
use std::time::Duration;
use zkhost_client::types::{Blob, Circuit, CircuitList, PullRequest};

/// `POST /v1/blobs`: a file, streamed to disk.
pub async fn upload(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    mut body: Body,
) -> Result<(StatusCode, Json<Blob>), Refused> {
    operator(&identity)?;
    let idle = Duration::from_secs(host.config().listen.body_idle_seconds);
    let mut writer = host.registry().blobs().writer()?;
    while let Some(piece) = body::piece(&mut body, idle).await? {
        writer = writer.append(piece).await?;
    }
    let (digest, bytes) = writer.complete().await?;
    Ok((StatusCode::CREATED, Json(Blob { digest: digest.to_string(), bytes })))
}

/// `GET /v1/circuits`
pub async fn list(State(host): Shared) -> Json<CircuitList> {
    Json(host.registry().list())
}

/// `POST /v1/circuits`: a manifest in TOML, whose files were uploaded.
pub async fn load(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    body: Body,
) -> Result<(StatusCode, Json<Circuit>), Refused> {
    operator(&identity)?;
    let manifest = body::text(&host, body).await?;
    loaded(host, manifest).await
}

/// `POST /v1/pull`: a circuit from an OCI registry.
pub async fn pull(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    body: Body,
) -> Result<(StatusCode, Json<Circuit>), Refused> {
    operator(&identity)?;
    let text = body::text(&host, body).await?;
    let question: PullRequest =
        serde_json::from_str(&text).map_err(|error| Refused::bad_request(format!("the request's body: {error}")))?;
    let reference = question.reference.parse()?;
    // On its own, so that what came is loaded or removed also if whoever asked is gone.
    tokio::spawn(pulled(host, reference)).await.map_err(|_| broken())?
}

async fn pulled(host: Arc<Host>, reference: oci::Reference) -> Result<(StatusCode, Json<Circuit>), Refused> {
    let settings = &host.config().circuits;
    let idle = Duration::from_secs(settings.pull_idle_seconds);
    let mut stored = vec![];
    let manifest = oci::pull(&reference, &settings.registries, idle, host.registry().blobs(), &mut stored).await;
    let circuit = match manifest {
        Ok(manifest) => {
            tracing::info!(%reference, "pulled");
            loaded(host.clone(), manifest.to_text()).await
        }
        Err(error) => Err(error.into()),
    };
    if circuit.is_err() {
        // What came with it would take the next one's room.
        tokio::task::spawn_blocking(move || host.registry().remove_files(&stored)).await.map_err(|_| broken())?;
    }
    circuit
}

/// Load a manifest whose files are there.
async fn loaded(host: Arc<Host>, manifest: String) -> Result<(StatusCode, Json<Circuit>), Refused> {
    let loading = host.clone();
    let loaded = tokio::task::spawn_blocking(move || loading.registry().upload(&manifest)).await;
    let circuit = loaded.map_err(|_| broken())??;
    host.circuit_loaded();
    Ok((StatusCode::CREATED, Json(host.registry().describe(&circuit))))
}

/// `GET /v1/circuits/{circuit}`
pub async fn inspect(State(host): Shared, Named(circuit): Named<String>) -> Result<Json<Circuit>, Refused> {
    let circuit = find_circuit(&host, &circuit)?;
    Ok(Json(host.registry().describe(&circuit)))
}

/// `DELETE /v1/circuits/{circuit}`
pub async fn unload(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Named(circuit): Named<String>,
) -> Result<StatusCode, Refused> {
    operator(&identity)?;
    let circuit = find_circuit(&host, &circuit)?;
    let unload = move || -> Result<(), RegistryError> {
        let mut bundle = host.registry().all();
        bundle.retain(|other| other.bundle() == circuit.bundle());
        host.registry().unload(&circuit)?;
        // Devices would keep its keys until a job needs the room.
        bundle.iter().for_each(|circuit| host.evict(circuit));
        Ok(())
    };
    tokio::task::spawn_blocking(unload).await.map_err(|_| broken())??;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /v1/circuits/{circuit}/{action}`
pub async fn act(
    State(host): Shared,
    Extension(identity): Extension<Identity>,
    Named((circuit, action)): Named<(String, String)>,
) -> Result<Json<Circuit>, Refused> {
    operator(&identity)?;
    let circuit = find_circuit(&host, &circuit)?;
    match action.as_str() {
        "pin" => host.registry().pin(&circuit)?,
        "evict" => {
            let (evicting, circuit) = (host.clone(), circuit.clone());
            tokio::task::spawn_blocking(move || evicting.evict(&circuit)).await.map_err(|_| broken())?;
        }
        "preload" => {
            let (preloading, loading) = (host.clone(), circuit.clone());
            let loaded = tokio::task::spawn_blocking(move || preloading.preload(&loading)).await;
            loaded.map_err(|_| broken())??;
        }
        _ => {
            let detail = "a circuit can be told to `pin`, `preload` and `evict`";
            return Err(Refused::new(StatusCode::NOT_FOUND, "no-route", detail));
        }
    }
    Ok(Json(host.registry().describe(&circuit)))
}

/// A thread of the host panicked.
fn broken() -> Refused {
    let detail = "a thread of the host panicked, which is a bug; nothing else is affected";
    Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "host-panicked", detail)
}
