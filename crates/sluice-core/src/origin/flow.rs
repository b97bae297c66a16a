//! The named labels of a value: where its data came from, and which secrets it contains.
//!
//! INVARIANT: joining never removes a label. Only [`FlowLabels::endorse`] removes one, and its
//! caller records an event.

use serde::{Deserialize, Serialize};
use sluice_govern::facts::FlowFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The origin of an argument of the run whose declaration names no other.
const CALLER: &str = "caller";
/// The origin of what an agent or a tool returned, if nothing declares another.
const UNKNOWN: &str = "unknown";
/// The origin of the operator's own systems, by declaration only.
const OPERATOR: &str = "operator";

/// Whether an origin is the caller or the operator's own systems.
pub(crate) fn is_trusted(origin: &str) -> bool {
    matches!(origin, CALLER | OPERATOR)
}

/// Bits of [`FlowLabels::marks`].
const CALLER_MARK: u8 = 1;
const UNKNOWN_MARK: u8 = 2;
const CONTROL_MARK: u8 = 4;

/// The origins that need no name of their own.
const MARKED: [(&str, u8); 2] = [(CALLER, CALLER_MARK), (UNKNOWN, UNKNOWN_MARK)];

/// The named labels of a value. A value without declared names needs no memory for them, and a
/// copy shares them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct FlowLabels {
    marks: u8,
    declared: Option<Arc<Declared>>,
}

/// The names that somewhere were declared. At least one set is not empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
struct Declared {
    origins: BTreeSet<Arc<str>>,
    secrecy: BTreeSet<Arc<str>>,
}

impl FlowLabels {
    /// The labels of an argument whose declaration names no origin.
    pub const fn caller() -> FlowLabels {
        FlowLabels { marks: CALLER_MARK, declared: None }
    }

    /// The labels of what an agent or a tool returned, if nothing declares an origin.
    pub const fn unknown() -> FlowLabels {
        FlowLabels { marks: UNKNOWN_MARK, declared: None }
    }

    /// The labels of something that an untrusted value decided.
    pub(crate) const fn controlled() -> FlowLabels {
        FlowLabels { marks: CONTROL_MARK, declared: None }
    }

    /// The labels with these names.
    pub fn of<'a>(
        origins: impl IntoIterator<Item = &'a str>,
        secrecy: impl IntoIterator<Item = &'a str>,
    ) -> FlowLabels {
        let mut labels = FlowLabels::default();
        let mut declared = Declared::default();
        for name in origins {
            match MARKED.iter().find(|(marked, _)| *marked == name) {
                Some((_, mark)) => labels.marks |= mark,
                None => drop(declared.origins.insert(name.into())),
            }
        }
        declared.secrecy.extend(secrecy.into_iter().map(Arc::from));
        labels.declared = declared.shared();
        labels
    }

    /// The labels that somewhere are declared.
    pub(crate) fn declared(origins: &[String], secrecy: &[String]) -> FlowLabels {
        if origins.is_empty() && secrecy.is_empty() {
            return FlowLabels::default();
        }
        let text = String::as_str;
        FlowLabels::of(origins.iter().map(text), secrecy.iter().map(text))
    }

    /// Adds the labels of another value.
    pub fn join(&mut self, other: &FlowLabels) {
        self.marks |= other.marks;
        let Some(more) = &other.declared else { return };
        match &mut self.declared {
            Some(own) if Arc::ptr_eq(own, more) || own.covers(more) => {}
            Some(own) if !more.covers(own) => {
                let own = Arc::make_mut(own);
                own.origins.extend(more.origins.iter().cloned());
                own.secrecy.extend(more.secrecy.iter().cloned());
            }
            own => *own = Some(Arc::clone(more)),
        }
    }

    /// Removes origins, and returns those that were there.
    pub(crate) fn endorse(&mut self, removes: impl Fn(&str) -> bool) -> Vec<String> {
        let gone: Vec<String> =
            self.origins().filter(|name| removes(name)).map(str::to_owned).collect();
        for (_, mark) in MARKED.iter().filter(|(name, _)| removes(name)) {
            self.marks &= !mark;
        }
        if let Some(declared) = &self.declared
            && declared.origins.iter().any(|name| removes(name))
        {
            let mut left = (**declared).clone();
            left.origins.retain(|name| !removes(name));
            self.declared = left.shared();
        }
        gone
    }

    /// Where its data came from, in order of name.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        let marked =
            MARKED.iter().filter(|(_, mark)| self.marks & mark != 0).map(|(name, _)| *name);
        let declared = self.declared.iter().flat_map(|declared| &declared.origins);
        let all: BTreeSet<&str> = marked.chain(declared.map(|name| &**name)).collect();
        all.into_iter()
    }

    /// Which secrets it contains, in order of name.
    pub fn secrecy(&self) -> impl Iterator<Item = &str> {
        self.declared.iter().flat_map(|declared| &declared.secrecy).map(|name| &**name)
    }

    /// Whether an untrusted value decided that it exists, or what it is.
    pub const fn is_controlled(&self) -> bool {
        self.marks & CONTROL_MARK != 0
    }

    /// Whether a part of it came from anywhere but the caller and the operator's own systems.
    pub(crate) fn is_untrusted(&self) -> bool {
        let declared = || self.declared.iter().flat_map(|declared| &declared.origins);
        self.marks & UNKNOWN_MARK != 0 || declared().any(|name| !is_trusted(name))
    }

    /// The labels as policies read them.
    pub fn facts(&self) -> FlowFacts {
        FlowFacts {
            origins: self.origins().map(Arc::from).collect(),
            secrecy: self.secrecy().map(Arc::from).collect(),
            control: self.is_controlled(),
        }
    }
}

impl Declared {
    fn covers(&self, other: &Declared) -> bool {
        other.origins.is_subset(&self.origins) && other.secrecy.is_subset(&self.secrecy)
    }

    fn shared(self) -> Option<Arc<Declared>> {
        let is_empty = self.origins.is_empty() && self.secrecy.is_empty();
        (!is_empty).then(|| Arc::new(self))
    }
}

/// The labels of fields that differ from those of the whole value. Without such a field it
/// needs no memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FieldLabels(Option<Arc<BTreeMap<String, FlowLabels>>>);

impl FieldLabels {
    /// Those of these fields whose labels differ from `whole`.
    pub fn new(
        fields: impl IntoIterator<Item = (String, FlowLabels)>,
        whole: &FlowLabels,
    ) -> FieldLabels {
        fields.into_iter().filter(|(_, own)| own != whole).collect()
    }

    /// The labels of a field, if they differ from those of the whole.
    pub fn get(&self, field: &str) -> Option<&FlowLabels> {
        self.0.as_ref()?.get(field)
    }

    /// All fields with labels of their own, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &FlowLabels)> {
        self.0.iter().flat_map(|fields| fields.iter())
    }
}

impl FromIterator<(String, FlowLabels)> for FieldLabels {
    fn from_iter<I: IntoIterator<Item = (String, FlowLabels)>>(fields: I) -> FieldLabels {
        let own: BTreeMap<_, _> = fields.into_iter().collect();
        FieldLabels((!own.is_empty()).then(|| Arc::new(own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(origins: &[&str], secrecy: &[&str]) -> FlowLabels {
        FlowLabels::of(origins.iter().copied(), secrecy.iter().copied())
    }

    fn joined(mut one: FlowLabels, other: &FlowLabels) -> FlowLabels {
        one.join(other);
        one
    }

    #[test]
    fn a_join_has_the_labels_of_both_and_shares_what_one_of_them_has() {
        let (mail, page) = (of(&["inbound_mail", "caller"], &["customer"]), of(&["web"], &[]));
        let both = joined(mail.clone(), &page);
        assert_eq!(both.origins().collect::<Vec<_>>(), ["caller", "inbound_mail", "web"]);
        assert_eq!(both.secrecy().collect::<Vec<_>>(), ["customer"]);
        assert_eq!(joined(page.clone(), &mail), both);
        let (again, less) = (joined(both.clone(), &page), joined(page, &both));
        for one in [again, less] {
            assert!(Arc::ptr_eq(one.declared.as_ref().unwrap(), both.declared.as_ref().unwrap()));
        }
    }

    #[test]
    fn what_has_no_declared_names_needs_no_memory() {
        let mut labels = FlowLabels::caller();
        labels.join(&FlowLabels::unknown());
        labels.join(&FlowLabels::controlled());
        assert_eq!(labels.declared, None);
        assert_eq!(labels.origins().collect::<Vec<_>>(), ["caller", "unknown"]);
        assert!(labels.is_controlled());
        assert_eq!(of(&["caller"], &[]), FlowLabels::caller());
    }

    #[test]
    fn only_the_caller_and_the_operator_are_trusted() {
        assert!(!FlowLabels::default().is_untrusted());
        assert!(!of(&["caller", "operator"], &["customer"]).is_untrusted());
        for name in ["unknown", "web"] {
            assert!(of(&["caller", name], &[]).is_untrusted(), "{name}");
        }
    }

    #[test]
    fn an_endorsement_removes_origins_and_nothing_else() {
        let mut labels =
            joined(of(&["web", "crm", "unknown"], &["customer"]), &FlowLabels::controlled());
        assert_eq!(labels.endorse(|name| name == "mail"), [""; 0]);
        assert_eq!(labels.endorse(|name| name == "web"), ["web"]);
        assert_eq!(labels.endorse(|_| true), ["crm", "unknown"]);
        assert_eq!(labels, joined(of(&[], &["customer"]), &FlowLabels::controlled()));
        let mut page = of(&["web"], &[]);
        page.endorse(|_| true);
        assert_eq!(page, FlowLabels::default());
    }

    #[test]
    fn a_field_is_kept_only_if_it_differs_from_the_whole() {
        let whole = of(&["web"], &[]);
        let fields = || [("a".to_owned(), whole.clone()), ("b".to_owned(), FlowLabels::caller())];
        let labels = FieldLabels::new(fields(), &whole);
        assert_eq!((labels.get("a"), labels.get("b")), (None, Some(&FlowLabels::caller())));
        assert_eq!(labels.iter().count(), 1);
        assert_eq!(
            FieldLabels::new([("a".to_owned(), whole.clone())], &whole),
            FieldLabels::default()
        );
    }
}
