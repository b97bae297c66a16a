//! A replica that every commit waits for, and the primary that it becomes.

use super::install::{command, directory, programs, run};
use super::{START_MS_MAX, Server};
use std::time::{Duration, Instant};

/// What the primary knows its replica by.
const NAME: &str = "replica";

impl Server {
    /// Starts a replica of this server, with the same settings and a port of its
    /// own. When this comes back, a commit here is answered only once it is on the
    /// replica's disk too. One that has gone holds up every commit.
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

    /// Makes a primary of a replica. It has none of its own then.
    pub fn promote(&self) -> Result<(), String> {
        let patience_s = START_MS_MAX / 1000;
        if self.psql(&format!("SELECT pg_promote(true, {patience_s})")) != "t" {
            return Err("the replica was not promoted in time".to_owned());
        }
        // It was copied from one that may have had a replica.
        self.set("synchronous_standby_names", "");
        Ok(())
    }

    fn set(&self, setting: &str, value: &str) {
        self.psql(&format!("ALTER SYSTEM SET {setting} = '{value}'"));
        self.psql("SELECT pg_reload_conf()");
    }
}
