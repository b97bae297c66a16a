//! The one seam between adapters and providers: a request goes out, an answer
//! comes in, piece by piece. Live it is `outbound`; a recording keeps what passes,
//! a replay answers without any network.

use crate::outbound::error::OutboundError;
use crate::outbound::{Outbound, Reply, Request};
use reqwest::header::HeaderMap;
use sluice_core::port::Later;
use std::fmt::Debug;
use std::time::Duration;

/// Which request of which dispatch: what a recording finds it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The step; `step[3]` for an instance.
    pub step: &'a str,
    /// Which dispatch of it.
    pub dispatch_no: u32,
    /// Which request of that dispatch, from 1.
    pub number: u32,
}

impl Place<'_> {
    /// Of what belongs to no dispatch, such as asking how somebody is. It is not
    /// kept in recordings, and a replay answers it with nothing.
    pub const ASIDE: Place<'static> = Place { step: "", dispatch_no: 0, number: 0 };

    /// Whether it belongs to no dispatch.
    pub fn is_aside(&self) -> bool {
        self.dispatch_no == 0
    }
}

/// Carries requests to providers.
pub trait Wire: Send + Sync + Debug {
    /// Whether somebody is really asked, who must be shown a key.
    fn is_live(&self) -> bool {
        true
    }

    /// Whether a server takes connections at a URL. A replay, which calls no server,
    /// answers that every one does.
    fn reach<'a>(
        &'a self,
        url: &'a str,
        patience: Duration,
    ) -> Later<'a, Result<(), OutboundError>> {
        let _ = (url, patience);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Asks, and answers as soon as it is known what comes back. Dropping the
    /// answer closes the connection.
    fn open<'a>(
        &'a self,
        place: Place<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>>;
}

/// An answer that is still coming.
pub trait Incoming: Send {
    /// The status.
    fn status(&self) -> u16;

    /// What was said beside it.
    fn headers(&self) -> &HeaderMap;

    /// The next part of it; none at its end.
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
        _: Place<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        Box::pin(async move {
            let reply = Outbound::open(self, request).await?;
            Ok(Box::new(reply) as Box<dyn Incoming>)
        })
    }
}

impl Incoming for Reply {
    fn status(&self) -> u16 {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        Box::pin(Reply::chunk(self))
    }
}
