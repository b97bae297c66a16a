//! The only HTTP client of Sluice: every outgoing request passes its checks.
//!
//! Webhooks, moderators, providers: a URL may come from a person with less network access than
//! this machine has, so every destination is checked before anything is sent (SSRF protection).
//! `address` classifies addresses, `allow` is the operator's allow list, `resolve` ensures that
//! the checked addresses are the ones that are connected to, `redirect` follows redirects.
//!
//! INVARIANT: no connection is made to a closed address, at the first hop or any later one.
//! Redirects, the response's length and the total time are bounded. Proxy variables of the
//! environment are ignored.

pub mod address;
pub mod allow;
pub mod error;
pub(crate) mod host;
mod redirect;
pub mod resolve;
#[cfg(test)]
mod tests;

use crate::limits::{
    CONNECT_MS, POOL_IDLE_MAX, POOL_IDLE_MS, PORTS_MAX, REDIRECTS_MAX, REQUEST_BYTES_MAX,
};
use allow::AllowList;
use error::{OutboundError, OutboundRefusal, translate_error};
use host::Host;
use redirect::Hop;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use resolve::{Guard, NameResolver, SystemResolver};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// Whether redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Follow; every destination is checked.
    Follow,
    /// Return the redirect response.
    Keep,
}

/// An outgoing HTTP request.
#[derive(Debug, Clone)]
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// Destination.
    pub url: String,
    /// Headers. On a redirect to another origin only content headers are kept.
    pub headers: HeaderMap,
    /// Request body.
    pub body: Vec<u8>,
    /// Time limit of the whole exchange, up to the last byte of the response.
    pub patience: Duration,
    /// Limit of the response's body, in bytes.
    pub answer_bytes_max: usize,
    /// Whether redirects are followed.
    pub redirects: Redirects,
}

impl Request {
    /// A POST request that does not follow redirects.
    pub fn post(url: &str, body: Vec<u8>, patience: Duration, answer_bytes_max: usize) -> Request {
        Request {
            method: Method::POST,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            body,
            patience,
            answer_bytes_max,
            redirects: Redirects::Keep,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Request {
        self.headers.insert(name, value);
        self
    }
}

/// A complete response.
#[derive(Debug)]
pub struct HttpResponse {
    /// HTTP status.
    pub status: u16,
    /// Response headers.
    pub headers: HeaderMap,
    /// Response body.
    pub body: Vec<u8>,
}

/// A response with a body that is still arriving.
#[derive(Debug)]
pub struct StreamingResponse {
    /// HTTP status.
    pub status: u16,
    /// Response headers.
    pub headers: HeaderMap,
    response: Response,
    until: Instant,
    read: usize,
    answer_bytes_max: usize,
}

impl StreamingResponse {
    /// Next part of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, OutboundError> {
        let chunk = timeout_at(self.until, self.response.chunk()).await;
        let Some(chunk) = chunk.map_err(|_| OutboundError::Late)?.map_err(translate_error)? else {
            return Ok(None);
        };
        self.read += chunk.len();
        if self.read > self.answer_bytes_max {
            return Err(OutboundError::TooLong(self.answer_bytes_max));
        }
        Ok(Some(chunk.to_vec()))
    }
}

/// The guarded client.
#[derive(Debug)]
pub struct Outbound {
    allow: Arc<AllowList>,
    names: Arc<dyn NameResolver>,
    /// One client per port, because name resolution does not know the port.
    clients: Mutex<BTreeMap<u16, Client>>,
}

impl Outbound {
    /// A client for public addresses and those that the list allows.
    pub fn new(allow: AllowList) -> Outbound {
        Outbound::with_names(allow, Arc::new(SystemResolver))
    }

    /// A client with another name resolver.
    pub(crate) fn with_names(allow: AllowList, names: Arc<dyn NameResolver>) -> Outbound {
        Outbound { allow: Arc::new(allow), names, clients: Mutex::default() }
    }

    /// Checks a URL as far as possible without resolving its host.
    pub fn check(&self, url: &str) -> Result<(), OutboundRefusal> {
        self.check_url(&parse(url)?).map(|_| ())
    }

    /// Sends a request and reads the whole response.
    pub async fn send(&self, request: &Request) -> Result<HttpResponse, OutboundError> {
        let mut reply = self.open(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = reply.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(HttpResponse { status: reply.status, headers: reply.headers, body })
    }

    /// Sends a request and returns when the response's head has arrived.
    pub async fn open(&self, request: &Request) -> Result<StreamingResponse, OutboundError> {
        if request.body.len() > REQUEST_BYTES_MAX {
            return Err(OutboundRefusal::LongRequest.into());
        }
        let until = Instant::now() + request.patience;
        let mut hop = Hop::first(request)?;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.call(&hop, until).await?;
            if request.redirects == Redirects::Follow {
                match hop.next(response.status(), response.headers())? {
                    Ok(next) => {
                        hop = next;
                        continue;
                    }
                    Err(last) => hop = last,
                }
            }
            drop(hop);
            return Ok(StreamingResponse {
                status: response.status().as_u16(),
                headers: response.headers().clone(),
                response,
                until,
                read: 0,
                answer_bytes_max: request.answer_bytes_max,
            });
        }
        Err(OutboundRefusal::Redirects.into())
    }

    /// Whether a server accepts connections at a URL. Nothing is sent.
    pub async fn reach(&self, url: &str, patience: Duration) -> Result<(), OutboundError> {
        let url = parse(url)?;
        let guard = self.check_url(&url)?;
        let connect = async {
            let open = match Host::of(&url).ok_or(OutboundRefusal::NoUrl)? {
                Host::Address(address) => vec![SocketAddr::new(address, guard.port)],
                Host::Name(name) => guard.look_up(name).await?,
            };
            let stream = TcpStream::connect(open.as_slice()).await;
            stream.map_err(|error| OutboundError::Unreachable(error.to_string())).map(|_| ())
        };
        let late = || format!("no connection within {} ms", patience.as_millis());
        match timeout_at(Instant::now() + patience, connect).await {
            Ok(reached) => reached,
            Err(_) => Err(OutboundError::Unreachable(late())),
        }
    }

    async fn call(&self, hop: &Hop, until: Instant) -> Result<Response, OutboundError> {
        let guard = self.check_url(&hop.url)?;
        let request = self
            .client(guard)?
            .request(hop.method.clone(), hop.url.clone())
            .headers(hop.headers.clone())
            .body(hop.body.clone());
        let response = timeout_at(until, request.send()).await.map_err(|_| OutboundError::Late)?;
        response.map_err(translate_error)
    }

    /// Checks a URL: an address now, a name when it is resolved.
    fn check_url(&self, url: &Url) -> Result<Guard, OutboundRefusal> {
        let port = url.port_or_known_default().ok_or(OutboundRefusal::NoUrl)?;
        let (allow, names) = (Arc::clone(&self.allow), Arc::clone(&self.names));
        let guard = Guard { allow, names, port };
        if let Host::Address(address) = Host::of(url).ok_or(OutboundRefusal::NoUrl)?
            && let Some(why) = guard.closed(None, address)
        {
            let to = SocketAddr::new(address, port);
            return Err(OutboundRefusal::closed(&address.to_string(), to, why));
        }
        Ok(guard)
    }

    fn client(&self, guard: Guard) -> Result<Client, OutboundRefusal> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&guard.port) {
            return Ok(client.clone());
        }
        let port = guard.port;
        let client = build(guard).map_err(|error| OutboundRefusal::NoClient(error.to_string()))?;
        // Beyond the limit, connections are not pooled.
        if clients.len() < PORTS_MAX {
            clients.insert(port, client.clone());
        }
        Ok(client)
    }
}

fn build(guard: Guard) -> reqwest::Result<Client> {
    // Fails if another component installed one first, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .dns_resolver(Arc::new(guard))
        .connect_timeout(Duration::from_millis(CONNECT_MS))
        .pool_idle_timeout(Duration::from_millis(POOL_IDLE_MS))
        .pool_max_idle_per_host(POOL_IDLE_MAX)
        .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Parses a URL and checks that it is HTTP, with a host and without user or password.
fn parse(url: &str) -> Result<Url, OutboundRefusal> {
    let url = Url::parse(url).map_err(|_| OutboundRefusal::NoUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(OutboundRefusal::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(OutboundRefusal::UserInfo);
    }
    if Host::of(&url).is_none() {
        return Err(OutboundRefusal::NoUrl);
    }
    Ok(url)
}
