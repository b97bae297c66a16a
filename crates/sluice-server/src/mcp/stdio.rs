//! MCP over standard input and output: one client, one process.
//!
//! INVARIANT: only protocol messages are written to standard output.

use super::Server;
use super::route_call::Routes;
use crate::api;
use crate::app::App;
use crate::auth::Caller;
use crate::limits::BODY_BYTES;
use crate::organisation::Organisation;
use rmcp::service::serve_server_with_ct;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::Arc;

/// The client disconnected during the handshake, or did not follow the protocol.
#[derive(Debug, thiserror::Error)]
#[error("the MCP handshake with the client failed: {0}")]
pub struct Broken(String);

/// Serves the client until it disconnects, or the app stops.
pub async fn serve(
    app: App,
    organisation: Arc<Organisation>,
    caller: Caller,
) -> Result<(), Broken> {
    let routes = Arc::new(Routes::new(api::routes()));
    let stop = app.stop().clone();
    let server = Server { app, organisation, caller, routes };
    let (input, output) = rmcp::transport::stdio();
    let pipes = AsyncRwTransport::new_server(input, output).with_max_line_length(BODY_BYTES);
    let served = serve_server_with_ct(server, pipes, stop).await;
    let served = served.map_err(|error| Broken(error.to_string()))?;
    // A client may disconnect at any time.
    let _ = served.waiting().await;
    Ok(())
}
