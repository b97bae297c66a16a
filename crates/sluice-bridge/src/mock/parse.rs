//! Parses a mock script and reports all problems at once.

use super::behaviour::{Behaviour, MockChunk, ResponseMode};
use crate::limits::{MOCK_COST_MAX, MOCK_TOKENS_MAX};
use crate::media::{self, File, FileContent};
use crate::normalise::object_in;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use sluice_core::choice::{Choice, find};
use sluice_core::code::Code;
use sluice_core::diagnostic::{Diagnostic, Problem, Problems};
use sluice_core::limits::DURATION_MS_MAX;
use sluice_core::money::Money;
use sluice_core::node::{Entry, Kind, Node};
use sluice_core::port::adapter::{Answer, CallError, CallErrorCode, Usage};
use sluice_core::suggest::suggest;
use sluice_core::yaml;

/// Every field of a behaviour, most used first.
const FIELDS: &[&str] = &[
    "text",
    "outputs",
    "delay_ms",
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "cost",
    "model",
    "error",
    "error_code",
    "retry_after_ms",
    "chunks",
    "chunk_delay_ms",
    "hang_after",
    "hang",
    "echo",
    "prefix",
    "suffix",
    "kind",
    "artifact_kind",
    "media",
    "metadata",
    "session",
];

/// Fields that require another one.
const NEEDS: &[(&str, &str)] = &[
    ("error_code", "error"),
    ("retry_after_ms", "error"),
    ("chunk_delay_ms", "chunks"),
    ("hang_after", "chunks"),
    ("prefix", "echo"),
    ("suffix", "echo"),
];

/// Fields that define the text; only one is allowed.
const TEXTS: &[&str] = &["text", "chunks", "echo"];

/// Parses the entries of a script.
pub(super) fn script(text: &str) -> Result<IndexMap<String, Vec<Behaviour>>, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let mut entries = IndexMap::new();
    if let Some(root) = yaml::parse(text, &mut problems) {
        let mut reader = ScriptReader { problems: &mut problems, path: String::new() };
        for entry in reader.map(&root) {
            let behaviours = reader.within(&entry.key, |reader| reader.behaviours(&entry.value));
            entries.insert(entry.key.clone().into_owned(), behaviours);
        }
    }
    if problems.has_errors() { Err(problems.into_diagnostics(text)) } else { Ok(entries) }
}

/// Fields of a behaviour as they are written.
#[derive(Default)]
struct BehaviourFields {
    text: Option<String>,
    outputs: Option<Map<String, Value>>,
    delay_ms: Option<u64>,
    usage: Usage,
    error: Option<String>,
    error_code: Option<CallErrorCode>,
    retry_after_ms: Option<u64>,
    chunks: Option<Vec<MockChunk>>,
    chunk_delay_ms: Option<u64>,
    hang_after: Option<u64>,
    hang: bool,
    echo: bool,
    prefix: Option<String>,
    suffix: Option<String>,
    kind: Option<String>,
    artifact_kind: Option<String>,
    media: Option<Value>,
    metadata: Option<Map<String, Value>>,
    session: Option<String>,
}

impl BehaviourFields {
    fn finish(self) -> Behaviour {
        let reads_outputs = self.outputs.is_none();
        let text = self.text.or_else(|| self.chunks.as_deref().map(chunk_text));
        let media = self.media.or_else(|| chunk_media(self.chunks.as_deref()?));
        let outputs = self.outputs.or_else(|| object_in(text.as_deref()?));
        let code = self.error_code.unwrap_or(CallErrorCode::ProviderError);
        let retry_after_ms = self.retry_after_ms;
        let error = self.error.map(|message| CallError { code, message, retry_after_ms });
        let mode = match (self.hang, self.chunks) {
            (true, _) => ResponseMode::Hang,
            (false, Some(chunks)) => ResponseMode::Chunks {
                chunks,
                delay_ms: self.chunk_delay_ms.unwrap_or(0),
                hang_after: self.hang_after.and_then(|count| usize::try_from(count).ok()),
            },
            (false, None) if self.echo => ResponseMode::Echo {
                prefix: self.prefix.unwrap_or_default(),
                suffix: self.suffix.unwrap_or_default(),
            },
            (false, None) => ResponseMode::Plain,
        };
        let answer = Answer {
            error,
            text,
            outputs,
            kind: self.kind,
            artifact_kind: self.artifact_kind,
            media,
            metadata: self.metadata,
            usage: self.usage,
            session: self.session,
            conversation: Vec::new(),
            artefacts: Vec::new(),
        };
        Behaviour { delay_ms: self.delay_ms.unwrap_or(0), mode, answer, reads_outputs }
    }
}

/// Parser state: the current path and the problems found so far.
struct ScriptReader<'p> {
    problems: &'p mut Problems,
    path: String,
}

impl ScriptReader<'_> {
    /// One behaviour or a list of them.
    fn behaviours(&mut self, node: &Node<'_>) -> Vec<Behaviour> {
        let Kind::List(items) = &node.kind else {
            return vec![self.behaviour(node)];
        };
        if items.is_empty() {
            self.add(node, Code::BadValue, "a list of behaviours must not be empty");
        }
        let read = |(at, item)| self.within(&format!("[{at}]"), |reader| reader.behaviour(item));
        items.iter().enumerate().map(read).collect()
    }

    fn behaviour(&mut self, node: &Node<'_>) -> Behaviour {
        let mut fields = BehaviourFields::default();
        let entries = self.map(node);
        // A null value is the same as a missing field.
        for entry in entries.iter().filter(|entry| !entry.value.is_null()) {
            self.within(&entry.key, |reader| reader.field(&mut fields, entry));
        }
        self.check_together(entries, &fields);
        fields.finish()
    }

    fn field(&mut self, fields: &mut BehaviourFields, entry: &Entry<'_>) {
        let node = &entry.value;
        match &*entry.key {
            "text" => fields.text = self.text(node),
            "outputs" => fields.outputs = self.object(node),
            "delay_ms" => fields.delay_ms = self.whole_number(node, DURATION_MS_MAX),
            "input_tokens" => fields.usage.input_tokens = self.tokens(node),
            "output_tokens" => fields.usage.output_tokens = self.tokens(node),
            "thinking_tokens" => fields.usage.thinking_tokens = self.tokens(node),
            "cost" => fields.usage.cost = self.cost(node),
            "model" => fields.usage.model = self.text(node),
            "error" => fields.error = self.text(node),
            "error_code" => fields.error_code = self.choice(node),
            "retry_after_ms" => fields.retry_after_ms = self.whole_number(node, DURATION_MS_MAX),
            "chunks" => fields.chunks = self.chunks(node),
            "chunk_delay_ms" => fields.chunk_delay_ms = self.whole_number(node, DURATION_MS_MAX),
            "hang_after" => fields.hang_after = self.whole_number(node, u64::from(u32::MAX)),
            "hang" => fields.hang = self.flag(node),
            "echo" => fields.echo = self.flag(node),
            "prefix" => fields.prefix = self.text(node),
            "suffix" => fields.suffix = self.text(node),
            "kind" => fields.kind = self.text(node),
            "artifact_kind" => fields.artifact_kind = self.text(node),
            "media" => fields.media = self.media(node),
            "metadata" => fields.metadata = self.object(node),
            "session" => fields.session = self.text(node),
            key => {
                let message = format!("unknown field `{}`", clip(key));
                let problem = Problem::new(Code::UnknownField, entry.key_span, message);
                let likely = suggest(key, FIELDS.iter().copied());
                self.problems.add(problem.with_suggestion(likely).at_path(&self.path));
            }
        }
    }

    /// Checks combinations of fields.
    fn check_together(&mut self, entries: &[Entry<'_>], fields: &BehaviourFields) {
        let off = |entry: &Entry<'_>| matches!(entry.value.kind, Kind::Null | Kind::Bool(false));
        let set = |key: &str| entries.iter().find(|entry| entry.key == key && !off(entry));
        for (field, needed) in NEEDS {
            if let Some(entry) = set(field).filter(|_| set(needed).is_none()) {
                let message = format!("`{field}` requires `{needed}`");
                self.add_at_key(entry, message);
            }
        }
        let mut texts = TEXTS.iter().filter_map(|key| set(key));
        if let (Some(first), Some(second)) = (texts.next(), texts.next()) {
            let message = format!(
                "`{}` and `{}` cannot be combined: both define the text",
                first.key, second.key
            );
            self.add_at_key(second, message);
        }
        let count = fields.chunks.as_ref().map_or(0, Vec::len) as u64;
        if let (Some(entry), Some(after)) = (set("hang_after"), fields.hang_after)
            && set("chunks").is_some()
            && after > count
        {
            self.add_at_key(entry, format!("must be at most the number of chunks ({count})"));
        }
    }

    /// Runs `read` one level down.
    fn within<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 && !key.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(key);
        let result = read(self);
        self.path.truncate(length);
        result
    }

    fn add(&mut self, node: &Node<'_>, code: Code, message: impl Into<String>) {
        self.problems.add(Problem::new(code, node.span, message).at_path(&self.path));
    }

    fn add_at_key(&mut self, entry: &Entry<'_>, message: String) {
        let problem = Problem::new(Code::BadValue, entry.key_span, message);
        self.within(&entry.key, |reader| reader.problems.add(problem.at_path(&reader.path)));
    }

    fn wrong_type(&mut self, node: &Node<'_>, wanted: &str) {
        let message = format!("expected {wanted}, found {}", node.describe());
        let mut problem = Problem::new(Code::WrongType, node.span, message);
        if wanted == "a string" && matches!(node.kind, Kind::Bool(_) | Kind::Number(_)) {
            problem = problem.with_hint("quote it if it is meant as text");
        }
        self.problems.add(problem.at_path(&self.path));
    }

    fn map<'n, 't>(&mut self, node: &'n Node<'t>) -> &'n [Entry<'t>] {
        let entries = node.entries();
        if entries.is_none() {
            self.wrong_type(node, "a map");
        }
        entries.unwrap_or_default()
    }

    fn text(&mut self, node: &Node<'_>) -> Option<String> {
        match &node.kind {
            Kind::Text(text) => Some(text.clone().into_owned()),
            _ => {
                self.wrong_type(node, "a string");
                None
            }
        }
    }

    fn chunks(&mut self, node: &Node<'_>) -> Option<Vec<MockChunk>> {
        let Kind::List(items) = &node.kind else {
            self.wrong_type(node, "a list of strings");
            return None;
        };
        let read = |(at, item)| self.within(&format!("[{at}]"), |reader| reader.chunk(item));
        Some(items.iter().enumerate().filter_map(read).collect())
    }

    /// Text, or an image or audio: `{url, mime}`.
    fn chunk(&mut self, node: &Node<'_>) -> Option<MockChunk> {
        if !matches!(node.kind, Kind::Map(_)) {
            return self.text(node).map(MockChunk::Text);
        }
        let (mut url, mut mime) = (None, None);
        for entry in self.map(node) {
            match &*entry.key {
                "url" => url = self.within("url", |reader| reader.text(&entry.value)),
                "mime" => mime = self.within("mime", |reader| reader.text(&entry.value)),
                key => {
                    let message = format!("unknown field `{}`", clip(key));
                    let problem = Problem::new(Code::UnknownField, entry.key_span, message);
                    let likely = suggest(key, ["url", "mime"]);
                    self.problems.add(problem.with_suggestion(likely).at_path(&self.path));
                }
            }
        }
        let (Some(url), Some(mime)) = (url, mime) else {
            self.add(node, Code::BadValue, "a chunk of media must have `url` and `mime`");
            return None;
        };
        Some(MockChunk::Media { url, mime })
    }

    fn object(&mut self, node: &Node<'_>) -> Option<Map<String, Value>> {
        match node.to_value() {
            Value::Object(map) => Some(map),
            _ => {
                self.wrong_type(node, "a map");
                None
            }
        }
    }

    fn media(&mut self, node: &Node<'_>) -> Option<Value> {
        if matches!(node.kind, Kind::Map(_) | Kind::List(_)) {
            return Some(node.to_value());
        }
        self.wrong_type(node, "a map or a list");
        None
    }

    fn flag(&mut self, node: &Node<'_>) -> bool {
        match &node.kind {
            Kind::Bool(flag) => *flag,
            _ => {
                self.wrong_type(node, "`true` or `false`");
                false
            }
        }
    }

    fn tokens(&mut self, node: &Node<'_>) -> u64 {
        self.whole_number(node, MOCK_TOKENS_MAX).unwrap_or(0)
    }

    fn whole_number(&mut self, node: &Node<'_>, max: u64) -> Option<u64> {
        let Kind::Number(number) = &node.kind else {
            self.wrong_type(node, "a whole number");
            return None;
        };
        let message = match number.as_u64() {
            Some(whole_number) if whole_number <= max => return Some(whole_number),
            Some(_) => format!("can be at most {max}"),
            None if number.as_f64().is_some_and(|number| number < 0.0) => {
                "cannot be negative".to_owned()
            }
            None => format!("expected a whole number, found {number}"),
        };
        self.add(node, Code::BadValue, message);
        None
    }

    fn cost(&mut self, node: &Node<'_>) -> Money {
        let Kind::Number(number) = &node.kind else {
            self.wrong_type(node, "an amount in US dollars");
            return Money::ZERO;
        };
        let message = match Money::from_usd(number) {
            Ok(cost) if cost <= MOCK_COST_MAX => return cost,
            Ok(_) => format!("an answer can cost at most {MOCK_COST_MAX} US dollars"),
            Err(bad) => bad.to_string(),
        };
        self.add(node, Code::BadValue, message);
        Money::ZERO
    }

    fn choice<T: Choice>(&mut self, node: &Node<'_>) -> Option<T> {
        let word = self.text(node)?;
        let found = find(&word);
        if found.is_none() {
            let message = format!("`{}` is not {}", clip(&word), T::WHAT);
            let problem = Problem::new(Code::BadValue, node.span, message);
            let problem = match suggest(&word, T::NAMES.iter().copied()) {
                Some(likely) => problem.with_suggestion(Some(likely)),
                None => problem.with_hint(format!("one of {}", T::NAMES.join(", "))),
            };
            self.problems.add(problem.at_path(&self.path));
        }
        found
    }
}

/// At most forty characters of a text, for messages.
fn clip(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(at, _)| &text[..at])
}

/// The joined text of chunks.
fn chunk_text(chunks: &[MockChunk]) -> String {
    let text = |chunk: &MockChunk| match chunk {
        MockChunk::Text(text) => text.clone(),
        MockChunk::Media { .. } => String::new(),
    };
    chunks.iter().map(text).collect()
}

/// The files of chunks, as the answer's `media`.
fn chunk_media(chunks: &[MockChunk]) -> Option<Value> {
    let file = |chunk: &MockChunk| match chunk {
        MockChunk::Text(_) => None,
        MockChunk::Media { url, mime } => {
            Some(File { mime: mime.clone(), content: FileContent::Url(url.clone()) })
        }
    };
    media::media_value(&chunks.iter().filter_map(file).collect::<Vec<_>>())
}
