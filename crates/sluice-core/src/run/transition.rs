//! Which changes of a step's status are allowed.
//!
//! The fold asserts it, the tests print it. `awaiting_dependency` is not in the
//! table: no event sets it. It is how a pending step with open dependencies is
//! shown.

use super::status::StepStatus;

/// Whether an event may take a step from one status to the other.
///
/// INVARIANT: what is settled changes only by invalidation, back to pending. A
/// block that waits for somebody is not settled; the fold tells the two apart.
pub const fn allowed(from: StepStatus, to: StepStatus) -> bool {
    use StepStatus as S;
    match from {
        // A result can be taken over from another run without any work.
        S::Pending => {
            matches!(to, S::Queued | S::Completed | S::Failed | S::Skipped | S::Cancelled)
        }
        S::AwaitingDependency => false,
        // A grant queues an approval step, which has nothing left to do.
        S::Queued => !matches!(
            to,
            S::AwaitingDependency | S::Queued | S::Streaming | S::Retrying | S::TimedOut
        ),
        S::AwaitingApproval => matches!(
            to,
            S::Pending | S::Queued | S::Failed | S::Skipped | S::Cancelled | S::TimedOut
        ),
        // Sent again after a crash: running once more, whatever had streamed; or
        // queued, if a gate now says no.
        S::Running => !matches!(to, S::AwaitingDependency | S::Blocked),
        S::Streaming => !matches!(to, S::AwaitingDependency | S::Streaming | S::Blocked),
        // A policy may ask about an attempt that no policy asked about before.
        S::Retrying => !matches!(
            to,
            S::AwaitingDependency | S::Streaming | S::Retrying | S::Completed | S::TimedOut
        ),
        // One that waits for somebody is not at its end.
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
