//! What a data directory has in it beside runs.

use crate::world::World;
use std::path::Path;

const HELLO: &str = "name: hello\nsteps: [{id: say, agent: shell, command: echo hello}]\n";

fn world() -> World {
    World::new().file("hello.lobsterx.yaml", HELLO)
}

fn ignored(dir: &Path) -> String {
    std::fs::read_to_string(dir.join(".gitignore")).unwrap_or_default()
}

#[test]
fn a_new_data_directory_is_ignored_by_git() {
    let world = world();
    world.printed(&["run", "hello.lobsterx.yaml"]);
    let data = world.path().join(".sluice");
    assert!(data.join("seal.key").exists());
    assert_eq!(ignored(&data), "*\n");
}

#[test]
fn a_data_directory_of_an_earlier_version_is_ignored_once_it_is_opened() {
    let world = world();
    world.printed(&["run", "hello.lobsterx.yaml"]);
    let data = world.path().join(".sluice");
    std::fs::remove_file(data.join(".gitignore")).unwrap();
    world.printed(&["run", "hello.lobsterx.yaml"]);
    assert_eq!(ignored(&data), "*\n");
    std::fs::write(data.join(".gitignore"), "!seal.pub\n").unwrap();
    world.printed(&["run", "hello.lobsterx.yaml"]);
    assert_eq!(ignored(&data), "!seal.pub\n", "a file of the user's own stays");
}

#[test]
fn the_directory_of_an_organisation_is_ignored_by_git() {
    let world = world();
    world.printed(&["organisations", "add", "acme"]);
    let data = world.path().join(".sluice/organisations/acme");
    assert!(data.join("admin.token").exists());
    assert_eq!(ignored(&data), "*\n");
}

#[test]
fn a_repository_that_is_itself_the_data_directory_hides_only_what_sluice_writes() {
    let world = world();
    std::fs::create_dir(world.path().join(".git")).unwrap();
    world.printed(&["run", "hello.lobsterx.yaml", "--data", "."]);
    let ignored = ignored(world.path());
    assert!(ignored.lines().any(|line| line == "/seal.key"), "{ignored}");
    assert!(!ignored.lines().any(|line| line == "*"), "{ignored}");
}
