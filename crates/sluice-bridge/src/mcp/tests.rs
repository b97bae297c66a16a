mod adapter;
mod process;
mod remote;

use super::*;

const PLACE: RequestIndex<'static> = RequestIndex { step: "a", dispatch_no: 1, number: 1 };

/// The text or error of a tool call.
async fn called(server: &dyn ToolServer, tool: &str) -> Result<String, String> {
    let answer = server.call(tool, &json!({"x": 1}), PLACE).await;
    answer.map(|(answer, _)| answer.text).map_err(|trouble| trouble.to_string())
}
