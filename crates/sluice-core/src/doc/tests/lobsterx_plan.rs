//! The plan of a valid document.

use super::{Script, check_each};
use crate::doc::Format;
use expect_test::expect;

/// A document that uses every field.
pub(super) const FULL: &str = r#"
    name: full-document
    version: 3
    description: everything at once
    args:
      who: {type: string, required: true, description: whom to ask}
      depth: {type: integer, default: 2, enum: [1, 2, 3]}
    roles:
      clerk:
        description: does the work
        required_skills: [reading]
        max_spend_cents: 12.5
        allowed_environments: [prod]
        trusted_context: {accepted_source_classes: [crm], max_age_s: 60}
    phases: [{id: early, name: Early}, late]
    defaults: {model: small}
    budget: {max_cost_cents: 500}
    timeout: 1h
    max_parallel: 8
    scheduling: waves
    recovery: {max: 2, after: 5m}
    outputs: {result: "${risk}"}
    team:
      members:
        - id: ada
          agent: agent_one
          role: lead
          lane: 1
          sort_order: 2
          is_active: false
          tool_profile: {allow_tools: [a], deny_tools: [b], requires_approval: true}
          model_profile: {support_level: high}
          personality_profile: {system_prompt_patch: be brief}
          memory_profile: long
      failure_policy: {mode: halt}
      queue_policy: {order: lane}
      approval_policy: {quorum: 7}
      retry_policy: {attempts: 8}
    steps:
      - id: gather
        role: clerk
        command: look up ${args.who}
        outputs:
          risk: {type: string, enum: [low, high], description: how bad}
          list: {type: array, items: {type: integer, minimum: 1, maximum: 9}}
          note: {type: string, required: false, minLength: 1, maxLength: 80, pattern: "^[a-z]"}
          more: {type: object, properties: {deep: string}, required: [deep]}
        success_criteria: [outputs.list.length > 0]
        timeout: 90s
        retry: {attempts: 4, backoff_ms: 100, max_backoff_ms: 900, retry_on: [timeout]}
        parallel_failure_policy: fail_fast
        phase: early
        model: large
        tools: [search]
        capabilities: [gpu]
        max_output_tokens: 1000
        max_cost_cents: 25
        moderation: both
        memory: short
      - id: ask
        depends_on: [gather]
        approval:
          approvers: [ada]
          quorum: 2
          not_initiator: true
          expires_in: 2d
          summary: risk is ${gather.outputs.risk}
          covers_retries: true
      - id: spread
        agent: shell
        command: echo "${item}"
        for_each: {items: $gather.outputs.list, max_parallel: 3, max_items: 50}
        condition: $ask.approved == true
        on_failure: skip
        on_parent_failure: skip
        stdin: $gather.stdout
        cwd: work
        env: {MODE: fast}
        idempotent: false
      - id: child
        workflow_ref: other-flow@7
        args: {text: "${gather.outputs.risk}", fixed: [1, {deep: true}]}
        inputs:
          note: {from: [gather.note, spread.stdout], type: string, default: none}
        merge: concat
        repair: {reask: 2}
"#;

#[test]
fn every_field_reaches_the_plan() {
    let plan = Script::lobsterx(FULL).plan();
    let json = serde_json::to_string_pretty(&plan).expect("a plan is JSON");
    expect![[r#"
        {
          "family": "lobsterx",
          "name": "full-document",
          "version": 3,
          "description": "everything at once",
          "args": {
            "who": {
              "type": "string",
              "required": true,
              "description": "whom to ask"
            },
            "depth": {
              "type": "integer",
              "default": 2,
              "enum": [
                1,
                2,
                3
              ]
            }
          },
          "roles": {
            "clerk": {
              "description": "does the work",
              "required_skills": [
                "reading"
              ],
              "max_spend": 12500000,
              "allowed_environments": [
                "prod"
              ],
              "trusted_context": {
                "accepted_source_classes": [
                  "crm"
                ],
                "max_age_s": 60
              }
            }
          },
          "phases": [
            {
              "id": "early",
              "name": "Early"
            },
            {
              "id": "late",
              "name": "late"
            }
          ],
          "max_cost": 500000000,
          "timeout_ms": 3600000,
          "max_parallel": 8,
          "scheduling": "waves",
          "recovery": {
            "max": 2,
            "after_ms": 300000
          },
          "outputs": {
            "result": "${risk}"
          },
          "team": {
            "members": [
              {
                "id": "ada",
                "agent": "agent_one",
                "role": "lead",
                "lane": 1,
                "sort_order": 2,
                "is_active": false,
                "allow_tools": [
                  "a"
                ],
                "deny_tools": [
                  "b"
                ],
                "requires_approval": true,
                "support_level": "high",
                "system_prompt_patch": "be brief",
                "memory_profile": "long"
              }
            ],
            "failure_mode": "halt",
            "policies": {
              "queue_policy": {
                "order": "lane"
              },
              "approval_policy": {
                "covers_retries": false,
                "not_initiator": false,
                "quorum": 7,
                "required": false
              },
              "retry_policy": {
                "attempts": 8,
                "backoff_ms": 500,
                "max_backoff_ms": 8000,
                "retry_on": [
                  "timeout",
                  "provider_error",
                  "rate_limit"
                ]
              }
            }
          },
          "steps": [
            {
              "capabilities": [
                "gpu"
              ],
              "id": "gather",
              "idempotent": true,
              "max_cost": 25000000,
              "max_output_tokens": 1000,
              "memory": "short",
              "model": "large",
              "moderation": "both",
              "on_failure": "halt",
              "on_parent_failure": "propagate",
              "outputs": {
                "risk": {
                  "type": "string",
                  "enum": [
                    "low",
                    "high"
                  ],
                  "description": "how bad"
                },
                "list": {
                  "type": "array",
                  "items": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 9
                  }
                },
                "note": {
                  "type": "string",
                  "required": false,
                  "minLength": 1,
                  "maxLength": 80,
                  "pattern": "^[a-z]"
                },
                "more": {
                  "type": "object",
                  "required": [
                    "deep"
                  ],
                  "properties": {
                    "deep": {
                      "type": "string"
                    }
                  }
                }
              },
              "parallel_failure_policy": "fail_fast",
              "phase": "early",
              "retry": {
                "attempts": 4,
                "backoff_ms": 100,
                "max_backoff_ms": 900,
                "retry_on": [
                  "timeout"
                ]
              },
              "role": "clerk",
              "success_criteria": [
                "outputs.list.length > 0"
              ],
              "timeout_ms": 90000,
              "tools": [
                "search"
              ],
              "work": {
                "kind": "command",
                "command": "look up ${args.who}"
              }
            },
            {
              "approval": {
                "approvers": [
                  "ada"
                ],
                "covers_retries": true,
                "expires_in_ms": 172800000,
                "not_initiator": true,
                "quorum": 2,
                "summary": "risk is ${gather.outputs.risk}"
              },
              "depends_on": [
                "gather"
              ],
              "id": "ask",
              "idempotent": true,
              "model": "small",
              "moderation": "off",
              "on_failure": "halt",
              "on_parent_failure": "propagate",
              "parallel_failure_policy": "wait_all",
              "retry": {
                "attempts": 8,
                "backoff_ms": 500,
                "max_backoff_ms": 8000,
                "retry_on": [
                  "timeout",
                  "provider_error",
                  "rate_limit"
                ]
              },
              "timeout_ms": 600000,
              "work": {
                "kind": "approval"
              }
            },
            {
              "agent": "shell",
              "condition": "$ask.approved == true",
              "cwd": "work",
              "depends_on": [
                "gather",
                "ask"
              ],
              "env": {
                "MODE": "fast"
              },
              "for_each": {
                "items": {
                  "from": "$gather.outputs.list"
                },
                "max_items": 50,
                "max_parallel": 3
              },
              "id": "spread",
              "idempotent": false,
              "model": "small",
              "moderation": "off",
              "on_failure": "skip",
              "on_parent_failure": "skip",
              "parallel_failure_policy": "wait_all",
              "retry": {
                "attempts": 8,
                "backoff_ms": 500,
                "max_backoff_ms": 8000,
                "retry_on": [
                  "timeout",
                  "provider_error",
                  "rate_limit"
                ]
              },
              "stdin": "$gather.stdout",
              "timeout_ms": 600000,
              "work": {
                "kind": "command",
                "command": "echo \"${item}\""
              }
            },
            {
              "depends_on": [
                "gather",
                "spread"
              ],
              "id": "child",
              "idempotent": true,
              "inputs": {
                "note": {
                  "default": "none",
                  "from": [
                    "gather.note",
                    "spread.stdout"
                  ],
                  "schema": {
                    "type": "string"
                  }
                }
              },
              "merge": "concat",
              "model": "small",
              "moderation": "off",
              "on_failure": "halt",
              "on_parent_failure": "propagate",
              "parallel_failure_policy": "wait_all",
              "reask": 2,
              "retry": {
                "attempts": 8,
                "backoff_ms": 500,
                "max_backoff_ms": 8000,
                "retry_on": [
                  "timeout",
                  "provider_error",
                  "rate_limit"
                ]
              },
              "timeout_ms": 600000,
              "work": {
                "kind": "workflow",
                "args": {
                  "text": "${gather.outputs.risk}",
                  "fixed": [
                    1,
                    {
                      "deep": true
                    }
                  ]
                },
                "name": "other-flow",
                "version": 7
              }
            }
          ]
        }"#]]
    .assert_eq(&json);
}

#[test]
fn a_full_document_has_only_the_warnings_it_deserves() {
    Script::lobsterx(FULL).order().check(expect![[r#"
        ~80:19 unresolved_reference steps[3].workflow_ref: workflow `other-flow` cannot be checked: no registry is loaded
        ok
        gather <-
        ask <- gather
        spread <- gather ask
        child <- gather spread
        wave: gather
        wave: ask
        wave: spread
        wave: child
    "#]]);
}

#[test]
fn steps_are_found_by_id() {
    let plan = Script::lobsterx(FULL).plan();
    for step in &plan.steps {
        assert_eq!(plan.step(&step.id), Some(step));
    }
    for id in ["", "gathe", "gathers", "Gather", "zz"] {
        assert_eq!(plan.step(id), None, "{id}");
    }
}

#[test]
fn written_forms_that_mean_the_same() {
    check_each(
        "
        name: tiny
        steps:
          - {id: aa, command: go, outputs: {list: array}}
          - {id: bb, command: go, @}
        ",
        &["steps.1"],
        &["inputs: {x: aa.list}", "inputs: {x: {from: aa.list}}", "inputs: {x: {from: [aa.list]}}"],
        expect![[r#"
            inputs: {x: aa.list} => ok | steps.1 = {"depends_on":["aa"],"id":"bb","idempotent":true,"inputs":{"x":{"from":["aa.list"]}},"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            inputs: {x: {from: aa.list}} => ok | steps.1 = {"depends_on":["aa"],"id":"bb","idempotent":true,"inputs":{"x":{"from":["aa.list"]}},"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            inputs: {x: {from: [aa.list]}} => ok | steps.1 = {"depends_on":["aa"],"id":"bb","idempotent":true,"inputs":{"x":{"from":["aa.list"]}},"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"timeout_ms":600000,"work":{"kind":"command","command":"go"}}
        "#]],
    );
}

#[test]
fn the_fields_tell_the_format() {
    let mut out = String::new();
    for text in [
        "{name: tiny, steps: [{id: one, command: go}]}",
        "{name: tiny}",
        "{name: tiny, steps: [], nodes: []}",
        "[]",
        "text",
    ] {
        out.push_str(&format!("{text} => {}", Script::new(None, text).show("family").transcript()));
    }
    expect![[r#"
        {name: tiny, steps: [{id: one, command: go}]} => ok
        family = "lobsterx"
        {name: tiny} => 1:1 unknown_format: this is not a workflow document (a `.lobsterX` document has `steps`, a lens document has `nodes` and `edges`)
        {name: tiny, steps: [], nodes: []} => 1:1 unknown_format: this is not a workflow document (a `.lobsterX` document has `steps`, a lens document has `nodes` and `edges`)
        [] => 1:1 unknown_format: this is not a workflow document (a `.lobsterX` document has `steps`, a lens document has `nodes` and `edges`)
        text => 1:1 unknown_format: this is not a workflow document (a `.lobsterX` document has `steps`, a lens document has `nodes` and `edges`)
    "#]].assert_eq(&out);
}

#[test]
fn the_files_name_tells_the_format() {
    for name in ["a.lobsterx", "a.lobsterX", "a.lobsterx.yaml", "A.LOBSTERX.YML", "a.lobsterx.json"]
    {
        assert_eq!(Format::of_file(name), Some(Format::Lobsterx), "{name}");
    }
    for name in ["a.lens.json", "a.lens.yaml", "a.LENS.yml"] {
        assert_eq!(Format::of_file(name), Some(Format::Lens), "{name}");
    }
    for name in ["a.lobster", "a.yaml", "a.json", "lobsterx", "a.lobsterx.txt", "lens.json", ""] {
        assert_eq!(Format::of_file(name), None, "{name}");
    }
}
