//! Follows redirects.
//!
//! INVARIANT: no credentials are sent to another origin. Only a short list of headers is kept,
//! so that an unknown header is dropped.

use super::error::{OutboundError, OutboundRefusal};
use super::{Request, parse};
use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use reqwest::{Method, StatusCode, Url};

/// Headers without credentials.
const CARRIED: [HeaderName; 3] = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE];

/// One request of a redirect chain.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Hop {
    /// The first request.
    pub(super) fn first(request: &Request) -> Result<Hop, OutboundError> {
        Ok(Hop {
            method: request.method.clone(),
            url: parse(&request.url)?,
            headers: request.headers.clone(),
            body: request.body.clone(),
        })
    }

    /// The next request, if the response is a redirect; otherwise `Err` with this one.
    pub(super) fn next(
        self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Result<Hop, Hop>, OutboundError> {
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(Err(self));
        }
        let Some(place) = headers.get(LOCATION) else { return Ok(Err(self)) };
        let place = place.to_str().map_err(|_| OutboundRefusal::NoUrl)?;
        let url = self.url.join(place).map_err(|_| OutboundRefusal::NoUrl)?;
        let url = parse(url.as_str())?;
        if self.url.scheme() == "https" && url.scheme() == "http" {
            return Err(OutboundRefusal::Downgrade.into());
        }
        let mut hop = self;
        let asks_anew = match status.as_u16() {
            303 => hop.method != Method::HEAD,
            301 | 302 => hop.method == Method::POST,
            _ => false,
        };
        if asks_anew {
            hop.method = Method::GET;
            hop.body = Vec::new();
            hop.headers.remove(CONTENT_TYPE);
        }
        if url.origin() != hop.url.origin() {
            hop.headers = carried(&hop.headers);
        }
        hop.url = url;
        Ok(Ok(hop))
    }
}

fn carried(headers: &HeaderMap) -> HeaderMap {
    CARRIED.iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}
