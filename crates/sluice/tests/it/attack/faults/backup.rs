//! A backup of a server with several organisations, restored as the guide says.

use crate::server::Server;
use crate::world::World;
use std::path::Path;

const HELLO: &str = "name: hello\nsteps: [{id: a, command: Say hello.}]\n";

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_restored_backup_has_all_organisations() {
    let world = World::new().file("hello.lobsterx.yaml", HELLO);
    let world = world.file("mock.yaml", "'*': {text: Done.}\n");
    let run = |data: &str| {
        world.printed(&["run", "hello.lobsterx.yaml", "--mock", "mock.yaml", "--data", data]);
    };
    run(".sluice");
    // A server makes the key of dispatches, which is to be kept with the backup.
    drop(Server::with(&world, &["--listen", "127.0.0.1:0", "--data", ".sluice"]));
    for name in ["acme", "zeta"] {
        world.printed(&["organisations", "add", name, "--data", ".sluice"]);
        run(&format!(".sluice/organisations/{name}"));
    }
    let told = world.told(&["backup", "monday.db", "--data", ".sluice"]);
    assert!(told.ends_with("exit 0\n"), "{told}");
    for named in [
        "monday.db holds",
        "monday.db.organisations/acme/sluice.db holds",
        "zeta/sluice.db holds",
        ".sluice/seal.key",
        ".sluice/dispatch.key",
        ".sluice/organisations/acme/seal.key",
    ] {
        assert!(told.contains(named), "{named}: {told}");
    }
    let restored = world.path().join("restored");
    std::fs::create_dir(&restored).unwrap();
    std::fs::copy(world.path().join("monday.db"), restored.join("sluice.db")).unwrap();
    copy(&world.path().join("monday.db.organisations"), &restored.join("organisations"));
    for of in ["", "organisations/acme", "organisations/zeta"] {
        for key in ["seal.key", "seal.pub", "dispatch.key"] {
            let from = world.path().join(".sluice").join(of).join(key);
            // Only the first organisation was served.
            if key != "dispatch.key" || of.is_empty() {
                std::fs::copy(from, restored.join(of).join(key)).unwrap();
            }
        }
    }
    let all = |data| world.told(&["organisations", "list", "--data", data]);
    assert_eq!(all("restored"), all(".sluice"));
    for of in ["", "/organisations/acme", "/organisations/zeta"] {
        let list = |dir: &str| world.told(&["runs", "list", "--data", &format!("{dir}{of}")]);
        assert!(list("restored").contains("hello"), "{of}: {}", list("restored"));
        assert_eq!(list("restored"), list(".sluice"), "{of}");
        let verified = world.told(&["audit", "verify", "--data", &format!("restored{of}")]);
        assert!(verified.contains("nothing is wrong"), "{of}: {verified}");
    }
    // A second one does not overwrite, and leaves nothing half done.
    let again = world.told(&["backup", "monday.db", "--data", ".sluice"]);
    assert!(again.contains("error[file_exists]"), "{again}");
    std::fs::remove_file(world.path().join("monday.db")).unwrap();
    let again = world.told(&["backup", "monday.db", "--data", ".sluice"]);
    assert!(again.contains("error[file_exists]"), "{again}");
    assert!(!world.path().join("monday.db").exists(), "half a backup is left");
}
