//! The values that a gate compared, by name.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The values that a gate compared, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures(Box<[(&'static str, Figure)]>);

/// A compared value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figure {
    /// An amount, a count or a time.
    Number(u64),
    /// A keyword.
    Word(&'static str),
    /// A name.
    Text(String),
    /// Several records, such as the caps that fail.
    List(Vec<Value>),
}

impl Figures {
    /// Whether nothing was compared.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub(super) fn all(&self) -> &[(&'static str, Figure)] {
        &self.0
    }
}

impl<const N: usize> From<[(&'static str, Figure); N]> for Figures {
    fn from(figures: [(&'static str, Figure); N]) -> Figures {
        Figures(figures.into())
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, figure)| (name, figure)))
    }
}

impl Figure {
    /// Whether it equals a text.
    pub(super) fn is(&self, text: &str) -> bool {
        match self {
            Figure::Word(word) => *word == text,
            Figure::Text(own) => own == text,
            Figure::Number(_) | Figure::List(_) => false,
        }
    }
}

impl From<u64> for Figure {
    fn from(number: u64) -> Figure {
        Figure::Number(number)
    }
}

impl From<u32> for Figure {
    fn from(number: u32) -> Figure {
        Figure::Number(number.into())
    }
}

impl From<u8> for Figure {
    fn from(number: u8) -> Figure {
        Figure::Number(number.into())
    }
}

impl From<usize> for Figure {
    fn from(number: usize) -> Figure {
        Figure::Number(number as u64)
    }
}

impl From<&str> for Figure {
    fn from(text: &str) -> Figure {
        Figure::Text(text.to_owned())
    }
}

impl From<String> for Figure {
    fn from(text: String) -> Figure {
        Figure::Text(text)
    }
}

impl From<Vec<Value>> for Figure {
    fn from(list: Vec<Value>) -> Figure {
        Figure::List(list)
    }
}
