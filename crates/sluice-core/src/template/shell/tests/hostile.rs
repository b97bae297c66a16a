//! Dangerous values in every accepted position.

use super::shell;
use crate::scope::names::Names;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

/// Commands that print exactly the value, each with a reference at another position.
const PRINTERS: &[&str] = &[
    "printf %s ${v}",
    "printf %s \"${v}\"",
    "printf %s ''${v}''",
    "printf %s \"\"${v}\"\"",
    "x=${v}; printf %s \"$x\"",
    "x=\"${v}\"; printf %s \"$x\"",
    "# don't ${v}\nprintf %s ${v}",
    "printf %s ${v} # it's ${v}",
    "(printf %s ${v})",
    "{ printf %s ${v}; }",
    "printf %s \"$(printf %s. ${v})\" | sed '$s/\\.$//' | awk 'NR > 1 { print l } { l = $0 } END { printf \"%s\", l }'",
    "f() { printf %s \"$1\"; }; f ${v}",
    "for i in ${v}; do printf %s \"$i\"; done",
    "case ${v} in *) printf %s ${v};; esac",
    "[ -n ${v} ] || :; printf %s ${v}",
    "set -- ${v}; printf %s \"$1\"; [ $# = 1 ]",
    "printf '%s' \\\n${v}",
];

/// Commands that print the value and a line break.
const LINE_PRINTERS: &[&str] = &[
    "cat <<EOF\n${v}\nEOF",
    "cat <<-EOF\n\t${v}\n\tEOF",
    "cat <<'A' <<EOF\n$(touch x) '\nA\n${v}\nEOF",
    "cat <<EOF\n$(printf %s.. ${v} | tr -d '\\n' >/dev/null)${v}\nEOF",
    "printf '%s\\n' \"$${HOME+}${v}\"",
    "echo >/dev/null $((1 + 1)) `date`; printf '%s\\n' ${v}",
];

const VALUES: &[&str] = &[
    "",
    " ",
    "plain",
    "$(touch x)",
    "`touch x`",
    "\"; touch x; \"",
    "'; touch x; '",
    "'",
    "\"",
    "\\",
    "\\\\n\\",
    "a\nb\n\n c",
    "*",
    "~ ? [a-z] {a,b}",
    "$HOME ${HOME} $SLUICE_V1 $$",
    "a  b\tc ",
    "-n -e --",
    "EOF",
    "a\nEOF\ntouch x",
    "# comment",
    "%s%n\\0",
    ") ; touch x",
    "a[$(touch x)]",
    "x; touch x &",
    "über 😀",
];

/// An empty directory for commands to run in.
struct Room(PathBuf);

impl Room {
    fn new(name: &str) -> Room {
        let name = format!("sluice-core-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Room(path)
    }

    /// What the command prints when `sh` runs it with the value.
    fn print(&self, source: &str, value: &str) -> String {
        let command = shell(source).unwrap_or_else(|faults| panic!("{source}: {faults:?}"));
        let scope = Names::new().with_variable("v", json!(value));
        let environment = command.render_env(&scope).unwrap();
        let output = Command::new("/bin/sh")
            .arg("-c")
            .arg(&command.script)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(environment)
            .current_dir(&self.0)
            .output()
            .unwrap();
        assert!(output.status.success(), "{source} with {value:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A directory can be removed only while it is empty.
    fn leave(self) {
        std::fs::remove_dir(&self.0).expect("no value was run as a command");
    }
}

#[test]
fn hostile_values_arrive_byte_for_byte_and_run_nothing() {
    let room = Room::new("hostile");
    for value in VALUES {
        for source in PRINTERS {
            assert_eq!(room.print(source, value), *value, "{source}");
        }
        for source in LINE_PRINTERS {
            assert_eq!(room.print(source, value), format!("{value}\n"), "{source}");
        }
    }
    room.leave();
}

#[test]
fn any_value_arrives_byte_for_byte() {
    let room = Room::new("any");
    let source =
        "printf %s\\| ${v} \"a${v}b\" \"$(printf %s. ${v})\" \"$(printf \"%s.\" \"${v}\")\"";
    let values = "([$`'\"\\\\(){};&|<>*?#~!\n\t a-c]|\\PC){0,20}";
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() };
    let mut runner = TestRunner::new(config);
    let checked = runner.run(&values, |value| {
        let expected = format!("{value}|a{value}b|{value}.|{value}.|");
        prop_assert_eq!(room.print(source, &value), expected);
        Ok(())
    });
    checked.unwrap();
    room.leave();
}
