//! Every code Sluice answers with, and how grave each is.
//!
//! A code is stable: people search for it, programs match on it, and each has a
//! page `docs/errors/CODE.md`. A test walks [`Code::ALL`] and fails for a code
//! without a page.

use crate::choices::choices;

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
        choices! {
            /// A stable, searchable name for one kind of problem.
            pub enum Code, "a code" { $($($(#[$doc])* $variant = $text,)*)* }
        }

        impl Code {
            /// How grave the problem is.
            pub const fn severity(self) -> Severity {
                match self { $($(Code::$variant => Severity::$severity,)*)* }
            }
        }
    };
}

codes! {
    Error {
        /// The file is too large for a document.
        DocumentTooLarge = "document_too_large",
        /// The file is not UTF-8.
        InvalidEncoding = "invalid_encoding",
        /// The text is neither YAML nor JSON.
        SyntaxError = "syntax_error",
        /// The file is empty.
        EmptyDocument = "empty_document",
        /// The file contains more than one YAML document.
        MultipleDocuments = "multiple_documents",
        /// The document is nested too deeply.
        TooDeep = "too_deep",
        /// The document has too many values, with aliases expanded.
        TooManyNodes = "too_many_nodes",
        /// A map has the same key twice.
        DuplicateKey = "duplicate_key",
        /// A map key is not text.
        BadKey = "bad_key",
        /// A YAML tag that is not supported.
        UnsupportedTag = "unsupported_tag",
        /// A number that does not fit 64 bits.
        NumberOutOfRange = "number_out_of_range",
        /// Neither the file's name nor its text says which format it is.
        UnknownFormat = "unknown_format",

        /// A field the format does not have.
        UnknownField = "unknown_field",
        /// A field the format requires is absent.
        MissingField = "missing_field",
        /// A value of the wrong type.
        WrongType = "wrong_type",
        /// A value that the field does not allow.
        BadValue = "bad_value",
        /// A name or id that breaks the naming rule.
        BadName = "bad_name",
        /// An id that is reserved in expressions.
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
        /// An output endorses labels, but its values could carry any text.
        CannotEndorse = "cannot_endorse",
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
        /// An undefined name in an expression.
        UnknownIdentifier = "unknown_identifier",
        /// A workflow the registry does not have.
        UnknownWorkflow = "unknown_workflow",
        /// A library step the registry does not have.
        UnknownLibraryStep = "unknown_library_step",
        /// A lens, or a version of one, that is not declared.
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

        /// A row of a setup refers to a row that does not exist.
        UnknownRow = "unknown_row",
        /// Two rows of a setup claim something that only one can have.
        ConflictingRows = "conflicting_rows",
        /// A gateway of this process has an unknown provider.
        UnknownProvider = "unknown_provider",

        /// Data can flow where a policy with `@static("error")` does not let it.
        ForbiddenFlow = "forbidden_flow",

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
        /// A command contains text that looks like a reference and is not replaced.
        UnexpandedReference = "unexpanded_reference",
        /// A shell command passes a value to a program that executes it as code.
        DataAsCode = "data_as_code",
        /// A step that is meant for a rejected approval and never runs.
        UnreachableRejection = "unreachable_rejection",
        /// An agent of a setup for which no gateway fits.
        AgentWithoutGateway = "agent_without_gateway",
        /// An agent continues sessions at a gateway that keeps none.
        SessionNotKept = "session_not_kept",
        /// A declared role that no step uses.
        UnusedRole = "unused_role",
        /// A step without `on_failure` on the only path to a side effect.
        UnprotectedStep = "unprotected_step",
        /// An undefined name in a template.
        UnknownVariable = "unknown_variable",
        /// A reference that can be checked only if a registry is loaded.
        UnresolvedReference = "unresolved_reference",
        /// Two routes of a routing lens share a value.
        RoutingDuplicateRoute = "routing_duplicate_route",
        /// A flow label looks like a misspelt one.
        SimilarLabel = "similar_label",
        /// Data can flow where a policy does not let it.
        PossibleFlow = "possible_flow",
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
        /// A layer of the prompt requests something that a stricter one forbids.
        LayerContradiction = "layer_contradiction",
        /// The inputs of a step are too large.
        ContextTooLarge = "context_too_large",
        /// The items of a `for_each` step are not a list.
        ItemsNotAList = "items_not_a_list",
        /// A `for_each` step has more items than it allows.
        TooManyItems = "too_many_items",
        /// A step that this one depends on failed.
        UpstreamFailure = "upstream_failure",
        /// The run was halted before the step was dispatched.
        RunHalted = "run_halted",
        /// The step was stopped because another one failed.
        ConditionFailed = "condition_failed",
        /// No step can continue, although steps remain.
        WorkflowStalled = "workflow_stalled",
        /// An approver rejected it, or no approver decided in time.
        ApprovalRejected = "approval_rejected",
        /// The outcome of an attempt that must not be repeated is unknown.
        UnknownOutcome = "unknown_outcome",
        /// The run of a sub-workflow failed.
        ChildFailed = "child_failed",
        /// Sub-workflows start each other too deeply.
        RecursionTooDeep = "recursion_too_deep",
        /// No agent of that name, or none at all.
        UnknownAgent = "unknown_agent",
        /// The gateway cannot execute steps.
        GatewayUnreachable = "gateway_unreachable",
        /// The agent may not execute steps.
        AgentDisabled = "agent_disabled",
        /// The agent has its maximum number of steps in flight.
        AgentBusy = "agent_busy",
        /// The agent has reached its rate limit.
        RateLimited = "rate_limited",
        /// A budget would be exceeded.
        BudgetExceeded = "budget_exceeded",
        /// The agent is not trusted enough for the gateway.
        TrustLevelInsufficient = "trust_level_insufficient",
        /// The role does not accept an input, or the environment.
        ContextUntrusted = "context_untrusted",
        /// A policy forbids it, or no policy permits it.
        PolicyBlocked = "policy_blocked",
        /// The moderator flagged a text, or could not be reached.
        ModerationBlocked = "moderation_blocked",
        /// The attempt timed out.
        Timeout = "timeout",
        /// The provider failed.
        ProviderError = "provider_error",
        /// The provider limits the rate of requests.
        RateLimit = "rate_limit",
        /// The provider rejected the credentials.
        Auth = "auth",
        /// The provider rejected the request as invalid.
        InvalidRequest = "invalid_request",
        /// The tool was added to a known server, and its definition is not accepted.
        ToolNotAccepted = "tool_not_accepted",
        /// The definition of the tool is not the accepted one.
        ToolDefinitionChanged = "tool_definition_changed",
        /// The provider's content filter rejected the request.
        ContentFilter = "content_filter",
        /// The adapter crashed, or its process was killed.
        AdapterCrash = "adapter_crash",
        /// The step was cancelled.
        Cancelled = "cancelled",
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
