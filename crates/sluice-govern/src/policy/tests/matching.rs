use super::*;
use crate::choice::Choice as _;
use proptest::prelude::*;

fn names(policies: &Policies, facts: &PolicyFacts<'_>) -> Vec<String> {
    let matches = policies.matches(facts);
    assert!(matches.errors.is_empty(), "{:?}", matches.errors);
    matches.rules.iter().map(|rule| rule.name.replace("a.cedar/", "")).collect()
}

#[test]
fn policies_match_by_scope_and_condition() {
    let policies = with_default(
        r#"
        @id("all") forbid (principal, action, resource);
        @id("agents") forbid (principal is Agent, action, resource);
        @id("users") forbid (principal is User, action, resource);
        @id("scribe") forbid (principal == Agent::"scribe", action, resource);
        @id("writer") forbid (principal in Role::"writer", action, resource);
        @id("writer2") forbid (principal is Agent in Role::"writer", action, resource);
        @id("reader") forbid (principal in Role::"reader", action, resource);
        @id("local") forbid (principal, action, resource == Gateway::"local");
        @id("cloud") forbid (principal, action, resource == Gateway::"cloud");
        @id("runs") forbid (principal, action == Action::"start_run", resource);
        @id("steps") forbid (principal, action in [Action::"dispatch_step", Action::"use_tool"], resource);
        @id("dear") forbid (principal, action, resource) when { context has cost && context.cost > 499 };
        @id("dearer") forbid (principal, action, resource) when { context has cost && context.cost > 500 };
        @id("dev") forbid (principal, action == Action::"dispatch_step", resource)
            when { resource.environment == "dev" };
        @id("early") forbid (principal, action, resource)
            when { context.time.hour == 7 && context.time.weekday == "sunday" };
        @id("unless") forbid (principal, action, resource) unless { context.posture == "advisory" };
        @id("tool") forbid (principal, action, resource) when { context.tools.contains("search") };
        @id("trust") forbid (principal is Agent, action, resource) when { principal.trust_level < 5 };
        @id("web") forbid (principal is Agent, action, resource)
            when { principal.capabilities.contains("web") && !(principal has model) };
        "#,
    );
    assert_eq!(
        names(&policies, &facts()),
        [
            "all", "agents", "scribe", "writer", "writer2", "local", "steps", "dear", "dev",
            "early", "unless", "tool", "web"
        ]
    );
    let user = Principal::User { name: "ada".into() };
    let runs = PolicyFacts {
        verb: Verb::StartRun,
        who: user,
        what: Resource::Workflow("report".into()),
        cost: None,
        step: None,
        tools: [][..].into(),
        at: 0,
        ..facts()
    };
    assert_eq!(names(&policies, &runs), ["all", "users", "runs", "unless"]);
}

#[test]
fn a_row_has_its_kind_and_a_tool_its_name() {
    let policies = with_default(
        r#"
        @id("rows") forbid (principal, action == Action::"change_config", resource)
            when { resource.kind == "policy" };
        @id("one") forbid (principal, action, resource == Row::"policy/mine");
        @id("mail") forbid (principal, action, resource == Tool::"mail");
        "#,
    );
    let on = |verb, what| PolicyFacts { verb, what, ..facts() };
    let row = on(Verb::ChangeConfig, Resource::Row("policy/mine".into()));
    assert_eq!(names(&policies, &row), ["rows", "one"]);
    let other = on(Verb::ChangeConfig, Resource::Row("agent/scribe".into()));
    assert_eq!(names(&policies, &other), [""; 0]);
    let tool = on(Verb::UseTool, Resource::Tool("mail".into()));
    assert_eq!(names(&policies, &tool), ["mail"]);
}

#[test]
fn without_a_permit_nothing_is_permitted_and_a_forbid_hides_none() {
    let policies = set(&[r#"
        permit (principal == Agent::"clerk", action, resource);
        permit (principal, action, resource) when { context has cost && context.cost < 100 };
        @id("no") forbid (principal, action, resource) when { true };
    "#])
    .unwrap();
    let cheap = PolicyFacts { cost: Some(99), ..facts() };
    assert!(!policies.matches(&facts()).permitted);
    assert!(policies.matches(&cheap).permitted);
    assert_eq!(names(&policies, &cheap), ["no"]);
    assert_eq!(replay(&policies, &facts()).because.as_deref(), Some("no policy permits it"));
}

#[test]
fn a_policy_that_cannot_be_evaluated_blocks() {
    let policies = with_default(
        "@id(\"much\") @enforcement(\"audit\") forbid (principal, action, resource) \
         when { context has cost && context.cost + 9223372036854775807 > 0 };",
    );
    let replayed = replay(&policies, &facts());
    assert_eq!(replayed.disposition, Disposition::Block);
    let because = replayed.because.unwrap();
    assert!(because.starts_with("policy a.cedar/much could not be evaluated"), "{because}");
    let free = PolicyFacts { cost: None, ..facts() };
    assert_eq!(replay(&policies, &free).disposition, Disposition::Allow);
}

#[test]
fn what_a_match_does_is_said_by_its_annotations() {
    for (annotations, disposition, warns) in [
        ("", Disposition::Block, false),
        ("@action(\"block\")", Disposition::Block, false),
        ("@enforcement(\"soft\")", Disposition::Allow, true),
        ("@enforcement(\"audit\")", Disposition::Allow, false),
        ("@action(\"require_approval\")", Disposition::Hold, false),
        ("@action(\"require_approval\") @enforcement(\"soft\")", Disposition::Allow, true),
        ("@action(\"require_approval\") @enforcement(\"audit\")", Disposition::Allow, false),
        ("@action(\"require_approval\") @category(\"budget\")", Disposition::Allow, false),
        ("@action(\"warn\")", Disposition::Allow, true),
        ("@action(\"warn\") @enforcement(\"audit\")", Disposition::Allow, false),
        ("@action(\"log\")", Disposition::Allow, false),
        ("@action(\"log\") @enforcement(\"soft\")", Disposition::Allow, false),
        ("@category(\"budget\")", Disposition::Block, false),
    ] {
        let policies =
            with_default(&format!("{annotations} forbid (principal, action, resource);"));
        let replayed = replay(&policies, &facts());
        assert_eq!(replayed.disposition, disposition, "{annotations}");
        assert_eq!(replayed.matched.len(), 1, "{annotations}");
        assert_eq!(policies.matches(&facts()).rules[0].warns(), warns, "{annotations}");
    }
}

#[test]
fn a_question_about_money_is_asked_only_where_money_is_short() {
    let asks = "@action(\"require_approval\") @category(\"budget\") \
                forbid (principal, action, resource);";
    let short = PolicyFacts { short_of_money: true, ..facts() };
    assert_eq!(replay(&with_default(asks), &short).disposition, Disposition::Hold);
    assert_eq!(replay(&with_default(asks), &facts()).disposition, Disposition::Allow);
    assert_eq!(replay(&with_default(""), &short).disposition, Disposition::Block);
}

#[test]
fn policies_are_listed_by_category() {
    let texts = Category::NAMES.iter().map(|word| {
        format!("@id(\"{word}\") @category(\"{word}\") forbid (principal, action, resource);")
    });
    let policies = with_default(&texts.collect::<Vec<_>>().join("\n"));
    for (word, category) in Category::WORDS {
        let listed = policies.of(*category).map(|rule| rule.name.as_str());
        let listed: Vec<&str> = listed.filter(|name| name.starts_with("a.cedar/")).collect();
        assert_eq!(listed, [format!("a.cedar/{word}")]);
    }
}

#[test]
fn recorded_facts_are_short_and_read_back() {
    let text = serde_json::to_string(&facts()).unwrap();
    expect_test::expect![[r#"{"at":1794726000000,"verb":"dispatch_step","who":{"agent":{"name":"scribe","role":"writer","trust":5,"phase":"production","status":"idle","capabilities":["web"]}},"what":{"gateway":{"name":"local","provider":"mock","environment":"dev","min_trust":1}},"run":{"id":"run_1","workflow":"report","version":2,"initiator":"ada"},"step":{"id":"write","kind":"command","attempt":1},"cost":500,"tools":["search"]}"#]].assert_eq(&text);
    assert_eq!(serde_json::from_str::<PolicyFacts<'_>>(&text).unwrap(), facts());
    let full = PolicyFacts {
        who: Principal::User { name: "ada".into() },
        what: Resource::Row("agent/scribe".into()),
        step: None,
        inputs: InputsSeen {
            classes: vec!["human".into()],
            untrusted: true,
            private: true,
            age_s: Some(3),
        },
        cost: None,
        posture: Posture::Retrieval,
        short_of_money: true,
        ..facts()
    };
    let text = serde_json::to_string(&full).unwrap();
    assert_eq!(serde_json::from_str::<PolicyFacts<'_>>(&text).unwrap(), full);
}

/// Every scope that a policy can have, with true and false conditions.
fn any_policy() -> impl Strategy<Value = String> {
    let principal = prop::sample::select(vec![
        "principal",
        "principal is Agent",
        "principal is User",
        "principal == Agent::\"scribe\"",
        "principal == User::\"scribe\"",
        "principal in Agent::\"scribe\"",
        "principal in Role::\"writer\"",
        "principal in Role::\"reader\"",
        "principal is Agent in Role::\"writer\"",
    ]);
    let action = prop::sample::select(vec![
        "action",
        "action == Action::\"dispatch_step\"",
        "action in [Action::\"dispatch_step\", Action::\"deploy_agent\"]",
    ]);
    let resource = prop::sample::select(vec![
        "resource",
        "resource is Gateway",
        "resource == Gateway::\"local\"",
        "resource in Gateway::\"cloud\"",
        "resource is Gateway in Gateway::\"local\"",
    ]);
    let condition = prop::sample::select(vec![
        "",
        "when { context.run.depth == 0 }",
        "unless { context.inputs.untrusted }",
        "when { context has step && context.step.attempt > 1 }",
        "when { [context].contains(context) }",
        "when { context.time.hour == 7 } unless { context.run.initiator == \"bob\" }",
        "when { context.tools.contains(\"search\") && resource is Gateway && resource.environment == \"dev\" }",
        "when { principal is Agent && principal.trust_level > 4 }",
        "when { context has step }",
        "when { principal in Role::\"writer\" }",
        "when { principal == Agent::\"scribe\" } unless { resource == Gateway::\"local\" }",
        "when { context has step && context.step has kind && !(context.run has version) }",
    ]);
    let effect = prop::sample::select(vec!["permit", "forbid", "forbid"]);
    (effect, principal, action, resource, condition)
        .prop_map(|(e, p, a, r, c)| format!("{e} ({p}, {a}, {r}) {c};"))
}

fn any_facts() -> impl Strategy<Value = PolicyFacts<'static>> {
    let who = prop_oneof![
        (
            prop::sample::select(vec!["scribe", "clerk"]),
            prop::option::of(prop::sample::select(vec!["writer", "reader"]))
        )
            .prop_map(|(name, role)| match facts().who {
                Principal::Agent { trust, phase, status, model, capabilities, .. } =>
                    Principal::Agent {
                        name: name.into(),
                        role: role.map(Into::into),
                        trust,
                        phase,
                        status,
                        model,
                        capabilities,
                    },
                user @ Principal::User { .. } => user,
            }),
        prop::sample::select(vec!["scribe", "ada"])
            .prop_map(|name| Principal::User { name: name.into() }),
    ];
    let gateway = prop::sample::select(vec!["local", "cloud", "moon"]);
    let verb = prop::sample::select(vec![Verb::DispatchStep, Verb::DeployAgent]);
    (who, gateway, verb, any::<bool>(), 1..3_u32).prop_map(
        |(who, name, verb, untrusted, attempt)| {
            let what = Resource::Gateway {
                name: name.into(),
                provider: "mock".into(),
                environment: "dev".into(),
                min_trust: 1,
                capabilities: [][..].into(),
                sends_to: None,
            };
            let mut facts = PolicyFacts { who, what, verb, ..facts() };
            facts.inputs.untrusted = untrusted;
            facts.step = facts.step.map(|step| StepSeen { attempt, ..step });
            facts
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The index must find exactly what Cedar finds without it.
    #[test]
    fn the_index_leaves_nothing_out_and_lets_nothing_in(
        texts in prop::collection::vec(any_policy(), 1..12),
        cases in prop::collection::vec(any_facts(), 1..12),
    ) {
        let permit = "permit (principal == Agent::\"unknown\", action, resource);";
        // Some combinations of scope and condition can never hold, and do not load.
        let loads = |text: &String| set(&[text, permit]).is_ok();
        let texts: Vec<String> = texts.into_iter().filter(loads).collect();
        let text = texts.join("\n");
        let policies = set(&[&text, permit]).unwrap();
        for facts in cases {
            let request = policies.names.request(&facts, Needs::ALL, &policies.inputs).unwrap();
            let mut expected = Vec::new();
            let mut permitted = false;
            for (at, one) in texts.iter().enumerate() {
                let whole: PolicySet = one.parse().unwrap();
                let response =
                    Authorizer::new().is_authorized(&request.request, &whole, &request.entities);
                if response.diagnostics().reason().next().is_some() {
                    if one.starts_with("permit") {
                        permitted = true;
                    } else {
                        expected.push(format!("a.cedar#{}", at + 1));
                    }
                }
            }
            let matches = policies.matches(&facts);
            prop_assert_eq!(matches.permitted, permitted);
            let found: Vec<&str> = matches.rules.iter().map(|rule| rule.name.as_str()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn policies_see_whether_a_run_is_registered_and_its_definition() {
    let policies = with_default(
        r#"
        @id("inline") forbid (principal, action, resource) unless { context.run.registered };
        @id("pinned") forbid (principal, action, resource)
            unless { context.run.definition_hash == "5e" };
        "#,
    );
    let mut facts = facts();
    (facts.run.registered, facts.run.definition) = (true, "5e".into());
    assert!(names(&policies, &facts).is_empty());
    facts.run.registered = false;
    assert_eq!(names(&policies, &facts), ["inline"]);
    facts.run.definition = "e5".into();
    assert_eq!(names(&policies, &facts), ["inline", "pinned"]);
    facts.run.registered = true;
    assert_eq!(names(&policies, &facts), ["pinned"]);
}
