use super::*;
use crate::doc::Registry;
use crate::doc::tests::{dedent, tell};
use crate::rows::{faults, settle};
use expect_test::{Expect, expect};
use std::fmt::Write as _;

/// The result of parsing a setup: its problems, or its settled rows and files.
#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(text: &str, expected: Expect) {
    let (setup, diagnostics) = Setup::parse(&dedent(text));
    let mut out = String::new();
    for diagnostic in &diagnostics {
        tell(diagnostic, &mut out);
    }
    if let Some(setup) = setup {
        for row in &setup.rows {
            let row = settle(row.clone(), None, 5).unwrap();
            writeln!(out, "{} {}: {}", row.kind.as_str(), row.name, row.body).unwrap();
        }
        for file in &setup.files {
            writeln!(out, "{file:?}").unwrap();
        }
        if let Some(dir) = &setup.policy_dir {
            writeln!(out, "policies in {dir}").unwrap();
        }
        let (placed, others) = setup.place(faults(&setup.rows));
        for diagnostic in &placed {
            tell(diagnostic, &mut out);
        }
        assert!(others.is_empty(), "{others:?}");
    }
    expected.assert_eq(&out);
}

#[test]
fn a_setup_may_say_everything() {
    check(
        r#"
        agents:
          scribe:
            name: The scribe
            status: idle
            phase: poc
            trust_level: 7
            max_concurrent_steps: 4
            rate: {limit: 10, window_s: 60}
            budget_monthly_cents: 1250.5
            capabilities: [text]
            execution_target: cloud
            gateway: local
            model: general
            system_prompt: Write well.
            tools: {allow: [mail], deny: [], read_only: [web]}
            memory: long
            provider_preferences: [mock]
            max_cost_cents: 2
            queue_timeout_s: 30
        gateways:
          local: {name: Here, provider: mock, environment: dev, url: "https://g.example:8443/x", capabilities: [text],
            min_trust_level: 3, cost_rank: 2, default: true, paused: false, agents: [scribe]}
        roles:
          writer: {max_spend_cents: 5, allowed_environments: [dev], trusted_context: {accepted_source_classes: [human], max_age_s: 60}}
        deployments:
          pay: {workflow: pay, gateway: local, roles: {writer: scribe}, agent_gateways: {scribe: local}, posture: retrieval, trust_ceiling: 4}
        budgets:
          all: {scope: global, period: monthly, amount_cents: 100}
          one: {scope: run, of: run_00000000000000000000000000000001, period: total, amount_cents: 0, enabled: false}
        prices:
          vendor/general: {input_cents_per_mtok: 30, output_cents_per_mtok: 150.25, max_output_tokens: 4096}
        policies:
          a.cedar: {text: "permit (principal, action, resource);"}
          b.cedar: {file: b.cedar, set: shadow}
        policy_dir: policies
        notes:
          style: {text: We say lamp., untrusted: true, private: true}
        memories:
          long: {notes: [style], last_outputs: {agent: scribe, count: 3}, max_bytes: 100}
        instructions:
          brand: {layer: owner, text: Be kind., workflows: [pay], agents: [scribe], allow_tools: [mail], deny_tools: [drop],
            models: [general], output_kinds: [text], memory: deny, pin: {language: en}}
        library:
          check: {command: check it, locked: [command]}
        lenses:
          head: {versions: {"1": {template: "[[x]]", inputContract: {fields: {}}}}}
          tail: {file: tail.yaml}
        workflows: [pay.lobsterx.yaml]
        "#,
        expect![[r#"
            price vendor/general: {"input_cents_per_mtok":30,"output_cents_per_mtok":150.25,"max_output_tokens":4096}
            gateway local: {"name":"Here","provider":"mock","environment":"dev","url":"https://g.example:8443/x","capabilities":["text"],"min_trust_level":3,"cost_rank":2,"default":true,"paused":false,"agents":["scribe"]}
            agent scribe: {"name":"The scribe","status":"idle","phase":"poc","phase_since_ms":5,"trust_level":7,"max_concurrent_steps":4,"rate":{"limit":10,"window_s":60},"budget_monthly_cents":1250.5,"capabilities":["text"],"execution_target":"cloud","gateway":"local","model":"general","system_prompt":"Write well.","tools":{"allow":["mail"],"read_only":["web"]},"memory":"long","provider_preferences":["mock"],"max_cost_cents":2,"queue_timeout_s":30}
            role writer: {"max_spend_cents":5,"allowed_environments":["dev"],"trusted_context":{"accepted_source_classes":["human"],"max_age_s":60}}
            note style: {"text":"We say lamp.","untrusted":true,"private":true}
            memory long: {"notes":["style"],"last_outputs":{"agent":"scribe","count":3},"max_bytes":100}
            instruction brand: {"layer":"owner","text":"Be kind.","workflows":["pay"],"agents":["scribe"],"allow_tools":["mail"],"deny_tools":["drop"],"models":["general"],"output_kinds":["text"],"memory":"deny","pin":{"language":"en"}}
            library check: {"command":"check it","locked":["command"]}
            lens head: {"versions":{"1":{"template":"[[x]]","inputContract":{"fields":{}}}}}
            deployment pay: {"workflow":"pay","active":true,"gateway":"local","roles":{"writer":"scribe"},"agent_gateways":{"scribe":"local"},"posture":"retrieval","trust_ceiling":4}
            envelope all: {"scope":"global","period":"monthly","amount_cents":100}
            envelope one: {"scope":"run","of":"run_00000000000000000000000000000001","period":"total","amount_cents":0,"enabled":false}
            policy a.cedar: {"set":"active","text":"permit (principal, action, resource);"}
            FileRow { kind: Lens, name: Some("tail"), set: Active, path: "tail.yaml" }
            FileRow { kind: Policy, name: Some("b.cedar"), set: Shadow, path: "b.cedar" }
            FileRow { kind: Workflow, name: None, set: Active, path: "pay.lobsterx.yaml" }
            policies in policies
        "#]],
    );
}

#[test]
fn what_is_wrong_is_told_all_at_once() {
    check(
        r"
        agent: {}
        agents:
          scribe: {trust_level: 11, trsut: 3, phase: prod, rate: {limit: 0}, budget_monthly_cents: -1}
          'a b': {}
          none:
        gateways:
          local: {min_trust_level: 0, url: gateway, default: maybe}
        deployments:
          pay: {posture: free}
        budgets:
          all: {scope: global, of: x, period: hourly, amount_cents: .nan}
          one: {scope: run, of: x, period: total, amount_cents: 1}
        prices:
          'no model': {input_cents_per_mtok: 1}
        policies:
          a: {file: x, text: y}
          b: {}
        library:
          x: {id: y}
        lenses:
          y: {file: 3}
        workflows: pay.yaml
        ",
        expect![[r#"
            1:1 unknown_field agent: unknown field `agent` (did you mean `agents`?)
            3:25 bad_value agents.scribe.trust_level: 11 is not a whole number from 1 to 10
            3:29 unknown_field agents.scribe.trsut: unknown field `trsut`
            3:46 bad_value agents.scribe.phase: `prod` is not a phase of an agent (use one of: poc, staging, production, sunset)
            3:58 missing_field agents.scribe.rate: `window_s` is missing
            3:66 bad_value agents.scribe.rate.limit: 0 is not a whole number from 1 to 1000000
            3:92 bad_value agents.scribe.budget_monthly_cents: an amount of money cannot be negative
            4:3 bad_name agents: `a b` is not an id (write `a_b`)
            5:7 wrong_type agents.none: expected a map, found nothing
            7:28 bad_value gateways.local.min_trust_level: 0 is not a whole number from 1 to 10
            7:36 bad_value gateways.local.url: `gateway` is not a valid URL (write it like `https://gateway.example:8443`)
            7:54 wrong_type gateways.local.default: expected `true` or `false`, found a string
            9:8 missing_field deployments.pay: `workflow` is missing
            9:18 bad_value deployments.pay.posture: `free` is not a posture (use one of: bounded_autonomous, approval_required, retrieval, advisory)
            11:28 conflicting_fields budgets.all: a global budget applies to everything: `of` has no meaning (leave `of` out, or choose another scope)
            11:39 bad_value budgets.all.period: `hourly` is not a period of a budget (use one of: daily, weekly, monthly, total)
            11:61 number_out_of_range budgets.all.amount_cents: `.nan` does not fit a 64-bit number (quote it if it is meant as text)
            12:25 bad_value budgets.one: `x` is not a run id (`sluice runs list` shows the ids)
            14:3 bad_name prices: `no model` is not a model (write `no-model`)
            14:15 missing_field prices.no model: `output_cents_per_mtok` is missing
            16:13 conflicting_fields policies.a: `file` and `text` exclude each other
            17:6 missing_field policies.b: `file` or `text` is missing
            19:7 bad_value library.x.id: a library step cannot set `id`
            21:13 wrong_type lenses.y.file: expected a string, found a number (quote it if it is meant as text)
            22:12 wrong_type workflows: expected a list, found a string
        "#]],
    );
}

#[test]
fn references_are_placed_where_they_stand() {
    check(
        r"
        agents:
          scribe: {gateway: locl}
        gateways:
          local: {agents: [scribe, absent]}
        deployments:
          pay: {workflow: pay, roles: {writer: scrib}}
        ",
        expect![[r#"
            gateway local: {"provider":"","environment":"local","min_trust_level":1,"cost_rank":0,"default":false,"paused":false,"agents":["scribe","absent"]}
            agent scribe: {"status":"idle","phase":"production","phase_since_ms":5,"trust_level":5,"gateway":"locl"}
            deployment pay: {"workflow":"pay","active":true,"roles":{"writer":"scrib"},"posture":"bounded_autonomous"}
            2:21 unknown_row agents.scribe.gateway: there is no gateway `locl` (did you mean `local`?)
            4:28 unknown_row gateways.local.agents[1]: there is no agent `absent`
            6:40 unknown_row deployments.pay.roles.writer: there is no agent `scrib` (did you mean `scribe`?)
        "#]],
    );
}

#[test]
fn rows_that_stand_elsewhere_are_left_to_the_caller() {
    let (setup, _) = Setup::parse("agents: {scribe: {}}");
    let rows =
        [Row { kind: Kind::Agent, name: "old".to_owned(), body: json!({"gateway": "gone"}) }];
    let (placed, others) = setup.unwrap().place(faults(&rows));
    assert!(placed.is_empty());
    assert_eq!(others.len(), 1);
}

#[test]
fn one_row_reads_by_the_rules_of_a_file() {
    let body = json!({"trust_level": 3, "model": null});
    let text = of_one(Kind::Agent, "scribe", body.as_object().unwrap());
    let (setup, _) = Setup::parse(&text);
    assert_eq!(setup.unwrap().rows[0].body, json!({"trust_level": 3}));
    let body = json!({"trust_level": 0});
    let text = of_one(Kind::Agent, "scribe", body.as_object().unwrap());
    assert!(Setup::parse(&text).0.is_none());
}

#[test]
fn rows_are_a_registry_beside_the_named_one() {
    let rows = [
        Row { kind: Kind::Workflow, name: "pay@2".to_owned(), body: json!({"text": ""}) },
        Row { kind: Kind::Library, name: "check".to_owned(), body: json!({"command": "row"}) },
        Row {
            kind: Kind::Lens,
            name: "head".to_owned(),
            body: json!({"versions": {"1": {"template": "[[x]]"}}}),
        },
        Row { kind: Kind::Team, name: "desk".to_owned(), body: json!({"members": []}) },
        Row { kind: Kind::Team, name: "file".to_owned(), body: json!({"members": []}) },
    ];
    let file = "library: {check: {command: file}}\nteams: {file: {members: [{id: a}]}}";
    let (named, _) = Registry::parse(file);
    let registry = named.unwrap().with_rows(&rows).unwrap();
    let step = &registry.library.as_ref().unwrap()["check"];
    assert_eq!(step.fields[0].value.to_value(), "file");
    assert!(registry.workflows.as_ref().unwrap()["pay"].contains(&2));
    assert!(registry.lenses.as_ref().unwrap().contains_key("head"));
    let teams = registry.teams.as_ref().unwrap();
    let members = |team: &str| teams[team].members.iter().flatten().count();
    assert_eq!((members("desk"), members("file")), (0, 1));
    let nothing = Registry::default().with_rows(&[]).unwrap();
    assert!(nothing.library.is_none() && nothing.teams.is_none());
    let broken = Row { kind: Kind::Library, name: "bad".to_owned(), body: json!({"id": "x"}) };
    assert!(Registry::default().with_rows(&[broken]).unwrap_err().contains("bad"));
}

#[test]
fn teams_of_a_setup_are_read_as_documents_write_them() {
    check(
        r"
        teams:
          desk: {members: [{id: ada, role: ~, lane: 2}], failure_policy: {mode: halt}, retry_policy: ~}
        ",
        expect![[r#"
            team desk: {"members":[{"id":"ada","role":null,"lane":2}],"failure_policy":{"mode":"halt"}}
        "#]],
    );
    check(
        r"
        teams:
          twice: {members: [{id: a}, {id: a}]}
          camel: {members: [{id: a, sortOrder: 1}]}
          mode: {members: [], failure_policy: {mode: stop}}
          none: {}
          word: desk
          'bad name': {members: []}
        ",
        expect![[r#"
            2:35 duplicate_name teams.twice.members[1]: the member `a` is declared twice
            3:29 unknown_field teams.camel.members[0].sortOrder: unknown field `sortOrder` (did you mean `sort_order`?)
            4:46 bad_value teams.mode.failure_policy.mode: `stop` is not a failure mode (use one of: isolate, halt)
            5:9 missing_field teams.none: `members` is missing
            6:9 wrong_type teams.word: expected a map, found a string
            7:3 bad_name teams: `bad name` is not an id (write `bad_name`)
        "#]],
    );
}

#[test]
fn a_lens_may_stand_in_a_file_of_its_own() {
    let (row, diagnostics) = Setup::lens("head", "versions: {'1': {template: '[[x]]'}}");
    assert!(diagnostics.is_empty());
    assert_eq!(row.unwrap().body["versions"]["1"]["template"], "[[x]]");
    assert!(Setup::lens("head", "version: {}").0.is_none());
}

#[test]
fn what_prompts_are_made_of_has_bounds() {
    let long = "x".repeat(sluice_govern::limits::NOTE_BYTES_MAX + 1);
    let (setup, found) = Setup::parse(&format!("notes: {{n: {{text: {long}}}}}"));
    assert!(setup.is_none());
    assert_eq!(found[0].message, "the text is 32769 bytes; the limit is 32768");
    check(
        r#"
        memories:
          nothing: {max_bytes: 5}
          many: {last_outputs: {agent: mock, count: 21}}
          large: {notes: [n], max_bytes: 65537}
        instructions:
          whose: {text: x}
          odd: {layer: team, output_kinds: [smell], memory: maybe}
        "#,
        expect![[r#"
            2:12 missing_field memories.nothing: `notes` or `last_outputs` is missing
            3:45 bad_value memories.many.last_outputs.count: 21 is not a whole number from 1 to 20
            4:34 bad_value memories.large.max_bytes: 65537 is not a whole number from 1 to 65536
            6:10 missing_field instructions.whose: `layer` is missing
            7:16 bad_value instructions.odd.layer: `team` is not a layer of instructions (use one of: platform, owner)
            7:37 bad_value instructions.odd.output_kinds[0]: `smell` is not a lens kind (use one of: text, image, video, audio, music, research, pdf, transform, orchestration, validation, routing)
            7:53 bad_value instructions.odd.memory: `maybe` is not a use of memory (use one of: allow, deny)
        "#]],
    );
    check(
        r#"
        memories:
          gone: {notes: [none], last_outputs: {agent: absent, count: 1}}
        instructions:
          far: {layer: owner, agents: [absent]}
        agents:
          scribe: {memory: lost}
        "#,
        expect![[r#"
            agent scribe: {"status":"idle","phase":"production","phase_since_ms":5,"trust_level":5,"memory":"lost"}
            memory gone: {"notes":["none"],"last_outputs":{"agent":"absent","count":1}}
            instruction far: {"layer":"owner","agents":["absent"]}
            2:18 unknown_row memories.gone.notes[0]: there is no note `none`
            2:47 unknown_row memories.gone.last_outputs.agent: there is no agent `absent`
            4:32 unknown_row instructions.far.agents[0]: there is no agent `absent`
            6:20 unknown_row agents.scribe.memory: there is no memory `lost`
        "#]],
    );
}

#[test]
fn webhooks_say_where_what_and_with_which_secret() {
    check(
        r#"
        webhooks:
          pager: {url: "https://example.com/sluice?x=1", events: [run.failed, budget.alert], secret: "env:PAGER"}
          all: {url: "http://127.0.0.1:9000/", events: ["*"], workflows: [pay, "pay@1"], secret: "file:/run/secrets/all", enabled: false}
        hooks:
          orders: {workflow: pay, secret: "env:ORDERS", args: {order: "order.items[0].id", all: $}}
        "#,
        expect![[r#"
            webhook pager: {"url":"https://example.com/sluice?x=1","events":["run.failed","budget.alert"],"secret":"env:PAGER","enabled":true}
            webhook all: {"url":"http://127.0.0.1:9000/","events":["*"],"workflows":["pay","pay@1"],"secret":"file:/run/secrets/all","enabled":false}
            hook orders: {"workflow":"pay","secret":"env:ORDERS","args":{"all":"$","order":"order.items[0].id"},"enabled":true}
            3:67 unknown_row webhooks.all.workflows[0]: there is no workflow `pay` in the registry (register it: `workflows: [FILE]` in the setup, or `sluice workflows put FILE`)
            3:72 unknown_row webhooks.all.workflows[1]: a webhook follows all versions of a workflow, not `pay@1` (write `pay`)
            5:22 unknown_row hooks.orders.workflow: there is no workflow `pay` in the registry (register it: `workflows: [FILE]` in the setup, or `sluice workflows put FILE`)
        "#]],
    );
}

#[test]
fn webhooks_that_make_no_sense_are_refused_and_no_secret_is_repeated() {
    check(
        r#"
        webhooks:
          a: {url: "ftp://example.com/", events: [run.faild, run.failed], secret: hunter2hunter2}
          b: {url: "https://ada:hunter2@example.com/", events: [], secret: "env:1X"}
          c: {events: ["run.failed"], url: "https://example.com/"}
        hooks:
          d: {workflow: pay}
          e: {workflow: pay, secret: "vault:x", args: {a: "..", b: "a b"}}
        "#,
        expect![[r#"
            2:12 bad_value webhooks.a.url: `ftp://example.com/` is not a valid URL (write it like `https://example.com/hook`)
            2:43 bad_value webhooks.a.events[0]: there is no event `run.faild` (did you mean `run.failed`?)
            2:75 bad_value webhooks.a.secret: this is not a reference to a secret: write `secret:NAME`, or `env:NAME` or `file:PATH` as the operator; the secret itself does not belong here (the operator declares it under `[secrets.NAME]` in sluice.toml)
            3:12 bad_value webhooks.b.url: the URL contains a user or password (leave it out; requests are signed with `secret`)
            3:56 bad_value webhooks.b.events: 1 to 64 events are named, or `*`
            3:68 bad_value webhooks.b.secret: `env:` is followed by the name of a variable: letters, digits and `_` (the operator declares it under `[secrets.NAME]` in sluice.toml)
            4:6 missing_field webhooks.c: `secret` is missing
            6:6 missing_field hooks.d: `secret` is missing
            7:30 bad_value hooks.e.secret: this is not a reference to a secret: write `secret:NAME`, or `env:NAME` or `file:PATH` as the operator; the secret itself does not belong here (the operator declares it under `[secrets.NAME]` in sluice.toml)
            7:51 bad_reference hooks.e.args.a: expected a name, found `.` (write it like `order.items[0].id`, or `$` for the whole body)
            7:60 bad_reference hooks.e.args.b: expected the end of the path, found a blank (write it like `order.items[0].id`, or `$` for the whole body)
        "#]],
    );
}

#[test]
fn rows_declare_flow_labels() {
    check(
        r#"
        agents: {scribe: {origin: [model], sensitive: [customer]}}
        gateways:
          crm: {provider: mock, origin: [], sensitive: [customer], sends_to: internal}
          new: {provider: mock}
        notes: {style: {text: Be brief., origin: [web], sensitive: [payroll]}}
        memories: {past: {notes: [style], origin: [inbound_mail], sensitive: [customer]}}
        "#,
        expect![[r#"
            gateway crm: {"provider":"mock","environment":"local","min_trust_level":1,"cost_rank":0,"default":false,"paused":false,"origin":[],"sensitive":["customer"],"sends_to":"internal"}
            gateway new: {"provider":"mock","environment":"local","min_trust_level":1,"cost_rank":0,"default":false,"paused":false}
            agent scribe: {"status":"idle","phase":"production","phase_since_ms":5,"trust_level":5,"origin":["model"],"sensitive":["customer"]}
            note style: {"text":"Be brief.","origin":["web"],"sensitive":["payroll"]}
            memory past: {"notes":["style"],"origin":["inbound_mail"],"sensitive":["customer"]}
        "#]],
    );
    check(
        r#"
        gateways: {crm: {provider: mock, origin: [The Web], sends_to: everywhere}}
        agents: {scribe: {sensitive: customer}}
        "#,
        expect![[r#"
            1:43 bad_name gateways.crm.origin[0]: `The Web` is not a label (write `the_web`)
            1:63 bad_value gateways.crm.sends_to: `everywhere` is not a destination (use one of: external, internal, none)
            2:30 wrong_type agents.scribe.sensitive: expected a list, found a string
        "#]],
    );
}
