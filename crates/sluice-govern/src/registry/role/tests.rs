use super::*;
use proptest::prelude::*;

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn of_two_roles_the_tighter_bound_holds() {
    let workflow = Role {
        max_spend_cents: Some(Money::from_micro_cents(5)),
        allowed_environments: list(&["dev", "test"]),
        trusted_context: None,
    };
    let registry = Role {
        max_spend_cents: Some(Money::from_micro_cents(3)),
        allowed_environments: list(&["test", "production"]),
        trusted_context: Some(TrustedContext {
            accepted_source_classes: list(&["human"]),
            max_age_s: Some(60),
        }),
    };
    let both = workflow.with(&registry);
    assert_eq!(both.max_spend_cents, Some(Money::from_micro_cents(3)));
    assert_eq!(both.allowed_environments, ["test"]);
    assert_eq!(both.trusted_context, registry.trusted_context);
    assert_eq!(workflow.with(&Role::default()), workflow);
    assert_eq!(Role::default().with(&workflow), workflow);
}

#[test]
fn bounds_with_nothing_in_common_allow_nothing() {
    let dev = Role { allowed_environments: list(&["dev"]), ..Role::default() };
    let test = Role { allowed_environments: list(&["test"]), ..Role::default() };
    let both = dev.with(&test);
    for environment in ["dev", "test", "", NOTHING] {
        assert!(!both.allows(environment), "{environment}");
    }
    let classes = |names: &[&str]| TrustedContext {
        accepted_source_classes: list(names),
        ..TrustedContext::default()
    };
    assert!(!classes(&["human"]).with(&classes(&["agent"])).accepts("human"));
    assert!(TrustedContext::default().accepts("human"));
}

fn any_role() -> impl Strategy<Value = Role> {
    let names = || prop::collection::vec(prop::sample::select(list(&["a", "b", "c"])), 0..3);
    let context = (names(), prop::option::of(0..5_u64));
    (prop::option::of(0..9_u64), names(), prop::option::of(context)).prop_map(
        |(spend, environments, context)| Role {
            max_spend_cents: spend.map(Money::from_micro_cents),
            allowed_environments: environments,
            trusted_context: context.map(|(accepted_source_classes, max_age_s)| TrustedContext {
                accepted_source_classes,
                max_age_s,
            }),
        },
    )
}

proptest! {
    #[test]
    fn both_bounds_allow_exactly_what_each_allows(one in any_role(), other in any_role()) {
        let both = one.with(&other);
        for name in ["a", "b", "c", "d", NOTHING] {
            prop_assert_eq!(both.allows(name), one.allows(name) && other.allows(name));
            let accepts = |role: &Role| {
                role.trusted_context.as_ref().is_none_or(|context| context.accepts(name))
            };
            prop_assert_eq!(accepts(&both), accepts(&one) && accepts(&other));
        }
    }
}
