//! A PostgreSQL of one's own, for tests and measurements.
//!
//! It has its own data directory and its own socket, runs as an unprivileged
//! user, and writes to the disk as a real one does. A guard process starts it and
//! ends it, however this process ends. It can have a replica that commits wait
//! for, and a proxy before it that fails as a network does.

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
    // Declared first: the guard ends the server before anything else goes.
    guard: Guard,
    bin: PathBuf,
    dir: PathBuf,
    /// The port, which also names the socket.
    port: u16,
    /// Those it was started with, without its port.
    settings: Vec<String>,
    schemas: AtomicU32,
}

impl Server {
    /// Makes a data directory and starts a server on it, with settings of its own:
    /// `name=value`. It has a socket alone unless `listen_addresses` says more; then
    /// its port is one that is free.
    pub fn start(settings: &[&str]) -> Result<Server, String> {
        Server::start_with(settings, &[])
    }

    /// The same, on a port of the loopback device too.
    pub fn start_listening(settings: &[&str]) -> Result<Server, String> {
        Server::start(&[&["listen_addresses=127.0.0.1"], settings].concat())
    }

    /// The same as `start`, with files: their names and what is in them. A setting
    /// finds one as `../name`.
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

    /// Starts a server on a directory that has its data.
    fn on(dir: PathBuf, settings: Vec<String>) -> Result<Server, String> {
        let bin = programs()?;
        let given = |name: &str| settings.iter().rev().find_map(|one| one.strip_prefix(name));
        let port = match (given("port="), given("listen_addresses=")) {
            (Some(port), _) => port.parse().map_err(|_| format!("{port} is no port"))?,
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

    /// The URL of a new and empty schema.
    pub fn schema(&self) -> String {
        let name = format!("store_{}", self.schemas.fetch_add(1, Ordering::Relaxed));
        self.psql(&format!("CREATE SCHEMA {name}"));
        format!("{}&options=-c%20search_path%3D{name}", self.url())
    }

    /// The URL of the database.
    pub fn url(&self) -> String {
        format!("postgres:///postgres?user=sluice&port={}&host={}", self.port, self.dir.display())
    }

    /// The URL of a database behind ports of the loopback device: of servers that
    /// listen, or of proxies before them. The first that can be written is meant.
    pub fn url_at(ports: &[u16]) -> String {
        let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let hosts = hosts.join(",");
        format!("postgres://sluice@{hosts}/postgres?target_session_attrs=read-write")
    }

    /// The port, which the socket is named by. Only a server that listens has it on
    /// the loopback device.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Performs statements from outside, and answers what comes back, unadorned.
    pub fn psql(&self, sql: &str) -> String {
        let mut psql = command(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "sluice", "-h"]);
        psql.arg(&self.dir).args(["-p", &self.port.to_string(), "-d", "postgres", "-c", sql]);
        run(psql.current_dir("/")).unwrap_or_else(|why| panic!("{sql}: {why}"))
    }

    /// Performs statements in one of its databases, however long they are, and answers
    /// what comes back. An error is what the database says.
    pub fn script(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = command(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "sluice", "-h"]);
        psql.arg(&self.dir).args(["-p", &self.port.to_string(), "-d", database, "-f", "-"]);
        install::feed(psql.current_dir("/"), sql)
    }

    /// What it has written to its log since it was first started.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Kills the server with -9.
    pub fn kill(&mut self) {
        self.guard.order("kill");
    }

    /// Starts it again after it was killed.
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

/// One that nobody has at the moment. The system hands them out in turn, so the
/// next to ask gets another.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
