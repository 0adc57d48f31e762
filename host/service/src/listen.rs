//! Listening: sockets, TLS, and how long a client may take.

use crate::access::Door;
use crate::config::{Listen, Tls};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// Bytes of a request's head at most.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long to wait after the system refused a connection, such as for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves connections, as many as are allowed, until told to stop.
#[derive(Clone)]
pub(crate) struct Doorkeeper {
    router: Router,
    places: Arc<Semaphore>,
    places_max: u32,
    head_time: Duration,
    stop: watch::Receiver<bool>,
}

impl Doorkeeper {
    pub fn new(router: Router, listen: &Listen, stop: watch::Receiver<bool>) -> Self {
        let places_max = u32::try_from(listen.connections_max).unwrap_or(u32::MAX);
        let places = Arc::new(Semaphore::new(places_max as usize));
        Self { router, places, places_max, head_time: Duration::from_secs(listen.header_seconds), stop }
    }

    /// Serve a Unix socket.
    pub async fn serve_unix(self, listener: UnixListener) {
        while let Some(place) = self.place().await {
            match self.accept(listener.accept()).await {
                Some(Ok((stream, _))) => drop(tokio::spawn(self.clone().serve(stream, Door::Unix, place))),
                Some(Err(_)) => tokio::time::sleep(ACCEPT_PAUSE).await,
                None => return,
            }
        }
    }

    /// Serve a TCP address.
    pub async fn serve_tcp(self, listener: TcpListener, tls: Option<TlsAcceptor>) {
        while let Some(place) = self.place().await {
            let stream = match self.accept(listener.accept()).await {
                Some(Ok((stream, _))) => stream,
                Some(Err(_)) => {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
                None => return,
            };
            // Answers are small: none waits for another one to fill a packet with.
            let _ = stream.set_nodelay(true);
            let (keeper, tls) = (self.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => keeper.serve(stream, Door::Tcp, place).await,
                    Some(tls) => match tokio::time::timeout(keeper.head_time, tls.accept(stream)).await {
                        Ok(Ok(stream)) => keeper.serve(stream, Door::Tcp, place).await,
                        _ => tracing::debug!("a TLS handshake failed or was too slow"),
                    },
                }
            });
        }
    }

    /// Wait until no connection is left, after it was told to stop.
    pub async fn empty(&self) {
        let _ = self.places.acquire_many(self.places_max).await;
    }

    /// A place for one more connection; none once it is to stop.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.accept(self.places.clone().acquire_owned()).await?.ok()
    }

    /// Wait until it is to stop, which it is if nobody is left to say so.
    async fn stopped(&self) {
        let _ = self.stop.clone().wait_for(|stop| *stop).await;
    }

    /// Wait for something, or to be stopped.
    async fn accept<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.stopped() => None,
        }
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        door: Door,
        _place: OwnedSemaphorePermit,
    ) {
        let service = self.router.clone().map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(door);
            request
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.head_time).max_buf_size(HEAD_BYTES_MAX);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)));
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = self.stopped() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    }
}

/// Bind a Unix socket that its user and group may open, in place of one that nobody listens on any more.
pub(crate) async fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    if is_socket && UnixStream::connect(path).await.is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

/// The certificate and key of a TCP address.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, String> {
    let at = |path: &Path, error: &dyn std::fmt::Display| format!("TLS: {}: {error}", path.display());
    let chain = CertificateDer::pem_file_iter(&tls.certificate).and_then(|chain| chain.collect::<Result<Vec<_>, _>>());
    let chain = chain.map_err(|error| at(&tls.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| at(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?.with_no_client_auth().with_single_cert(chain, key);
    Ok(TlsAcceptor::from(Arc::new(config.map_err(|error| at(&tls.certificate, &error))?)))
}
