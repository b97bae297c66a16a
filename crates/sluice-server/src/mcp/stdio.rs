//! An agent at standard input and output: one client, one process.
//!
//! INVARIANT: nothing but the protocol is written to standard output.

use super::Server;
use super::ask::Routes;
use crate::api;
use crate::app::App;
use crate::auth::Caller;
use crate::house::House;
use crate::limits::BODY_BYTES;
use rmcp::service::serve_server_with_ct;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::Arc;

/// The client left, or never spoke the protocol.
#[derive(Debug, thiserror::Error)]
#[error("the client does not speak the protocol: {0}")]
pub struct Broken(String);

/// Serves the client until it leaves, or the app is told to stop.
pub async fn serve(app: App, house: Arc<House>, caller: Caller) -> Result<(), Broken> {
    let routes = Arc::new(Routes::new(api::routes()));
    let stop = app.stop().clone();
    let server = Server { app, house, caller, routes };
    let (input, output) = rmcp::transport::stdio();
    let pipes = AsyncRwTransport::new_server(input, output).with_max_line_length(BODY_BYTES);
    let served = serve_server_with_ct(server, pipes, stop).await;
    let served = served.map_err(|error| Broken(error.to_string()))?;
    // Whoever leaves may do so at any time.
    let _ = served.waiting().await;
    Ok(())
}
