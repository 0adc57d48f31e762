//! What a pull says over HTTP: GET, redirections, and the token that registries ask for even where anybody may pull.

use super::PullError;
use crate::config::RegistryAllowed;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, LOCATION, USER_AGENT, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Redirections that are followed for one file.
const REDIRECTIONS_MAX: usize = 5;

/// Bytes of a token's answer at most.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// Bytes of an answer's head at most.
const HEAD_BYTES_MAX: usize = 64 * 1024;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A registry, as one pull sees it.
pub(super) struct Remote<'a> {
    settings: &'a RegistryAllowed,
    /// The repository.
    name: &'a str,
    idle: Duration,
    tls: Option<TlsConnector>,
    /// What is said to the registry itself, and to nobody it points to.
    authorization: Option<HeaderValue>,
}

/// The answer of a token service.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Remote<'a> {
    pub fn new(settings: &'a RegistryAllowed, name: &'a str, idle: Duration) -> Result<Self, PullError> {
        let mut remote = Self { settings, name, idle, tls: None, authorization: None };
        if !settings.plain_http {
            let tls = zkhost_client::connector(&settings.authorities).map_err(|error| remote.failed("TLS", error))?;
            remote.tls = Some(tls);
        }
        Ok(remote)
    }

    /// Whatever goes wrong with a registry.
    pub fn failed(&self, what: &str, reason: impl ToString) -> PullError {
        PullError::Remote { host: self.settings.host.clone(), what: what.to_owned(), reason: reason.to_string() }
    }

    /// The body at a path of the registry, or wherever it points to.
    pub async fn get(&mut self, path: &str, accept: &'static str) -> Result<Body, PullError> {
        let scheme = if self.settings.plain_http { "http" } else { "https" };
        let address = format!("{scheme}://{}{path}", self.settings.host);
        let first: Uri = address.parse().map_err(|error| self.failed(path, error))?;
        // A token of an earlier file may have expired.
        let (mut uri, mut asked_token, mut redirections) = (first.clone(), false, 0);
        loop {
            let own = uri.authority() == first.authority() && uri.scheme() == first.scheme();
            let authorization = self.authorization.clone().filter(|_| own);
            let response = self.send(&uri, accept, authorization).await?;
            match response.status() {
                StatusCode::OK => return Ok(self.body(path, response)),
                StatusCode::UNAUTHORIZED if own && !asked_token => {
                    asked_token = true;
                    self.authorization = Some(self.token(path, &response).await?);
                }
                status if status.is_redirection() && redirections < REDIRECTIONS_MAX => {
                    redirections += 1;
                    uri = self.redirected(path, &uri, &response)?;
                }
                status => return Err(self.failed(path, format!("it answers {status}"))),
            }
        }
    }

    /// Where an answer points to. From TLS it does not lead to somewhere without.
    fn redirected(&self, path: &str, from: &Uri, response: &Response<Incoming>) -> Result<Uri, PullError> {
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
        let absolute = match (location.starts_with('/'), from.authority()) {
            (true, Some(authority)) => format!("{}://{authority}{location}", from.scheme_str().unwrap_or("https")),
            _ => location.to_owned(),
        };
        let uri: Uri = absolute.parse().map_err(|_| self.failed(path, "it points to no address"))?;
        match uri.scheme_str() {
            Some("https") => Ok(uri),
            Some("http") if self.settings.plain_http => Ok(uri),
            _ => Err(self.failed(path, "it points to an address without TLS")),
        }
    }

    /// Ask whom the registry says for a token to pull with, as anybody.
    async fn token(&self, path: &str, response: &Response<Incoming>) -> Result<HeaderValue, PullError> {
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let refused = || self.failed(path, "it wants credentials, and only what anybody may pull is pulled");
        let parameters = challenge.and_then(|text| text.strip_prefix("Bearer ")).ok_or_else(refused)?;
        let parameter = |name: &str| {
            let (_, rest) = parameters.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let realm = parameter("realm").ok_or_else(refused)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '/');
        let service = parameter("service").filter(|service| service.chars().all(plain));
        let service = service.map(|service| format!("service={service}&")).unwrap_or_default();
        let uri = format!("{realm}?{service}scope=repository:{}:pull", self.name);
        let uri: Uri = uri.parse().map_err(|_| self.failed(path, "its token service has no address"))?;
        if uri.scheme_str() == Some("http") && !self.settings.plain_http {
            return Err(self.failed(path, "its token service has an address without TLS"));
        }
        let answer = self.send(&uri, "application/json", None).await?;
        if answer.status() != StatusCode::OK {
            return Err(self.failed("its token service", format!("it answers {}", answer.status())));
        }
        let mut body = self.body("its token service", answer);
        let mut bytes = Vec::new();
        while let Some(piece) = body.piece().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > TOKEN_BYTES_MAX {
                return Err(self.failed("its token service", format!("more than {TOKEN_BYTES_MAX} bytes")));
            }
        }
        let none = || self.failed("its token service", "its answer holds no token");
        let token: Token = serde_json::from_slice(&bytes).map_err(|_| none())?;
        let token = token.token.or(token.access_token).ok_or_else(none)?;
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| none())?;
        value.set_sensitive(true);
        Ok(value)
    }

    async fn send(
        &self,
        uri: &Uri,
        accept: &'static str,
        authorization: Option<HeaderValue>,
    ) -> Result<Response<Incoming>, PullError> {
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let failed = |reason: String| self.failed(authority, reason);
        let answering = async {
            let stream = self.connect(uri).await.map_err(|error| failed(error.to_string()))?;
            let handshake = http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await;
            let (mut sender, connection) = handshake.map_err(|error| failed(error.to_string()))?;
            // It ends when the answer is read or dropped; what breaks it shows in the answer.
            tokio::spawn(connection);
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            let mut request = Request::get(path).header(HOST, authority).header(ACCEPT, accept);
            request = request.header(USER_AGENT, concat!("zkhost/", env!("CARGO_PKG_VERSION")));
            if let Some(authorization) = authorization {
                request = request.header(AUTHORIZATION, authorization);
            }
            let request = request.body(Empty::<Bytes>::new()).map_err(|error| failed(error.to_string()))?;
            sender.send_request(request).await.map_err(|error| failed(error.to_string()))
        };
        let silent =
            |_| failed(format!("no answer within {} s (setting `circuits.pull_idle_seconds`)", self.idle.as_secs()));
        tokio::time::timeout(self.idle, answering).await.map_err(silent)?
    }

    async fn connect(&self, uri: &Uri) -> std::io::Result<Box<dyn Stream>> {
        let bad = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidInput, what.to_owned());
        let host = uri.host().ok_or_else(|| bad("the address names no host"))?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        match (&self.tls, uri.scheme_str()) {
            (_, Some("http")) => Ok(Box::new(stream)),
            (Some(tls), _) => {
                let name = ServerName::try_from(host).map_err(|_| bad("the host has no name for a certificate"))?;
                Ok(Box::new(tls.connect(name, stream).await?))
            }
            (None, _) => Err(bad("the registry is used without TLS (`plain_http`) and points to an address with it")),
        }
    }

    fn body(&self, what: &str, response: Response<Incoming>) -> Body {
        let (host, what) = (self.settings.host.clone(), what.to_owned());
        Body { body: response.into_body(), host, what, idle: self.idle }
    }
}

/// The body of an answer, piece by piece.
pub(super) struct Body {
    body: Incoming,
    host: String,
    what: String,
    idle: Duration,
}

impl Body {
    /// The next piece; none at the end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, PullError> {
        loop {
            let frame = tokio::time::timeout(self.idle, self.body.frame()).await;
            let silent =
                format!("it paused for more than {} s (setting `circuits.pull_idle_seconds`)", self.idle.as_secs());
            match frame.map_err(|_| self.failed(silent))? {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.failed(format!("it broke off: {error}"))),
                // Trailers are of no interest.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => return Ok(Some(piece)),
                    _ => {}
                },
            }
        }
    }

    fn failed(&self, reason: String) -> PullError {
        PullError::Remote { host: self.host.clone(), what: self.what.clone(), reason }
    }
}
