//! Values with templates inside them: what a child workflow is given.

use super::{Template, Unresolved};
use crate::scope::Scope;
use crate::wire;
use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A value whose strings are templates.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TemplateTree {
    /// A string.
    Template(Template),
    /// A list.
    List(Vec<TemplateTree>),
    /// A map.
    Map(IndexMap<String, TemplateTree>),
    /// Anything that cannot hold a template.
    Literal(Value),
}

impl TemplateTree {
    /// Every template in it, in document order.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            TemplateTree::Template(template) => vec![template],
            TemplateTree::List(trees) => trees.iter().flat_map(Self::templates).collect(),
            TemplateTree::Map(trees) => trees.values().flat_map(Self::templates).collect(),
            TemplateTree::Literal(_) => Vec::new(),
        }
    }

    /// The value, every reference replaced. A string that is one reference
    /// becomes the value it names, with its type.
    pub fn value(&self, scope: &dyn Scope) -> Result<Value, Unresolved> {
        match self {
            TemplateTree::Template(template) => template.value(scope),
            TemplateTree::List(trees) => trees.iter().map(|tree| tree.value(scope)).collect(),
            TemplateTree::Map(trees) => {
                let pairs = trees.iter().map(|(key, tree)| Ok((key.clone(), tree.value(scope)?)));
                pairs.collect::<Result<serde_json::Map<_, _>, _>>().map(Value::Object)
            }
            TemplateTree::Literal(value) => Ok(value.clone()),
        }
    }
}

impl<'de> Deserialize<'de> for TemplateTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TemplateTree, D::Error> {
        read(wire::value(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The tree that was written as `value`. As deep as the value.
fn read(value: Value) -> Result<TemplateTree, serde_json::Error> {
    Ok(match value {
        Value::String(_) => TemplateTree::Template(Template::deserialize(value)?),
        Value::Array(items) => {
            TemplateTree::List(items.into_iter().map(read).collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let pairs = map.into_iter().map(|(key, value)| Ok((key, read(value)?)));
            TemplateTree::Map(pairs.collect::<Result<_, serde_json::Error>>()?)
        }
        literal @ (Value::Null | Value::Bool(_) | Value::Number(_)) => {
            TemplateTree::Literal(literal)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::names::Names;
    use serde_json::json;

    #[test]
    fn references_keep_their_type_and_other_text_becomes_text() {
        let template = |text: &str| TemplateTree::Template(Template::parse(text).unwrap());
        let tree = TemplateTree::Map(IndexMap::from([
            ("whole".to_owned(), template("${n}")),
            (
                "part".to_owned(),
                TemplateTree::List(vec![template("n=${n}"), TemplateTree::Literal(json!(true))]),
            ),
        ]));
        let scope = Names::new().with_variable("n", json!([1]));
        assert_eq!(tree.value(&scope), Ok(json!({"whole": [1], "part": ["n=[1]", true]})));
        assert_eq!(tree.templates().len(), 2);
        assert!(tree.value(&Names::new()).is_err());
    }
}
