//! The enumerations of a plan's policies.

use crate::choices::choices;

choices! {
    /// The family of documents that a plan came from.
    pub enum Family, "a family" {
        /// `.lobsterX`: a list of steps.
        Lobsterx = "lobsterx",
        /// A lens graph: nodes and edges.
        Lens = "lens",
    }
}

choices! {
    /// When a ready step may start.
    pub enum Scheduling, "a scheduling" {
        /// As soon as its own dependencies are settled.
        Eager = "eager",
        /// When the whole wave before it is settled.
        Waves = "waves",
    }
}

choices! {
    /// What a final failure of a step does to the run.
    pub enum OnFailure, "a failure policy", old: ["fail" => "halt", "continue" => "skip"] {
        /// No further step starts; the run fails.
        Halt = "halt",
        /// The step is treated as skipped.
        Skip = "skip",
        /// One retry at once, then halt.
        RetryOnce = "retry_once",
        /// One retry at once, then a person decides.
        RetryOnceThenEscalate = "retry_once_then_escalate",
        /// Up to three retries after 1, 2 and 4 seconds, then halt.
        Retry = "retry",
    }
}

impl OnFailure {
    /// Whether the policy retries the step.
    pub fn retries(self) -> bool {
        match self {
            OnFailure::Halt | OnFailure::Skip => false,
            OnFailure::RetryOnce | OnFailure::RetryOnceThenEscalate | OnFailure::Retry => true,
        }
    }
}

choices! {
    /// What a failed parent does to a step.
    pub enum OnParentFailure, "a parent failure policy" {
        /// The step fails too.
        Propagate = "propagate",
        /// The step is skipped.
        Skip = "skip",
        /// The step runs with "" for missing values.
        SubstituteDefault = "substitute_default",
    }
}

choices! {
    /// What a failure does to steps in flight.
    pub enum ParallelFailure, "a parallel failure policy" {
        /// They continue.
        WaitAll = "wait_all",
        /// They are cancelled at once.
        FailFast = "fail_fast",
    }
}

choices! {
    /// Which text of a step is moderated.
    pub enum Moderation, "a moderation" {
        /// Neither.
        Off = "off",
        /// The text that the step sends to its agent.
        Input = "input",
        /// The text that the agent answers with.
        Output = "output",
        /// The text that the step sends, and the answer.
        Both = "both",
    }
}

impl Moderation {
    /// Whether this text is moderated.
    pub fn covers(self, phase: ModerationPhase) -> bool {
        match self {
            Moderation::Off => false,
            Moderation::Input => phase == ModerationPhase::Input,
            Moderation::Output => phase == ModerationPhase::Output,
            Moderation::Both => true,
        }
    }
}

choices! {
    /// Which failures of an attempt are retried.
    pub enum RetryCause, "a cause of retry" {
        /// The attempt timed out.
        Timeout = "timeout",
        /// The provider failed.
        ProviderError = "provider_error",
        /// The provider limits the rate of requests.
        RateLimit = "rate_limit",
        /// The output violated its contract.
        ContractViolated = "contract_violated",
    }
}

choices! {
    /// What was not loaded when a plan was made.
    pub enum Sought, "a thing that is looked up" {
        /// A step that a document uses by name.
        LibraryStep = "library_step",
        /// A lens that a node uses by id and version.
        Lens = "lens",
    }
}

choices! {
    /// What a failed node of a team run does to other branches.
    pub enum FailureMode, "a failure mode" {
        /// Its branch fails; other branches continue.
        Isolate = "isolate",
        /// The run halts.
        Halt = "halt",
    }
}

choices! {
    /// The order in which a team's ready steps start.
    pub enum QueueOrder, "a queue order" {
        /// In the order of step ids.
        Id = "id",
        /// By the lane of the step's member, then by id.
        Lane = "lane",
    }
}

choices! {
    /// Which text of a step is moderated.
    pub enum ModerationPhase, "a phase of moderation" {
        /// The text that the step sends to its agent.
        Input = "input",
        /// The text that the agent answers with.
        Output = "output",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Choice, find};
    use crate::contract::field::ContractType;
    use crate::merge::Strategy;
    use crate::outputs::schema::FieldType;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use sluice_govern::registry::LensKind;

    fn check<T>(words: &[&str])
    where
        T: Choice + PartialEq + std::fmt::Debug + std::fmt::Display + DeserializeOwned + Serialize,
    {
        assert_eq!(T::NAMES, words, "the words of {}", T::WHAT);
        for (word, choice) in T::WORDS {
            assert_eq!(find::<T>(word), Some(*choice));
            assert_eq!(choice.to_string(), *word);
            let json = serde_json::to_string(choice).unwrap();
            assert_eq!(json, format!("\"{word}\""));
            assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *choice);
        }
        assert_eq!(find::<T>("nothing like it"), None);
        for (old, new) in T::OLD {
            assert_eq!(find::<T>(old), None);
            assert!(serde_json::from_str::<T>(&format!("\"{old}\"")).is_err());
            assert!(find::<T>(new).is_some());
        }
    }

    #[test]
    fn every_choice_has_the_words_of_the_format() {
        check::<FieldType>(&["string", "number", "integer", "boolean", "object", "array"]);
        check::<ContractType>(&[
            "string", "number", "integer", "boolean", "url", "json", "array", "any",
        ]);
        check::<Strategy>(&["last_write_wins", "concat", "array", "json_object"]);
        check::<Scheduling>(&["eager", "waves"]);
        check::<OnFailure>(&["halt", "skip", "retry_once", "retry_once_then_escalate", "retry"]);
        check::<OnParentFailure>(&["propagate", "skip", "substitute_default"]);
        check::<ParallelFailure>(&["wait_all", "fail_fast"]);
        check::<Moderation>(&["off", "input", "output", "both"]);
        check::<RetryCause>(&["timeout", "provider_error", "rate_limit", "contract_violated"]);
        check::<Family>(&["lobsterx", "lens"]);
        check::<Sought>(&["library_step", "lens"]);
        check::<FailureMode>(&["isolate", "halt"]);
        check::<LensKind>(&[
            "text",
            "image",
            "video",
            "audio",
            "music",
            "research",
            "pdf",
            "transform",
            "orchestration",
            "validation",
            "routing",
        ]);
    }
}
