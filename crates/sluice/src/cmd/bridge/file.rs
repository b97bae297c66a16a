//! What a bridge's file says.

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

/// What a bridge does, and for whom.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// The gateway that it is.
    pub(super) gateway: String,
    /// The server that it works for.
    pub(super) server: Address,
    /// Where its token is kept: what the server is shown.
    pub(super) token: SecretRef,
    /// Where the key is kept that an engine must show; the token if absent.
    pub(super) key: Option<SecretRef>,
    /// Where dispatches and results are remembered.
    pub(super) spool: PathBuf,
    /// Who does the work, by the name that dispatches call it by.
    pub(super) adapters: BTreeMap<String, Given>,
    /// Other addresses of the server, that results may be sent to.
    #[serde(default)]
    pub(super) servers: Vec<Address>,
    /// Private places that may be called.
    #[serde(default)]
    pub(super) allow: Vec<String>,
    /// Most dispatches that are worked on at once.
    pub(super) running_max: Option<usize>,
}

/// How an adapter is given.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    /// What it speaks to; its name if absent.
    pub(super) provider: Option<String>,
    /// Where that is.
    pub(super) base_url: Option<Address>,
    /// Where its key is kept.
    pub(super) key: Option<SecretRef>,
    /// Servers of tools that its models may be offered.
    #[serde(default)]
    pub(super) tool_servers: Vec<String>,
    /// What a mock says.
    pub(super) script: Option<PathBuf>,
    /// Where a shell works.
    pub(super) workspace: Option<PathBuf>,
}

/// Where something is.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Address(pub(super) Url);

impl TryFrom<String> for Address {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Address, &'static str> {
        // The text is not repeated: a password may stand in it.
        let bad = "an address begins with `http://` or `https://` and names a host";
        let url = Url::parse(&text).map_err(|_| bad)?;
        let spoken = matches!(url.scheme(), "http" | "https") && url.has_host();
        if spoken { Ok(Address(url)) } else { Err(bad) }
    }
}

/// Reads YAML.
pub(super) fn read(text: &str) -> Result<Value, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let root = yaml::parse(text, &mut problems).map(|root| root.to_value());
    match root {
        Some(value) if !problems.has_errors() => Ok(value),
        _ => Err(problems.into_diagnostics(text)),
    }
}

impl Plan {
    /// What a file says that lies in `base`: where its paths begin.
    pub(super) fn new(value: Value, base: &Path) -> Result<Plan, String> {
        let mut plan: Plan = serde_json::from_value(value).map_err(|error| error.to_string())?;
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
