use super::*;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The leader of a group, which prints a line when it is ready; killed and reaped at the end of
/// the test.
struct Leader {
    child: Child,
    process: Process,
}

impl Leader {
    fn start(script: &str) -> Leader {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let process = Process { group: child.id(), started: started(child.id()) };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Leader { child, process }
    }

    fn alive(&self) -> usize {
        members(self.process.group).unwrap().iter().filter(|member| member.is_alive()).count()
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        kill_survivor(&self.process);
        let _ = self.child.wait();
    }
}

#[test]
fn a_running_group_is_killed_with_all_its_members() {
    let leader = Leader::start("sleep 100 & (sleep 100 &); echo ready; wait");
    assert_eq!(leader.alive(), 3);
    assert_eq!(kill_survivor(&leader.process), Survivor::Killed);
    assert_eq!(leader.alive(), 0);
    assert_eq!(kill_survivor(&leader.process), Survivor::Gone);
}

#[test]
fn members_are_killed_when_their_leader_is_gone() {
    let mut leader = Leader::start("sleep 100 >/dev/null & echo ready");
    leader.child.wait().unwrap();
    assert!(!exists(leader.process.group));
    assert_eq!(leader.alive(), 1);
    assert_eq!(kill_survivor(&leader.process), Survivor::Killed);
    assert_eq!(leader.alive(), 0);
}

#[test]
fn another_process_with_the_same_id_is_left_alone() {
    let leader = Leader::start("echo ready; exec sleep 100");
    let (boot, ticks) = read_started(&leader.process.started).unwrap();
    for other in [
        format!("{boot}:{}", ticks + 1),
        format!("{boot}:{}", ticks - 1),
        format!("another-boot:{ticks}"),
    ] {
        let process = Process { started: other, ..leader.process };
        assert_eq!(kill_survivor(&process), Survivor::Gone);
    }
    assert_eq!(leader.alive(), 1);
}

#[test]
fn members_older_than_the_recorded_leader_belong_to_another_group() {
    let mut leader = Leader::start("sleep 100 >/dev/null & echo ready");
    leader.child.wait().unwrap();
    let (boot, ticks) = read_started(&leader.process.started).unwrap();
    let later = Process { started: format!("{boot}:{}", ticks + 1000), ..leader.process };
    assert_eq!(kill_survivor(&later), Survivor::Gone);
    assert_eq!(leader.alive(), 1);
}

#[test]
fn an_unidentifiable_group_is_left_alone() {
    let leader = Leader::start("echo ready; exec sleep 100");
    for started in ["", "12", "boot:", "boot:x"] {
        let process = Process { started: started.to_owned(), ..leader.process };
        assert_eq!(kill_survivor(&process), Survivor::Unknown, "{started}");
    }
    for group in [0, 1, u32::MAX, getpgrp().as_raw_nonzero().get().cast_unsigned()] {
        let process = Process { group, started: leader.process.started.clone() };
        assert_eq!(kill_survivor(&process), Survivor::Unknown, "{group}");
    }
    assert_eq!(leader.alive(), 1);
}

#[test]
fn a_process_name_with_brackets_and_spaces_is_parsed() {
    let line = b"7 (a) R (\xff) S 1 42 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 999 20 21";
    assert_eq!(Stat::parse(line), Some(Stat { state: 'S', group: 42, started: 999 }));
    for line in [&b""[..], b"7 (a", b"7 (a)", b"7 (a) S 1 42 3"] {
        assert_eq!(Stat::parse(line), None);
    }
}
