//! A process group and its end.

use super::pipe::{Pipes, Stderr, Stdout};
use super::survivor;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use sluice_core::port::adapter::Process;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// How often a group that was asked to end is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A process group, killed when dropped.
pub(crate) struct Group {
    leader: Child,
    id: Pid,
    process: Process,
    /// The leader is reaped: its number may be another's from now on.
    reaped: bool,
}

impl Group {
    /// Starts a command that is to lead a group of its own.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Group> {
        let leader = command.spawn()?;
        let number = leader.id().expect("a process that was not waited for has an id");
        let id = i32::try_from(number).ok().and_then(Pid::from_raw);
        let id = id.expect("the system's process ids are positive");
        let process = Process { group: number, started: survivor::started(number) };
        Ok(Group { leader, id, process, reaped: false })
    }

    /// How it is found after a crash.
    pub(super) fn process(&self) -> Process {
        self.process.clone()
    }

    /// The ends of its pipes; they can be taken once.
    pub(super) fn pipes(&mut self, stdout_bytes_max: usize, stderr_bytes_max: usize) -> Pipes {
        let fact = "each pipe was asked for and is taken once";
        Pipes {
            stdin: Some(self.leader.stdin.take().expect(fact)),
            stdout: Stdout::new(self.leader.stdout.take().expect(fact), stdout_bytes_max),
            stderr: Stderr::new(self.leader.stderr.take().expect(fact), stderr_bytes_max),
        }
    }

    /// The same, for somebody who reads and writes them in another way.
    pub(crate) fn raw_pipes(&mut self) -> (ChildStdin, ChildStdout, ChildStderr) {
        let fact = "each pipe was asked for and is taken once";
        (
            self.leader.stdin.take().expect(fact),
            self.leader.stdout.take().expect(fact),
            self.leader.stderr.take().expect(fact),
        )
    }

    /// Waits for the leader, then kills what it left behind.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.reap().await?;
        self.signal(Signal::KILL);
        Ok(status)
    }

    /// Asks the group to end, and kills what is left of it after the grace.
    pub(crate) async fn terminate(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        let gone = async {
            // A shell ends at once; what it ran may need the time.
            let _ = self.reap().await;
            while self.is_ours() && self.has_members() {
                sleep(LOOK).await;
            }
        };
        let _ = timeout(grace, gone).await;
        self.kill().await;
    }

    /// Kills the group and waits for its leader.
    pub(super) async fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.reap().await;
    }

    async fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.leader.wait().await?;
        self.reaped = true;
        Ok(status)
    }

    /// Whether the group's number still means this group. No process gets the
    /// number of a group that has members; when it has none, somebody may.
    fn is_ours(&self) -> bool {
        !self.reaped || !survivor::exists(self.process.group)
    }

    /// Whether somebody in the group still runs. The dead count until they are
    /// reaped, which nobody may ever do for orphans; then the system is asked
    /// for more.
    fn has_members(&self) -> bool {
        test_kill_process_group(self.id).is_ok()
            && survivor::has_living(self.process.group).unwrap_or(true)
    }

    fn signal(&self, signal: Signal) {
        if self.is_ours() {
            // That nobody is left to be told is no error.
            let _ = kill_process_group(self.id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
