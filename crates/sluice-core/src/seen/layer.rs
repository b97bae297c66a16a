//! The texts that a run has seen, with sorted marks at the places that lookups need.
//!
//! Hashes only find places: every match is compared with the text itself, so no collision can
//! make a value trusted.
//!
//! Layers are shared by all copies of a run and never change. A few large ones are faster to
//! search and one per answer is cheaper to build, so small layers are merged as they come.

use super::mark::{self, Kind, hash, mark};
use super::moment::{Day, clocks, days, moment, undated};
use super::normal::bare_url;
use super::number::{canonical, numbers, whole_number};
use super::words::{FACT_CHARS_MIN, Words};
use sluice_govern::facts::SeenIn;
use std::borrow::Cow;
use std::ops::Range;

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Classes(u8);

impl Classes {
    pub(super) fn new(classes: &[SeenIn]) -> Classes {
        Classes(classes.iter().fold(0, |bits, class| bits | 1 << *class as u8))
    }

    pub(super) fn from_bits(bits: u8) -> Classes {
        Classes(bits)
    }

    pub(super) fn bits(self) -> u8 {
        self.0
    }

    #[must_use]
    pub(super) fn with(self, more: Classes) -> Classes {
        Classes(self.0 | more.0)
    }

    pub(super) fn has(self, class: SeenIn) -> bool {
        self.0 & 1 << class as u8 != 0
    }

    /// All of them, from the best one on.
    pub(super) fn each(self) -> impl Iterator<Item = SeenIn> {
        SeenIn::ALL.into_iter().filter(move |class| self.has(*class))
    }
}

/// One text: from `start` to the start of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenText {
    pub(super) start: u32,
    pub(super) classes: Classes,
    /// The source that it came from, as the caller numbers them.
    pub(super) source: u32,
}

/// A number in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NumberMark {
    hash: u32,
    start: u32,
    end: u32,
    /// Which searches find it.
    role: NumberRole,
}

/// Which searches find a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NumberRole {
    /// It is a whole record.
    Record,
    /// It is not part of a date that names a month.
    Undated,
    /// It is found only if such dates are read as numbers.
    Dated,
}

/// A date or a time in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimeMark {
    Day(Day),
    Clock(u16),
    /// A whole record that is a date, with the minutes of its time.
    Moment(Day, Option<u16>),
}

/// Texts with their marks.
#[derive(Debug, Clone, Default)]
pub(super) struct IndexLayer {
    /// The normal forms, each followed by a line break, which no normal form has.
    text: String,
    texts: Vec<SeenText>,
    marks: Vec<u64>,
    numbers: Vec<NumberMark>,
    times: Vec<(TimeMark, u32)>,
}

impl IndexLayer {
    /// Adds a text by its normal form. `sort` must follow.
    pub(super) fn push(&mut self, form: &str, classes: Classes, source: u32) {
        let start = place(self.text.len());
        self.texts.push(SeenText { start, classes, source });
        self.text.push_str(form);
        self.text.push('\n');
        let words = Words::of(form);
        let at = |offset: usize| start + place(offset);
        self.marks.push(mark(Kind::Whole, hash(bare_url(form)), start));
        let each = words.each().map(|(word, offset)| mark(Kind::Word, hash(word), at(offset)));
        self.marks.extend(each);
        for passage in words.passages() {
            self.marks.push(mark(Kind::Passage, passage.hash, at(passage.at)));
        }
        let moment = moment(form);
        let is_long = form.chars().nth(FACT_CHARS_MIN - 1).is_some();
        if classes.has(SeenIn::Private) && moment.is_none() && is_long && words.is_fact() {
            self.marks.push(mark(Kind::Fact, hash(words.as_str()), start));
        }
        if classes.has(SeenIn::Records) {
            self.times.extend(moment.map(|(day, time)| (TimeMark::Moment(day, time), start)));
            if let Some(number) = whole_number(form) {
                let offset = form.len() - form.trim_end().len();
                let end = form.len() - offset;
                self.push_number(form, end - number.len()..end, NumberRole::Record);
            }
        }
        if classes != Classes::new(&[SeenIn::Records]) {
            self.push_parts(form, start);
        }
    }

    /// Marks the numbers, dates and times in the last text, whose parts count as well.
    fn push_parts(&mut self, form: &str, start: u32) {
        let undated = undated(form);
        for range in numbers(&undated) {
            self.push_number(form, range, NumberRole::Undated);
        }
        if let Cow::Owned(_) = undated {
            for range in numbers(form) {
                self.push_number(form, range, NumberRole::Dated);
            }
        }
        self.times.extend(days(form).into_iter().map(|day| (TimeMark::Day(day), start)));
        self.times.extend(clocks(form).into_iter().map(|time| (TimeMark::Clock(time), start)));
    }

    fn push_number(&mut self, form: &str, range: Range<usize>, role: NumberRole) {
        let start = self.text.len() - 1 - form.len();
        let hash = hash(&canonical(&form[range.clone()]));
        let (start, end) = (place(start + range.start), place(start + range.end));
        self.numbers.push(NumberMark { hash, start, end, role });
    }

    /// Sorts the marks, after texts were added.
    pub(super) fn sort(&mut self) {
        self.marks.sort_unstable();
        self.numbers.sort_unstable();
        self.times.sort_unstable();
    }

    /// The texts of two layers in one.
    pub(super) fn merge(&self, later: &IndexLayer) -> IndexLayer {
        let by = place(self.text.len());
        let mut all = self.clone();
        all.text.push_str(&later.text);
        let text = |text: &SeenText| SeenText { start: text.start + by, ..*text };
        all.texts.extend(later.texts.iter().map(text));
        all.marks.extend(later.marks.iter().map(|mark| mark + u64::from(by)));
        let number = |number: &NumberMark| NumberMark {
            start: number.start + by,
            end: number.end + by,
            ..*number
        };
        all.numbers.extend(later.numbers.iter().map(number));
        all.times.extend(later.times.iter().map(|(time, start)| (*time, start + by)));
        // Each list consists of two sorted parts, which a stable sort only merges.
        all.marks.sort();
        all.numbers.sort();
        all.times.sort();
        all
    }

    /// How much there is to search.
    pub(super) fn size(&self) -> usize {
        self.texts.len() + self.marks.len()
    }

    /// All normal forms, each followed by a line break.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Every text with its normal form.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, SeenText)> {
        self.texts.iter().zip(self.text.lines()).map(|(text, form)| (form, *text))
    }

    /// The text that has a place.
    pub(super) fn text_at(&self, place: u32) -> SeenText {
        let after = self.texts.partition_point(|text| text.start <= place);
        self.texts[after.max(1) - 1]
    }

    /// Where the text ends that has a place.
    pub(super) fn end_of_text(&self, place: u32) -> u32 {
        let after = self.texts.partition_point(|text| text.start <= place);
        self.texts.get(after).map_or(u32::MAX, |text| text.start)
    }

    /// The rest of the normal form from a place on.
    pub(super) fn rest_of_form(&self, place: u32) -> &str {
        let rest = &self.text[place as usize..];
        rest.split_once('\n').map_or(rest, |(form, _)| form)
    }

    /// The marks at the places that may have such a thing.
    pub(super) fn marks(&self, kind: Kind, hash: u32) -> &[u64] {
        mark::equal(&self.marks, kind, hash)
    }

    /// The texts with a number of this value, each with how it occurs.
    pub(super) fn texts_with_number(
        &self,
        value: &str,
    ) -> impl Iterator<Item = (SeenText, NumberRole)> {
        let hash = hash(value);
        let from = self.numbers.partition_point(|number| number.hash < hash);
        let equal = self.numbers[from..].iter().take_while(move |number| number.hash == hash);
        let same = move |number: &&NumberMark| {
            canonical(&self.text[number.start as usize..number.end as usize]) == value
        };
        equal.filter(same).map(|number| (self.text_at(number.start), number.role))
    }

    /// The texts with a date or time.
    pub(super) fn texts_with_time(&self, time: TimeMark) -> impl Iterator<Item = SeenText> {
        let from = self.times.partition_point(|(other, _)| *other < time);
        let equal = self.times[from..].iter().take_while(move |(other, _)| *other == time);
        equal.map(|(_, start)| self.text_at(*start))
    }
}

/// A place in the text of a layer.
fn place(offset: usize) -> u32 {
    u32::try_from(offset).expect("the texts of a run are bounded")
}
