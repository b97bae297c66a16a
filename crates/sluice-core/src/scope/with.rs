//! A scope with one additional local name.

use super::{Scope, StepView};
use serde_json::Value;

/// Another scope plus one local: `outputs` of the step that just answered, `value` of an edge,
/// or `item` of a fan-out.
pub struct With<'a> {
    outer: &'a dyn Scope,
    name: &'a str,
    value: &'a Value,
}

impl<'a> With<'a> {
    /// `outer` with `name` bound to `value`, which hides any other meaning of the name.
    pub fn new(outer: &'a dyn Scope, name: &'a str, value: &'a Value) -> With<'a> {
        With { outer, name, value }
    }
}

impl Scope for With<'_> {
    fn step(&self, id: &str) -> Option<StepView<'_>> {
        self.outer.step(id)
    }

    fn local(&self, name: &str) -> Option<&Value> {
        if name == self.name { Some(self.value) } else { self.outer.local(name) }
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.outer.variable(name)
    }

    fn args(&self) -> Option<&Value> {
        self.outer.args()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::scope::names::Names;
    use crate::value::Membership;
    use serde_json::json;

    #[test]
    fn the_new_name_hides_the_old_and_all_others_stay() {
        let names = Names::new()
            .with_local("value", json!(1))
            .with_local("item", json!(2))
            .with_step("s", json!({"x": 3}), None)
            .with_variable("v", json!(4))
            .with_args(json!({"a": 5}));
        let value = json!(9);
        let scope = With::new(&names, "value", &value);
        let list = Expr::parse("[value, item, s.x, v, args.a]").unwrap();
        assert_eq!(list.eval(&scope, Membership::Exact), Ok(json!([9, 2, 3, 4, 5])));
    }
}
