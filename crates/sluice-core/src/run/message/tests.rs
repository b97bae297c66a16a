use super::*;
use crate::port::adapter::ToolContent;

fn commands() -> Vec<Command> {
    let by = || "ada".to_owned();
    let answer = Answer {
        error: Some(CallError {
            code: CallErrorCode::RateLimit,
            message: "slow down".to_owned(),
            retry_after_ms: Some(200),
        }),
        text: Some("hi".to_owned()),
        outputs: json!({"a": [1, null]}).as_object().cloned(),
        kind: Some("image".to_owned()),
        artifact_kind: Some("png".to_owned()),
        media: Some(json!({"url": "u"})),
        metadata: json!({"seed": 7}).as_object().cloned(),
        usage: Usage {
            model: Some("m".to_owned()),
            input_tokens: 1,
            output_tokens: 2,
            thinking_tokens: 3,
            cached_tokens: 1,
            unpriced: true,
            cost: Money::from_micro_cents(4),
            unknown: true,
        },
        session: Some("s".to_owned()),
        conversation: vec![json!({"role": "user", "text": "hi"})],
        artefacts: vec![json!({"mime": "image/png", "bytes": 3})],
    };
    let complete = |item, answer| Command::Complete {
        at: StepAt { step: 7, item },
        dispatch_no: 2,
        answer: Box::new(answer),
    };
    vec![
        Command::Cancel { by: by(), reason: "enough".to_owned() },
        Command::Pause { by: by() },
        Command::Unpause { by: by() },
        Command::Retry { by: by() },
        Command::Rewind { by: by(), keep: [1, 5].into() },
        Command::Resolve(Box::new(Resolve {
            approval: ApprovalId(9),
            decision: Decision::Reject,
            by: by(),
            comment: Some("no".to_owned()),
            values: json!({"x": 1}).as_object().cloned().unwrap(),
            roles: vec!["legal".to_owned()],
            constraints: Some(sluice_govern::decision::Constraints {
                tools_deny: vec!["mail".to_owned()],
                ..Default::default()
            }),
        })),
        Command::ChildEnded {
            child: RunId(3),
            status: RunStatus::Failed,
            outputs: None,
            error: Some(("timeout".to_owned(), "too long".to_owned())),
            origins: Vec::new(),
            labels: None,
        },
        Command::ChildEnded {
            child: RunId(3),
            status: RunStatus::Completed,
            outputs: Some(json!({"a": 1})),
            error: None,
            origins: Vec::new(),
            labels: None,
        },
        Command::ChildPaced { child: RunId(3), pace: ChildPace::Paused, at_ms: 7 },
        Command::ChildPaced { child: RunId(3), pace: ChildPace::Resumed, at_ms: u64::MAX },
        complete(None, answer),
        complete(Some(3), Answer::default()),
        Command::UseTool {
            at: StepAt::instance(2, 0),
            dispatch_no: 1,
            wanted: ToolUse {
                id: "call".to_owned(),
                tool: "files.read".to_owned(),
                input: json!({"path": "a"}),
            },
        },
    ]
}

fn nowhere(_: &str) -> Option<StepAt> {
    None
}

#[test]
fn every_command_that_travels_reads_back_as_it_was() {
    for command in commands() {
        let body = encode(&command).expect("it travels");
        assert_eq!(decode(&body, nowhere), Ok(command));
    }
    assert_eq!(encode(&Command::TakeOver), None);
}

#[test]
fn rubbish_is_refused() {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"v":2,"do":"pause","by":"x"}"#,
        r#"{"v":1,"do":"pause"}"#,
        r#"{"v":1,"do":"burn","by":"x"}"#,
        r#"{"v":1,"do":"complete","step":-1,"dispatch_no":1,"answer":{}}"#,
        r#"{"v":1,"do":"complete","step":1,"dispatch_no":1}"#,
        r#"{"v":1,"do":"rewind","by":"x","keep":["a"]}"#,
    ] {
        assert!(decode(body.as_bytes(), nowhere).is_err(), "{body}");
    }
}

#[test]
fn a_callback_is_of_the_step_that_the_run_knows_by_that_name() {
    let body = callback("b[1]", 3, &Answer::default());
    let find = |name: &str| (name == "b[1]").then_some(StepAt::instance(4, 1));
    let at = StepAt::instance(4, 1);
    let complete = Command::Complete { at, dispatch_no: 3, answer: Box::default() };
    assert_eq!(decode(&body, find), Ok(complete));
    assert!(decode(&body, nowhere).is_err());
}

#[test]
fn parts_of_an_answer_are_the_same_when_they_are_read() {
    let parts = vec![
        Emission::Text("a \"b\"\n".to_owned()),
        Emission::Media { url: "u".to_owned(), mime: "image/png".to_owned() },
        Emission::Log("line".to_owned()),
        Emission::ToolEnded(ToolEnded {
            id: "1".to_owned(),
            tool: "t.x".to_owned(),
            failed: true,
            bytes: 2,
            duration_ms: 3,
            content: Some(ToolContent::new("a".to_owned(), Some(json!({"b": null})))),
        }),
    ];
    let body = super::parts("a", 2, &parts);
    let at = StepAt::whole(4);
    let find = |step: &str| (step == "a").then_some(at);
    assert_eq!(decode(&body, find), Ok(Command::Parts { at, dispatch_no: 2, parts }));
    assert!(decode(&body, |_| None).is_err());
}
