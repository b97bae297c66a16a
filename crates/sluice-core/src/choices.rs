//! Enums of this crate with words.
//!
//! `choices!` of `sluice_govern::choice` declares them. This crate's `choices!` also marks
//! them, so that its readers and schemas can cover all of them at once: a trait of another
//! crate could get more implementations there.

use crate::choice::Choice;
use sluice_govern::registry::{LensKind, PolicySet, Posture};

/// An enum with words that documents and events of this crate may contain.
pub(crate) trait OwnChoice: Choice {}

impl OwnChoice for LensKind {}
impl OwnChoice for PolicySet {}
impl OwnChoice for Posture {}

/// Declares an enum with its words and its serialisation.
macro_rules! choices {
    ($(#[$about:meta])* $vis:vis enum $name:ident, $($rest:tt)*) => {
        sluice_govern::choices! { $(#[$about])* $vis enum $name, $($rest)* }

        impl $crate::choices::OwnChoice for $name {}
    };
}
pub(crate) use choices;
