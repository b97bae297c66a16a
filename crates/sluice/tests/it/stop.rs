//! Signals that end a command: the first in order, the second at once, also where
//! nothing can be written any more.

use crate::world::{PATIENCE, World};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const NAP: &str = "name: nap\nversion: 1\nsteps: [{id: nap, agent: shell, command: 'echo $$ > \
                   ${args.file}; sleep 60'}]\nargs: {file: string}\n";

/// A command whose writes to files can be made to fail.
pub(crate) struct Stuck {
    child: Child,
    told: Arc<Mutex<String>>,
}

impl Stuck {
    pub(crate) fn start(world: &World, args: &[&str]) -> Stuck {
        let command = world.command(args);
        // A write past the bound gets an error instead of a signal.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(command.get_program());
        shell.args(command.get_args()).current_dir(world.path());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let shell = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let told = Arc::new(Mutex::new(String::new()));
        let (lines, heard) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&told));
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                *heard.lock().unwrap() += &format!("{line}\n");
            }
        });
        Stuck { child, told }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// From now on no file can be written, as on a full disk.
    pub(crate) fn fill_disk(&self) {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        prlimit(Some(self.pid()), Resource::Fsize, none).unwrap();
    }

    pub(crate) fn told(&self) -> String {
        self.told.lock().unwrap().clone()
    }

    /// Where a server listens, once it does.
    pub(crate) fn api(&self, world: &World) -> String {
        world.until("the server answers", |_| {
            let told = self.told();
            let line = told.lines().find_map(|line| line.strip_prefix("the API: "))?;
            Some(line.trim_end_matches("/api/docs").to_owned())
        })
    }

    /// How it ended, and how long that took in seconds.
    pub(crate) fn end(&mut self) -> (Option<i32>, f64) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), began.elapsed().as_secs_f64());
            }
            assert!(began.elapsed() < PATIENCE, "it does not end: {}", self.told());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn world() -> World {
    World::new().file("nap.lobsterx.yaml", NAP).file("mock.yaml", "'*': {text: Done.}\n")
}

pub(crate) fn file(world: &World) -> String {
    format!("file={}", world.path().join("pid").display())
}

/// Waits until the step is under way; its process.
pub(crate) fn step_process(world: &World) -> Pid {
    world.until("the step has begun", |world| {
        let text = std::fs::read_to_string(world.path().join("pid")).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    })
}

pub(crate) fn lives(process: Pid) -> bool {
    rustix::process::test_kill_process(process).is_ok()
}

/// A run whose first signal cannot be followed: the disk is full.
fn stuck_run(world: &World, first: Signal, says: &str) -> (Stuck, Pid) {
    let running = Stuck::start(world, &["run", "nap.lobsterx.yaml", "--arg", &file(world)]);
    let step = step_process(world);
    running.fill_disk();
    running.signal(first);
    world.until(says, |_| running.told().contains(says).then_some(()));
    (running, step)
}

#[test]
fn a_second_request_to_terminate_ends_a_run_on_a_full_disk() {
    let world = world();
    let (mut running, step) = stuck_run(&world, Signal::TERM, "leaving; ");
    assert!(running.child.try_wait().unwrap().is_none(), "{}", running.told());
    running.signal(Signal::TERM);
    let (code, seconds) = running.end();
    assert_eq!(code, Some(143), "{}", running.told());
    assert!(seconds < 5.0, "it took {seconds} s: {}", running.told());
    world.until("the step's process is gone", |_| (!lives(step)).then_some(()));
}

#[test]
fn a_second_interrupt_ends_a_run_on_a_full_disk() {
    let world = world();
    let (mut running, step) = stuck_run(&world, Signal::INT, "cancelling; ");
    running.signal(Signal::INT);
    let (code, seconds) = running.end();
    assert_eq!(code, Some(130), "{}", running.told());
    assert!(seconds < 5.0, "it took {seconds} s: {}", running.told());
    assert!(running.told().contains("killed; `sluice resume run_"), "{}", running.told());
    world.until("the step's process is gone", |_| (!lives(step)).then_some(()));
}

#[test]
fn an_interrupt_and_then_a_request_to_terminate_end_a_run_at_once() {
    let world = world();
    let (mut running, _) = stuck_run(&world, Signal::INT, "cancelling; ");
    running.signal(Signal::TERM);
    let (code, seconds) = running.end();
    assert_eq!(code, Some(143), "{}", running.told());
    assert!(seconds < 5.0, "it took {seconds} s: {}", running.told());
}

#[test]
fn a_second_signal_ends_a_server_on_a_full_disk() {
    for (second, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let world = world();
        let serve = ["serve", "--listen", "127.0.0.1:0", "--shell", "--data", ".sluice"];
        let mut server = Stuck::start(&world, &serve);
        let api = server.api(&world);
        let token = std::fs::read_to_string(world.path().join(".sluice/admin.token")).unwrap();
        let mut start = world.command(&["workflows", "put", "nap.lobsterx.yaml", "--url", &api]);
        assert!(start.env("SLUICE_TOKEN", token.trim()).output().unwrap().status.success());
        let file = file(&world);
        let args = ["workflows", "start", "nap", "--detach", "--arg", &file, "--url", &api];
        let started = world.command(&args).env("SLUICE_TOKEN", token.trim()).output().unwrap();
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        let step = step_process(&world);
        server.fill_disk();
        server.signal(Signal::TERM);
        world.until("it stops", |_| server.told().contains("stopping: ").then_some(()));
        assert!(server.child.try_wait().unwrap().is_none(), "{}", server.told());
        server.signal(second);
        let (ended, seconds) = server.end();
        assert_eq!(ended, Some(code), "{}", server.told());
        assert!(seconds < 5.0, "it took {seconds} s: {}", server.told());
        world.until("the step's process is gone", |_| (!lives(step)).then_some(()));
    }
}
