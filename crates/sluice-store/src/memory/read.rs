//! Read-only queries.

use super::{MemoryState, Record};
use crate::limits::MESSAGES_MAX;
use crate::text;
use sluice_core::id::RunId;
use sluice_core::port::store::{Filter, Frame, Loaded, Mailboxes, Received, RunRow};

impl MemoryState {
    pub(super) fn load(&self, run: RunId) -> Option<Loaded> {
        let record = self.runs.get(&run)?;
        let snapshot = record.snapshot.clone();
        let after = snapshot.as_ref().map_or(0, |(version, _)| *version);
        let bare = |frame: &Frame| Frame { beside: Vec::new(), ..frame.clone() };
        let frames = record.frames.iter().filter(|frame| frame.first > after).map(bare).collect();
        Some(Loaded { snapshot, frames, has_foreign_snapshot: false })
    }

    pub(super) fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Vec<Frame> {
        let frames = self.runs.get(&run).map_or(&[][..], |record| &record.frames);
        let tail = frames.iter().filter(|f| f.first + u64::from(f.count) > after.saturating_add(1));
        let mut page: Vec<Frame> = Vec::new();
        let mut bytes = 0;
        for frame in tail {
            bytes += frame.body.len() + frame.beside.len();
            if bytes > bytes_max && !page.is_empty() {
                break;
            }
            page.push(frame.clone());
        }
        page
    }

    pub(super) fn unread(&self, of: Mailboxes) -> Vec<Received> {
        let addressed = |run: RunId| match of {
            Mailboxes::Run(one) => run == one,
            Mailboxes::Owner(node) => self.runs.get(&run).is_some_and(|r| r.owner == Some(node)),
        };
        let unread = self.messages.iter().filter(|(_, message)| addressed(message.run));
        let received = |(id, message): (&u64, &_)| {
            let (message, is_authentic) = (Clone::clone(message), true);
            Received { id: *id, message, is_authentic }
        };
        unread.take(MESSAGES_MAX).map(received).collect()
    }

    pub(super) fn list(&self, filter: &Filter, now_ms: u64) -> Vec<RunRow> {
        let shown = |(run, record): &(&RunId, &Record)| {
            filter.run.is_none_or(|only| only == **run)
                && filter.before.is_none_or(|before| **run < before)
                && (filter.statuses.is_empty() || filter.statuses.contains(&record.status))
                && filter.workflow.as_ref().is_none_or(|name| *name == record.workflow)
                && filter.parent.is_none_or(|parent| record.parent == Some(parent))
                && filter.initiator.as_ref().is_none_or(|name| *name == record.initiator)
                && filter.since_ms.is_none_or(|since_ms| since_ms <= record.started_at_ms)
                && filter.until_ms.is_none_or(|until_ms| until_ms > record.started_at_ms)
                && (!filter.asking || record.asks)
                && filter.text.as_ref().is_none_or(|text| record.matches_text(**run, text))
        };
        let rows = self.runs.iter().rev().filter(shown).take(crate::page(filter.limit));
        rows.map(|(run, record)| self.row(*run, record, now_ms)).collect()
    }

    fn row(&self, run: RunId, record: &Record, now_ms: u64) -> RunRow {
        RunRow {
            run,
            workflow: record.workflow.clone(),
            version: record.workflow_version,
            initiator: record.initiator.clone(),
            status: record.status,
            started_at_ms: record.started_at_ms,
            ended_at_ms: record.ended_at_ms,
            parent: record.parent,
            owner: record.owner.filter(|owner| self.is_live(*owner, now_ms)),
            due_at_ms: record.due_at_ms,
        }
    }
}

impl Record {
    /// Whether the id, workflow or initiator contains a text.
    fn matches_text(&self, run: RunId, text: &str) -> bool {
        let ids = text::ids_beginning(text);
        text::is_in(text, &self.workflow)
            || text::is_in(text, &self.initiator)
            || ids.is_some_and(|(least, most)| (least..=most).contains(&run))
    }
}
