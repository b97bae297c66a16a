//! Opens the API that a command calls: at a server, or in this process on a data
//! directory.

use crate::cli::approvals;
use crate::cli::rows;
use crate::cli::run::{Data, Name};
use crate::client::{Client, HttpClient, only_local};
use crate::config;
use crate::local::{self, Local};
use crate::organisation;
use sluice_server::auth::{Caller, OperatorCommand};
use sluice_server::refused::Refused;

/// Opens the API to read: the configured server, else an existing data directory.
pub(crate) async fn read(data: &Data) -> anyhow::Result<Client> {
    match server()? {
        Some(client) => Ok(client),
        None => in_process(&Local::read(data).await?, data, &Identity::default()).await,
    }
}

/// Opens the API to write, under an identity that the flags of the command name.
pub(crate) async fn write(
    data: &Data,
    identity: impl Into<Identity<'_>>,
) -> anyhow::Result<Client> {
    let identity = identity.into();
    match server_for(data, &identity)? {
        Some(client) => Ok(client),
        None => in_process(&Local::open_existing(data).await?, data, &identity).await,
    }
}

/// The API on a data directory that is opened already.
pub(crate) async fn in_process(
    local: &Local,
    data: &Data,
    identity: &Identity<'_>,
) -> anyhow::Result<Client> {
    Client::in_process(local, &organisation::name_of(data), identity.caller()).await
}

/// The configured server, if there is one.
pub(crate) fn server() -> Result<Option<Client>, Refused> {
    Ok(http()?.map(Client::Http))
}

/// The same, without the choice of a transport.
pub(crate) fn http() -> Result<Option<HttpClient>, Refused> {
    config::get().server().map(HttpClient::new).transpose()
}

/// The configured server for a command that writes. Refuses flags that only a data
/// directory can honour.
pub(crate) fn server_for(data: &Data, identity: &Identity<'_>) -> Result<Option<Client>, Refused> {
    let Some(client) = server()? else { return Ok(None) };
    if data.accept_rollback.is_some() {
        return Err(only_local("`--accept-rollback`"));
    }
    identity.for_server()?;
    Ok(Some(client))
}

/// Refuses a command about a data directory while a server is configured: its user would
/// expect the server to do it.
pub(crate) fn only_data_directory(what: &str) -> Result<(), Refused> {
    match server()? {
        Some(_) => Err(only_local(what)),
        None => Ok(()),
    }
}

/// Who a command acts as on a data directory. A server knows the caller by its token.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Identity<'a> {
    /// `--as`
    pub(crate) name: Option<&'a str>,
    pub(crate) roles: &'a [String],
    pub(crate) break_glass: Option<&'a str>,
}

impl Identity<'_> {
    /// The principal that journals and the audit name.
    pub(crate) fn principal(&self) -> String {
        local::principal(self.name)
    }

    fn caller(&self) -> Caller {
        let command = OperatorCommand { break_glass: self.break_glass.map(str::to_owned) };
        Caller::operator(&self.principal(), local::roles(self.roles), command)
    }

    fn for_server(&self) -> Result<(), Refused> {
        let given = [
            ("`--as`", self.name.is_some()),
            ("`--role`", !self.roles.is_empty()),
            ("`--break-glass`", self.break_glass.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(only_local(flag)),
            None => Ok(()),
        }
    }
}

impl<'a> From<&'a Name> for Identity<'a> {
    fn from(name: &'a Name) -> Identity<'a> {
        Identity { name: name.who.as_deref(), ..Identity::default() }
    }
}

impl<'a> From<&'a rows::ChangeArgs> for Identity<'a> {
    fn from(by: &'a rows::ChangeArgs) -> Identity<'a> {
        Identity { break_glass: by.glass.reason.as_deref(), ..Identity::from(&by.name) }
    }
}

impl<'a> From<&'a approvals::ApproverArgs> for Identity<'a> {
    fn from(by: &'a approvals::ApproverArgs) -> Identity<'a> {
        Identity { roles: &by.role, ..Identity::from(&by.name) }
    }
}
