//! Commands that outlived the engine process that started them.
//!
//! Process ids are reused, so a group is identified by its id and the start time of its leader,
//! in kernel ticks since a boot with a known id. On systems other than Linux the start time is
//! unknown, and nothing is killed.

use crate::limits::{SURVIVOR_LOOK_MS, SURVIVOR_WAIT_MS};
use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use sluice_core::port::adapter::Process;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What happened to a process group that a crash left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Survivor {
    /// It had ended; its id may belong to another group by now.
    Gone,
    /// It was running, and is dead now.
    Killed,
    /// It was killed, but does not end.
    Stuck,
    /// The system does not report whether it runs. Nothing was done.
    Unknown,
}

/// Kills the rest of a process group that an earlier engine process started, and waits a few
/// seconds until it has disappeared. Blocking.
pub(crate) fn kill_survivor(process: &Process) -> Survivor {
    let number = i32::try_from(process.group).ok().filter(|number| *number > 1);
    let id = number.and_then(Pid::from_raw).filter(|id| *id != getpgrp());
    let (Some(id), Some((boot, started)), Some(now)) =
        (id, read_started(&process.started), boot_id())
    else {
        return Survivor::Unknown;
    };
    if boot != now {
        return Survivor::Gone;
    }
    let begin = Instant::now();
    let mut found = Survivor::Gone;
    while runs(process.group, started) {
        if begin.elapsed() > Duration::from_millis(SURVIVOR_WAIT_MS) {
            return Survivor::Stuck;
        }
        // Repeated, because a member may have started a new process in the meantime.
        let _ = kill_process_group(id, Signal::KILL);
        found = Survivor::Killed;
        std::thread::sleep(Duration::from_millis(SURVIVOR_LOOK_MS));
    }
    found
}

/// Start time of a process, in a form that no other process with its id shares; empty if the
/// system does not report it.
pub(super) fn started(number: u32) -> String {
    match (boot_id(), Stat::read(number)) {
        (Some(boot), Some(stat)) => format!("{boot}:{}", stat.started),
        _ => String::new(),
    }
}

/// Whether a process with this id exists, including zombies.
pub(super) fn exists(number: u32) -> bool {
    PathBuf::from(format!("/proc/{number}")).exists()
}

/// Whether a member of the group runs; `None` if the system does not report it.
pub(super) fn has_living(group: u32) -> Option<bool> {
    Some(members(group)?.iter().any(Stat::is_alive))
}

/// Parses the result of [`started`]: boot id and ticks.
fn read_started(started: &str) -> Option<(&str, u64)> {
    let (boot, ticks) = started.rsplit_once(':')?;
    Some((boot, ticks.parse().ok()?))
}

fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Whether a process of the group runs, if the group's leader started at `started`.
///
/// The kernel does not reuse the id of a group that has members. So if a process with that id
/// started at another time, the old group had no members left. A member older than the leader
/// belongs to another group.
fn runs(group: u32, started: u64) -> bool {
    if Stat::read(group).is_some_and(|leader| leader.started != started) {
        return false;
    }
    let members = members(group).unwrap_or_default();
    let stranger = members.iter().any(|member| member.started < started);
    !stranger && members.iter().any(Stat::is_alive)
}

/// The processes of the group; `None` if the system does not report them.
fn members(group: u32) -> Option<Vec<Stat>> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(numbers.filter_map(Stat::read).filter(|stat| stat.group == group).collect())
}

/// Fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    group: u32,
    /// In ticks since the boot.
    started: u64,
}

impl Stat {
    fn read(number: u32) -> Option<Stat> {
        Stat::parse(&std::fs::read(format!("/proc/{number}/stat")).ok()?)
    }

    /// `pid (name) state parent group …`; the name may contain anything.
    fn parse(line: &[u8]) -> Option<Stat> {
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&line[name_end + 1..]).ok()?;
        // The first of these is field 3; the kernel counts from 1.
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Stat { state, group, started })
    }

    /// Whether it is not a zombie.
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests;
