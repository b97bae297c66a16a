//! A synchronous replica, and its promotion to primary.

use super::install::{command, directory, programs, run};
use super::{START_MS_MAX, Server};
use std::time::{Duration, Instant};

/// Name of the replica in the primary's settings.
const NAME: &str = "replica";

impl Server {
    /// Starts a replica of this server, with the same settings and its own port. On
    /// return, every commit waits until it is on the replica's disk too, also if the
    /// replica is gone.
    pub fn replica(&self) -> Result<Server, String> {
        let (bin, dir) = (programs()?, directory()?);
        let mut copy = command(bin.join("pg_basebackup"));
        copy.args(["-U", "sluice", "-c", "fast", "-X", "stream", "-R", "--no-sync", "-h"]);
        copy.arg(&self.dir).args(["-p", &self.port.to_string(), "-D"]).arg(dir.join("data"));
        run(copy.current_dir(&dir))?;
        let mut settings = self.settings.clone();
        settings.push(format!("cluster_name={NAME}"));
        let replica = Server::on(dir, settings)?;
        self.set("synchronous_standby_names", NAME);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(START_MS_MAX) {
            let following = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            if self.psql(following) == "1" {
                return Ok(replica);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("the replica does not follow".to_owned())
    }

    /// Promotes a replica to primary, without a replica of its own.
    pub fn promote(&self) -> Result<(), String> {
        let patience_s = START_MS_MAX / 1000;
        if self.psql(&format!("SELECT pg_promote(true, {patience_s})")) != "t" {
            return Err("the replica was not promoted in time".to_owned());
        }
        // The copied settings may name a replica.
        self.set("synchronous_standby_names", "");
        Ok(())
    }

    fn set(&self, setting: &str, value: &str) {
        self.psql(&format!("ALTER SYSTEM SET {setting} = '{value}'"));
        self.psql("SELECT pg_reload_conf()");
    }
}
