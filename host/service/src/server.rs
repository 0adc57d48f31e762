//! A host with its listeners, from start to stop.

use crate::api;
use crate::host::{Host, HostParts, StartError};
use crate::listen::{Doorkeeper, acceptor, bind_unix};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long connections may take to end after the host did.
const GOODBYE: Duration = Duration::from_secs(5);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The host does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An address cannot be used.
    #[error("cannot listen on {place}: {cause}")]
    Listen {
        /// Which.
        place: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Certificate or key.
    #[error("{0}")]
    Tls(String),
    /// There is no address.
    #[error("there is nothing to listen on: give listen.unix or listen.tcp")]
    NoAddress,
}

/// A host that listens.
pub struct Server {
    host: Arc<Host>,
    unix: Option<PathBuf>,
    tcp: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    keeper: Doorkeeper,
    doors: Vec<JoinHandle<()>>,
}

impl Server {
    /// Start a host and listen.
    pub async fn start(parts: HostParts) -> Result<Self, ServerError> {
        let listen = parts.config.listen.clone();
        let unix = parts.config.unix_socket();
        if unix.is_none() && listen.tcp.is_none() {
            return Err(ServerError::NoAddress);
        }
        let tls = listen.tls.as_ref().map(acceptor).transpose().map_err(ServerError::Tls)?;
        let failed = |place: String, cause| ServerError::Listen { place, cause };
        let started = tokio::task::spawn_blocking(move || Host::start(parts)).await;
        let host = started.unwrap_or_else(|_| Err(StartError::Config("the host panicked while it started".into())))?;
        let (stop, stopped) = watch::channel(false);
        let keeper = Doorkeeper::new(api::router(host.clone()), &listen, stopped);
        let mut doors = vec![];
        if let Some(path) = &unix {
            let listener = bind_unix(path).await.map_err(|cause| failed(format!("unix:{}", path.display()), cause))?;
            doors.push(tokio::spawn(keeper.clone().serve_unix(listener)));
        }
        let mut tcp = None;
        if let Some(address) = listen.tcp {
            let listener = TcpListener::bind(address).await.map_err(|cause| failed(address.to_string(), cause))?;
            tcp = listener.local_addr().ok();
            doors.push(tokio::spawn(keeper.clone().serve_tcp(listener, tls)));
        }
        Ok(Self { host, unix, tcp, stop, keeper, doors })
    }

    /// The host.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The TCP address, with the port that the system chose if it was 0.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// Take no new jobs and let those that run end, for some time at most or until `hurry` is done; what still runs then is
    /// queued at the next start. Requests are answered meanwhile.
    pub async fn stop(self, time: Duration, hurry: impl Future<Output = ()>) {
        self.host.drain();
        let joining = self.host.clone();
        let mut ended = tokio::task::spawn_blocking(move || joining.join());
        tokio::select! {
            _ = &mut ended => {}
            () = async { tokio::select! { () = hurry => {}, () = tokio::time::sleep(time) => {} } } => {
                self.host.leave();
                let _ = ended.await;
            }
        }
        // Whoever still waits for a disk gives up, too.
        self.host.leave();
        self.stop.send_replace(true);
        for door in self.doors {
            let _ = tokio::time::timeout(GOODBYE, door).await;
        }
        let _ = tokio::time::timeout(GOODBYE, self.keeper.empty()).await;
        if let Some(path) = self.unix {
            let _ = std::fs::remove_file(path);
        }
    }
}
