//! The configuration file of a bridge.

use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use sluice_core::diagnostic::{Diagnostic, Problems};
use sluice_core::secret::SecretRef;
use sluice_core::yaml;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most adapters of one bridge.
const ADAPTERS_MAX: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BridgeFile {
    /// The gateway that the bridge is.
    pub(super) gateway: String,
    pub(super) server: HttpUrl,
    /// The token that the bridge sends to the server.
    pub(super) token: SecretRef,
    /// The key that an engine must send; by default the token.
    pub(super) key: Option<SecretRef>,
    /// The directory of dispatches and results.
    pub(super) spool: PathBuf,
    /// The adapters, by the name that dispatches use.
    pub(super) adapters: BTreeMap<String, AdapterConfig>,
    /// Other URLs of the server that results may be sent to.
    #[serde(default)]
    pub(super) servers: Vec<HttpUrl>,
    /// Private addresses that may be called.
    #[serde(default)]
    pub(super) allow: Vec<String>,
    /// Most concurrent dispatches.
    pub(super) running_max: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdapterConfig {
    /// By default the name of the adapter.
    pub(super) provider: Option<String>,
    pub(super) base_url: Option<HttpUrl>,
    pub(super) key: Option<SecretRef>,
    /// MCP servers whose tools models may use.
    #[serde(default)]
    pub(super) tool_servers: Vec<String>,
    /// The script of a mock.
    pub(super) script: Option<PathBuf>,
    /// The working directory of a shell.
    pub(super) workspace: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct HttpUrl(pub(super) Url);

impl TryFrom<String> for HttpUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<HttpUrl, &'static str> {
        // The text is not repeated: it may hold a password.
        let bad = "an address begins with `http://` or `https://` and names a host";
        let url = Url::parse(&text).map_err(|_| bad)?;
        let spoken = matches!(url.scheme(), "http" | "https") && url.has_host();
        if spoken { Ok(HttpUrl(url)) } else { Err(bad) }
    }
}

pub(super) fn read(text: &str) -> Result<Value, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let root = yaml::parse(text, &mut problems).map(|root| root.to_value());
    match root {
        Some(value) if !problems.has_errors() => Ok(value),
        _ => Err(problems.into_diagnostics(text)),
    }
}

impl BridgeFile {
    /// Reads a file; paths are relative to `base`.
    pub(super) fn new(value: Value, base: &Path) -> Result<BridgeFile, String> {
        let mut plan: BridgeFile =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        if plan.gateway.is_empty() {
            return Err("`gateway` is empty".to_owned());
        }
        if plan.adapters.is_empty() || plan.adapters.len() > ADAPTERS_MAX {
            return Err(format!("`adapters` names 1 to {ADAPTERS_MAX} adapters"));
        }
        if plan.running_max == Some(0) {
            return Err("`running_max` is at least 1".to_owned());
        }
        plan.spool = base.join(&plan.spool);
        for given in plan.adapters.values_mut() {
            given.script = given.script.take().map(|path| base.join(path));
            given.workspace = given.workspace.take().map(|path| base.join(path));
        }
        Ok(plan)
    }
}
