//! Fields that take one of a few words.

/// A type whose values are words of a document.
pub trait Choice: Copy + 'static {
    /// What the field is called in messages.
    const WHAT: &'static str;
    /// Every word with its meaning, as written in documents.
    const ALL: &'static [(&'static str, Self)];
    /// Old words that are still accepted, with the word to use instead.
    const OLD: &'static [(&'static str, &'static str)] = &[];

    /// The meaning of a word.
    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice)
    }
}

/// Declares an enum, its words and how it is written.
macro_rules! choices {
    ($(#[$about:meta])* $vis:vis enum $name:ident, $what:literal $(, old: [$($old:literal => $new:literal),*])? {
        $($(#[$doc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// The word as written in documents.
            $vis const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl $crate::choice::Choice for $name {
            const WHAT: &'static str = $what;
            const ALL: &'static [(&'static str, Self)] = &[$(($word, $name::$variant),)*];
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
    };
}
pub(crate) use choices;

macro_rules! also_choices {
    ($name:ty, $what:literal, $($word:literal => $variant:expr),*) => {
        impl Choice for $name {
            const WHAT: &'static str = $what;
            const ALL: &'static [(&'static str, Self)] = &[$(($word, $variant)),*];
        }
    };
}
use crate::contract::field::ContractType as C;
use crate::merge::Strategy as S;
use crate::outputs::schema::FieldType as F;
also_choices!(C, "a contract type", "string" => C::String, "number" => C::Number, "integer" => C::Integer, "boolean" => C::Boolean, "url" => C::Url, "json" => C::Json, "array" => C::Array, "any" => C::Any);
also_choices!(S, "a merge strategy", "last_write_wins" => S::LastWriteWins, "concat" => S::Concat, "array" => S::Array, "json_object" => S::JsonObject);
also_choices!(F, "a type", "string" => F::String, "number" => F::Number, "integer" => F::Integer, "boolean" => F::Boolean, "object" => F::Object, "array" => F::Array);
