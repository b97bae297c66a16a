//! Commands that outlived the engine that started them.
//!
//! Numbers of processes are given out again, so a group is known by its number
//! and by when its leader was started, counted by the kernel since a boot that
//! has an id. Where the system does not say (anything but Linux), nothing is
//! ever killed.

use crate::limits::{SURVIVOR_LOOK_MS, SURVIVOR_WAIT_MS};
use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use sluice_core::port::adapter::Process;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What became of a process group that a crash left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivor {
    /// It had ended; its number may be a stranger's by now.
    Gone,
    /// It was running, and is dead now.
    Killed,
    /// It was killed, but does not end: the system is stuck.
    Stuck,
    /// The system does not say whether it runs. Nothing was done.
    Unknown,
}

/// Kills what is left of a process group that an earlier engine started, and
/// waits, at most a few seconds, until it is gone. Blocks meanwhile.
pub fn kill_survivor(process: &Process) -> Survivor {
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
        // Again each time: a member may have started another meanwhile.
        let _ = kill_process_group(id, Signal::KILL);
        found = Survivor::Killed;
        std::thread::sleep(Duration::from_millis(SURVIVOR_LOOK_MS));
    }
    found
}

/// When a process was started, in a form that no other process of its number
/// shares; empty where the system does not say.
pub(super) fn started(number: u32) -> String {
    match (boot_id(), Stat::of(number)) {
        (Some(boot), Some(stat)) => format!("{boot}:{}", stat.started),
        _ => String::new(),
    }
}

/// Whether a process of this number exists, dead ones that nobody reaped counted.
pub(super) fn exists(number: u32) -> bool {
    PathBuf::from(format!("/proc/{number}")).exists()
}

/// Whether any member of the group runs; none where the system does not say.
pub(super) fn has_living(group: u32) -> Option<bool> {
    Some(members(group)?.iter().any(Stat::is_alive))
}

/// The boot and the count of ticks that [`started`] wrote.
fn read_started(started: &str) -> Option<(&str, u64)> {
    let (boot, ticks) = started.rsplit_once(':')?;
    Some((boot, ticks.parse().ok()?))
}

fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Whether anything of the group runs that `started` then.
///
/// The kernel gives no process the number of a group that has members. So if a
/// process of that number exists that was started at another time, the group
/// had no members left. A member older than the leader is a stranger's for sure.
fn runs(group: u32, started: u64) -> bool {
    if Stat::of(group).is_some_and(|leader| leader.started != started) {
        return false;
    }
    let members = members(group).unwrap_or_default();
    let stranger = members.iter().any(|member| member.started < started);
    !stranger && members.iter().any(Stat::is_alive)
}

/// Every process of the group; none where the system does not say.
fn members(group: u32) -> Option<Vec<Stat>> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(numbers.filter_map(Stat::of).filter(|stat| stat.group == group).collect())
}

/// What the kernel says about a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    group: u32,
    /// In ticks since the boot.
    started: u64,
}

impl Stat {
    fn of(number: u32) -> Option<Stat> {
        Stat::parse(&std::fs::read(format!("/proc/{number}/stat")).ok()?)
    }

    /// `number (name) state parent group …`; the name may hold anything.
    fn parse(line: &[u8]) -> Option<Stat> {
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&line[name_end + 1..]).ok()?;
        // The first of these is field 3 in the kernel's count, which is from 1.
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Stat { state, group, started })
    }

    /// Whether it still does anything: not one that only waits to be reaped.
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests;
