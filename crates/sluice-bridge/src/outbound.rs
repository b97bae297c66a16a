//! The one way out: every request to somebody elsewhere goes through here.
//!
//! Webhooks, moderators, agents over HTTP: a URL may come from someone who can
//! reach less than this machine can, so each is judged before anything is sent.
//! `address` knows what is closed, `allow` what the operator opens, `resolve` makes
//! sure that what was judged is what is called, `redirect` where one is sent on to.
//!
//! INVARIANT: no connection is made to a closed address, at the first hop or any
//! later one. Redirects, the answer's length and the time for all of it are bounded.
//! No proxy is taken from the environment.

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
use error::{OutboundError, Refusal, told};
use host::Host;
use redirect::Hop;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use resolve::{Guard, Names, SystemNames};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// Whether one goes where an answer sends on to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Yes; each place is judged anew.
    Follow,
    /// No: the answer is handed out as it is.
    Keep,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// How.
    pub method: Method,
    /// Where.
    pub url: String,
    /// What is said beside it. To another origin only what content it is goes along.
    pub headers: HeaderMap,
    /// What is sent.
    pub body: Vec<u8>,
    /// How long everything may take, the answer's last byte included.
    pub patience: Duration,
    /// The longest answer that is taken.
    pub answer_bytes_max: usize,
    /// Whether one goes where the answer sends on to.
    pub redirects: Redirects,
}

impl Request {
    /// A body for somebody. The answer counts, wherever it would send on to.
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

    /// The same, saying this too.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Request {
        self.headers.insert(name, value);
        self
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// What was said beside it.
    pub headers: HeaderMap,
    /// What was sent.
    pub body: Vec<u8>,
}

/// An answer that is still coming.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// What was said beside it.
    pub headers: HeaderMap,
    response: Response,
    until: Instant,
    read: usize,
    answer_bytes_max: usize,
}

impl Reply {
    /// The next part of it; none at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, OutboundError> {
        let chunk = timeout_at(self.until, self.response.chunk()).await;
        let Some(chunk) = chunk.map_err(|_| OutboundError::Late)?.map_err(told)? else {
            return Ok(None);
        };
        self.read += chunk.len();
        if self.read > self.answer_bytes_max {
            return Err(OutboundError::TooLong(self.answer_bytes_max));
        }
        Ok(Some(chunk.to_vec()))
    }
}

/// The client.
#[derive(Debug)]
pub struct Outbound {
    allow: Arc<AllowList>,
    names: Arc<dyn Names>,
    /// One client a port: looking up a name does not say which port is meant.
    clients: Mutex<BTreeMap<u16, Client>>,
}

impl Outbound {
    /// A client that calls what is public, and what this list opens.
    pub fn new(allow: AllowList) -> Outbound {
        Outbound::with_names(allow, Arc::new(SystemNames))
    }

    /// The same, asking somebody else for addresses.
    pub fn with_names(allow: AllowList, names: Arc<dyn Names>) -> Outbound {
        Outbound { allow: Arc::new(allow), names, clients: Mutex::default() }
    }

    /// Whether a URL can be called at all, as far as it can be said without
    /// looking up its host.
    pub fn check(&self, url: &str) -> Result<(), Refusal> {
        self.judge(&parse(url)?).map(|_| ())
    }

    /// Asks, and reads the whole answer.
    pub async fn send(&self, request: &Request) -> Result<Answer, OutboundError> {
        let mut reply = self.open(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = reply.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status: reply.status, headers: reply.headers, body })
    }

    /// Asks, and answers as soon as it is known what comes back.
    pub async fn open(&self, request: &Request) -> Result<Reply, OutboundError> {
        if request.body.len() > REQUEST_BYTES_MAX {
            return Err(Refusal::LongRequest.into());
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
            return Ok(Reply {
                status: response.status().as_u16(),
                headers: response.headers().clone(),
                response,
                until,
                read: 0,
                answer_bytes_max: request.answer_bytes_max,
            });
        }
        Err(Refusal::Redirects.into())
    }

    /// Whether something takes connections where a URL points to. Nothing is sent.
    pub async fn reach(&self, url: &str, patience: Duration) -> Result<(), OutboundError> {
        let url = parse(url)?;
        let guard = self.judge(&url)?;
        let connect = async {
            let open = match Host::of(&url).ok_or(Refusal::NoUrl)? {
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
        let guard = self.judge(&hop.url)?;
        let request = self
            .client(guard)?
            .request(hop.method.clone(), hop.url.clone())
            .headers(hop.headers.clone())
            .body(hop.body.clone());
        let response = timeout_at(until, request.send()).await.map_err(|_| OutboundError::Late)?;
        response.map_err(told)
    }

    /// Judges a URL: an address at once, a name when it is looked up.
    fn judge(&self, url: &Url) -> Result<Guard, Refusal> {
        let port = url.port_or_known_default().ok_or(Refusal::NoUrl)?;
        let (allow, names) = (Arc::clone(&self.allow), Arc::clone(&self.names));
        let guard = Guard { allow, names, port };
        if let Host::Address(address) = Host::of(url).ok_or(Refusal::NoUrl)?
            && let Some(why) = guard.closed(None, address)
        {
            let to = SocketAddr::new(address, port);
            return Err(Refusal::closed(&address.to_string(), to, why));
        }
        Ok(guard)
    }

    fn client(&self, guard: Guard) -> Result<Client, Refusal> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&guard.port) {
            return Ok(client.clone());
        }
        let port = guard.port;
        let client = build(guard).map_err(|error| Refusal::NoClient(error.to_string()))?;
        // Past the bound, connections are not kept for the next call.
        if clients.len() < PORTS_MAX {
            clients.insert(port, client.clone());
        }
        Ok(client)
    }
}

fn build(guard: Guard) -> reqwest::Result<Client> {
    // Whoever was first is as good.
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

/// Reads a URL that may be called: HTTP, with a host, and nobody's name in it.
fn parse(url: &str) -> Result<Url, Refusal> {
    let url = Url::parse(url).map_err(|_| Refusal::NoUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refusal::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refusal::UserInfo);
    }
    if Host::of(&url).is_none() {
        return Err(Refusal::NoUrl);
    }
    Ok(url)
}
