//! Values that contain templates: the arguments of a child workflow.

use super::lens::LensTemplate;
use super::{Template, Unresolved};
use crate::scope::Scope;
use crate::wire;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A value whose strings are templates.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Tree<T> {
    /// A string.
    Template(T),
    /// A sequence of templates.
    List(Vec<Tree<T>>),
    /// Templates by key; keys are never templates.
    Map(IndexMap<String, Tree<T>>),
    /// A value that cannot contain a template.
    Literal(Value),
}

/// A value whose strings have `${…}` references.
pub type TemplateTree = Tree<Template>;

/// A value whose strings have `[[label]]` placeholders.
pub type LabelTree = Tree<LensTemplate>;

impl<T> Tree<T> {
    /// Every template in the tree, in document order.
    pub(crate) fn templates(&self) -> Vec<&T> {
        match self {
            Tree::Template(template) => vec![template],
            Tree::List(trees) => trees.iter().flat_map(Self::templates).collect(),
            Tree::Map(trees) => trees.values().flat_map(Self::templates).collect(),
            Tree::Literal(_) => Vec::new(),
        }
    }

    /// Replaces every template by the value that `fill` returns. Without a value, an entry
    /// is left out of a map and becomes null in a list.
    pub fn fill<E>(
        &self,
        fill: &impl Fn(&T) -> Result<Option<Value>, E>,
    ) -> Result<Option<Value>, E> {
        Ok(Some(match self {
            Tree::Template(template) => return fill(template),
            Tree::List(trees) => {
                let items = trees.iter().map(|tree| Ok(tree.fill(fill)?.unwrap_or_default()));
                Value::Array(items.collect::<Result<_, E>>()?)
            }
            Tree::Map(trees) => {
                let mut map = serde_json::Map::new();
                for (key, tree) in trees {
                    map.extend(tree.fill(fill)?.map(|value| (key.clone(), value)));
                }
                Value::Object(map)
            }
            Tree::Literal(value) => value.clone(),
        }))
    }
}

impl TemplateTree {
    /// Replaces every reference. A string that is a single reference becomes the typed
    /// value.
    pub fn value(&self, scope: &dyn Scope) -> Result<Value, Unresolved> {
        let value = self.fill(&|template: &Template| template.value(scope).map(Some));
        value.map(Option::unwrap_or_default)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Tree<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree<T>, D::Error> {
        read(wire::value(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Parses the tree of `value`; it is as deep as the value.
fn read<T: DeserializeOwned>(value: Value) -> Result<Tree<T>, serde_json::Error> {
    Ok(match value {
        Value::String(_) => Tree::Template(T::deserialize(value)?),
        Value::Array(items) => Tree::List(items.into_iter().map(read).collect::<Result<_, _>>()?),
        Value::Object(map) => {
            let pairs = map.into_iter().map(|(key, value)| Ok((key, read(value)?)));
            Tree::Map(pairs.collect::<Result<_, serde_json::Error>>()?)
        }
        literal @ (Value::Null | Value::Bool(_) | Value::Number(_)) => Tree::Literal(literal),
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

    #[test]
    fn a_placeholder_alone_keeps_its_type_and_is_left_out_without_a_value() {
        let tree: LabelTree = serde_json::from_value(json!({
            "whole": "[[n]]", "part": "n=[[ N ]]", "gone": "[[o!]]", "text": "<[[o!]]>",
            "list": ["[[o!]]", "{{n}}", true], "plain": "[ n ] ${n}",
        }))
        .unwrap();
        let bindings = std::collections::BTreeMap::from([("n".to_owned(), json!([1]))]);
        let fill = |one: &LensTemplate| one.value(&bindings, |_| false, |_| false);
        let filled = json!({
            "whole": [1], "part": "n=[1]", "text": "<>", "list": [null, [1], true],
            "plain": "[1] ${n}",
        });
        assert_eq!(tree.fill(&fill), Ok(Some(filled)));
        assert_eq!(serde_json::to_value(&tree).unwrap()["whole"], "[[n]]");
        let strict: LabelTree = serde_json::from_value(json!(["[[gone]]"])).unwrap();
        assert!(strict.fill(&fill).is_err());
    }
}
