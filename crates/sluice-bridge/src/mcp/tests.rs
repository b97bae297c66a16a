mod calling;
mod elsewhere;
mod process;

use super::*;

/// A place of a call.
const PLACE: Place<'static> = Place { step: "a", dispatch_no: 1, number: 1 };

/// What a call came to, as text.
async fn called(server: &dyn ToolServer, tool: &str) -> Result<String, String> {
    let answer = server.call(tool, &json!({"x": 1}), PLACE).await;
    answer.map(|answer| answer.text).map_err(|trouble| trouble.to_string())
}
