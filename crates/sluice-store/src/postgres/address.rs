//! The address of a database: parses its URL and makes connections.
//!
//! A URL may name several hosts. They are tried in turn, starting with the last one
//! that worked, and each has its own timeout: a host that accepts a connection and then
//! stays silent must not block the next one.
//!
//! `sslmode` and `sslrootcert` are removed before the driver parses the URL, because it
//! supports only some of their values (`tls`).

mod url_params;

use super::fault::{Fault, describe};
use super::migrate::quoted;
use crate::limits::{CONNECT_MS_MAX, KEEPALIVE_S, RESPONSE_MS_MAX};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_postgres::config::Host;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A client, with the connection future that drives it.
type DriverConnection =
    (Client, Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>);

pub(super) struct DatabaseAddress {
    /// One configuration per host.
    hosts: Vec<Config>,
    schema: Option<String>,
    tls: MakeRustlsConnect,
    /// Index of the host to try first.
    first: AtomicUsize,
    /// Longest wait for a response.
    pub(super) patience: Duration,
}

impl DatabaseAddress {
    /// Parses a URL, fills in our defaults, and selects a schema.
    pub(super) fn read(url: &str, schema: Option<&str>) -> Result<DatabaseAddress, String> {
        let (rest, settings) = url_params::split_tls(url);
        let (mode, tls) = settings.connector()?;
        let mut config: Config = rest.parse().map_err(|error| describe(&error))?;
        config.ssl_mode(mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_millis(CONNECT_MS_MAX));
        }
        if config.get_application_name().is_none() {
            config.application_name("sluice");
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_millis(RESPONSE_MS_MAX));
        }
        config.keepalives_idle(Duration::from_secs(KEEPALIVE_S));
        config.keepalives_interval(Duration::from_secs(KEEPALIVE_S));
        if let Some(schema) = schema {
            let own = config.get_options().map(|own| format!("{own} ")).unwrap_or_default();
            // A space would end the option unless it is escaped.
            let name = quoted(schema).replace('\\', "\\\\").replace(' ', "\\ ");
            config.options(format!("{own}-c search_path={name}"));
        }
        let hosts = each_host(&config)?;
        let patience = Duration::from_millis(RESPONSE_MS_MAX);
        let schema = schema.map(str::to_owned);
        Ok(DatabaseAddress { hosts, schema, tls, first: AtomicUsize::new(0), patience })
    }

    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Connects to the first host that works.
    pub(super) async fn connect(&self) -> Result<DriverConnection, Fault> {
        let first = self.first.load(Ordering::Relaxed);
        let mut failures: Vec<String> = Vec::new();
        for step in 0..self.hosts.len() {
            let at = (first + step) % self.hosts.len();
            match self.connect_to(&self.hosts[at]).await {
                Ok(made) => {
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(made);
                }
                Err(why) if failures.contains(&why) => {}
                Err(why) => failures.push(why),
            }
        }
        // Every cause means that there is no connection.
        Err(Fault::Disconnected(failures.join("; ")))
    }

    async fn connect_to(&self, host: &Config) -> Result<DriverConnection, String> {
        let patience = host.get_connect_timeout().copied().unwrap_or(self.patience);
        let made = tokio::time::timeout(patience, host.connect(self.tls.clone())).await;
        let silent = |_| format!("the database did not answer for {} ms", patience.as_millis());
        made.map_err(silent)?.map_err(|error| describe(&error))
    }
}

/// One configuration per host. The driver also tries several hosts, but waits forever
/// for one that stays silent.
fn each_host(config: &Config) -> Result<Vec<Config>, String> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let count = hosts.len().max(addresses.len());
    let ports = config.get_ports();
    if count == 0 {
        return Err("it has no host".to_owned());
    }
    if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
        return Err("host and hostaddr differ in number".to_owned());
    }
    if ports.len() > 1 && ports.len() != count {
        return Err("host and port differ in number".to_owned());
    }
    let one = |at: usize| {
        let mut one = without_hosts(config);
        match hosts.get(at) {
            Some(Host::Tcp(name)) => _ = one.host(name),
            Some(Host::Unix(path)) => _ = one.host_path(path),
            None => {}
        }
        addresses.get(at).map(|address| one.hostaddr(*address));
        ports.get(at).or(ports.first()).map(|port| one.port(*port));
        one
    };
    Ok((0..count).map(one).collect())
}

fn without_hosts(config: &Config) -> Config {
    let mut one = Config::new();
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config.get_application_name().map(|name| one.application_name(name));
    config.get_connect_timeout().map(|time| one.connect_timeout(*time));
    config.get_tcp_user_timeout().map(|time| one.tcp_user_timeout(*time));
    config.get_keepalives_interval().map(|time| one.keepalives_interval(time));
    config.get_keepalives_retries().map(|tries| one.keepalives_retries(tries));
    one.ssl_mode(config.get_ssl_mode());
    one.ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding());
    one.target_session_attrs(config.get_target_session_attrs());
    one.load_balance_hosts(config.get_load_balance_hosts());
    one.keepalives(config.get_keepalives());
    one.keepalives_idle(config.get_keepalives_idle());
    one
}

#[cfg(test)]
mod tests;
