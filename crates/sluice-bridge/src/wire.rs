//! The interface between adapters and the network: a request goes out, a response comes in as a
//! stream. `outbound` is the live implementation, a recorder stores the traffic, a replay
//! answers from a recording without network.

use crate::outbound::error::OutboundError;
use crate::outbound::{Outbound, Request, StreamingResponse};
use reqwest::header::HeaderMap;
use sluice_core::port::Later;
use std::fmt::Debug;
use std::time::Duration;

/// Identifies a request within a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestIndex<'a> {
    /// Step id; `step[3]` for an instance.
    pub step: &'a str,
    /// Number of the step's dispatch.
    pub dispatch_no: u32,
    /// Number of the request within the dispatch, from 1.
    pub number: u32,
}

impl RequestIndex<'_> {
    /// For requests outside of dispatches, such as health checks. Recordings do not contain
    /// them, and a replay answers with nothing.
    pub(crate) const OUTSIDE_DISPATCH: RequestIndex<'static> =
        RequestIndex { step: "", dispatch_no: 0, number: 0 };

    /// Whether the request belongs to no dispatch.
    pub(crate) fn is_outside_dispatch(&self) -> bool {
        self.dispatch_no == 0
    }
}

/// Sends requests to providers.
pub trait Wire: Send + Sync + Debug {
    /// Whether requests reach a real provider, which needs a key.
    fn is_live(&self) -> bool {
        true
    }

    /// Whether a server accepts connections at a URL. A replay always succeeds.
    fn reach<'a>(
        &'a self,
        url: &'a str,
        patience: Duration,
    ) -> Later<'a, Result<(), OutboundError>> {
        let _ = (url, patience);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Sends a request and returns when the response's head has arrived. Dropping the
    /// response closes the connection.
    fn open<'a>(
        &'a self,
        index: RequestIndex<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>>;
}

/// A response with a body that is still arriving.
pub trait Incoming: Send {
    /// HTTP status.
    fn status(&self) -> u16;

    /// Response headers.
    fn headers(&self) -> &HeaderMap;

    /// Next part of the body; `None` at its end.
    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>>;
}

impl Wire for Outbound {
    fn reach<'a>(
        &'a self,
        url: &'a str,
        patience: Duration,
    ) -> Later<'a, Result<(), OutboundError>> {
        Box::pin(Outbound::reach(self, url, patience))
    }

    fn open<'a>(
        &'a self,
        _: RequestIndex<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        Box::pin(async move {
            let reply = Outbound::open(self, request).await?;
            Ok(Box::new(reply) as Box<dyn Incoming>)
        })
    }
}

impl Incoming for StreamingResponse {
    fn status(&self) -> u16 {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        Box::pin(StreamingResponse::chunk(self))
    }
}
