//! A process group and its termination.

use super::pipe::{Pipes, Stderr, Stdout};
use super::survivor;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use sluice_core::port::adapter::Process;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// Poll interval while a group terminates.
const LOOK: Duration = Duration::from_millis(20);

/// A process group, killed when dropped.
pub(crate) struct Group {
    leader: Child,
    id: Pid,
    process: Process,
    /// Whether the leader is reaped: from then on its pid may belong to another process.
    reaped: bool,
}

impl Group {
    /// Starts a command as the leader of a new group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Group> {
        let leader = command.spawn()?;
        let number = leader.id().expect("a process that was not waited for has an id");
        let id = i32::try_from(number).ok().and_then(Pid::from_raw);
        let id = id.expect("the system's process ids are positive");
        let process = Process { group: number, started: survivor::started(number) };
        Ok(Group { leader, id, process, reaped: false })
    }

    /// Identifies the group after a crash.
    pub(super) fn process(&self) -> Process {
        self.process.clone()
    }

    /// The pipes; can be called once.
    pub(super) fn pipes(&mut self, stdout_bytes_max: usize, stderr_bytes_max: usize) -> Pipes {
        let fact = "all pipes are configured and taken once";
        Pipes {
            stdin: Some(self.leader.stdin.take().expect(fact)),
            stdout: Stdout::new(self.leader.stdout.take().expect(fact), stdout_bytes_max),
            stderr: Stderr::new(self.leader.stderr.take().expect(fact), stderr_bytes_max),
        }
    }

    /// The raw pipes; can be called once.
    pub(crate) fn raw_pipes(&mut self) -> (ChildStdin, ChildStdout, ChildStderr) {
        let fact = "all pipes are configured and taken once";
        (
            self.leader.stdin.take().expect(fact),
            self.leader.stdout.take().expect(fact),
            self.leader.stderr.take().expect(fact),
        )
    }

    /// Waits for the leader, then kills the rest of the group.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.reap().await?;
        self.signal(Signal::KILL);
        Ok(status)
    }

    /// Sends SIGTERM to the group, and SIGKILL after the grace period.
    pub(crate) async fn terminate(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        let gone = async {
            // The shell ends at once; its children may need the time.
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

    /// Whether the group id still refers to this group. The kernel does not reuse the id of
    /// a group that has members; afterwards it may.
    fn is_ours(&self) -> bool {
        !self.reaped || !survivor::exists(self.process.group)
    }

    /// Whether a process of the group still runs. Zombies count for `kill` until they are
    /// reaped, which may never happen for orphans; so `/proc` is checked as well.
    fn has_members(&self) -> bool {
        test_kill_process_group(self.id).is_ok()
            && survivor::has_living(self.process.group).unwrap_or(true)
    }

    fn signal(&self, signal: Signal) {
        if self.is_ours() {
            // A group without members is not an error.
            let _ = kill_process_group(self.id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
