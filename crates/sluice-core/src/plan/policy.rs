//! The enumerations of a plan's policies.

use crate::choice::choices;

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
        /// Both.
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
    /// What a lens produces or does.
    pub enum LensKind, "a lens kind" {
        /// Text.
        Text = "text",
        /// An image.
        Image = "image",
        /// A video.
        Video = "video",
        /// A sound.
        Audio = "audio",
        /// A piece of music.
        Music = "music",
        /// Research findings.
        Research = "research",
        /// A PDF file.
        Pdf = "pdf",
        /// Transformed data.
        Transform = "transform",
        /// The coordination of other work.
        Orchestration = "orchestration",
        /// A judgement of other work.
        Validation = "validation",
        /// A choice of route.
        Routing = "routing",
    }
}

choices! {
    /// What was not loaded when a plan was made.
    pub enum Sought, "a thing that is looked up" {
        /// A step of the library.
        LibraryStep = "library_step",
        /// A lens.
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
        /// By id.
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
