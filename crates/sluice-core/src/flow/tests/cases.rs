use super::Script;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::Kind;

#[test]
fn the_trifecta_in_one_step() {
    Script::new(
        "
        name: one-step
        steps:
          - id: work
            agent: ada
            command: Read the page and the record, and mail a summary
            tools: [web.fetch, crm.read, mail.send]
        ",
    )
    .check(expect![[r#"
        main.yaml:6 possible_flow: `work` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:6 steps[0].tools[0]: answers of the tool `web.fetch` in `work`
            main.yaml:6 steps[0].tools[2]: `work` can call `mail.send` with it
          secret `customer`
            main.yaml:6 steps[0].tools[1]: answers of the tool `crm.read` in `work`
            main.yaml:6 steps[0].tools[2]: `work` can call `mail.send` with it
    "#]]);
}

#[test]
fn the_trifecta_in_two_steps() {
    let text = "
        name: two-steps
        steps:
          - id: research
            agent: ada
            command: Read the page and the record
            tools: [web.fetch, crm.read]
            outputs:
              report: {type: string}
          - id: send
            agent: ada
            command: |
              Mail this to the customer: ${research.report}
            tools: [mail.send]
        ";
    Script::new(text).check(expect![[r#"
        main.yaml:13 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:6 steps[0].tools[0]: answers of the tool `web.fetch` in `research`
            main.yaml:8 steps[0].outputs.report: `research` returns output `report`
            main.yaml:12 steps[1].command: the command of `send` reads `research.report`
            main.yaml:13 steps[1].tools[0]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:6 steps[0].tools[1]: answers of the tool `crm.read` in `research`
            main.yaml:8 steps[0].outputs.report: `research` returns output `report`
            main.yaml:12 steps[1].command: the command of `send` reads `research.report`
            main.yaml:13 steps[1].tools[0]: `send` can call `mail.send` with it
    "#]]);
    let endorsed = text.replace("{type: string}", "{enum: [buy, wait], endorse: [web]}");
    Script::new(&endorsed).passes();
    let internal = text.replace("mail.send", "mail.note");
    Script::new(&internal).passes();
}

#[test]
fn an_approval_of_the_value_lowers_its_origins() {
    let text = "
        name: approved
        steps:
          - id: research
            agent: ada
            command: Read the page and the record
            tools: [web.fetch, crm.read]
            outputs:
              report: {type: string}
          - id: check
            approval: {summary: 'Send this? ${research.report}'}
            inputs: {report: research.report}
          - id: send
            agent: ada
            command: Mail this ${check.report}
            tools: [mail.send]
        ";
    Script::new(text).passes();
    let around = text.replace("Mail this ${check.report}", "Mail this ${research.report}");
    Script::new(&around).check(expect![[r#"
        main.yaml:15 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:6 steps[0].tools[0]: answers of the tool `web.fetch` in `research`
            main.yaml:8 steps[0].outputs.report: `research` returns output `report`
            main.yaml:14 steps[2].command: the command of `send` reads `research.report`
            main.yaml:15 steps[2].tools[0]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:6 steps[0].tools[1]: answers of the tool `crm.read` in `research`
            main.yaml:8 steps[0].outputs.report: `research` returns output `report`
            main.yaml:14 steps[2].command: the command of `send` reads `research.report`
            main.yaml:15 steps[2].tools[0]: `send` can call `mail.send` with it
    "#]]);
}

#[test]
fn the_trifecta_through_a_sub_workflow() {
    let main = "
        name: main
        args:
          customer: {type: string, sensitive: [customer]}
        steps:
          - id: look
            workflow_ref: look-up
            args: {topic: '${args.customer}'}
            outputs: {answer: {type: string}}
          - id: send
            agent: ada
            command: Mail this ${look.answer}
            tools: [mail.send]
        ";
    let child = "
        name: look-up
        args:
          topic: {type: string}
        steps:
          - id: fetch
            agent: ada
            command: Look up ${args.topic}
            tools: [web.fetch]
            outputs: {text: {type: string}}
        outputs:
          answer: ${fetch.text}
        ";
    Script::new(main).child(child).check(expect![[r#"
        main.yaml:12 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            child0.yaml:8 steps[0].tools[0]: answers of the tool `web.fetch` in `fetch`
            child0.yaml:9 steps[0].outputs.text: `fetch` returns output `text`
            child0.yaml:11 outputs.answer: result `answer`
            main.yaml:8 steps[0].outputs.answer: `look` returns output `answer`
            main.yaml:11 steps[1].command: the command of `send` reads `look.answer`
            main.yaml:12 steps[1].tools[0]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:3 args.customer: argument `customer`
            main.yaml:7 steps[0].args.topic: `look` passes `args.customer` as argument `topic`
            child0.yaml:7 steps[0].command: the command of `fetch` reads `args.topic`
            child0.yaml:9 steps[0].outputs.text: `fetch` returns output `text`
            child0.yaml:11 outputs.answer: result `answer`
            main.yaml:8 steps[0].outputs.answer: `look` returns output `answer`
            main.yaml:11 steps[1].command: the command of `send` reads `look.answer`
            main.yaml:12 steps[1].tools[0]: `send` can call `mail.send` with it
    "#]]);
    let endorsed =
        child.replace("{text: {type: string}}", "{text: {type: boolean, endorse: [web]}}");
    Script::new(main).child(&endorsed).passes();
    // The sink may be in the sub-workflow.
    let main = "
        name: main
        steps:
          - id: read
            agent: ada
            command: Read
            tools: [web.fetch, crm.read]
            outputs: {text: {type: string}}
          - id: tell
            workflow_ref: tell-them
            args: {text: '${read.text}'}
        ";
    let child = "
        name: tell-them
        args: {text: {type: string}}
        steps:
          - id: send
            agent: ada
            command: Mail ${args.text}
            tools: [mail.send]
        ";
    Script::new(main).child(child).check(expect![[r#"
        child0.yaml:7 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:6 steps[0].tools[0]: answers of the tool `web.fetch` in `read`
            main.yaml:7 steps[0].outputs.text: `read` returns output `text`
            main.yaml:10 steps[1].args.text: `tell` passes `read.text` as argument `text`
            child0.yaml:6 steps[0].command: the command of `send` reads `args.text`
            child0.yaml:7 steps[0].tools[0]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:6 steps[0].tools[1]: answers of the tool `crm.read` in `read`
            main.yaml:7 steps[0].outputs.text: `read` returns output `text`
            main.yaml:10 steps[1].args.text: `tell` passes `read.text` as argument `text`
            child0.yaml:6 steps[0].command: the command of `send` reads `args.text`
            child0.yaml:7 steps[0].tools[0]: `send` can call `mail.send` with it
    "#]]);
    // A workflow that is not known returns anything.
    let unknown = main.replace("tell-them", "unheard-of");
    let reads = Script::new(&unknown).labels("tell");
    assert!(reads.contains("unknown"), "{reads}");
}

#[test]
fn calls_of_one_workflow_do_not_mix() {
    let main = "
        name: main
        steps:
          - id: page
            agent: ada
            command: Read
            tools: [web.fetch]
          - {id: first, workflow_ref: trim, args: {text: '${page.stdout}'}}
          - {id: second, workflow_ref: trim, args: {text: harmless}}
        ";
    let child = "
        name: trim
        args: {text: {type: string}}
        steps:
          - {id: cut, agent: ada, command: 'Cut ${args.text}', outputs: {short: string}}
        outputs: {short: '${cut.short}'}
        ";
    let script = Script::new(main).child(child);
    assert!(script.labels("first").ends_with(r#"returns {"origins":["web"]}"#));
    assert!(script.labels("second").ends_with("returns {}"));
    // A recursion ends.
    let again = child.replace(
        "outputs: {short: '${cut.short}'}",
        "  - {id: more, workflow_ref: trim, args: {text: '${cut.short}'}}",
    );
    let script = Script::new(main).child(&again);
    assert!(script.labels("first").contains("web"));
}

#[test]
fn the_trifecta_through_memory() {
    let text = "
        name: remembered
        steps:
          - id: browse
            agent: browser
            command: Read the page
            tools: [web.fetch]
          - id: send
            agent: ada
            command: Write to the customer
            memory: past
            tools: [crm.read, mail.send]
        ";
    let script = Script::new(text).with(Kind::Agent, "browser", json!({"origin": []})).with(
        Kind::Memory,
        "past",
        json!({"last_outputs": {"agent": "browser", "count": 1}}),
    );
    script.check(expect![[r#"
        main.yaml:11 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:6 steps[0].tools[0]: answers of the tool `web.fetch` in `browse`
            main.yaml:3 steps[0]: memory keeps the output of `browse`
            main.yaml:10 steps[1].memory: `send` reads memory `past`
            main.yaml:11 steps[1].tools[1]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:11 steps[1].tools[0]: answers of the tool `crm.read` in `send`
            main.yaml:11 steps[1].tools[1]: `send` can call `mail.send` with it
    "#]]);
    let script = Script::new(text)
        .with(Kind::Note, "page", json!({"text": "From a page", "origin": ["web"]}))
        .with(Kind::Memory, "past", json!({"notes": ["page"]}));
    script.check(expect![[r#"
        main.yaml:11 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:1 : note `page`
            main.yaml:10 steps[1].memory: `send` reads memory `past`
            main.yaml:11 steps[1].tools[1]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:11 steps[1].tools[0]: answers of the tool `crm.read` in `send`
            main.yaml:11 steps[1].tools[1]: `send` can call `mail.send` with it
    "#]]);
    let script = Script::new(text)
        .with(Kind::Note, "page", json!({"text": "Be brief", "origin": ["operator"]}))
        .with(Kind::Memory, "past", json!({"notes": ["page"]}));
    script.passes();
}

#[test]
fn the_trifecta_through_a_merge() {
    let text = "
        name: merged
        steps:
          - {id: page, agent: ada, command: Read, tools: [web.fetch], outputs: {text: string}}
          - {id: record, agent: ada, command: Read, tools: [crm.read], outputs: {text: string}}
          - id: send
            agent: ada
            command: Mail ${both}
            inputs:
              both: {from: [page.text, record.text]}
            merge: concat
            tools: [mail.send]
        ";
    Script::new(text).check(expect![[r#"
        main.yaml:11 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:3 steps[0].tools[0]: answers of the tool `web.fetch` in `page`
            main.yaml:3 steps[0].outputs.text: `page` returns output `text`
            main.yaml:9 steps[2].inputs.both: input `both` of `send` reads `page.text`
            main.yaml:11 steps[2].tools[0]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:4 steps[1].tools[0]: answers of the tool `crm.read` in `record`
            main.yaml:4 steps[1].outputs.text: `record` returns output `text`
            main.yaml:9 steps[2].inputs.both: input `both` of `send` reads `record.text`
            main.yaml:11 steps[2].tools[0]: `send` can call `mail.send` with it
    "#]]);
    let endorsed = text.replace(
        "tools: [web.fetch], outputs: {text: string}",
        "tools: [web.fetch], outputs: {text: {type: boolean, endorse: [web]}}",
    );
    Script::new(&endorsed).passes();
}

#[test]
fn the_trifecta_along_lens_edges() {
    let text = "
        name: lens
        lenses:
          read: {versions: {1: {template: Read it, output_contract: {schema: {mood: {type: string, enum: [good, bad], required: true}}}}}}
          write: {versions: {1: {template: 'Mail [[text]]'}}}
        nodes:
          - {id: page, lens_id: read, config: {agent: ada, required_tools: [web.fetch, crm.read]}}
          - {id: send, lens_id: write, config: {agent: ada, required_tools: [mail.send]}}
        edges:
          - {id: carry, source_node_id: page, target_node_id: send, source_output_key: data.mood, target_param_label: text}
        ";
    Script::new(text).check(expect![[r#"
        main.yaml:7 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:6 nodes[0].config.required_tools[0]: answers of the tool `web.fetch` in `page`
            main.yaml:6 nodes[0].config: `page` returns output `mood`
            main.yaml:9 edges[0]: an edge carries `page.mood` to `send`
            main.yaml:7 nodes[1].config.required_tools[0]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:6 nodes[0].config.required_tools[1]: answers of the tool `crm.read` in `page`
            main.yaml:6 nodes[0].config: `page` returns output `mood`
            main.yaml:9 edges[0]: an edge carries `page.mood` to `send`
            main.yaml:7 nodes[1].config.required_tools[0]: `send` can call `mail.send` with it
    "#]]);
    Script::new(&text.replace("required: true}", "required: true, endorse: [web]}")).passes();
    // A field that may be missing is replaced by the whole output.
    let loose = text.replace("required: true}", "endorse: [web]}");
    assert!(Script::new(&loose).told().contains("trifecta"));
}

#[test]
fn a_condition_on_untrusted_data_is_control() {
    let text = "
        name: guarded
        steps:
          - {id: page, agent: ada, command: Read, tools: [web.fetch], outputs: {buy: boolean}}
          - {id: pay, agent: ada, command: Pay, condition: page.buy, tools: [mail.send]}
          - {id: after, agent: ada, command: Go on, depends_on: [pay], tools: [mail.note]}
        ";
    let rule = "@id(\"steered\") forbid(principal, action == Action::\"use_tool\", resource) when { context.flow.control };";
    Script::new(text).policies(rule).check(expect![[r#"
        main.yaml:4 possible_flow: `pay` can call `mail.send` with untrusted control, which policy rules.cedar/steered forbids
          untrusted control
            main.yaml:3 steps[0].tools[0]: answers of the tool `web.fetch` in `page`
            main.yaml:3 steps[0].outputs.buy: `page` returns output `buy`
            main.yaml:4 steps[1].condition: the condition of `pay` reads `page.buy`
            main.yaml:4 steps[1].tools[0]: `pay` can call `mail.send` with it
        main.yaml:5 possible_flow: `after` can call `mail.note` with untrusted control, which policy rules.cedar/steered forbids
          untrusted control
            main.yaml:3 steps[0].tools[0]: answers of the tool `web.fetch` in `page`
            main.yaml:3 steps[0].outputs.buy: `page` returns output `buy`
            main.yaml:4 steps[1].condition: the condition of `pay` reads `page.buy`
            main.yaml:5 steps[2].depends_on: `after` runs only after steps under control
            main.yaml:5 steps[2].tools[0]: `after` can call `mail.note` with it
    "#]]);
    let endorsed = text.replace("{buy: boolean}", "{buy: {type: boolean, endorse: [web]}}");
    Script::new(&endorsed).policies(rule).passes();
    // With a way around it, the last step is not under control.
    let around = text.replace("depends_on: [pay]", "depends_on: [pay, page]");
    assert!(!Script::new(&around).policies(rule).told().contains("mail.note"));
}

#[test]
fn the_trifecta_behind_a_condition() {
    Script::new(
        "
        name: behind
        steps:
          - {id: page, agent: ada, command: Read, tools: [web.fetch, crm.read], outputs: {text: string}}
          - id: send
            agent: ada
            command: Mail ${page.text}
            condition: page.text.length > 10
            tools: [mail.send]
        ",
    )
    .check(expect![[r#"
        main.yaml:8 possible_flow: `send` can call `mail.send` with origin `web` and secret `customer`, which policy rules.cedar/trifecta forbids
          origin `web`
            main.yaml:3 steps[0].tools[0]: answers of the tool `web.fetch` in `page`
            main.yaml:3 steps[0].outputs.text: `page` returns output `text`
            main.yaml:6 steps[1].command: the command of `send` reads `page.text`
            main.yaml:8 steps[1].tools[0]: `send` can call `mail.send` with it
          secret `customer`
            main.yaml:3 steps[0].tools[1]: answers of the tool `crm.read` in `page`
            main.yaml:3 steps[0].outputs.text: `page` returns output `text`
            main.yaml:6 steps[1].command: the command of `send` reads `page.text`
            main.yaml:8 steps[1].tools[0]: `send` can call `mail.send` with it
    "#]]);
}

#[test]
fn items_of_a_fan_out_carry_the_labels_of_their_source() {
    let text = "
        name: each
        steps:
          - {id: list, agent: ada, command: List, tools: [web.fetch, crm.read], outputs: {all: {type: array}}}
          - {id: one, agent: ada, command: 'Sum up ${item}', for_each: $list.outputs.all, outputs: {gist: string, ok: {type: boolean, endorse: [web]}}}
          - {id: send, agent: ada, command: 'Mail ${one.items[0].gist}', tools: [mail.send]}
        ";
    assert!(Script::new(text).told().contains("trifecta"));
    Script::new(&text.replace("items[0].gist", "items[0].ok")).passes();
}

#[test]
fn a_variable_has_the_labels_of_every_step_that_may_have_set_it() {
    let text = "
        name: variables
        steps:
          - {id: first, agent: ada, command: Begin, outputs: {text: string}}
          - {id: second, agent: ada, command: 'Use ${text}', depends_on: [first], tools: [web.fetch], outputs: {text: string}}
          - {id: third, agent: ada, command: 'Use ${text}', depends_on: [second]}
        ";
    let script = Script::new(text);
    // The first step sets it before the second one, which is after itself.
    assert_eq!(script.labels("first"), "reads {} returns {}");
    assert!(script.labels("third").starts_with(r#"reads {"origins":["web"]}"#));
    let other = text.replace("depends_on: [second]", "depends_on: [first]");
    assert!(Script::new(&other).labels("third").contains("web"));
}

#[test]
fn what_is_not_declared_is_unknown() {
    let text = "
        name: open
        args: {topic: string}
        steps:
          - {id: a, agent: bob, command: 'Go ${args.topic}', tools: [shop.buy, web.*]}
        ";
    assert_eq!(
        Script::new(text).labels("a"),
        r#"reads {"origins":["caller","unknown","web"]} returns {"origins":["caller","unknown","web"]}"#
    );
    // An agent that may not use the tools cannot read their answers.
    let bound = Script::new(text).with(
        Kind::Agent,
        "bob",
        json!({"origin": [], "tools": {"deny": ["shop.buy"], "allow": ["web.*"]}}),
    );
    assert!(!bound.labels("a").contains("unknown"));
    let gateway = Script::new(text)
        .with(Kind::Agent, "bob", json!({"gateway": "crm", "tools": {"allow": ["none"]}}))
        .with(
            Kind::Gateway,
            "crm",
            json!({"provider": "mock", "origin": ["crm"], "sensitive": ["customer"]}),
        );
    assert_eq!(
        gateway.labels("a"),
        r#"reads {"origins":["caller"]} returns {"origins":["caller","crm"],"secrecy":["customer"]}"#
    );
}

#[test]
fn a_dispatch_and_a_start_are_sinks_too() {
    let text = "
        name: dispatch
        args: {iban: {type: string, sensitive: [payroll], origin: [operator]}}
        steps:
          - {id: ask, agent: ada, command: 'Check ${args.iban}'}
          - {id: other, workflow_ref: elsewhere, args: {iban: '${args.iban}'}}
        ";
    let rules = "
        @id(\"local\") forbid(principal, action == Action::\"dispatch_step\", resource)
        when { context.flow.secrecy.contains(\"payroll\") };
        @id(\"start\") @action(\"require_approval\")
        forbid(principal, action == Action::\"start_run\", resource)
        when { context.flow.secrecy.contains(\"payroll\") };";
    Script::new(text).policies(rules).check(expect![[r#"
        main.yaml:4 possible_flow: `ask` can be sent to gateway `local` with secret `payroll`, which policy rules.cedar/local forbids
          secret `payroll`
            main.yaml:2 args.iban: argument `iban`
            main.yaml:4 steps[0].command: the command of `ask` reads `args.iban`
            main.yaml:4 steps[0].agent: `ask` is sent to gateway `local` with it
        main.yaml:5 possible_flow: `other` can start workflow `elsewhere` with secret `payroll`, which policy rules.cedar/start needs an approval for
          secret `payroll`
            main.yaml:2 args.iban: argument `iban`
            main.yaml:5 steps[1].args.iban: `other` passes `args.iban` as argument `iban`
            main.yaml:5 steps[1].workflow_ref: `other` starts workflow `elsewhere` with it
    "#]]);
}

#[test]
fn an_error_is_an_error_only_if_the_policy_says_so() {
    let rules = "
        @id(\"strict\") @static(\"error\")
        forbid(principal, action == Action::\"use_tool\", resource)
        when { context.flow.origins.contains(\"web\") };";
    let text = "
        name: strict
        steps:
          - {id: a, agent: ada, command: Go, tools: [web.fetch]}
        ";
    Script::new(text).policies(rules).check(expect![[r#"
        main.yaml:3 forbidden_flow: `a` can call `web.fetch` with origin `web`, which policy rules.cedar/strict forbids
          origin `web`
            main.yaml:3 steps[0].tools[0]: answers of the tool `web.fetch` in `a`
            main.yaml:3 steps[0].tools[0]: `a` can call `web.fetch` with it
    "#]]);
}

#[test]
fn a_picture_shows_origins_sinks_and_links() {
    let text = "
        name: shown
        args: {iban: {type: string, sensitive: [payroll]}}
        steps:
          - {id: a, agent: ada, command: 'Use ${args.iban}', tools: [web.fetch], outputs: {x: string}}
          - {id: b, agent: ada, command: 'Use ${a.x}', tools: [mail.send]}
          - {id: c, agent: ada, command: Nothing, depends_on: [a]}
        ";
    let picture = Script::new(text).picture();
    expect![[r#"
        {
          "arguments": [
            {
              "name": "iban",
              "labels": {
                "origins": [
                  "caller"
                ],
                "secrecy": [
                  "payroll"
                ]
              }
            }
          ],
          "steps": [
            {
              "id": "a",
              "reads": {
                "origins": [
                  "caller",
                  "web"
                ],
                "secrecy": [
                  "payroll"
                ]
              },
              "returns": {
                "origins": [
                  "caller",
                  "web"
                ],
                "secrecy": [
                  "payroll"
                ]
              },
              "sources": [
                {
                  "name": "web.fetch",
                  "labels": {
                    "origins": [
                      "web"
                    ]
                  }
                }
              ],
              "sinks": [
                {
                  "kind": "gateway",
                  "name": "local",
                  "sends_to": "external",
                  "labels": {
                    "origins": [
                      "caller"
                    ],
                    "secrecy": [
                      "payroll"
                    ]
                  }
                },
                {
                  "kind": "tool",
                  "name": "web.fetch",
                  "sends_to": "none",
                  "labels": {
                    "origins": [
                      "caller",
                      "web"
                    ],
                    "secrecy": [
                      "payroll"
                    ]
                  }
                }
              ]
            },
            {
              "id": "b",
              "reads": {
                "origins": [
                  "caller",
                  "web"
                ],
                "secrecy": [
                  "payroll"
                ]
              },
              "returns": {
                "origins": [
                  "caller",
                  "web"
                ],
                "secrecy": [
                  "payroll"
                ]
              },
              "sinks": [
                {
                  "kind": "gateway",
                  "name": "local",
                  "sends_to": "external",
                  "labels": {
                    "origins": [
                      "caller",
                      "web"
                    ],
                    "secrecy": [
                      "payroll"
                    ]
                  }
                },
                {
                  "kind": "tool",
                  "name": "mail.send",
                  "sends_to": "external",
                  "labels": {
                    "origins": [
                      "caller",
                      "web"
                    ],
                    "secrecy": [
                      "payroll"
                    ]
                  }
                }
              ]
            },
            {
              "id": "c",
              "reads": {},
              "returns": {},
              "sinks": [
                {
                  "kind": "gateway",
                  "name": "local",
                  "sends_to": "external",
                  "labels": {}
                }
              ]
            }
          ],
          "links": [
            {
              "from": "a",
              "to": "b",
              "labels": {
                "origins": [
                  "caller",
                  "web"
                ],
                "secrecy": [
                  "payroll"
                ]
              }
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&picture).unwrap());
}
