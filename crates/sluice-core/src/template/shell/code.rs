//! Finds references in a command that a program would execute as code.
//!
//! A value always arrives as data ([`super`]). `eval`, `sh -c "… ${x} …"` or `python3 -c "…
//! ${x} …"` then pass it to an interpreter. That is allowed but usually a mistake, so it causes
//! a warning. The command is split only roughly: a missed case is no less safe than without the
//! warning.

mod words;

use crate::span::{Fault, Span};
pub(super) use words::MARK;
use words::{Command, ShellWord};

/// Programs that take code after an option: their names, and the last letters of the option.
const INTERPRETERS: [(&[&str], &[&str]); 8] = [
    (&["sh", "bash", "dash", "zsh", "ksh", "ash", "su"], &["c"]),
    (&["python", "python2", "python3", "pypy3"], &["c"]),
    (&["node", "nodejs", "bun", "deno"], &["e", "p", "-eval", "-print"]),
    (&["perl"], &["e", "E"]),
    (&["ruby"], &["e"]),
    (&["php"], &["r"]),
    (&["lua", "luajit"], &["e"]),
    (&["Rscript"], &["e"]),
];
/// Options with a value that may come before the code.
const VALUED: [&str; 6] = ["-o", "+o", "-O", "-v", "-F", "-f"];
/// Programs whose first argument is code.
const SCRIPTED: [&str; 5] = ["awk", "gawk", "mawk", "sed", "gsed"];
/// Shell keywords that declare variables; some shells evaluate a subscript in the name.
const DECLARING: [&str; 6] = ["declare", "typeset", "local", "export", "readonly", "unset"];
/// Keywords and programs that may precede the name of the command.
const BEFORE: [&str; 18] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec", "command",
    "builtin", "nohup", "sudo", "env", "setsid", "xargs",
];

/// Finds every reference of a script that becomes code. In `script`, each reference is a
/// `MARK`; `references` has their paths and positions in the same order.
pub(super) fn find(script: &str, references: &[(String, Span)]) -> Vec<Fault> {
    let (commands, arithmetic) = words::read(script);
    let mut tainted: Vec<(String, usize)> = Vec::new();
    let mut found: Vec<(usize, String)> = Vec::new();
    for command in &commands {
        let holds = |word: &ShellWord| word.reference(&tainted);
        found.extend(code_references(command, &holds));
        let assigned = command.words.iter().map_while(ShellWord::assignment);
        let assigned: Vec<_> =
            assigned.filter_map(|(name, word)| Some((name, word.reference(&tainted)?))).collect();
        tainted.extend(assigned);
    }
    for text in &arithmetic {
        let named = tainted.iter().find(|(name, _)| words::names(text, name));
        found.extend(named.map(|(_, at)| (*at, "inside arithmetic".to_owned())));
    }
    found.sort();
    found.dedup_by_key(|(at, _)| *at);
    let fault = |(at, place): (usize, String)| {
        let (path, span) = &references[at];
        let message = format!("`${{{path}}}` is read as code {place}");
        let hint = "pass it as an argument, a variable or standard input of the program";
        Fault::new(span.range(), message).with_hint(hint)
    };
    found.into_iter().map(fault).collect()
}

/// The references of one command that become code, with a description.
fn code_references(
    command: &Command,
    holds: &dyn Fn(&ShellWord) -> Option<usize>,
) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let words = command_words(&command.words);
    let Some((first, rest)) = words.split_first() else { return found };
    if let Some(at) = first.first_reference() {
        found.push((at, "as the name of a command".to_owned()));
    }
    let args = |what: &str, words: &[ShellWord]| {
        let held = words.iter().filter_map(holds);
        held.map(|at| (at, format!("by `{what}`"))).collect::<Vec<_>>()
    };
    let operands: Vec<&ShellWord> =
        rest.iter().filter(|word| !word.text.starts_with('-')).collect();
    match first.program() {
        "eval" | "let" => found.extend(args(first.program(), rest)),
        "trap" => found.extend(args("trap", &rest[..rest.len().min(1)])),
        "ssh" => found.extend(args("ssh", rest.get(1..).unwrap_or_default())),
        name if SCRIPTED.contains(&name) => {
            let code = code_of(rest, &["e"]);
            let code = code.0.or(code.1.first()).and_then(holds);
            found.extend(code.map(|at| (at, format!("by `{name}`"))));
        }
        name if DECLARING.contains(&name) => {
            let names = operands.iter().filter_map(|word| word.reference_before('='));
            found.extend(names.map(|at| (at, format!("by `{name}`"))));
        }
        _ => {}
    }
    for (at, word) in words.iter().enumerate() {
        let Some(letters) = takes_code(word.program()) else { continue };
        let (code, operands) = code_of(&words[at + 1..], letters);
        // Without a file, the program reads code from standard input.
        let stdin = command.stdin.filter(|_| operands.is_empty());
        let code = code.and_then(holds).or(stdin);
        found.extend(code.map(|at| (at, format!("by `{}`", word.program()))));
    }
    found
}

/// The word after the option that takes code, and the words after all options.
fn code_of<'w>(
    args: &'w [ShellWord],
    letters: &[&str],
) -> (Option<&'w ShellWord>, &'w [ShellWord]) {
    let mut rest = args;
    while let Some((option, after)) = rest.split_first() {
        if is_option(&option.text, letters) {
            return (after.first(), after);
        }
        if VALUED.contains(&option.text.as_str()) {
            rest = after.get(1..).unwrap_or_default();
        } else if option.text.starts_with('-') {
            rest = after;
        } else {
            break;
        }
    }
    (None, rest)
}

/// The words, starting with the name of the command.
fn command_words(words: &[ShellWord]) -> &[ShellWord] {
    let mut rest = words;
    loop {
        let Some((first, after)) = rest.split_first() else { return rest };
        let timed = first.text == "timeout" || first.text == "nice";
        if timed {
            let options = after.iter().take_while(|word| word.text.starts_with('-')).count();
            let duration = usize::from(first.text == "timeout");
            rest = after.get(options + duration..).unwrap_or_default();
        } else if first.assignment().is_some() || BEFORE.contains(&first.text.as_str()) {
            rest = after;
            while rest.first().is_some_and(|word| word.text.starts_with('-')) {
                rest = &rest[1..];
            }
        } else {
            return rest;
        }
    }
}

/// The last letters of the option after which a program takes code.
fn takes_code(program: &str) -> Option<&'static [&'static str]> {
    let known = INTERPRETERS.iter().find(|(names, _)| names.contains(&program));
    known.map(|(_, letters)| *letters)
}

/// Whether a word is an option that ends like this: `-c`, `-ec`, `--eval`.
fn is_option(text: &str, letters: &[&str]) -> bool {
    let Some(option) = text.strip_prefix('-') else { return false };
    if option.starts_with('-') {
        return letters.contains(&option);
    }
    letters.iter().any(|letter| letter.len() == 1 && option.ends_with(letter))
}
