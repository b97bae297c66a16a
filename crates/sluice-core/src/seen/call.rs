//! The facts about the arguments of one call.

use super::SeenIndex;
use super::answer::leaf_text;
use super::lookup::{Lookup, Sightings};
use super::mention::addresses;
use super::normal::{bare_url, clean, normal};
use super::words::Words;
use crate::limits::{SEEN_ITEMS_MAX, SEEN_TEXT_CHARS_MAX};
use serde_json::{Map, Value};
use sluice_govern::facts::{ArgumentFacts, CallFacts, SeenIn};
use std::collections::{BTreeMap, BTreeSet};

/// What a value may be whose texts could not all be compared.
const ANYTHING: [SeenIn; 3] = [SeenIn::Private, SeenIn::Stranger, SeenIn::Nowhere];
/// What a text may repeat then.
const CARRIES_ANYTHING: [SeenIn; 2] = [SeenIn::Private, SeenIn::Stranger];

/// The facts about a call, with where its values came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeenCall {
    /// The facts that policies read.
    pub facts: CallFacts,
    /// By the path of the argument.
    pub sources: BTreeMap<String, ArgumentSources>,
}

/// Where the values of one argument came from, so that the caller can join the labels of their
/// sources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArgumentSources {
    /// The sources in which its items and the addresses in them were seen, each in its best
    /// class, and the sources of the passages that it repeats.
    pub sources: BTreeSet<u32>,
    /// Whether an item was seen nowhere, or in texts that the index does not have.
    pub nowhere: bool,
}

impl SeenIndex {
    /// The facts about the arguments of a call.
    pub fn call_facts(&self, input: &Map<String, Value>) -> CallFacts {
        self.describe(input).facts
    }

    /// The facts about the arguments of a call, and the sources of their values.
    pub fn describe(&self, input: &Map<String, Value>) -> SeenCall {
        let mut arguments = Arguments::default();
        for (name, value) in input {
            arguments.collect(value, &mut vec![name.clone()]);
        }
        let mut lookup = Lookup::new(&self.layers);
        let mut known: BTreeMap<usize, Item> = BTreeMap::new();
        let mut call = SeenCall::default();
        call.facts.exposed = self.exposed;
        for (path, argument) in arguments.by_path {
            let (mut facts, mut sources) = <(ArgumentFacts, ArgumentSources)>::default();
            if argument.is_beyond {
                Item::anything().join(&mut facts, &mut sources);
            }
            for leaf in argument.leaves {
                let item = known.entry(leaf);
                let item = item.or_insert_with(|| self.item(arguments.leaves[leaf], &mut lookup));
                item.join(&mut facts, &mut sources);
            }
            call.facts.arguments.insert(path.clone(), facts);
            call.sources.insert(path, sources);
        }
        call
    }

    /// What is known about one item of an argument.
    fn item(&self, leaf: &Value, lookup: &mut Lookup<'_>) -> Item {
        let text = leaf_text(leaf).unwrap_or_default();
        let form = normal(&text);
        let mut item = Item::default();
        if form.is_empty() {
            return item;
        }
        let (bare, words) = (bare_url(&form), Words::of(&form));
        let seen = match bare == form {
            true => where_seen(lookup, bare, &words, leaf.is_string()),
            false => where_seen(lookup, bare, &Words::of(bare), leaf.is_string()),
        };
        item.seen = self.best(&seen, &mut item.sources);
        for address in addresses(&clean(&text)) {
            let address = normal(bare_url(&normal(address)));
            let bare = bare_url(&address);
            let seen = where_seen(lookup, bare, &Words::of(bare), true);
            item.mentions.extend(self.best(&seen, &mut item.sources));
        }
        self.carry(&form, &words, lookup, &mut item);
        if lookup.is_exhausted() { Item::anything() } else { item }
    }

    /// The best class. In a full run, what is not trusted may be anything.
    fn best(&self, seen: &Sightings, sources: &mut ArgumentSources) -> BTreeSet<SeenIn> {
        let best = seen.best();
        let is_unsure = self.full && !matches!(best, SeenIn::Prompt | SeenIn::Records);
        sources.sources.extend(seen.sources(best));
        sources.nowhere |= is_unsure || best == SeenIn::Nowhere;
        if is_unsure { ANYTHING.into() } else { [best].into() }
    }

    /// The classes of the texts of which a text repeats a passage.
    fn carry(&self, form: &str, words: &Words, lookup: &mut Lookup<'_>, item: &mut Item) {
        let wholes = lookup.wholes(bare_url(form));
        if wholes.has(SeenIn::Records) && !wholes.has(SeenIn::Private) {
            return;
        }
        if self.full && lookup.is_new(words) {
            item.carries = CARRIES_ANYTHING.into();
            item.sources.nowhere = true;
        }
        for (class, source) in
            lookup.passages(words).each().chain(lookup.private_facts(words).each())
        {
            item.carries.insert(class);
            item.sources.sources.insert(source);
        }
    }
}

/// The facts about the arguments with which a caller starts a run: every value is the prompt.
pub fn facts_of_caller(args: &Map<String, Value>) -> CallFacts {
    let mut arguments = Arguments::default();
    for (name, value) in args {
        arguments.collect(value, &mut vec![name.clone()]);
    }
    let texts: Vec<_> = arguments.leaves.iter().map(|leaf| leaf_text(leaf)).collect();
    let mut call = CallFacts::default();
    for (path, argument) in arguments.by_path {
        let texts = || argument.leaves.iter().filter_map(|leaf| texts[*leaf].as_deref());
        let mut facts = ArgumentFacts::default();
        if argument.is_beyond || texts().any(|text| !normal(text).is_empty()) {
            facts.seen.insert(SeenIn::Prompt);
        }
        if argument.is_beyond || texts().any(|text| !addresses(&clean(text)).is_empty()) {
            facts.mentions.insert(SeenIn::Prompt);
        }
        call.arguments.insert(path, facts);
    }
    call
}

/// What is known about one item of an argument.
#[derive(Debug, Clone, Default)]
struct Item {
    seen: BTreeSet<SeenIn>,
    mentions: BTreeSet<SeenIn>,
    carries: BTreeSet<SeenIn>,
    sources: ArgumentSources,
}

impl Item {
    /// An item beyond a bound.
    fn anything() -> Item {
        Item {
            seen: ANYTHING.into(),
            mentions: ANYTHING.into(),
            carries: CARRIES_ANYTHING.into(),
            sources: ArgumentSources { sources: BTreeSet::new(), nowhere: true },
        }
    }

    /// Adds it to what is known about an argument.
    fn join(&self, facts: &mut ArgumentFacts, sources: &mut ArgumentSources) {
        facts.seen.extend(&self.seen);
        facts.mentions.extend(&self.mentions);
        facts.carries.extend(&self.carries);
        sources.sources.extend(&self.sources.sources);
        sources.nowhere |= self.sources.nowhere;
    }
}

/// The leaves of a call, and which of them each argument has.
#[derive(Default)]
struct Arguments<'v> {
    leaves: Vec<&'v Value>,
    by_path: BTreeMap<String, ArgumentLeaves>,
}

#[derive(Default)]
struct ArgumentLeaves {
    /// The first ones.
    leaves: Vec<usize>,
    /// Whether there are too many, or one of them is too long.
    is_beyond: bool,
}

impl<'v> Arguments<'v> {
    /// Gives the leaves of a value to every argument in which it is. `paths` are those
    /// arguments, the innermost last.
    fn collect(&mut self, value: &'v Value, paths: &mut Vec<String>) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, paths)),
            Value::Object(map) => {
                for (key, item) in map {
                    let inner = paths.last().map_or(key.clone(), |path| format!("{path}.{key}"));
                    paths.push(inner);
                    self.collect(item, paths);
                    paths.pop();
                }
            }
            leaf => {
                let text = leaf.as_str().unwrap_or_default();
                let is_long = text.chars().nth(SEEN_TEXT_CHARS_MAX).is_some();
                for path in paths {
                    let argument = self.by_path.entry(path.clone()).or_default();
                    argument.is_beyond |= is_long || argument.leaves.len() == SEEN_ITEMS_MAX;
                    if !is_long && argument.leaves.len() < SEEN_ITEMS_MAX {
                        argument.leaves.push(self.leaves.len());
                    }
                }
                self.leaves.push(leaf);
            }
        }
    }
}

/// Where a value was seen. A text of one to three digits is an identifier, which a prompt has
/// only by chance: `for 1 hour`.
fn where_seen(lookup: &mut Lookup<'_>, form: &str, words: &Words, is_text: bool) -> Sightings {
    let mut seen = lookup.sightings(form, words);
    if is_text && is_short_id(form) {
        seen.remove(SeenIn::Prompt);
    }
    seen
}

/// Whether a text is a number of one to three digits.
fn is_short_id(form: &str) -> bool {
    let digits = form.strip_prefix('-').unwrap_or(form);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole)
        && whole.trim_start_matches('0').len() <= 3
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte == b'0')
}
