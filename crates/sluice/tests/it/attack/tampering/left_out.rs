//! What the tampering suite does not ask for, and why. `docs/guide/evidence.md` has the
//! same list.

use super::act::{Act, Attack, How, Which};

/// An attack that need not be found.
pub(super) struct LeftOut {
    pub(super) table: &'static str,
    /// What of the table, in words.
    pub(super) what: &'static str,
    /// The column; `*` for all columns and rows, nothing for rows.
    column: &'static str,
    /// Which acts.
    only: fn(Act) -> bool,
    reason: &'static str,
}

impl LeftOut {
    pub(super) fn has(&self, attack: &Attack) -> bool {
        self.table == attack.table
            && (self.column == "*" || self.column == attack.column.as_deref().unwrap_or_default())
            && (self.only)(attack.act)
    }

    /// Its row in the guide.
    fn line(&self) -> String {
        format!("| `{}` | {} | {} |", self.table, self.what, self.reason)
    }
}

/// Everything that is left out.
pub(super) const LEFT_OUT: &[LeftOut] = &[
    all("node", "leases say which process may work for how long, not what is done"),
    all("delivery", "it says what was sent to webhooks and how often; the event is in the journal"),
    all("webhook", "it says how far webhooks were sent events; the events are in the journal"),
    all(
        "slice",
        "they limit how often an agent starts a step within its window; money, consent and concurrency do not depend on them, and no journal says when a count left its window",
    ),
    all(
        "window",
        "they limit how often an agent starts a step within its window; money, consent and concurrency do not depend on them, and no journal says when a count left its window",
    ),
    all(
        "agreed",
        "nodes compare it when they start: a changed value stops them, a deleted one is written again",
    ),
    all(
        "migration 0",
        "nodes lock this row while they migrate, and make it again where it is gone",
    ),
    all(
        "transfer",
        "it says how far a move into the database has come; an unfinished one is not opened",
    ),
    LeftOut {
        table: "run",
        what: "`owner`",
        column: "owner",
        only: |_| true,
        reason: "it says which process works on a run, and a claim compares it with the leases",
    },
    LeftOut {
        table: "run",
        what: "`epoch`",
        column: "epoch",
        only: |_| true,
        reason: "it keeps a process that lost a run from writing to it, and says nothing of the run",
    },
    LeftOut {
        table: "run",
        what: "`due_at`, earlier, or of a run that waits for nothing",
        column: "due_at",
        only: is_change,
        reason: "a node that looks too early finds nothing to do; too late is found",
    },
    LeftOut {
        table: "run",
        what: "`asks`, set",
        column: "asks",
        only: |act| is_changed(act, How::Next),
        reason: "a run too many is read for the list of approvals, and shows none; too few is found",
    },
    LeftOut {
        table: "run",
        what: "`initiator`, emptied",
        column: "initiator",
        only: |act| is_changed(act, How::Empty),
        reason: "it is only for lists, and is empty in runs of earlier versions; approvals and policies read the initiator from the journal, which is verified",
    },
    earlier_seal("`frames` of an earlier seal", "frames"),
    earlier_seal("`entries` of an earlier seal", "entries"),
    LeftOut {
        table: "letter",
        what: "the newest one deleted",
        column: "",
        only: |act| act == Act::Delete { row: Which::Last },
        reason: "a command that no run has applied is lost, and nothing follows it that would show that it was there; the run and its caller see that it was not done",
    },
    LeftOut {
        table: "letter",
        what: "one that was read put back unread",
        column: "",
        only: is_roll_back,
        reason: "the run reads it again, decides anew whether it does anything, and the journal says so",
    },
    LeftOut {
        table: "memo",
        what: "`place`",
        column: "place",
        only: |_| true,
        reason: "it is the order in a bounded cache of authentic outputs",
    },
    LeftOut {
        table: "memo",
        what: "rows deleted, or inserted again",
        column: "",
        only: |_| true,
        reason: "it is a bounded cache of authentic outputs, and the oldest go all the time",
    },
    LeftOut {
        table: "slot",
        what: "one without a run deleted",
        column: "",
        only: |act| matches!(act, Act::Delete { .. }),
        reason: "what did not start leaves no trace; a slot that started a run is found",
    },
    LeftOut {
        table: "position",
        what: "`memos`, greater",
        column: "memos",
        only: |act| is_changed(act, How::Next),
        reason: "the newest remembered output may have been erased",
    },
    LeftOut {
        table: "position",
        what: "`letters`, greater",
        column: "letters",
        only: |act| is_changed(act, How::Next),
        reason: "a repeated message is numbered and dropped, so numbers may be left out",
    },
    LeftOut {
        table: "snapshot",
        what: "deleted, or an earlier one of the same run",
        column: "",
        only: |act| matches!(act, Act::Delete { .. }) || is_roll_back(act),
        reason: "what came after it, or all, is read from the journal",
    },
];

const fn all(table: &'static str, reason: &'static str) -> LeftOut {
    LeftOut { table, what: "everything", column: "*", only: |_| true, reason }
}

const fn earlier_seal(what: &'static str, column: &'static str) -> LeftOut {
    let reason = "only the newest seal says where the next one begins, and that one is compared";
    LeftOut { table: "seal", what, column, only: is_change_of_first, reason }
}

fn is_change(act: Act) -> bool {
    matches!(act, Act::Change { .. })
}

fn is_changed(act: Act, wanted: How) -> bool {
    matches!(act, Act::Change { how, .. } if how == wanted)
}

fn is_change_of_first(act: Act) -> bool {
    matches!(act, Act::Change { row: Which::First, .. })
}

fn is_roll_back(act: Act) -> bool {
    matches!(act, Act::RollBack { .. } | Act::RollBackAll)
}

/// Why an attack need not be found.
pub(super) fn of(attack: &Attack) -> Option<&'static LeftOut> {
    LEFT_OUT.iter().find(|one| one.has(attack))
}

#[test]
fn the_guide_lists_what_is_left_out() {
    let page = crate::session::root().join("docs/guide/evidence.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("### What is left out\n").nth(1).expect("the section is missing");
    let section = section.split("\n##").next().unwrap();
    let listed: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = LEFT_OUT.iter().map(LeftOut::line).collect();
    assert_eq!(listed, expected, "the guide should have:\n{}", expected.join("\n"));
}
