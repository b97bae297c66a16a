//! The live view and the prompt, on a terminal of our own.

use crate::world::{PATIENCE, World};
use regex::Regex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const ROWS: u16 = 20;

/// A command on a terminal.
struct Terminal {
    child: Child,
    keyboard: File,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn run(world: &World, args: &[&str], environment: &[(&str, &str)]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let slave = File::options().read(true).write(true).open(path).unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).unwrap();
        let mut command = world.command(args);
        command.env("TERM", "xterm").envs(environment.iter().copied());
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let child = command.spawn().unwrap();
        // Else the terminal would stay open when the command ends.
        drop(command);
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal { child, keyboard, seen }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits until the last thing on the screen is this question, and answers.
    fn answer(&mut self, question: &str, answer: &str) {
        let began = Instant::now();
        while !self.text().ends_with(question) {
            assert!(began.elapsed() < PATIENCE, "never asked `{question}`: {}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.keyboard.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }

    /// Waits until this was shown.
    fn until(&self, shown: &str) {
        let began = Instant::now();
        while !self.text().contains(shown) {
            assert!(began.elapsed() < PATIENCE, "never shown `{shown}`: {}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end: everything that was shown, and the exit code.
    fn end(mut self) -> (String, Option<i32>) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end: {}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        };
        // What was written last may still be on its way.
        std::thread::sleep(Duration::from_millis(50));
        (self.text(), status.code())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ASK: &str = "
name: ask
steps:
  - {id: amount, approval: {required: true, summary: \"How\\e[31m much?\"}, outputs: {usd: {type: integer, minimum: 1}, note: {type: string, required: false}}}
  - {id: pay, command: 'pay ${usd}', depends_on: [amount], outputs: {paid: string}}
";
const RUN: [&str; 4] = ["run", "ask.lobsterx.yaml", "--mock", "mock.yaml"];

fn world() -> World {
    World::new()
        .file("ask.lobsterx.yaml", ASK)
        .file("mock.yaml", "pay: {echo: true, outputs: {paid: ok}}")
}

#[test]
fn a_question_is_asked_at_the_prompt_with_its_values() {
    let world = world();
    let mut terminal = Terminal::run(&world, &RUN, &[]);
    terminal.answer("approve? [y/n] ", "perhaps");
    terminal.answer("perhaps\r\n  approve? [y/n] ", "y");
    terminal.answer("usd (integer): ", "0");
    terminal.answer("note (string, optional): ", "");
    terminal.answer("below the minimum 1\r\n  approve? [y/n] ", "y");
    terminal.answer("usd (integer): ", "7");
    terminal.answer("note (string, optional): ", "thanks");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("How␛[31m much?"), "{text}");
    assert!(text.contains("\u{1b}[32m✓"), "colours: {text}");
    assert!(text.ends_with("  note: thanks\r\n  paid: ok\r\n  usd: 7\r\n"), "{text}");
}

#[test]
fn a_no_needs_a_reason() {
    let world = world();
    let mut terminal = Terminal::run(&world, &RUN, &[("NO_COLOR", "1")]);
    terminal.answer("approve? [y/n] ", "n");
    terminal.answer("why? ", "");
    terminal.answer("says why\r\n  approve? [y/n] ", "n");
    terminal.answer("why? ", "too dear");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("rejected by ada: too dear"), "{text}");
    assert!(!Regex::new("\u{1b}\\[[0-9;]*m").unwrap().is_match(&text), "no colours: {text}");
}

#[test]
fn a_failed_step_takes_a_choice_at_the_prompt() {
    let world = World::new()
        .file(
            "ask.lobsterx.yaml",
            "name: fails\nsteps: [{id: pay, command: pay, on_failure: retry_once_then_escalate}]\n",
        )
        .file("mock.yaml", "pay: {error: down, error_code: provider_error}");
    let mut terminal = Terminal::run(&world, &RUN, &[]);
    terminal.answer("[retry/skip/abort] ", "skip");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_restart_is_confirmed_at_the_prompt() {
    let world = World::new()
        .file("ask.lobsterx.yaml", "name: one\nsteps: [{id: pay, command: pay}]\n")
        .file("mock.yaml", "pay: {text: paid}");
    world.output(&RUN);
    let run = world.newest();
    let restart = ["runs", "restart", &run, "--from", "pay", "--mock", "mock.yaml"];
    for (answer, exit) in [("n", 2), ("y", 0)] {
        let mut terminal = Terminal::run(&world, &restart, &[]);
        terminal.answer("continue? [y/n] ", answer);
        assert_eq!(terminal.end().1, Some(exit), "{answer}");
    }
}

#[test]
fn a_large_plan_stays_within_the_terminal() {
    let steps: String =
        (0..200).map(|at| format!("  - {{id: step_{at}, command: go}}\n")).collect();
    let world = World::new()
        .file("ask.lobsterx.yaml", &format!("name: large\nmax_parallel: 8\nsteps:\n{steps}"))
        .file("mock.yaml", "'*': {text: ok, delay_ms: 10}");
    let (text, code) = Terminal::run(&world, &RUN, &[]).end();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(" more; in all "), "{text}");
    let up = Regex::new("\u{1b}\\[([0-9]+)A").unwrap();
    let highest = up.captures_iter(&text).map(|found| found[1].parse::<u16>().unwrap()).max();
    assert!(highest.is_some_and(|highest| highest < ROWS), "{highest:?}");
    let wide = text.lines().map(|line| line.chars().filter(|c| !c.is_control()).count()).max();
    assert!(wide.is_some_and(|wide| wide < 120), "{wide:?}");
}

#[test]
fn a_terminal_that_can_only_print_gets_lines() {
    let world = world();
    let mut terminal = Terminal::run(&world, &RUN, &[("TERM", "dumb")]);
    terminal.answer("approve? [y/n] ", "y");
    terminal.answer("usd (integer): ", "7");
    terminal.answer("note (string, optional): ", "");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_step_at_a_gate_says_so_in_the_live_view() {
    let document = "name: one\nsteps: [{id: a, command: go}]\n";
    let world = World::new().file("one.lobsterx.yaml", document).file("mock.yaml", "a: {text: x}");
    world.printed(&["gateways", "set", "house", "provider=mock", "default=true"]);
    world.printed(&["gateways", "pause", "house"]);
    let run = ["run", "one.lobsterx.yaml", "--mock", "mock.yaml"];
    let terminal = Terminal::run(&world, &run, &[]);
    terminal.until("a  waiting");
    terminal.until("gateway_unreachable: resume gateway");
    world.printed(&["gateways", "resume", "house"]);
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
}
