use super::*;
use crate::model::dialect::Wanted;
use crate::model::draft::Counted;

fn hear(events: &[Value]) -> (Listener, Draft) {
    let (mut listener, mut draft) = (Listener::default(), Draft::default());
    for event in events {
        let event = Event { name: String::new(), data: event.to_string() };
        listener.event(&event, &mut draft).expect("it is no error");
    }
    (listener, draft)
}

fn calls(calls: &Value) -> Value {
    json!({"choices": [{"delta": {"tool_calls": calls}}]})
}

fn wanted(id: &str, name: &str, arguments: &str) -> Wanted {
    Wanted { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

#[test]
fn calls_are_put_together_however_a_server_cuts_and_counts_them() {
    let expected = [wanted("a", "one", r#"{"x":1}"#), wanted("b", "two", "{}")];
    let whole = |index: Option<u64>, id: &str, name: &str, arguments: &str| {
        let mut call = json!({"id": id, "function": {"name": name, "arguments": arguments}});
        if let Some(index) = index {
            call["index"] = index.into();
        }
        call
    };
    let more =
        |index: u64, arguments: &str| json!({"index": index, "function": {"arguments": arguments}});
    for events in [
        // As OpenAI does it.
        vec![
            calls(&json!([whole(Some(0), "a", "one", "")])),
            calls(&json!([more(0, r#"{"x""#)])),
            calls(&json!([more(0, ":1}")])),
            calls(&json!([whole(Some(1), "b", "two", "{}")])),
        ],
        // Mixed.
        vec![
            calls(&json!([whole(Some(0), "a", "one", ""), whole(Some(1), "b", "two", "")])),
            calls(&json!([more(1, "{"), more(0, r#"{"x":1"#)])),
            calls(&json!([more(0, "}"), more(1, "}")])),
        ],
        // Everything is number 0, or none is numbered; ids are repeated.
        vec![
            calls(&json!([whole(Some(0), "a", "one", r#"{"x":"#)])),
            calls(&json!([whole(Some(0), "a", "", "1}")])),
            calls(&json!([whole(Some(0), "b", "two", "{}")])),
        ],
        vec![calls(&json!([whole(None, "a", "one", r#"{"x":1}"#), whole(None, "b", "two", "{}")]))],
    ] {
        assert_eq!(hear(&events).1.calls, expected, "{events:?}");
    }
}

#[test]
fn a_call_without_a_name_of_its_own_gets_one() {
    let call = |index: u64| json!({"index": index, "function": {"name": "x", "arguments": "{}"}});
    let (_, draft) = hear(&[calls(&json!([call(0), call(1)]))]);
    assert_eq!(draft.calls, [wanted("call_0", "x", "{}"), wanted("call_1", "x", "{}")]);
}

#[test]
fn a_model_gets_back_what_it_said_with_arguments_that_can_be_read() {
    let (mut listener, draft) = hear(&[
        json!({"choices": [{"delta": {"content": "hm"}}]}),
        calls(&json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{broken"}}])),
    ]);
    assert_eq!(
        listener.echo(&draft),
        json!({"role": "assistant", "content": "hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}},
        ]})
    );
}

#[test]
fn figures_with_every_event_are_whole_only_at_the_end() {
    let usage = |written: u64| json!({"prompt_tokens": 7, "completion_tokens": written});
    let begun =
        json!({"choices": [{"delta": {"content": "a"}, "finish_reason": null}], "usage": usage(1)});
    let ended = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage(2)});
    assert!(!hear(std::slice::from_ref(&begun)).1.counted.whole);
    let counted = hear(&[begun, ended]).1.counted;
    assert_eq!(counted, Counted { input: 7, output: 2, whole: true, ..Counted::default() });
}

#[test]
fn the_end_is_believed_only_after_a_reason() {
    let mut draft = Draft::default();
    let done = Event { name: String::new(), data: " [DONE]".to_owned() };
    Listener::default().event(&done, &mut draft).expect("it is no error");
    assert!(!draft.ended);
}

#[test]
fn openai_itself_is_told_the_bound_in_its_newer_word() {
    let ask = Ask {
        model: "m",
        system: None,
        said: &[],
        tools: &[],
        max_output_tokens: Some(5),
        shape: Shape::Text,
    };
    for (base, word) in [
        (None, "max_completion_tokens"),
        (Some("https://api.openai.com/v1"), "max_completion_tokens"),
        (Some("http://localhost:11434/v1"), "max_tokens"),
        (Some("https://api.openai.com.evil.test/v1"), "max_tokens"),
    ] {
        let body = OpenAi::at(base).body(&ask);
        assert_eq!(body[word], 5, "{body}");
        assert_eq!(body.as_object().unwrap().len(), 5, "{body}");
    }
}
