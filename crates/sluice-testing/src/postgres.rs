//! A private PostgreSQL server for tests and benchmarks.
//!
//! It has its own data directory and socket, runs as an unprivileged user, and writes
//! to disk like a real one. A guard process starts and stops it, however this process
//! ends. It can have a synchronous replica, and a proxy in front of it that fails like
//! a network.

mod guard;
mod install;
mod proxy;
mod replica;

pub use proxy::Proxy;

use guard::Guard;
use install::{command, directory, programs, run};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to start, in milliseconds.
const START_MS_MAX: u64 = 60_000;

/// A running server.
pub struct Server {
    // Declared first: the guard stops the server before the rest is dropped.
    guard: Guard,
    bin: PathBuf,
    dir: PathBuf,
    /// The port, which also names the socket.
    port: u16,
    /// Its settings, without the port.
    settings: Vec<String>,
    schemas: AtomicU32,
}

impl Server {
    /// Creates a data directory and starts a server with some settings, each
    /// `name=value`. It has only a socket unless `listen_addresses` is set; then it
    /// also gets a free port.
    pub fn start(settings: &[&str]) -> Result<Server, String> {
        Server::start_with(settings, &[])
    }

    /// The same, listening on a loopback port too.
    pub fn start_listening(settings: &[&str]) -> Result<Server, String> {
        Server::start(&[&["listen_addresses=127.0.0.1"], settings].concat())
    }

    /// The same as `start`, with additional files, given by name and content. Settings
    /// refer to them as `../name`.
    pub fn start_with(settings: &[&str], files: &[(&str, &str)]) -> Result<Server, String> {
        let (bin, dir) = (programs()?, directory()?);
        let mut initdb = command(bin.join("initdb"));
        initdb.args(["-U", "sluice", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]);
        run(initdb.arg("-D").arg(dir.join("data")).current_dir(&dir))?;
        for (name, text) in files {
            install::write(&dir.join(name), text)?;
        }
        let settings = [&["listen_addresses=", "max_connections=200"], settings].concat();
        Server::on(dir, settings.into_iter().map(str::to_owned).collect())
    }

    /// Starts a server on an existing data directory.
    fn on(dir: PathBuf, settings: Vec<String>) -> Result<Server, String> {
        let bin = programs()?;
        let given = |name: &str| settings.iter().rev().find_map(|one| one.strip_prefix(name));
        let port = match (given("port="), given("listen_addresses=")) {
            (Some(port), _) => port.parse().map_err(|_| format!("{port} is not a port"))?,
            (None, None | Some("")) => 5432,
            (None, Some(_)) => free_port().map_err(|error| format!("no port is free: {error}"))?,
        };
        let own = [settings.clone(), vec![format!("port={port}")]].concat();
        let guard = Guard::start(&bin, &dir, &own)?;
        let schemas = AtomicU32::new(0);
        let server = Server { guard, bin, dir, port, settings, schemas };
        server.await_ready()?;
        Ok(server)
    }

    /// The URL of a new, empty schema.
    pub fn schema(&self) -> String {
        let name = format!("store_{}", self.schemas.fetch_add(1, Ordering::Relaxed));
        self.psql(&format!("CREATE SCHEMA {name}"));
        format!("{}&options=-c%20search_path%3D{name}", self.url())
    }

    /// The URL of the database.
    pub fn url(&self) -> String {
        format!("postgres:///postgres?user=sluice&port={}&host={}", self.port, self.dir.display())
    }

    /// The URL of a database on several loopback ports: of listening servers, or of
    /// proxies in front of them. Clients use the first server that accepts writes.
    pub fn url_at(ports: &[u16]) -> String {
        let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let hosts = hosts.join(",");
        format!("postgres://sluice@{hosts}/postgres?target_session_attrs=read-write")
    }

    /// The port that names the socket. Only a listening server also has it on the
    /// loopback device.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs statements with `psql` and returns the plain output.
    pub fn psql(&self, sql: &str) -> String {
        let mut psql = command(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "sluice", "-h"]);
        psql.arg(&self.dir).args(["-p", &self.port.to_string(), "-d", "postgres", "-c", sql]);
        run(psql.current_dir("/")).unwrap_or_else(|why| panic!("{sql}: {why}"))
    }

    /// Runs a script in one of the databases and returns the output, or the database's
    /// error.
    pub fn script(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = command(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "sluice", "-h"]);
        psql.arg(&self.dir).args(["-p", &self.port.to_string(), "-d", database, "-f", "-"]);
        install::feed(psql.current_dir("/"), sql)
    }

    /// The server's log since its first start.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        self.guard.order("kill");
    }

    /// Starts the server again after `kill`.
    pub fn restart(&mut self) -> Result<(), String> {
        self.guard.order("start");
        self.await_ready()
    }

    fn await_ready(&self) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(START_MS_MAX) {
            let mut ready = command(self.bin.join("pg_isready"));
            ready.args(["-q", "-p", &self.port.to_string(), "-h"]).arg(&self.dir).current_dir("/");
            if ready.status().is_ok_and(|status| status.success()) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("PostgreSQL did not start:\n{}", self.log()))
    }
}

/// A port that is free now. The operating system assigns ports in turn, so the next
/// caller gets a different one.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
