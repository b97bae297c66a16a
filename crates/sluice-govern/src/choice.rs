//! Enums with words: for documents, rows, events, policies and messages.
//!
//! `choices!` declares an enum and its words once. Its `as_str`, `parse`, `ALL`, `Display` and
//! serde forms come from that declaration; readers of documents and schemas use [`Choice`].

use crate::visible::shorten;
use serde::de::{Deserialize, Deserializer, Error as _};

pub use crate::{choices, tagged};

/// An enum with a word for each value.
pub trait Choice: Copy + 'static {
    /// The name of the enum in messages.
    const WHAT: &'static str;
    /// Every value with its word.
    const WORDS: &'static [(&'static str, Self)];
    /// Every word.
    const NAMES: &'static [&'static str];
    /// Old words that documents may still use, with their replacements.
    const OLD: &'static [(&'static str, &'static str)] = &[];
}

/// The value of a word.
pub fn find<T: Choice>(word: &str) -> Option<T> {
    T::WORDS.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice)
}

/// Deserialises a word; old words are accepted in documents only.
pub fn read<'de, D: Deserializer<'de>, T: Choice>(deserializer: D) -> Result<T, D::Error> {
    let word = String::deserialize(deserializer)?;
    find(&word).ok_or_else(|| D::Error::custom(format!("`{}` is not {}", shorten(&word), T::WHAT)))
}

/// Declares an enum with its words and its serialisation.
#[macro_export]
macro_rules! choices {
    ($(#[$about:meta])* $vis:vis enum $name:ident, $what:literal $(, old: [$($old:literal => $new:literal),*])? {
        $($(#[$doc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All values, in the order of the declaration.
            $vis const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// The word of the value.
            $vis const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// The value of a word.
            $vis fn parse(word: &str) -> Option<$name> {
                $crate::choice::find(word)
            }
        }

        impl $crate::choice::Choice for $name {
            const WHAT: &'static str = $what;
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $name::$variant),)*];
            const NAMES: &'static [&'static str] = &[$($word),*];
            $(const OLD: &'static [(&'static str, &'static str)] = &[$(($old, $new),)*];)?
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::choice::read(deserializer)
            }
        }
    };
}

/// Declares an enum whose values have words and some of them data. Its forms are written by
/// hand, from `as_str` and `WORDS`.
#[macro_export]
macro_rules! tagged {
    ($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident $(($data:ty))? = $word:literal,)*
    }) => {
        $(#[$about])*
        $vis enum $name { $($(#[$doc])* $variant $(($data))?,)* }

        impl $name {
            /// All words, in the order of the declaration.
            $vis const WORDS: [&'static str; [$($word),*].len()] = [$($word),*];

            /// The word of the value.
            $vis const fn as_str(&self) -> &'static str {
                match self { $($name::$variant { .. } => $word,)* }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    choices! {
        #[derive(Default)]
        enum Colour, "a colour", old: ["crimson" => "dark_red"] {
            /// The default.
            #[default]
            Blue = "blue",
            /// The other one.
            DarkRed = "dark_red",
        }
    }

    tagged! {
        #[derive(Debug, PartialEq)]
        enum Shape {
            /// Without data.
            Point = "point",
            /// With data.
            Circle(u8) = "circle",
        }
    }

    #[test]
    fn a_declaration_gives_words_in_both_directions() {
        assert_eq!(Colour::ALL, [Colour::Blue, Colour::DarkRed]);
        assert_eq!(Colour::NAMES, ["blue", "dark_red"]);
        assert_eq!(Colour::default().to_string(), "blue");
        for colour in Colour::ALL {
            assert_eq!(Colour::parse(colour.as_str()), Some(colour));
            let json = serde_json::to_string(&colour).unwrap();
            assert_eq!(json, format!("\"{colour}\""));
            assert_eq!(serde_json::from_str::<Colour>(&json).unwrap(), colour);
        }
    }

    #[test]
    fn only_documents_may_use_old_words() {
        assert_eq!(Colour::parse("crimson"), None);
        let refused = serde_json::from_str::<Colour>("\"crimson\"").unwrap_err().to_string();
        assert!(refused.starts_with("`crimson` is not a colour"), "{refused}");
        assert!(Colour::OLD.iter().all(|(_, new)| Colour::parse(new).is_some()));
    }

    #[test]
    fn values_with_data_have_words_too() {
        assert_eq!(Shape::WORDS, [Shape::Point.as_str(), Shape::Circle(3).as_str()]);
        assert_ne!(Shape::Circle(3), Shape::Circle(4));
    }
}
