//! The allowed changes of a step's status.
//!
//! The fold asserts them, and a test prints them. `awaiting_dependency` is not in the table,
//! because no event sets it: a pending step with open dependencies is shown as such.

use crate::status::StepStatus;

/// Whether an event may change a step from one status to the other.
///
/// INVARIANT: a settled step changes only by invalidation, to pending. A blocked step that
/// waits for an assignment is not settled; the fold knows the difference.
pub const fn allowed(from: StepStatus, to: StepStatus) -> bool {
    use StepStatus as S;
    match from {
        // A result can be carried over from another run.
        S::Pending => {
            matches!(to, S::Queued | S::Completed | S::Failed | S::Skipped | S::Cancelled)
        }
        S::AwaitingDependency => false,
        // An approval step completes without a dispatch.
        S::Queued => !matches!(
            to,
            S::AwaitingDependency | S::Queued | S::Streaming | S::Retrying | S::TimedOut
        ),
        S::AwaitingApproval => matches!(
            to,
            S::Pending | S::Queued | S::Failed | S::Skipped | S::Cancelled | S::TimedOut
        ),
        // After a crash the attempt is sent again, or queued if a gate now refuses it.
        S::Running => !matches!(to, S::AwaitingDependency | S::Blocked),
        S::Streaming => !matches!(to, S::AwaitingDependency | S::Streaming | S::Blocked),
        // A policy may require an approval for a retry, even if the first attempt needed none.
        S::Retrying => !matches!(
            to,
            S::AwaitingDependency | S::Streaming | S::Retrying | S::Completed | S::TimedOut
        ),
        // A blocked step may wait for an assignment.
        S::Blocked => matches!(to, S::Pending | S::Queued | S::Cancelled),
        S::Completed | S::Failed | S::Skipped | S::Cancelled | S::TimedOut => {
            matches!(to, S::Pending)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice as _;
    use expect_test::expect;

    #[test]
    fn the_table_of_step_statuses() {
        let mut table = String::from("| from | to |\n|---|---|\n");
        for (name, from) in StepStatus::WORDS {
            let to = StepStatus::WORDS.iter().filter(|(_, to)| allowed(*from, *to));
            let to: Vec<String> = to.map(|(name, _)| format!("`{name}`")).collect();
            if !to.is_empty() {
                table.push_str(&format!("| `{name}` | {} |\n", to.join(" ")));
            }
        }
        expect![[r#"
            | from | to |
            |---|---|
            | `pending` | `queued` `completed` `failed` `skipped` `cancelled` |
            | `queued` | `pending` `awaiting_approval` `running` `completed` `failed` `skipped` `cancelled` `blocked` |
            | `awaiting_approval` | `pending` `queued` `failed` `skipped` `cancelled` `timed_out` |
            | `running` | `pending` `queued` `awaiting_approval` `running` `streaming` `retrying` `completed` `failed` `skipped` `cancelled` `timed_out` |
            | `streaming` | `pending` `queued` `awaiting_approval` `running` `retrying` `completed` `failed` `skipped` `cancelled` `timed_out` |
            | `retrying` | `pending` `queued` `awaiting_approval` `running` `failed` `skipped` `cancelled` `blocked` |
            | `completed` | `pending` |
            | `failed` | `pending` |
            | `skipped` | `pending` |
            | `cancelled` | `pending` |
            | `timed_out` | `pending` |
            | `blocked` | `pending` `queued` `cancelled` |
        "#]].assert_eq(&table);
    }

    #[test]
    fn what_is_settled_only_goes_back_to_pending() {
        for (_, from) in StepStatus::WORDS.iter().filter(|(_, one)| one.is_settled()) {
            if *from == StepStatus::Blocked {
                continue;
            }
            for (_, to) in StepStatus::WORDS {
                assert_eq!(allowed(*from, *to), *to == StepStatus::Pending, "{from} {to}");
            }
        }
    }
}
