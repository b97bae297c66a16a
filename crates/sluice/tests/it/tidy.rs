//! Rules of the source tree that no lint knows.

use crate::session::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// A file of the source tree, without its tests.
struct Source {
    path: String,
    code: String,
}

/// Every Rust file of the crates, tests apart.
fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    for name in crates() {
        gather(&root().join("crates").join(name).join("src"), &mut sources);
    }
    assert!(sources.len() > 40, "{}", sources.len());
    sources
}

fn crates() -> Vec<String> {
    let dirs = std::fs::read_dir(root().join("crates")).unwrap();
    dirs.map(|dir| dir.unwrap().file_name().into_string().unwrap()).collect()
}

fn gather(dir: &Path, sources: &mut Vec<Source>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, sources);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            let inside = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
            let code = if is_test(&path) { String::new() } else { text[..inside].to_owned() };
            sources.push(Source { path, code });
        }
    }
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Fails with everything that breaks a rule, so that it is put right at once.
fn none(rule: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{rule}:\n{}", faults.join("\n"));
}

/// The words in all Rust files of a directory, tests included.
fn words(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            words(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let other = |c: char| !c.is_alphanumeric() && c != '_';
            found.extend(lines.flat_map(|line| line.split(other)).map(str::to_owned));
        }
    }
}

/// The name of the function or constant that a line makes public.
fn public_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.trim_start_matches("const ").trim_start_matches("async ");
    let is_function = rest.starts_with("fn ");
    let name = rest.trim_start_matches("fn ").split(|c: char| !c.is_alphanumeric() && c != '_');
    let name = name.into_iter().next().filter(|name| !name.is_empty())?;
    let is_constant = name.chars().all(|c| c.is_uppercase() || c == '_' || c.is_numeric());
    (is_function || is_constant).then_some(name)
}

/// What only its own crate uses is `pub(crate)`: then `missing_docs` asks for documentation
/// of what other crates use and of nothing else.
#[test]
fn public_functions_and_constants_are_used_by_another_crate() {
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in crates() {
        let dir = root().join("crates").join(&name);
        words(&dir.join("src"), users.entry(name.clone()).or_default());
        words(&dir.join("tests"), users.entry(format!("{name}/tests")).or_default());
    }
    for name in ["bench", "fuzz", "examples"] {
        words(&root().join(name), users.entry(name.to_owned()).or_default());
    }
    let mut faults = Vec::new();
    for source in sources() {
        let owner = source.path.split('/').nth(1).unwrap().to_owned();
        // A binary has no users, and the crate of the tests has only tests.
        if ["sluice", "sluice-testing"].contains(&owner.as_str()) {
            continue;
        }
        let is_used =
            |name: &str| users.iter().any(|(user, words)| *user != owner && words.contains(name));
        let unused = source.code.lines().filter_map(public_name).filter(|name| !is_used(name));
        faults.extend(unused.map(|name| format!("{}: {name}", source.path)));
    }
    none("only its own crate uses it: make it `pub(crate)`", &faults);
}

#[test]
fn files_are_short() {
    let long = sources().into_iter().filter_map(|source| {
        let lines = source.code.lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{}: {lines} lines", source.path))
    });
    none("a file has at most 600 lines of code", &long.collect::<Vec<_>>());
}

#[test]
fn words_of_enums_are_declared_with_the_enum() {
    let mut twice = Vec::new();
    for source in sources() {
        // The macros that declare them.
        if source.path == "crates/sluice-govern/src/choice.rs" {
            continue;
        }
        for (_, rest) in
            source.code.match_indices("fn as_str(").map(|(at, _)| source.code.split_at(at))
        {
            let body = rest.split("\n    }\n").next().unwrap_or(rest);
            if body.contains("=> \"") {
                twice.push(source.path.clone());
            }
        }
    }
    none("an enum gets its words from `choices!` or `tagged!`", &twice);
}

#[test]
fn functions_fit_a_screen() {
    let mut long = Vec::new();
    for source in sources() {
        let lines: Vec<&str> = source.code.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = function(line) else { continue };
            // The formatter puts the closing brace under the first letter.
            let indent = &line[..line.len() - line.trim_start().len()];
            let end = format!("{indent}}}");
            let one_line = line.ends_with('}') || line.ends_with(';');
            let body = lines[at..].iter().position(|line| *line == end).unwrap_or(0);
            if !one_line && body + 1 > FUNCTION_LINES_MAX {
                long.push(format!("{}: {name} has {} lines", source.path, body + 1));
            }
        }
    }
    none("a function has at most 70 lines", &long);
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let words = ["pub", "pub(crate)", "pub(super)", "const", "async", "default", "extern"];
    let head = before.split_whitespace().all(|word| words.contains(&word));
    let name = after.split(['(', '<']).next()?;
    (head && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}

#[test]
fn files_are_named_for_what_they_hold() {
    let nameless = ["mod.rs", "utils.rs", "util.rs", "common.rs", "helpers.rs", "types.rs"];
    let bad = sources().into_iter().map(|source| source.path).filter(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        nameless.contains(&name)
    });
    none("`foo.rs` stands beside `foo/`, and has a name", &bad.collect::<Vec<_>>());
}

#[test]
fn the_core_touches_no_world() {
    let words = ["std::fs", "std::net", "std::env", "SystemTime", "Instant", "HashMap", "HashSet"];
    let mut found = Vec::new();
    for source in sources().iter().filter(|s| s.path.starts_with("crates/sluice-core/")) {
        for (number, line) in source.code.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            // An address is a value; only a socket is the world.
            let code = code.replace("std::net::Ipv", "");
            if words.iter().any(|word| code.contains(word)) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    none("the core reads no clock, file, socket or environment and keeps no random order", &found);
}

/// The storey of every top module of sluice-core, as the headings of its `lib.rs` say.
fn storeys() -> BTreeMap<String, u32> {
    let lib = std::fs::read_to_string(root().join("crates/sluice-core/src/lib.rs")).unwrap();
    let (mut storey, mut storeys) = (0, BTreeMap::new());
    for line in lib.lines() {
        if let Some(heading) = line.strip_prefix("// Storey ") {
            let number = heading.split(',').next().unwrap_or_default();
            storey = number.parse().expect("a heading begins with its number");
        }
        let module = line.trim_start_matches("pub ").strip_prefix("mod ");
        if let Some(module) = module.and_then(|module| module.strip_suffix(';')) {
            storeys.insert(module.to_owned(), storey);
        }
    }
    assert!(storeys.len() > 30 && storey == 4, "the headings are read: {storeys:?}");
    storeys
}

/// The top modules of sluice-core that a text of it names: `crate::x` and `crate::{x, y::z}`.
fn core_modules_named(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let code: Vec<&str> = code.lines().filter_map(|line| line.split("//").next()).collect();
    for after in code.join("\n").split("crate::").skip(1) {
        let list = match after.strip_prefix('{') {
            Some(group) => group.split(';').next().unwrap_or_default(),
            None => after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""),
        };
        let word = |c: char| !c.is_alphanumeric() && c != '_';
        // Words deeper in a group may be names of modules by chance; none is today.
        named.extend(list.split(word).map(str::to_owned));
    }
    named
}

#[test]
fn imports_of_the_core_only_go_down() {
    let storeys = storeys();
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut wrong, sources) = (Vec::new(), sources());
    for source in &sources {
        let Some(path) = source.path.strip_prefix("crates/sluice-core/src/") else { continue };
        let module = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
        // A file without production code is a test; `lib.rs` is above all storeys.
        if module == "lib" || source.code.is_empty() {
            continue;
        }
        let own = storeys.get(module);
        let own = own.unwrap_or_else(|| panic!("lib.rs has a storey for {module}"));
        for name in core_modules_named(&source.code) {
            let Some((name, storey)) = storeys.get_key_value(&name) else { continue };
            if storey > own {
                wrong.push(format!("{}: storey {own} uses {name} of storey {storey}", source.path));
            }
            if name != module {
                uses.entry(module).or_default().insert(name);
            }
        }
    }
    none("a module of the core uses only its own storey and those below", &wrong);
    let cycle = cycle(uses);
    none("no modules of the core use each other in a circle", &cycle);
}

/// Removes everything that uses nothing of the rest; what remains is on or above a cycle.
fn cycle(mut uses: BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    loop {
        let left: BTreeSet<&str> = uses.keys().copied().collect();
        uses.retain(|_, used| used.iter().any(|name| left.contains(name)));
        if uses.len() == left.len() {
            break;
        }
    }
    uses.iter().map(|(name, used)| format!("{name}: {used:?}")).collect()
}

/// The parts of `run/decide`, each with the parts that it may call.
const PARTS: [(&str, &[&str]); 6] = [
    ("decide", &["schedule", "people", "settle", "draft"]),
    ("schedule", &["admit", "people", "settle", "draft", "origins"]),
    ("admit", &["draft", "origins"]),
    ("settle", &["draft", "origins"]),
    ("people", &["draft"]),
    ("draft", &[]),
];

/// A function that a file defines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Function<'a> {
    name: &'a str,
    is_method: bool,
}

/// The functions of a file, each with whether other modules can see it.
fn functions(code: &str) -> BTreeMap<Function<'_>, bool> {
    let found = code.match_indices("fn ").filter_map(|(at, _)| {
        let rest = &code[at + 3..];
        let (name, _) = rest.split_once(['(', '<'])?;
        let (_, parameters) = rest.split_once('(')?;
        let first = parameters.split([',', ')', ':']).next()?;
        let is_pub = code[..at].lines().next_back()?.contains("pub");
        let is_word = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let is_method = first.trim().ends_with("self");
        is_word.then_some((Function { name, is_method }, is_pub))
    });
    found.collect()
}

/// Whether a file calls a function of the file `module`: `.name(` if it is a method, else
/// `name(` or `module::name(`.
fn calls(code: &str, module: &str, Function { name, is_method }: Function<'_>) -> bool {
    code.match_indices(&format!("{name}(")).any(|(at, _)| {
        let before = &code[..at];
        match before.strip_suffix("::") {
            Some(path) => !is_method && path.ends_with(module),
            None if before.ends_with('.') => is_method,
            None if before.ends_with("fn ") => false,
            None => !is_method && !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'),
        }
    })
}

/// The files of `run/decide` with their code, without comments.
fn decide_files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for source in sources() {
        let folder = source.path.strip_prefix("crates/sluice-core/src/run/decide");
        let Some(path) = folder.and_then(|path| path.strip_suffix(".rs")) else { continue };
        let file = path.strip_prefix('/').unwrap_or("decide").to_owned();
        let code = source.code.lines().filter_map(|line| line.split("//").next());
        files.insert(file, code.collect::<Vec<_>>().join("\n"));
    }
    files
}

#[test]
fn no_two_files_of_decide_call_each_other() {
    let files = decide_files();
    let mut defined: BTreeMap<Function<'_>, Vec<(&str, bool)>> = BTreeMap::new();
    for (file, code) in &files {
        for (function, is_pub) in functions(code) {
            defined.entry(function).or_default().push((file, is_pub));
        }
    }
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (function, by) in &defined {
        // A name that two files define may mean either.
        let [(by, is_pub)] = by[..] else { continue };
        let module = by.rsplit('/').next().unwrap_or(by);
        for (file, code) in &files {
            let sees = is_pub || by == "decide" || file.starts_with(&format!("{by}/"));
            if file == by || !sees || !calls(code, module, *function) {
                continue;
            }
            uses.entry(file).or_default().insert(by);
            count += 1;
            let (from, to) = (file.split('/').next(), by.split('/').next());
            let below = PARTS.iter().find(|(part, _)| Some(*part) == from);
            let below = below.map(|(_, below)| *below).unwrap_or_default();
            if from != to && !below.iter().any(|part| Some(*part) == to) {
                wrong.push(format!("{file} calls {} of {by}", function.name));
            }
        }
    }
    assert!(count > 150, "calls are found: {count}");
    none("a part of run/decide calls only the parts below it", &wrong);
    none("no files of run/decide call each other, also not in a circle", &cycle(uses));
}

#[test]
fn nothing_is_left_for_later() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let mut found = Vec::new();
    for source in sources() {
        let text = std::fs::read_to_string(root().join(&source.path)).unwrap();
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    none("what is left to do is an issue, not a comment", &found);
}

fn architecture() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

#[test]
fn every_crate_is_in_the_architecture() {
    let text = architecture();
    let missing = crates().into_iter().filter(|name| !text.contains(&format!("`{name}`")));
    none("ARCHITECTURE.md describes every crate", &missing.collect::<Vec<_>>());
}

/// The texts between backticks outside code blocks, with the number of their line.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut quoted = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            quoted.extend(line.split('`').skip(1).step_by(2).map(|text| (number + 1, text)));
        }
    }
    quoted
}

#[test]
fn paths_in_the_architecture_exist() {
    let folders = ["crates/", "tools/", "docs/", "console/", "bench/", "fuzz/", "examples/"];
    let text = architecture();
    let paths = quoted(&text).into_iter().filter(|(_, path)| {
        folders.iter().any(|folder| path.starts_with(folder)) && !path.contains(' ')
    });
    let paths: Vec<_> = paths.collect();
    assert!(paths.len() > 30, "{}", paths.len());
    let missing = paths.into_iter().filter(|(_, path)| !root().join(path).exists());
    let missing = missing.map(|(line, path)| format!("line {line}: {path}"));
    none("a path that ARCHITECTURE.md names exists", &missing.collect::<Vec<_>>());
}

#[test]
fn every_step_of_a_walk_is_a_function_that_exists() {
    let text = architecture();
    let walks = text.split("## Three walks").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = walks.unwrap_or_default().lines().filter(|line| line.starts_with("| `crates/"));
    let mut missing = Vec::new();
    let mut count = 0;
    for row in rows {
        let names: Vec<&str> = row.split('`').skip(1).step_by(2).take(2).collect();
        let [path, function] = names[..] else { panic!("a file and a function: {row}") };
        let code = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        if !["(", "<"].iter().any(|next| code.contains(&format!("fn {function}{next}"))) {
            missing.push(row.to_owned());
        }
        count += 1;
    }
    assert!(count > 20, "{count} rows");
    none("each row of a walk names a function of its file", &missing);
}

#[test]
fn documents_promise_nothing() {
    let words = ["to come:", "not yet implemented", "coming soon"];
    let mut documents =
        vec!["README.md".into(), "ARCHITECTURE.md".into(), "CONTRIBUTING.md".into()];
    for folder in ["docs/guide", "docs/decisions"] {
        let pages = std::fs::read_dir(root().join(folder)).unwrap();
        documents.extend(pages.map(|page| page.unwrap().path()));
    }
    let mut found = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(root().join(&document)).unwrap().to_lowercase();
        let lines = text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
        found.extend(lines.map(|line| format!("{}: {line}", document.display())));
    }
    none("documents describe what exists", &found);
}

/// Type names that are defined more than three times. The list may only shrink.
const SHARED_NAMES: [&str; 1] = ["Command"];

/// The name of the type that a line defines. An associated type is indented and defines none.
fn type_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let keyword = words.next()?;
    let defines = ["struct", "enum", "union", "trait"].contains(&keyword)
        || (keyword == "type" && !line.starts_with(' '));
    let name = words.next().filter(|_| defines)?;
    let name = name.split(|c: char| !c.is_alphanumeric()).next()?;
    name.starts_with(char::is_uppercase).then_some(name)
}

#[test]
fn a_type_name_says_which_type_it_is() {
    let sources = sources();
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in &sources {
        for name in source.code.lines().filter_map(type_name) {
            names.entry(name).or_default().push(&source.path);
        }
    }
    let shared = names.iter().filter(|(_, places)| places.len() > 3);
    let new = shared.clone().filter(|(name, _)| !SHARED_NAMES.contains(name));
    let new = new.map(|(name, places)| format!("{name}: {}", places.join(", ")));
    none("no type name is defined more than three times", &new.collect::<Vec<_>>());
    let shared: Vec<&str> = shared.map(|(name, _)| *name).collect();
    let over = SHARED_NAMES.iter().filter(|name| !shared.contains(name));
    let over = over.map(|name| format!("{name} is no longer shared: remove it from the list"));
    none("the list of shared names only shrinks", &over.collect::<Vec<_>>());
}

#[test]
fn commit_subjects_are_short() {
    // The commits since the rule holds; a shallow clone has fewer of them.
    let log = std::process::Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", "-n", "50"])
        .current_dir(root())
        .output();
    let Ok(log) = log else { return };
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let long = log.lines().filter(|line| {
        line.split_once(' ').is_some_and(|(_, subject)| subject.chars().count() > 60)
    });
    none(
        "a commit subject has at most 60 characters",
        &long.map(str::to_owned).collect::<Vec<_>>(),
    );
}

/// The rows of the threat model's tables whose last column names tests: what is promised,
/// and the names.
fn promises() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("docs/guide/threat-model.md")).unwrap();
    let (mut found, mut tests) = (Vec::new(), false);
    for line in page.lines() {
        let Some(row) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            tests &= line.starts_with('|');
            continue;
        };
        let cells: Vec<&str> = row.split(" | ").collect();
        let (first, last) = (cells[0], cells[cells.len() - 1]);
        if last == "test" {
            tests = true;
        } else if tests {
            let names = last.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            found.push((first.to_owned(), names));
        }
    }
    found
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let mut files = Vec::new();
    for name in crates() {
        for part in ["src", "tests"] {
            let dir = root().join("crates").join(&name).join(part);
            if dir.is_dir() {
                gather(&dir, &mut files);
            }
        }
    }
    let text = |file: &Source| std::fs::read_to_string(root().join(&file.path)).unwrap();
    let text: String = files.iter().map(text).collect();
    let promises = promises();
    assert!(promises.len() > 25, "the tables are read: {}", promises.len());
    let mut wrong = Vec::new();
    for (promise, names) in promises {
        if names.is_empty() {
            wrong.push(format!("{promise}: no test is named"));
        }
        let missing = names.iter().filter(|name| !text.contains(&format!("fn {name}(")));
        wrong.extend(missing.map(|name| format!("{promise}: there is no test `{name}`")));
    }
    none("every promise of the threat model names tests that exist", &wrong);
}
