//! Little address space.

use crate::world::{Running, World, shown};
use std::process::Command;

/// What a server says that is given so much address space, in KiB. One that starts is
/// stopped after a moment.
fn started_within(kib: u32) -> String {
    let world = World::new();
    let serve = world.command(&["serve", "--listen", "127.0.0.1:0", "--data", ".sluice"]);
    let mut shell = Command::new("/bin/sh");
    let script = format!("ulimit -v {kib}; exec timeout 2 \"$0\" \"$@\"");
    shell.args(["-c", &script]).arg(serve.get_program());
    shell.args(serve.get_args()).current_dir(world.path());
    shown(&Running::spawn(shell).output())
}

#[test]
fn a_server_without_room_for_its_threads_says_so() {
    // How much is too little depends on the build.
    let bounds = [160_000, 140_000, 120_000, 100_000, 80_000];
    let told = bounds.map(started_within);
    let refused: Vec<&String> = told.iter().filter(|told| told.contains("error[")).collect();
    assert!(!refused.is_empty(), "it starts with any of these: {told:?}");
    for told in refused {
        assert!(told.contains("error[out_of_resources]"), "{told}");
        assert!(told.contains("address space"), "{told}");
        assert!(!told.contains("correct the policies"), "{told}");
    }
}
