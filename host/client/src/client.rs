//! The client: one connection a call, which is closed when the call is dropped.

use crate::address::{Address, BadAddress};
use crate::types::{Blob, Circuit, CircuitList, Health, Job, JobList, JobPriority, JobResult, Problem, VerifyAnswer};
use crate::types::{PullRequest, VerifyRequest, Version};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// How long one long-poll waits before it is asked again.
const POLL_SECONDS: u64 = 50;

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// Nobody answers there.
    #[error("cannot reach zkhost at {address}: {cause}; is it running? (`zkhost serve`)")]
    Connect {
        /// Where.
        address: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection to zkhost broke: {0}; the same idempotency key rejoins the job")]
    Broken(String),
    /// The host refuses.
    #[error("{} ({})", .0.detail, .0.code)]
    Problem(Problem),
    /// The answer is not what this client knows.
    #[error("zkhost's answer is not understood: {0}; are client and host of one version?")]
    Answer(String),
    /// Certificates cannot be used.
    #[error("{0}")]
    Tls(String),
}

/// What to submit, beside the input.
#[derive(Clone, Debug, Default)]
pub struct Submission {
    /// The circuit: a digest, or a name.
    pub circuit: String,
    /// The idempotency key: submitting it again joins the job.
    pub key: Option<String>,
    /// How much it matters.
    pub priority: JobPriority,
    /// How long it may take, from its acceptance.
    pub deadline: Option<Duration>,
    /// JSON that is kept with it.
    pub metadata: Option<serde_json::Value>,
    /// The public inputs that each partition has to have; any others fail the job.
    pub publics: Option<Vec<Vec<String>>>,
    /// How long to wait for its end before answering.
    pub wait: Option<Duration>,
}

/// A client. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    address: Address,
    token: Option<String>,
    tls: Option<TlsConnector>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Client {
    /// A client of the host that listens there.
    pub fn new(address: Address) -> Self {
        Self { address, token: None, tls: None }
    }

    /// The same with a token.
    pub fn with_token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// The same, trusting the certificates of authority in a PEM file. TLS needs it.
    pub fn with_authority(self, path: &Path) -> Result<Self, Error> {
        Ok(Self { tls: Some(connector(path)?), ..self })
    }

    /// Submit a job, or join the one with its key.
    pub async fn submit(&self, submission: &Submission, input: Bytes) -> Result<Job, Error> {
        let mut query = vec![("circuit", submission.circuit.clone()), ("priority", submission.priority.name().into())];
        query.extend(submission.deadline.map(|deadline| ("deadline_ms", deadline.as_millis().to_string())));
        query.extend(submission.wait.map(|wait| ("wait", wait.as_secs().to_string())));
        let mut request = self.request(Method::POST, &path("/v1/jobs", &query));
        request = request.header(CONTENT_TYPE, "application/octet-stream");
        if let Some(key) = &submission.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(metadata) = &submission.metadata {
            request = request.header("zkhost-metadata", ascii_json(metadata));
        }
        if let Some(publics) = &submission.publics {
            request = request.header("zkhost-publics", ascii_json(&serde_json::json!(publics)));
        }
        self.json(request, input).await
    }

    /// A job as it stands.
    pub async fn job(&self, id: &str) -> Result<Job, Error> {
        self.get(&format!("/v1/jobs/{}", encoded(id))).await
    }

    /// A job once it has ended.
    pub async fn wait(&self, id: &str) -> Result<Job, Error> {
        loop {
            let job: Job = self.get(&format!("/v1/jobs/{}?wait={POLL_SECONDS}", encoded(id))).await?;
            if job.state.has_ended() {
                return Ok(job);
            }
        }
    }

    /// What a job proved.
    pub async fn result(&self, id: &str) -> Result<JobResult, Error> {
        self.get(&format!("/v1/jobs/{}/proof", encoded(id))).await
    }

    /// What the host's engine did for a job and when, in the JSON trace event format.
    pub async fn trace(&self, id: &str) -> Result<Bytes, Error> {
        let request = self.request(Method::GET, &format!("/v1/jobs/{}/trace", encoded(id)));
        self.answer(request, Bytes::new()).await
    }

    /// Stop a job.
    pub async fn cancel(&self, id: &str) -> Result<Job, Error> {
        let request = self.request(Method::POST, &format!("/v1/jobs/{}/cancel", encoded(id)));
        self.json(request, Bytes::new()).await
    }

    /// Jobs, newest first; the filters are those of `GET /v1/jobs`.
    pub async fn jobs(&self, filters: &[(&str, String)]) -> Result<JobList, Error> {
        self.get(&path("/v1/jobs", filters)).await
    }

    /// Verify proofs.
    pub async fn verify(&self, question: &VerifyRequest) -> Result<VerifyAnswer, Error> {
        self.post_json("/v1/verify", question).await
    }

    /// All circuits.
    pub async fn circuits(&self) -> Result<CircuitList, Error> {
        self.get("/v1/circuits").await
    }

    /// One circuit.
    pub async fn circuit(&self, digest: &str) -> Result<Circuit, Error> {
        self.get(&format!("/v1/circuits/{}", encoded(digest))).await
    }

    /// Upload a file that a manifest is to name.
    pub async fn upload(&self, bytes: Bytes) -> Result<Blob, Error> {
        self.json(self.request(Method::POST, "/v1/blobs"), bytes).await
    }

    /// Load a circuit whose files were uploaded; the manifest is TOML.
    pub async fn load(&self, manifest: &str) -> Result<Circuit, Error> {
        let request = self.request(Method::POST, "/v1/circuits").header(CONTENT_TYPE, "application/toml");
        self.json(request, Bytes::copy_from_slice(manifest.as_bytes())).await
    }

    /// Load a circuit from an OCI registry that the host may pull from: `REGISTRY/NAME@sha256:DIGEST`.
    pub async fn pull(&self, reference: &str) -> Result<Circuit, Error> {
        self.post_json("/v1/pull", &PullRequest { reference: reference.to_owned() }).await
    }

    /// Unload a circuit. Jobs that run go on.
    pub async fn unload(&self, digest: &str) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &format!("/v1/circuits/{}", encoded(digest)));
        self.answer(request, Bytes::new()).await.map(drop)
    }

    /// Do something with a circuit: `pin`, `preload` or `evict`.
    pub async fn circuit_action(&self, digest: &str, action: &str) -> Result<Circuit, Error> {
        let request = self.request(Method::POST, &format!("/v1/circuits/{}/{action}", encoded(digest)));
        self.json(request, Bytes::new()).await
    }

    /// How the host is.
    pub async fn health(&self) -> Result<Health, Error> {
        self.get("/v1/health").await
    }

    /// Its versions.
    pub async fn version(&self) -> Result<Version, Error> {
        self.get("/v1/version").await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.json(self.request(Method::GET, path), Bytes::new()).await
    }

    async fn post_json<T: DeserializeOwned>(&self, path: &str, body: &impl serde::Serialize) -> Result<T, Error> {
        let body = serde_json::to_vec(body).map_err(|error| Error::Answer(error.to_string()))?;
        let request = self.request(Method::POST, path).header(CONTENT_TYPE, "application/json");
        self.json(request, body.into()).await
    }

    async fn json<T: DeserializeOwned>(&self, request: hyper::http::request::Builder, body: Bytes) -> Result<T, Error> {
        let bytes = self.answer(request, body).await?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Answer(error.to_string()))
    }

    /// The body of an answer that is no problem.
    async fn answer(&self, request: hyper::http::request::Builder, body: Bytes) -> Result<Bytes, Error> {
        let request = request.body(Full::new(body)).map_err(|error| Error::Answer(error.to_string()))?;
        let response = self.send(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes = body.map_err(|error| Error::Broken(error.to_string()))?.to_bytes();
        if status.is_success() {
            return Ok(bytes);
        }
        let problem = serde_json::from_slice(&bytes).map_err(|_| Error::Answer(format!("status {status}")))?;
        Err(Error::Problem(problem))
    }

    fn request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        let host = match &self.address {
            Address::Unix(_) => "localhost",
            Address::Http(authority) | Address::Https(authority) => authority,
        };
        let request = Request::builder().method(method).uri(path).header(HOST, host);
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.connect()).await;
        let io = connected.unwrap_or_else(|_| Err(self.unreachable(std::io::ErrorKind::TimedOut.into())))?;
        let broken = |error: hyper::Error| Error::Broken(error.to_string());
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
        // It ends when the answer is read or dropped; what breaks it shows in the answer.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(broken)
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, Error> {
        let unreachable = |cause| self.unreachable(cause);
        match &self.address {
            Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await.map_err(unreachable)?)),
            Address::Http(authority) => Ok(Box::new(tcp(authority).await.map_err(unreachable)?)),
            Address::Https(authority) => {
                let tls = self.tls.as_ref().ok_or_else(|| {
                    Error::Tls("name the certificates of authority to trust, such as a system's bundle".into())
                })?;
                let (host, _) = authority.rsplit_once(':').unwrap_or((authority, ""));
                let host = host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(host).map_err(|error| Error::Tls(error.to_string()))?;
                let stream = tcp(authority).await.map_err(unreachable)?;
                Ok(Box::new(tls.connect(name, stream).await.map_err(unreachable)?))
            }
        }
    }

    fn unreachable(&self, cause: std::io::Error) -> Error {
        Error::Connect { address: self.address.to_string(), cause }
    }
}

/// TLS that trusts the certificates of authority in a PEM file.
pub fn connector(authorities: &Path) -> Result<TlsConnector, Error> {
    let bad = |cause: String| Error::Tls(format!("certificates of authority {}: {cause}", authorities.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authorities).map_err(|error| bad(error.to_string()))? {
        let certificate = certificate.map_err(|error| bad(error.to_string()))?;
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| bad(error.to_string()))?.with_root_certificates(roots);
    Ok(TlsConnector::from(Arc::new(config.with_no_client_auth())))
}

async fn tcp(authority: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A path with a query.
fn path(path: &str, query: &[(&str, String)]) -> String {
    let query: Vec<_> = query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

/// As a part of a path or a query.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// JSON that a header can hold: characters beyond ASCII are escaped.
fn ascii_json(value: &serde_json::Value) -> String {
    let mut units = [0; 2];
    let mut out = String::new();
    for char in value.to_string().chars() {
        if char.is_ascii() {
            out.push(char);
        } else {
            char.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{ascii_json, encoded};
    use serde_json::{Value, json};

    #[test]
    fn headers_and_paths_carry_any_text() {
        let value = json!({"who": "Zoë 😀", "line": "a\nb"});
        let header = ascii_json(&value);
        assert!(header.is_ascii() && !header.contains('\n'));
        assert_eq!(serde_json::from_str::<Value>(&header).unwrap(), value);
        assert_eq!(encoded("a b/ü?"), "a%20b%2F%C3%BC%3F");
    }
}
