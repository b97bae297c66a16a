//! A vector as it is written down, and how the files are read.
//!
//! INVARIANT: a field of a case that no check reads is a fault. A check that
//! is misspelt would pass for ever.

use super::{law, matching};
use crate::session::root;
use serde_json::{Map, Value};
use std::path::Path;

/// One workflow, what answers in it, and what must come of it.
pub(super) struct Case {
    /// The file it is written in, from the top of the vectors.
    file: String,
    name: String,
    /// The document, as text.
    pub(super) document: String,
    /// What the document's file is called.
    pub(super) called: String,
    pub(super) args: Map<String, Value>,
    /// The script, as text.
    pub(super) mock: String,
    /// The word list, a phrase a line.
    pub(super) moderation: Option<String>,
    /// Whether whatever is asked is approved.
    pub(super) yes: bool,
    pub(super) expect: Map<String, Value>,
}

/// Everything a case may say.
const FIELDS: &[&str] = &[
    "name",
    "spec",
    "note",
    "workflow",
    "file",
    "format",
    "args",
    "mock",
    "moderation",
    "yes",
    "expect",
];

impl Case {
    /// Reads a case.
    pub(super) fn read(file: &str, value: Value) -> Result<Case, String> {
        let Value::Object(mut said) = value else { return Err("a case is an object".to_owned()) };
        if let Some(unknown) = said.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            return Err(format!("`{unknown}` is no field of a case"));
        }
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let name = text(said.get("name")).ok_or("a case has a name")?;
        text(said.get("spec")).ok_or("a case says which part of the rules it is of")?;
        let document = match (said.remove("workflow"), text(said.get("file"))) {
            (Some(Value::String(text)), None) => text,
            (Some(inline), None) => inline.to_string(),
            (None, Some(path)) => std::fs::read_to_string(root().join(path))
                .map_err(|error| format!("the document cannot be read: {error}"))?,
            _ => return Err("a case has a `workflow` or a `file`".to_owned()),
        };
        let called = match text(said.get("format")).as_deref() {
            Some("lens") => "case.lens.yaml",
            Some("lobsterx") | None => "case.lobsterx.yaml",
            Some(other) => return Err(format!("`{other}` is no format")),
        };
        let expect = object(&mut said, "expect")?;
        for (key, wanted) in &expect {
            check(key, wanted)?;
        }
        Ok(Case {
            file: file.to_owned(),
            name,
            document,
            called: called.to_owned(),
            args: object(&mut said, "args")?,
            mock: spelt_out(object(&mut said, "mock")?.into()).to_string(),
            moderation: words(said.get("moderation"))?,
            yes: said.get("yes").is_some_and(|yes| *yes == Value::Bool(true)),
            expect,
        })
    }

    /// Its file and its name.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.file, self.name)
    }
}

fn object(said: &mut Map<String, Value>, key: &str) -> Result<Map<String, Value>, String> {
    match said.remove(key) {
        None => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map),
        Some(_) => Err(format!("`{key}` is an object")),
    }
}

/// The lines of a word list as its text.
fn words(said: Option<&Value>) -> Result<Option<String>, String> {
    let lines: Option<Vec<&str>> = match said {
        None => return Ok(None),
        Some(list) => list.as_array().and_then(|list| list.iter().map(Value::as_str).collect()),
    };
    lines.map(|lines| Some(lines.join("\n"))).ok_or("`moderation` is a list of lines".to_owned())
}

/// The value with every `{$repeat, $times}` in it as the long text it stands for.
fn spelt_out(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let long = fields.get("$repeat").and_then(Value::as_str);
            let times = fields.get("$times").and_then(Value::as_u64);
            if let (Some(text), Some(times)) = (long, times) {
                return text.repeat(usize::try_from(times).unwrap()).into();
            }
            fields.into_iter().map(|(name, value)| (name, spelt_out(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(spelt_out).collect(),
        plain => plain,
    }
}

/// Whether an expectation is written as one can be.
fn check(key: &str, wanted: &Value) -> Result<(), String> {
    let list = || wanted.as_array().ok_or(format!("`{key}` is a list"));
    let patterns =
        |list: &Vec<Value>| list.iter().try_for_each(|one| law::pattern(one).map(|_| ()));
    match key {
        "events" | "absent" => patterns(list()?),
        "order" => list()?.iter().try_for_each(|pair| {
            let pair = pair.as_array().filter(|pair| pair.len() == 2);
            patterns(pair.ok_or("`order` holds pairs")?)
        }),
        "counts" => list()?.iter().try_for_each(|pair| match pair.as_array().map(Vec::as_slice) {
            Some([pattern, Value::Number(_)]) => law::pattern(pattern).map(|_| ()),
            _ => Err("`counts` holds pairs of an event and a number".to_owned()),
        }),
        "sequences" => {
            let nodes = wanted.as_object().ok_or("`sequences` has a list for each node")?;
            nodes.values().try_for_each(|types| {
                let types = types.as_array().ok_or("a sequence is a list")?;
                types.iter().try_for_each(|kind| law::kind(kind.as_str().unwrap_or_default()))
            })
        }
        _ => matching::check(wanted),
    }
}

/// Every case there is, in the order of the files.
pub(super) fn all() -> Vec<Case> {
    let top = root().join("vectors");
    let mut files = Vec::new();
    gather(&top, &mut files);
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let path = top.join(&file);
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let list = match value {
            Value::Array(list) => list,
            one => vec![one],
        };
        for one in list {
            cases.push(Case::read(&file, one).unwrap_or_else(|fault| panic!("{file}: {fault}")));
        }
    }
    cases
}

fn gather(dir: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        // Tests of the core run those cases.
        if path.is_dir() && !path.ends_with("seen") {
            gather(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "json") {
            let below = path.strip_prefix(root().join("vectors")).unwrap();
            files.push(below.to_str().unwrap().to_owned());
        }
    }
}
