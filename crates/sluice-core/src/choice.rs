//! Enumerations that documents write as words.

use crate::visible::shorten;
use serde::de::{Deserialize, Deserializer, Error as _};

/// An enumeration with a word for each value.
pub trait Choice: Copy + 'static {
    /// The name of the enumeration in messages.
    const WHAT: &'static str;
    /// Every value with its word.
    const WORDS: &'static [(&'static str, Self)];
    /// Old words that documents may still use, with their replacements.
    const OLD: &'static [(&'static str, &'static str)] = &[];
}

/// The value of a word.
pub fn find<T: Choice>(word: &str) -> Option<T> {
    T::WORDS.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice)
}

/// Deserialises a word; old words are accepted in documents only.
pub(crate) fn read<'de, D: Deserializer<'de>, T: Choice>(deserializer: D) -> Result<T, D::Error> {
    let word = String::deserialize(deserializer)?;
    find(&word).ok_or_else(|| D::Error::custom(format!("`{}` is not {}", shorten(&word), T::WHAT)))
}

/// Declares an enum with its words and its serialisation.
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
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $name::$variant),)*];
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
pub(crate) use choices;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::field::ContractType;
    use crate::merge::Strategy;
    use crate::outputs::schema::FieldType;
    use crate::plan::policy::*;
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    fn check<T>(words: &[&str])
    where
        T: Choice + PartialEq + std::fmt::Debug + std::fmt::Display + DeserializeOwned + Serialize,
    {
        let all: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        assert_eq!(all, words, "the words of {}", T::WHAT);
        for (word, choice) in T::WORDS {
            assert_eq!(find::<T>(word), Some(*choice));
            assert_eq!(choice.to_string(), *word);
            let json = serde_json::to_string(choice).unwrap();
            assert_eq!(json, format!("\"{word}\""));
            assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *choice);
        }
        assert_eq!(find::<T>("nothing like it"), None);
        for (old, new) in T::OLD {
            assert_eq!(find::<T>(old), None);
            assert!(serde_json::from_str::<T>(&format!("\"{old}\"")).is_err());
            assert!(find::<T>(new).is_some());
        }
    }

    #[test]
    fn every_choice_has_the_words_of_the_format() {
        check::<FieldType>(&["string", "number", "integer", "boolean", "object", "array"]);
        check::<ContractType>(&[
            "string", "number", "integer", "boolean", "url", "json", "array", "any",
        ]);
        check::<Strategy>(&["last_write_wins", "concat", "array", "json_object"]);
        check::<Scheduling>(&["eager", "waves"]);
        check::<OnFailure>(&["halt", "skip", "retry_once", "retry_once_then_escalate", "retry"]);
        check::<OnParentFailure>(&["propagate", "skip", "substitute_default"]);
        check::<ParallelFailure>(&["wait_all", "fail_fast"]);
        check::<Moderation>(&["off", "input", "output", "both"]);
        check::<RetryCause>(&["timeout", "provider_error", "rate_limit", "contract_violated"]);
        check::<Family>(&["lobsterx", "lens"]);
        check::<Sought>(&["library_step", "lens"]);
        check::<FailureMode>(&["isolate", "halt"]);
        check::<LensKind>(&[
            "text",
            "image",
            "video",
            "audio",
            "music",
            "research",
            "pdf",
            "transform",
            "orchestration",
            "validation",
            "routing",
        ]);
    }
}
