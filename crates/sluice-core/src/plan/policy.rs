//! The words a plan's policies are made of.

use crate::choice::choices;

choices! {
    /// Which kind of document a plan came from.
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
    /// What becomes of a run when a step has failed for good.
    pub enum OnFailure, "a failure policy", old: ["fail" => "halt", "continue" => "skip"] {
        /// Nothing new starts; the run fails.
        Halt = "halt",
        /// The step counts as skipped.
        Skip = "skip",
        /// One more try at once, then halt.
        RetryOnce = "retry_once",
        /// One more try at once, then a person decides.
        RetryOnceThenEscalate = "retry_once_then_escalate",
        /// Up to three more tries after 1, 2 and 4 seconds, then halt.
        Retry = "retry",
    }
}

impl OnFailure {
    /// Whether the policy tries the step again by itself.
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
        /// The step runs with "" for what is missing.
        SubstituteDefault = "substitute_default",
    }
}

choices! {
    /// What a failure does to steps in flight.
    pub enum ParallelFailure, "a parallel failure policy" {
        /// They go on to their end.
        WaitAll = "wait_all",
        /// They are cancelled at once.
        FailFast = "fail_fast",
    }
}

choices! {
    /// Which side of a step is moderated.
    pub enum Moderation, "a moderation" {
        /// Neither.
        Off = "off",
        /// What goes in.
        Input = "input",
        /// What comes out.
        Output = "output",
        /// Both.
        Both = "both",
    }
}

impl Moderation {
    /// Whether this side is moderated.
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
    /// Why an attempt may be tried again.
    pub enum RetryCause, "a cause of retry" {
        /// It took too long.
        Timeout = "timeout",
        /// The provider failed.
        ProviderError = "provider_error",
        /// The provider asked to slow down.
        RateLimit = "rate_limit",
        /// The output broke its contract.
        ContractViolated = "contract_violated",
    }
}

choices! {
    /// What a lens makes or does.
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
        /// A body of findings.
        Research = "research",
        /// A PDF file.
        Pdf = "pdf",
        /// Data, reshaped.
        Transform = "transform",
        /// Other work, coordinated.
        Orchestration = "orchestration",
        /// A verdict on other work.
        Validation = "validation",
        /// A choice of route.
        Routing = "routing",
    }
}

choices! {
    /// What was not at hand when a plan was made.
    pub enum Sought, "a thing that is looked up" {
        /// A step of the library.
        LibraryStep = "library_step",
        /// A lens.
        Lens = "lens",
    }
}

choices! {
    /// What a failed node of a team run does to the others.
    pub enum FailureMode, "a failure mode" {
        /// Its branch fails; the others go on.
        Isolate = "isolate",
        /// The run halts.
        Halt = "halt",
    }
}

choices! {
    /// In which order a team's ready steps are taken.
    pub enum QueueOrder, "a queue order" {
        /// By id.
        Id = "id",
        /// By the lane of whoever does them, then by id.
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
