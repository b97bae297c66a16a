//! Where the database is: what a URL says, and the way to a connection.
//!
//! A URL may name several hosts. They are tried one after the other, the one that
//! served last before all others, and each gets its own time: one that takes a
//! connection and then says nothing must not keep us from the next.
//!
//! `sslmode` and `sslrootcert` are taken out before the driver reads the URL,
//! which knows only some of their words (`tls`).

mod words;

use super::fault::{Fault, describe};
use super::migrate::quoted;
use crate::limits::{ANSWER_MS_MAX, CONNECT_MS_MAX, KEEPALIVE_S};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_postgres::config::Host;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connection as the driver hands it out, with what drives it.
type Made = (Client, Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>);

/// Where the database is.
pub(super) struct Address {
    /// One for each host.
    hosts: Vec<Config>,
    schema: Option<String>,
    tls: MakeRustlsConnect,
    /// The host to begin with.
    first: AtomicUsize,
    /// How long it may take for an answer.
    pub(super) patience: Duration,
}

impl Address {
    /// What a URL says, with what it leaves to us, for those who use one schema of
    /// the database.
    pub(super) fn read(url: &str, schema: Option<&str>) -> Result<Address, String> {
        let (rest, wish) = words::take(url);
        let (mode, tls) = wish.grant()?;
        let mut config: Config = rest.parse().map_err(|error| describe(&error))?;
        config.ssl_mode(mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_millis(CONNECT_MS_MAX));
        }
        if config.get_application_name().is_none() {
            config.application_name("sluice");
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_millis(ANSWER_MS_MAX));
        }
        config.keepalives_idle(Duration::from_secs(KEEPALIVE_S));
        config.keepalives_interval(Duration::from_secs(KEEPALIVE_S));
        if let Some(schema) = schema {
            let own = config.get_options().map(|own| format!("{own} ")).unwrap_or_default();
            // A space ends an option here, unless it is escaped.
            let name = quoted(schema).replace('\\', "\\\\").replace(' ', "\\ ");
            config.options(format!("{own}-c search_path={name}"));
        }
        let hosts = each_host(&config)?;
        let patience = Duration::from_millis(ANSWER_MS_MAX);
        let schema = schema.map(str::to_owned);
        Ok(Address { hosts, schema, tls, first: AtomicUsize::new(0), patience })
    }

    /// The schema, where one is named.
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Connects to the first host that can be used.
    pub(super) async fn connect(&self) -> Result<Made, Fault> {
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
        // Whatever it was, there is no connection.
        Err(Fault::Gone(failures.join("; ")))
    }

    async fn connect_to(&self, host: &Config) -> Result<Made, String> {
        let patience = host.get_connect_timeout().copied().unwrap_or(self.patience);
        let made = tokio::time::timeout(patience, host.connect(self.tls.clone())).await;
        let silent = |_| format!("the database did not answer for {} ms", patience.as_millis());
        made.map_err(silent)?.map_err(|error| describe(&error))
    }
}

/// The driver tries hosts too, but stays with one that is silent for ever.
fn each_host(config: &Config) -> Result<Vec<Config>, String> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let count = hosts.len().max(addresses.len());
    let ports = config.get_ports();
    if count == 0 {
        return Err("it names no host".to_owned());
    }
    if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
        return Err("it has not as many hosts as hostaddrs".to_owned());
    }
    if ports.len() > 1 && ports.len() != count {
        return Err("it has not as many ports as hosts".to_owned());
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
