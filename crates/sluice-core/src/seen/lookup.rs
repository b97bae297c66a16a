//! Where one value was seen, and which passages a text repeats.

use super::layer::{Classes, IndexLayer, NumberRole, SeenText, TimeMark};
use super::letters::is_word;
use super::mark::{Kind, hash, mark, place_of};
use super::moment::{Day, moment};
use super::number::{canonical, whole_number};
use super::words::{Words, strip_words};
use crate::limits::SEEN_WORK_MAX;
use sluice_govern::facts::SeenIn;
use std::sync::Arc;

/// Of so many words of a value the rarest one is looked up.
const ANCHORS_MAX: usize = 8;
/// Bytes of text that count as one unit of work.
const WORK_BYTES: usize = 64;

/// The texts in which something was seen: classes, each with the source of the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sightings(Vec<(SeenIn, u32)>);

impl Sightings {
    pub(super) fn has(&self, class: SeenIn) -> bool {
        self.0.iter().any(|(other, _)| *other == class)
    }

    /// The best class.
    pub(super) fn best(&self) -> SeenIn {
        self.0.iter().map(|(class, _)| *class).min().unwrap_or(SeenIn::Nowhere)
    }

    /// The sources of a class.
    pub(super) fn sources(&self, class: SeenIn) -> impl Iterator<Item = u32> {
        self.0.iter().filter(move |(other, _)| *other == class).map(|(_, source)| *source)
    }

    pub(super) fn remove(&mut self, class: SeenIn) {
        self.0.retain(|(other, _)| *other != class);
    }

    /// Classes and sources.
    pub(super) fn each(&self) -> impl Iterator<Item = (SeenIn, u32)> {
        self.0.iter().copied()
    }

    fn add(&mut self, class: SeenIn, source: u32) {
        if !self.0.contains(&(class, source)) {
            self.0.push((class, source));
        }
    }

    fn add_all(&mut self, text: SeenText) {
        text.classes.each().for_each(|class| self.add(class, text.source));
    }

    /// Whether a text would add nothing.
    fn covers(&self, classes: Classes, source: u32) -> bool {
        classes.each().all(|class| self.0.contains(&(class, source)))
    }
}

/// Searches of one call, with a bound for the work of all of them.
pub(super) struct Lookup<'a> {
    layers: &'a [Arc<IndexLayer>],
    work: u32,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(layers: &'a [Arc<IndexLayer>]) -> Lookup<'a> {
        Lookup { layers, work: 0 }
    }

    /// Whether the bound is exceeded: then what was found is not complete.
    pub(super) fn is_exhausted(&self) -> bool {
        self.work > SEEN_WORK_MAX
    }

    /// Counts work; false if there was too much of it.
    fn spend(&mut self, bytes: usize) -> bool {
        let units = 1 + bytes / WORK_BYTES;
        self.work = self.work.saturating_add(u32::try_from(units).unwrap_or(u32::MAX));
        !self.is_exhausted()
    }

    /// Every text in which a value was seen, by its normal form without scheme.
    pub(super) fn sightings(&mut self, form: &str, words: &Words) -> Sightings {
        let mut found = self.wholes(form);
        let number = whole_number(form).map(canonical);
        if self.may_occur(words) {
            self.find_parts(form, number.is_some(), &mut found);
        }
        if let Some((day, time)) = moment(form) {
            self.find_moment(day, time, &mut found);
        }
        if let Some(number) = number {
            self.find_number(&number, &mut found);
        }
        found
    }

    /// The texts that are equal to a value.
    pub(super) fn wholes(&mut self, form: &str) -> Sightings {
        let (mut found, hash) = (Sightings::default(), hash(form));
        for layer in self.layers {
            for place in layer.marks(Kind::Whole, hash).iter().map(|mark| place_of(*mark)) {
                if !self.spend(form.len()) {
                    return found;
                }
                if super::normal::bare_url(layer.rest_of_form(place)) == form {
                    found.add_all(layer.text_at(place));
                }
            }
        }
        found
    }

    /// The texts in which a value occurs as a whole word. A part of a record is a stranger's
    /// words. Numbers of the prompt are only compared as numbers.
    fn find_parts(&mut self, form: &str, is_number: bool, found: &mut Sightings) {
        let is_record = found.has(SeenIn::Records);
        let Some((anchor, offset)) = self.rarest_word(form) else { return };
        for layer in self.layers {
            let symbols = if anchor.is_none() { self.symbols(layer, form) } else { Vec::new() };
            let mut marks = anchor.map_or(&symbols[..], |word| layer.marks(Kind::Word, hash(word)));
            while let Some((first, rest)) = marks.split_first() {
                if !self.spend(0) {
                    return;
                }
                let place = place_of(*first);
                let text = layer.text_at(place);
                marks = rest;
                let loose = parts_of(text.classes, is_record);
                let prompt = text.classes.has(SeenIn::Prompt) && !is_number;
                let prompt = Classes::new(if prompt { &[SeenIn::Prompt] } else { &[] });
                if found.covers(loose.with(prompt), text.source) {
                    // The rest of this text adds nothing.
                    let end = layer.end_of_text(place);
                    marks = &rest[rest.partition_point(|mark| place_of(*mark) < end)..];
                    continue;
                }
                let Some(start) = (place as usize).checked_sub(offset) else { continue };
                if !self.occurs(layer.text(), start, form) {
                    continue;
                }
                if is_whole_word(layer.text(), start, form.len(), Joints::AreSpaces) {
                    found.add_all(SeenText { classes: loose, ..text });
                }
                if is_whole_word(layer.text(), start, form.len(), Joints::BelongToWords) {
                    found.add_all(SeenText { classes: prompt, ..text });
                }
            }
        }
    }

    /// Whether some text has the first passage of a value, if it has one: most long texts of a
    /// model occur nowhere.
    fn may_occur(&mut self, words: &Words) -> bool {
        let Some(passage) = words.first_passage() else { return true };
        let hash = hash(passage);
        self.spend(0)
            && self.layers.iter().any(|layer| !layer.marks(Kind::Passage, hash).is_empty())
    }

    /// The word of a value that the texts have least often, with its place in the value, or no
    /// word if the value has none. `None` if the value cannot occur.
    fn rarest_word<'v>(&mut self, form: &'v str) -> Option<(Option<&'v str>, usize)> {
        let mut rarest: Option<(usize, &str, usize)> = None;
        let mut rest = form;
        for _ in 0..ANCHORS_MAX {
            rest = rest.trim_start_matches(|c| !is_word(c));
            let word = rest.split(|c| !is_word(c)).next().filter(|word| !word.is_empty());
            let Some(word) = word else { break };
            let hash = hash(word);
            let count = self.layers.iter().map(|layer| layer.marks(Kind::Word, hash).len()).sum();
            if !self.spend(0) || count == 0 {
                return None;
            }
            if rarest.is_none_or(|(least, ..)| count < least) {
                rarest = Some((count, word, form.len() - rest.len()));
            }
            rest = &rest[word.len()..];
        }
        Some(rarest.map_or((None, 0), |(_, word, offset)| (Some(word), offset)))
    }

    /// Where a value without letters and digits occurs, such as an emoji.
    fn symbols(&mut self, layer: &IndexLayer, form: &str) -> Vec<u64> {
        let step = form.chars().next().map_or(1, char::len_utf8);
        let (mut marks, mut at, hash) = (Vec::new(), 0, hash(form));
        while let Some(next) = layer.text()[at..].find(form) {
            if !self.spend(next + form.len()) {
                break;
            }
            marks.extend(u32::try_from(at + next).map(|place| mark(Kind::Word, hash, place)));
            at += next + step;
        }
        self.spend(layer.text().len() - at);
        marks
    }

    fn occurs(&mut self, text: &str, start: usize, form: &str) -> bool {
        let rest = &text.as_bytes()[start..];
        let near = form.len().min(WORK_BYTES);
        rest.starts_with(&form.as_bytes()[..near])
            && self.spend(form.len())
            && rest.starts_with(form.as_bytes())
    }

    /// The texts with this day and time: a record as a whole, other texts in one or two places.
    fn find_moment(&mut self, day: Day, time: Option<u16>, found: &mut Sightings) {
        let (mut dated, mut timed) = (Sightings::default(), Sightings::default());
        for layer in self.layers {
            for text in layer.texts_with_time(TimeMark::Moment(day, time)) {
                found.add(SeenIn::Records, text.source);
            }
            for year in [day.year, None] {
                for text in layer.texts_with_time(TimeMark::Day(Day { year, ..day })) {
                    self.spend(0);
                    dated.add_all(text);
                }
            }
            for text in time.into_iter().flat_map(|t| layer.texts_with_time(TimeMark::Clock(t))) {
                self.spend(0);
                timed.add_all(text);
            }
        }
        for class in [SeenIn::Prompt, SeenIn::Private, SeenIn::Stranger] {
            if dated.has(class) && (time.is_none() || timed.has(class)) {
                let sources = dated.sources(class).chain(timed.sources(class));
                sources.for_each(|source| found.add(class, source));
            }
        }
    }

    /// The texts with a number of this value. The day of a date is not a number of the prompt.
    fn find_number(&mut self, number: &str, found: &mut Sightings) {
        for layer in self.layers {
            for (text, role) in layer.texts_with_number(number) {
                if !self.spend(0) {
                    return;
                }
                let counts = |class: &SeenIn| match class {
                    SeenIn::Records => role == NumberRole::Record,
                    SeenIn::Prompt => role == NumberRole::Undated,
                    _ => role != NumberRole::Record,
                };
                let classes = text.classes.each().filter(counts);
                classes.for_each(|class| found.add(class, text.source));
            }
        }
    }

    /// The private and strangers' texts of which `words` repeat a passage that the prompt does
    /// not have. A passage of a record is a stranger's.
    pub(super) fn passages(&mut self, words: &Words) -> Sightings {
        let mut found = Sightings::default();
        for passage in words.passages() {
            let mut own = Sightings::default();
            for layer in self.layers {
                for place in
                    layer.marks(Kind::Passage, passage.hash).iter().map(|mark| place_of(*mark))
                {
                    if !self.spend(0) {
                        return found;
                    }
                    let text = layer.text_at(place);
                    let classes = parts_of(text.classes, false);
                    let is_prompt = text.classes.has(SeenIn::Prompt);
                    let is_known = found.covers(classes, text.source);
                    if (is_prompt || !is_known)
                        && strip_words(layer.rest_of_form(place), passage.text).is_some()
                    {
                        own.add_all(SeenText { classes, ..text });
                        own.add_all(SeenText { classes: prompt_of(text.classes), ..text });
                    }
                }
            }
            if !own.has(SeenIn::Prompt) {
                own.each().for_each(|(class, source)| found.add(class, source));
            }
        }
        found
    }

    /// The whole private values that occur in `words`, apart from those of the prompt.
    pub(super) fn private_facts(&mut self, words: &Words) -> Sightings {
        let mut found = Sightings::default();
        for run in words.facts() {
            let hash = hash(run);
            for layer in self.layers {
                if !self.spend(0) {
                    return found;
                }
                for place in layer.marks(Kind::Fact, hash).iter().map(|mark| place_of(*mark)) {
                    let whole = layer.rest_of_form(place).trim_start_matches(|c| !is_word(c));
                    let rest = strip_words(whole, run);
                    let is_whole = rest.is_some_and(|rest| !rest.contains(is_word));
                    if is_whole && self.spend(whole.len()) && !self.prompt_has_run(run) {
                        found.add(SeenIn::Private, layer.text_at(place).source);
                    }
                }
            }
        }
        found
    }

    /// Whether a text has a passage, or a run of words with a digit, that the prompt has not.
    pub(super) fn is_new(&mut self, words: &Words) -> bool {
        let mut passages = words.passages().into_iter();
        passages.any(|passage| !self.prompt_has(Kind::Passage, passage.hash, passage.text))
            || words.facts().any(|run| !self.prompt_has_run(run))
    }

    /// Whether a run of words occurs in the prompt.
    fn prompt_has_run(&mut self, run: &str) -> bool {
        let first = run.split(' ').next().unwrap_or_default();
        self.prompt_has(Kind::Word, hash(first), run)
    }

    /// Whether `words` occur in the prompt, at a place with a mark.
    fn prompt_has(&mut self, kind: Kind, hash: u32, words: &str) -> bool {
        for layer in self.layers {
            for place in layer.marks(kind, hash).iter().map(|mark| place_of(*mark)) {
                if !self.spend(0) {
                    return false;
                }
                if !layer.text_at(place).classes.has(SeenIn::Prompt) {
                    continue;
                }
                let rest = strip_words(layer.rest_of_form(place), words);
                let ends = |rest: &str| kind == Kind::Passage || !rest.starts_with(is_word);
                if rest.is_some_and(ends) {
                    return true;
                }
            }
        }
        false
    }
}

/// The classes of a part of a text, apart from the prompt: loose.
fn parts_of(classes: Classes, is_record: bool) -> Classes {
    let private = classes.has(SeenIn::Private);
    let stranger = classes.has(SeenIn::Stranger) || (classes.has(SeenIn::Records) && !is_record);
    match (private, stranger) {
        (true, true) => Classes::new(&[SeenIn::Private, SeenIn::Stranger]),
        (true, false) => Classes::new(&[SeenIn::Private]),
        (false, true) => Classes::new(&[SeenIn::Stranger]),
        (false, false) => Classes::default(),
    }
}

fn prompt_of(classes: Classes) -> Classes {
    if classes.has(SeenIn::Prompt) { Classes::new(&[SeenIn::Prompt]) } else { Classes::default() }
}

/// Whether a joint such as `-` or `@` ends a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joints {
    /// Suspicion is loose.
    AreSpaces,
    /// Trust is strict: `x.com` does not occur in `ada@x.com`, nor `13` in `2024-05-13`.
    BelongToWords,
}

/// Whether a part of a text is not part of a longer word.
fn is_whole_word(text: &str, start: usize, length: usize, joints: Joints) -> bool {
    let before = text[..start].chars().rev();
    ends_word(before, joints) && ends_word(text[start + length..].chars(), joints)
}

fn ends_word(mut rest: impl Iterator<Item = char>, joints: Joints) -> bool {
    let Some(next) = rest.next() else { return true };
    let is_joint = "-_.:/@+'".contains(next) && joints == Joints::BelongToWords;
    !(is_word(next) || is_joint && rest.next().is_some_and(is_word))
}
