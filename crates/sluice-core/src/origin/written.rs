//! Labels as JSON, in events, messages and remembered outputs.

use super::{FieldLabels, FlowLabels, Labels, SourceClass, implied};
use crate::choice;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Labels as they are written: what is not set is left out. The source classes imply origins;
/// only what differs from them is written, so that old journals have the worst origin.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WrittenLabels<'a> {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    untrusted: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    private: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
    /// Origins that the classes do not imply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origins: Vec<Cow<'a, str>>,
    /// Origins that the classes imply and that the value does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secrecy: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    control: bool,
}

impl<'a> From<&'a Labels> for WrittenLabels<'a> {
    fn from(labels: &'a Labels) -> WrittenLabels<'a> {
        let (own, implied) = (&labels.flow, implied(labels.classes));
        let mut written = WrittenLabels {
            classes: labels.classes().map(|class| Cow::Borrowed(class.as_str())).collect(),
            untrusted: labels.untrusted,
            private: labels.private,
            since: labels.since_ms,
            origins: Vec::new(),
            without: Vec::new(),
            secrecy: own.secrecy().map(Cow::Borrowed).collect(),
            control: own.is_controlled(),
        };
        if *own != implied {
            let is_implied = |name: &&str| implied.origins().any(|one| one == *name);
            let more = own.origins().filter(|name| !is_implied(name));
            written.origins = more.map(Cow::Borrowed).collect();
            let less = implied.origins().filter(|name| !own.origins().any(|one| one == *name));
            written.without = less.map(|name| Cow::Owned(name.to_owned())).collect();
        }
        written
    }
}

impl WrittenLabels<'_> {
    /// The labels; `None` if a source class is not known.
    pub(crate) fn read(&self) -> Option<Labels> {
        let classes = self.classes.iter().map(|word| choice::find::<SourceClass>(word));
        let mut labels: Labels = classes.collect::<Option<Vec<_>>>()?.into_iter().collect();
        labels.untrusted = self.untrusted;
        labels.private = self.private;
        labels.since_ms = self.since;
        labels.flow.endorse(|name| self.without.iter().any(|one| *one == name));
        labels.flow.join(&flow(&self.origins, &self.secrecy, self.control));
        Some(labels)
    }
}

/// Named labels as they are written, all of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WrittenFlow<'a> {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origins: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secrecy: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    control: bool,
}

impl<'a> From<&'a FlowLabels> for WrittenFlow<'a> {
    fn from(labels: &'a FlowLabels) -> WrittenFlow<'a> {
        WrittenFlow {
            origins: labels.origins().map(Cow::Borrowed).collect(),
            secrecy: labels.secrecy().map(Cow::Borrowed).collect(),
            control: labels.is_controlled(),
        }
    }
}

impl WrittenFlow<'_> {
    pub(crate) fn read(&self) -> FlowLabels {
        flow(&self.origins, &self.secrecy, self.control)
    }
}

/// The labels of fields as they are written.
pub(crate) type WrittenFields<'a> = BTreeMap<Cow<'a, str>, WrittenFlow<'a>>;

impl FieldLabels {
    /// The fields with labels of their own, as they are written.
    pub(crate) fn written(&self) -> WrittenFields<'_> {
        self.iter().map(|(name, own)| (Cow::Borrowed(name.as_str()), own.into())).collect()
    }

    pub(crate) fn read(written: &WrittenFields<'_>) -> FieldLabels {
        written.iter().map(|(name, own)| (name.to_string(), own.read())).collect()
    }
}

fn flow(origins: &[Cow<'_, str>], secrecy: &[Cow<'_, str>], control: bool) -> FlowLabels {
    let mut labels =
        FlowLabels::of(origins.iter().map(|name| &**name), secrecy.iter().map(|name| &**name));
    if control {
        labels.join(&FlowLabels::controlled());
    }
    labels
}
