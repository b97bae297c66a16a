//! Every code Sluice answers with, and how grave each is.
//!
//! A code is stable: people search for it, programs match on it, and each has a
//! page `docs/errors/CODE.md`. A test walks [`Code::ALL`] and fails for a code
//! without a page.

use std::fmt;

/// What a code's appearance means for the document or the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document never becomes a run.
    Error,
    /// The document is accepted; the author should look.
    Warning,
    /// Found while a run is under way; the step's `on_failure` applies.
    Failure,
}

macro_rules! codes {
    ($($severity:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* })*) => {
        /// A stable, searchable name for one kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($($(#[$doc])* $variant,)*)*
        }

        impl Code {
            /// All codes, in the order they are declared.
            pub const ALL: &'static [Code] = &[$($(Code::$variant,)*)*];

            /// The code as written on every wire.
            pub const fn as_str(self) -> &'static str {
                match self { $($(Code::$variant => $text,)*)* }
            }

            /// How grave the problem is.
            pub const fn severity(self) -> Severity {
                match self { $($(Code::$variant => Severity::$severity,)*)* }
            }
        }
    };
}

codes! {
    Error {
        /// The file is longer than a document may be.
        DocumentTooLarge = "document_too_large",
        /// The file is not UTF-8.
        InvalidEncoding = "invalid_encoding",
        /// The text is neither YAML nor JSON.
        SyntaxError = "syntax_error",
        /// The file holds no document.
        EmptyDocument = "empty_document",
        /// The file holds more than one YAML document.
        MultipleDocuments = "multiple_documents",
        /// Nesting passes the depth bound.
        TooDeep = "too_deep",
        /// The document, its aliases expanded, passes the size bound.
        TooManyNodes = "too_many_nodes",
        /// One map holds the same key twice.
        DuplicateKey = "duplicate_key",
        /// A map key is not text.
        BadKey = "bad_key",
        /// A YAML tag that has no meaning here.
        UnsupportedTag = "unsupported_tag",
        /// A number that JSON and 64 bits cannot hold.
        NumberOutOfRange = "number_out_of_range",
        /// Neither the file's name nor its text says which format it is.
        UnknownFormat = "unknown_format",

        /// A field the format does not have.
        UnknownField = "unknown_field",
        /// A field the format requires is absent.
        MissingField = "missing_field",
        /// A value of another type than the field takes.
        WrongType = "wrong_type",
        /// A value outside what the field takes.
        BadValue = "bad_value",
        /// A name or id that breaks the naming rule.
        BadName = "bad_name",
        /// An id that means something else in expressions.
        ReservedName = "reserved_name",
        /// Two steps share an id.
        DuplicateStepId = "duplicate_step_id",
        /// A name is declared twice in a list.
        DuplicateName = "duplicate_name",
        /// The document has no steps.
        NoSteps = "no_steps",
        /// The document has more steps or edges than are allowed.
        TooManySteps = "too_many_steps",
        /// A duration that cannot be read.
        BadDuration = "bad_duration",
        /// A `stdin`, `from` or `for_each` that does not name a step's value.
        BadReference = "bad_reference",
        /// A field schema that contradicts itself.
        BadSchema = "bad_schema",
        /// A regular expression that cannot be compiled.
        BadPattern = "bad_pattern",
        /// An expression that cannot be parsed.
        BadExpression = "bad_expression",
        /// A template that cannot be parsed.
        BadTemplate = "bad_template",
        /// A reference where the shell would not treat the value as data.
        UnsafeReference = "unsafe_reference",
        /// Two fields of one step exclude each other.
        ConflictingFields = "conflicting_fields",

        /// A reference to a step that does not exist.
        UnknownStep = "unknown_step",
        /// A phase that is not declared.
        UnknownPhase = "unknown_phase",
        /// A role that is not declared.
        UnknownRole = "unknown_role",
        /// A name in an expression that nothing defines.
        UnknownIdentifier = "unknown_identifier",
        /// A workflow the registry does not have.
        UnknownWorkflow = "unknown_workflow",
        /// A library step the registry does not have.
        UnknownLibraryStep = "unknown_library_step",
        /// A lens, or a version of one, that nobody declares.
        UnknownLens = "unknown_lens",
        /// A step loosens what its library step locks.
        LockedField = "locked_field",
        /// A step that needs a command has none.
        MissingCommand = "missing_command",
        /// The steps' dependencies form a cycle.
        CycleDetected = "cycle_detected",

        /// Two lens nodes share an id.
        DuplicateNodeId = "duplicate_node_id",
        /// Two edges share an id.
        DuplicateEdgeId = "duplicate_edge_id",
        /// An edge starts at a node that does not exist.
        OrphanSource = "orphan_source",
        /// An edge ends at a node that does not exist.
        OrphanTarget = "orphan_target",
        /// An edge starts and ends at the same node.
        SelfEdge = "self_edge",
        /// A required placeholder or contract field that nothing binds.
        MissingBinding = "missing_binding",
        /// A routing lens with fewer than two outgoing edges.
        RoutingInsufficientEdges = "routing_insufficient_edges",
        /// A routing lens with an edge that has no `equals` condition.
        RoutingMissingEquals = "routing_missing_equals",
        /// A validation lens that has no failure policy.
        ValidationMissingPolicy = "validation_missing_policy",

        /// A row of a setup names another one that is not there.
        UnknownRow = "unknown_row",
        /// Two rows of a setup claim what only one can have.
        ConflictingRows = "conflicting_rows",
        /// A gateway in this process names a provider that there is not.
        UnknownProvider = "unknown_provider",

        /// The arguments of a run do not fit their declarations.
        InvalidArgs = "invalid_args",
    }
    Warning {
        /// More problems were found than are shown.
        MoreProblems = "more_problems",
        /// An old spelling that is still accepted.
        DeprecatedValue = "deprecated_value",
        /// A field both in `inputs` and in `outputs`.
        InputAlsoOutput = "input_also_output",
        /// A condition or template reads an output that its step does not declare.
        UndeclaredOutput = "undeclared_output",
        /// A command holds what looks like a reference and is left as it is.
        UnexpandedReference = "unexpanded_reference",
        /// A shell command hands a value to a program that reads it as code.
        DataAsCode = "data_as_code",
        /// A step that is meant for a rejected approval and never runs.
        UnreachableRejection = "unreachable_rejection",
        /// An agent of a setup whose work no gateway could do.
        AgentWithoutGateway = "agent_without_gateway",
        /// A declared role that no step uses.
        UnusedRole = "unused_role",
        /// A step without `on_failure` on the only path to a side effect.
        UnprotectedStep = "unprotected_step",
        /// A template reads a name that nothing defines.
        UnknownVariable = "unknown_variable",
        /// A reference that can only be checked with the registry at hand.
        UnresolvedReference = "unresolved_reference",
        /// Two routes of a routing lens share a value.
        RoutingDuplicateRoute = "routing_duplicate_route",
        /// Two sources merged into one object share a label.
        DuplicateMergeLabel = "duplicate_merge_label",
    }
    Failure {
        /// A condition could not be evaluated.
        ConditionError = "condition_error",
        /// A template read a name that has no value.
        UnresolvedVariable = "unresolved_variable",
        /// No member of the team fits the step.
        NoMemberFits = "no_member_fits",
        /// A lens placeholder has no value.
        PlaceholderUnbound = "placeholder_unbound",
        /// The outputs do not fit their declared schema.
        OutputValidationFailed = "output_validation_failed",
        /// A success criterion does not hold.
        SuccessCriteriaFailed = "success_criteria_failed",
        /// A lens node's inputs break its contract.
        InputContractViolation = "input_contract_violation",
        /// A lens node's output breaks its contract.
        OutputContractViolation = "output_contract_violation",
        /// A layer of the prompt asks for what a stricter one forbids.
        LayerContradiction = "layer_contradiction",
        /// The inputs of a step are too large.
        ContextTooLarge = "context_too_large",
        /// What a `for_each` step is to be done for is no list.
        ItemsNotAList = "items_not_a_list",
        /// A `for_each` step has more items than it allows.
        TooManyItems = "too_many_items",
        /// A step that this one depends on failed.
        UpstreamFailure = "upstream_failure",
        /// The run was halted before the step was dispatched.
        RunHalted = "run_halted",
        /// The step was stopped because another one failed.
        ConditionFailed = "condition_failed",
        /// Nothing can go on, and steps remain.
        WorkflowStalled = "workflow_stalled",
        /// A person said no, or no approver answered in time.
        ApprovalRejected = "approval_rejected",
        /// Nobody knows what became of an attempt that must not be repeated.
        UnknownOutcome = "unknown_outcome",
        /// The run of a sub-workflow failed.
        ChildFailed = "child_failed",
        /// Sub-workflows start each other too deeply.
        RecursionTooDeep = "recursion_too_deep",
        /// No agent of that name, or none at all.
        UnknownAgent = "unknown_agent",
        /// The gateway cannot do work.
        GatewayUnreachable = "gateway_unreachable",
        /// The agent may not work.
        AgentDisabled = "agent_disabled",
        /// The agent has as many steps as it may have.
        AgentBusy = "agent_busy",
        /// The agent was sent as much as it may be in its window.
        RateLimited = "rate_limited",
        /// A cap on money would be passed.
        BudgetExceeded = "budget_exceeded",
        /// The agent is not trusted enough for the gateway.
        TrustLevelInsufficient = "trust_level_insufficient",
        /// An input, or the place, is none the role accepts.
        ContextUntrusted = "context_untrusted",
        /// A policy says no, or none says yes.
        PolicyBlocked = "policy_blocked",
        /// The moderator found something, or could not be asked.
        ModerationBlocked = "moderation_blocked",
        /// It took too long.
        Timeout = "timeout",
        /// The provider failed.
        ProviderError = "provider_error",
        /// The provider asked to slow down.
        RateLimit = "rate_limit",
        /// The provider did not accept who we are.
        Auth = "auth",
        /// The provider did not accept what was asked.
        InvalidRequest = "invalid_request",
        /// The provider would not answer that.
        ContentFilter = "content_filter",
        /// The adapter broke, or its process was killed.
        AdapterCrash = "adapter_crash",
        /// It was stopped on demand.
        Cancelled = "cancelled",
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_snake_case() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} is declared twice");
            assert!(text.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()), "{text}");
        }
    }
}
