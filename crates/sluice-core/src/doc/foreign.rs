//! Field names of other products, with the Sluice field to use instead.
//!
//! Such a name is an error like any unknown field; the hint names the right one.

/// Names in other products, the equivalent field, and the hint. An empty hint means "did you
/// mean".
type Words = (&'static [&'static str], &'static str, &'static str);

/// Fields of steps. Only steps have `depends_on`.
const STEP: &[Words] = &[
    (
        &["retries", "max_retries", "retry_count", "max_attempts", "attempts"],
        "retry",
        "write `retry: {attempts: 3}`, the first attempt counted",
    ),
    (
        &["if", "when", "only_if", "run_if"],
        "condition",
        "write `condition: EXPRESSION`; the step is skipped unless it holds",
    ),
    (&["unless"], "condition", "write `condition: not (EXPRESSION)`"),
    (&["needs", "after", "requires", "dependencies", "wait_for"], "depends_on", ""),
    (&["prompt", "instruction", "instructions", "task", "message"], "command", ""),
    (
        &["run", "script", "cmd", "bash", "sh", "shell"],
        "command",
        "write `command`, with `agent: shell` if a shell runs it",
    ),
    (
        &["type", "kind", "uses", "action"],
        "command",
        "a step has no type: `command`, `approval`, `workflow_ref` or `library_step` says what it does, \
         and `agent` who does it",
    ),
    (&["name", "title", "key"], "id", ""),
    (&["foreach", "loop", "with_items", "matrix", "iterate", "items"], "for_each", ""),
    (&["workflow", "sub_workflow", "subworkflow", "call"], "workflow_ref", ""),
    (
        &["with", "params", "parameters", "input"],
        "inputs",
        "write `inputs` for values of other steps, `args` for those of a sub-workflow",
    ),
    (
        &["continue_on_error", "ignore_errors", "allow_failure", "on_error"],
        "on_failure",
        "write `on_failure: skip` to go on without the step",
    ),
    (&["output", "output_schema", "schema", "response_format", "returns"], "outputs", ""),
    (
        &["approve", "confirm", "manual", "requires_approval", "wait_for_approval", "human_input"],
        "approval",
        "write `approval: required`",
    ),
    (&["environment"], "env", ""),
    (&["working_directory", "workdir", "dir"], "cwd", ""),
    (&["concurrency", "parallelism", "parallel"], "max_parallel", ""),
    (
        &["timeout_seconds", "timeout_sec", "timeout_s", "timeout_ms", "timeout_minutes"],
        "timeout",
        "write `timeout: 90s`",
    ),
];

/// Fields at the top of a document.
const TOP: &[Words] = &[
    (&["jobs", "tasks", "stages", "nodes"], "steps", ""),
    (&["inputs", "input", "parameters", "params", "variables", "vars"], "args", ""),
    (&["id", "title"], "name", ""),
    (&["output", "result", "results", "returns"], "outputs", ""),
    (
        &["on", "trigger", "triggers", "schedule", "cron"],
        "steps",
        "use `sluice schedules` or `sluice hooks` to start runs of a workflow",
    ),
];

/// The hint for a field that a map with the fields `known` does not have.
pub(super) fn advice(name: &str, known: &[&str]) -> Option<String> {
    let words = if known.contains(&"depends_on") {
        STEP
    } else if known.contains(&"steps") {
        TOP
    } else {
        return None;
    };
    let folded = folded(name);
    let (_, field, advice) = words.iter().find(|(words, ..)| words.contains(&folded.as_str()))?;
    Some(match *advice {
        "" => format!("did you mean `{field}`?"),
        advice => advice.to_owned(),
    })
}

/// `maxRetries` and `max-retries` as `max_retries`.
fn folded(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for letter in name.chars().take(WORD_CHARS_MAX) {
        match letter {
            '-' | ' ' => folded.push('_'),
            letter if letter.is_ascii_uppercase() => {
                if !folded.is_empty() {
                    folded.push('_');
                }
                folded.push(letter.to_ascii_lowercase());
            }
            letter => folded.push(letter),
        }
    }
    folded
}

/// The length of the longest name above.
const WORD_CHARS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::lobsterx::written::{Document, StepDoc};

    #[test]
    fn every_word_is_of_a_field_that_is_there_and_is_none_itself() {
        for (words, known) in [(STEP, StepDoc::FIELDS), (TOP, Document::FIELDS)] {
            for (others, field, _) in words {
                assert!(known.contains(field), "{field}");
                for word in *others {
                    assert!(!known.contains(word), "{word} is a field here");
                    assert!(advice(word, known).is_some(), "{word}");
                }
            }
        }
        assert_eq!(advice("maxRetries", StepDoc::FIELDS), advice("max_retries", StepDoc::FIELDS));
        assert_eq!(advice("colour", StepDoc::FIELDS), None);
    }
}
