//! The second round trip: writes everything that was decided, and commits.

mod run_rows;

use super::WriteOutcome;
use super::batch::LockedRun;
use super::decide::DecidedBatch;
use crate::postgres::column::{CounterText, Id, Text, get, int, text};
use crate::postgres::fault::Fault;
use crate::postgres::session::{Pipeline, Session, step};
use sluice_core::id::RunId;
use sluice_core::port::store::{Create, Posted};
use sluice_core::status::RunStatus;
use std::collections::BTreeSet;
use tokio_postgres::Row;

const CREATE_RUNS: &str = "INSERT INTO run (id, workflow, release, initiator, status, started_at,
        ended_at, parent, fingerprint, owner, epoch, due_at, asks, version)
    SELECT id, workflow, release, initiator, status, started_at, ended_at, parent, fingerprint,
        owner, 1, due_at, asks, version
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[],
        $7::bigint[], $8::uuid[], $9::bytea[], $10::uuid[], $11::bigint[], $12::boolean[],
        $13::bigint[]) AS new (id, workflow, release, initiator, status, started_at, ended_at,
        parent, fingerprint, owner, due_at, asks, version)";
const MOVE_RUNS: &str = "UPDATE run SET version = moved.version
    FROM unnest($1::uuid[], $2::bigint[]) AS moved (id, version) WHERE run.id = moved.id";
const MOVE_HEADS: &str = "UPDATE run SET version = moved.version, status = moved.status,
        ended_at = moved.ended_at, due_at = moved.due_at, asks = moved.asks, owner = moved.owner
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[],
        $7::uuid[]) AS moved (id, version, status, ended_at, due_at, asks, owner)
    WHERE run.id = moved.id";
const NEW_KEYS: &str = "INSERT INTO key (key, run, fingerprint, expires_at, mac)
    SELECT key, run, fingerprint, expires_at, mac
    FROM unnest($1::text[], $2::uuid[], $3::bytea[], $4::bigint[], $5::bytea[])
        AS new (key, run, fingerprint, expires_at, mac)";
const OLD_KEYS: &str = "UPDATE key SET run = new.run, fingerprint = new.fingerprint,
        expires_at = new.expires_at, mac = new.mac
    FROM unnest($1::text[], $2::uuid[], $3::bytea[], $4::bigint[], $5::bytea[])
        AS new (key, run, fingerprint, expires_at, mac) WHERE key.key = new.key";
const COUNT: &str = "UPDATE counter SET count = new.count, slices = new.slices
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[])
        AS new (name, span, count, slices)
    WHERE counter.name = new.name AND counter.span = new.span";
const ADVANCE: &str = "UPDATE position SET frames = frames + $1, entries = entries + $2,
        letters = letters + $3, memos = memos + $4 WHERE one = 1";
/// Advances the positions and inserts frames at the new ones. All nodes wait for this
/// row, so everything that does not depend on it is written before.
const FRAMES: &str = "WITH placed AS (UPDATE position SET frames = frames + $1,
        entries = entries + $2, letters = letters + $3, memos = memos + $4
        WHERE one = 1 RETURNING frames)
    INSERT INTO frame (run, first, count, place, chain, body, beside, mac)
    SELECT new.run, new.first, new.count, placed.frames - new.back, new.chain, new.body, new.beside,
        new.mac
    FROM unnest($5::uuid[], $6::bigint[], $7::integer[], $8::bigint[], $9::bytea[], $10::bytea[],
        $11::bytea[], $12::bytea[])
        AS new (run, first, count, back, chain, body, beside, mac), placed";
/// Makes a run without an owner due if it has unread messages, so that they are not
/// forgotten.
const WAKE: &str = "UPDATE run SET due_at = $2
    WHERE id = ANY($1) AND owner IS NULL AND (due_at IS NULL OR due_at > $2)
    AND EXISTS (SELECT 1 FROM letter WHERE letter.run = run.id AND letter.body IS NOT NULL)";

impl<'a> DecidedBatch<'a> {
    /// Writes and commits. If the database refuses a statement, nothing is written.
    pub(super) async fn write(mut self, session: &Session) -> Result<Vec<WriteOutcome>, Fault> {
        let mut pipeline = Pipeline::default();
        self.runs(&mut pipeline);
        self.keys(&mut pipeline);
        self.counters(&mut pipeline);
        self.run_rows(&mut pipeline);
        self.move_chains(&mut pipeline);
        if self.messages.is_empty() {
            self.wake(&mut pipeline);
        }
        let posted = self.placed(&mut pipeline);
        if !self.messages.is_empty() {
            // Only now are the new messages visible to the statement that wakes their
            // runs.
            self.wake(&mut pipeline);
        }
        step!(pipeline, "COMMIT");
        let answers = session.run(&pipeline).await?;
        drop(pipeline);
        if let Some(at) = posted {
            self.posted(&answers[at])?;
        }
        Ok(self.outcomes)
    }

    fn runs(&self, pipeline: &mut Pipeline<'a>) {
        let known = self.locked.runs.iter().filter_map(|(run, known)| Some((run, known.as_ref()?)));
        let moved: Vec<(&RunId, &LockedRun<'a>)> =
            known.filter(|(_, known)| known.is_moved).collect();
        let created: Vec<(&RunId, &LockedRun<'a>, &'a Create)> =
            moved.iter().filter_map(|(run, known)| Some((*run, *known, known.create?))).collect();
        if !created.is_empty() {
            create_runs(pipeline, &created);
        }
        let moved = moved.into_iter().filter(|(_, known)| known.create.is_none());
        let (heads, plain): (Vec<_>, Vec<_>) = moved.partition(|(_, known)| known.head.is_some());
        if !plain.is_empty() {
            let (ids, versions): (Vec<Id>, Vec<i64>) =
                plain.iter().map(|(run, known)| (Id::from(**run), int(known.version))).unzip();
            step!(pipeline, MOVE_RUNS, ids, versions);
        }
        if !heads.is_empty() {
            move_heads(pipeline, &heads);
        }
    }

    fn keys(&self, pipeline: &mut Pipeline<'a>) {
        for (is_stored, sql) in [(false, NEW_KEYS), (true, OLD_KEYS)] {
            let rows = self.locked.keys.iter().filter_map(|(key, row)| Some((*key, row.as_ref()?)));
            let rows: Vec<_> =
                rows.filter(|(_, row)| row.is_changed && row.is_stored == is_stored).collect();
            if rows.is_empty() {
                continue;
            }
            step!(
                pipeline,
                sql,
                rows.iter().map(|(key, _)| Text(key)).collect::<Vec<Text<'a>>>(),
                rows.iter().map(|(_, row)| Id::from(row.run)).collect::<Vec<Id>>(),
                rows.iter().map(|(_, row)| row.fingerprint.0.to_vec()).collect::<Vec<Vec<u8>>>(),
                rows.iter().map(|(_, row)| int(row.expires_at_ms)).collect::<Vec<i64>>(),
                rows.iter().map(|(_, row)| row.mac.clone()).collect::<Vec<Vec<u8>>>(),
            );
        }
    }

    fn counters(&self, pipeline: &mut Pipeline<'a>) {
        let mut counters = self.locked.counters.sorted();
        counters.retain(|counter| counter.is_changed);
        if counters.is_empty() {
            return;
        }
        step!(
            pipeline,
            COUNT,
            counters
                .iter()
                .map(|counter| CounterText(counter.name))
                .collect::<Vec<CounterText<'a>>>(),
            counters.iter().map(|counter| counter.span).collect::<Vec<i64>>(),
            counters.iter().map(|counter| counter.count).collect::<Vec<i64>>(),
            counters.iter().map(|counter| counter.slices()).collect::<Vec<Option<Vec<u8>>>>(),
        );
    }

    /// Writes everything that has a position in an order over all nodes. Returns the
    /// index of the result that lists the stored messages.
    fn placed(&self, pipeline: &mut Pipeline<'a>) -> Option<usize> {
        let frames: Vec<_> = self.done.iter().filter(|append| append.count > 0).collect();
        let remembered_outputs =
            self.done.iter().map(|append| append.remembered_outputs.len()).sum();
        let counts = [frames.len(), self.entries.len(), self.messages.len(), remembered_outputs];
        if counts == [0; 4] {
            return None;
        }
        let [a, b, c, d] = counts.map(|count| int(count as u64));
        if frames.is_empty() {
            step!(pipeline, ADVANCE, a, b, c, d);
        } else {
            let beside = |bytes: &'a [u8]| (!bytes.is_empty()).then_some(bytes);
            let macs = self.done.iter().zip(&self.macs).filter(|(append, _)| append.count > 0);
            step!(
                pipeline,
                FRAMES,
                a,
                b,
                c,
                d,
                frames.iter().map(|append| Id::from(append.run)).collect::<Vec<Id>>(),
                frames.iter().map(|append| int(append.after) + 1).collect::<Vec<i64>>(),
                frames.iter().map(|append| append.count.cast_signed()).collect::<Vec<i32>>(),
                backwards(frames.len()),
                frames.iter().map(|append| &append.chain[..]).collect::<Vec<&[u8]>>(),
                frames.iter().map(|append| &append.body[..]).collect::<Vec<&[u8]>>(),
                frames.iter().map(|append| beside(&append.beside)).collect::<Vec<Option<&[u8]>>>(),
                macs.map(|(_, macs)| macs.frame()).collect::<Vec<&[u8]>>(),
            );
        }
        self.entries(pipeline);
        self.remembered_outputs(pipeline);
        self.messages(pipeline)
    }

    fn wake(&self, pipeline: &mut Pipeline<'a>) {
        let released = self.done.iter().filter(|append| super::is_released(append));
        let mut runs: BTreeSet<Id> = released.map(|append| Id::from(append.run)).collect();
        runs.extend(self.messages.iter().map(|sent| Id::from(sent.message.run)));
        if !runs.is_empty() {
            step!(pipeline, WAKE, runs.into_iter().collect::<Vec<Id>>(), int(self.now_ms));
        }
    }

    /// Of several messages with the same key, only the first was stored.
    fn posted(&mut self, kept: &[Row]) -> Result<(), Fault> {
        let mut new = BTreeSet::new();
        for row in kept {
            new.insert((get::<Id>(row, 0)?.run(), text(row, 1)?.into_owned()));
        }
        for sent in &self.messages {
            let is_new = new.remove(&(sent.message.run, sent.message.key.clone()));
            if let (true, Some(place)) = (is_new, sent.outcome) {
                self.outcomes[place] = WriteOutcome::Posted(Posted::Done);
            }
        }
        Ok(())
    }
}

/// Distances of `count` positions from the last one.
fn backwards(count: usize) -> Vec<i64> {
    (0..int(count as u64)).rev().collect()
}

fn create_runs<'a>(pipeline: &mut Pipeline<'a>, rows: &[(&RunId, &LockedRun<'a>, &'a Create)]) {
    let status = |known: &LockedRun<'_>| known.head.map_or(RunStatus::Queued, |head| head.status);
    let ended = |known: &LockedRun<'_>| known.head.and_then(|head| head.ended_at_ms).map(int);
    let due = |known: &LockedRun<'_>| known.head.and_then(|head| head.due_at_ms).map(int);
    step!(
        pipeline,
        CREATE_RUNS,
        rows.iter().map(|(run, ..)| Id::from(**run)).collect::<Vec<Id>>(),
        rows.iter().map(|(_, _, create)| Text(&create.workflow)).collect::<Vec<Text<'a>>>(),
        rows.iter().map(|(_, _, create)| create.version.map(int)).collect::<Vec<Option<i64>>>(),
        rows.iter().map(|(_, _, create)| Text(&create.initiator)).collect::<Vec<Text<'a>>>(),
        rows.iter().map(|(_, known, _)| status(known).as_str()).collect::<Vec<&str>>(),
        rows.iter().map(|(_, _, create)| int(create.started_at_ms)).collect::<Vec<i64>>(),
        rows.iter().map(|(_, known, _)| ended(known)).collect::<Vec<Option<i64>>>(),
        rows.iter().map(|(_, _, create)| create.parent.map(Id::from)).collect::<Vec<Option<Id>>>(),
        rows.iter()
            .map(|(_, known, _)| known.fingerprint.map(|hash| hash.0.to_vec()))
            .collect::<Vec<Option<Vec<u8>>>>(),
        rows.iter().map(|(_, known, _)| known.owner.map(Id::from)).collect::<Vec<Option<Id>>>(),
        rows.iter().map(|(_, known, _)| due(known)).collect::<Vec<Option<i64>>>(),
        rows.iter()
            .map(|(_, known, _)| known.head.is_some_and(|head| head.asks))
            .collect::<Vec<bool>>(),
        rows.iter().map(|(_, known, _)| int(known.version)).collect::<Vec<i64>>(),
    );
}

fn move_heads<'a>(pipeline: &mut Pipeline<'a>, rows: &[(&RunId, &LockedRun<'a>)]) {
    let rows: Vec<_> = rows
        .iter()
        .map(|(run, known)| {
            (run, known, known.head.expect("rows without a head were filtered out"))
        })
        .collect();
    step!(
        pipeline,
        MOVE_HEADS,
        rows.iter().map(|(run, ..)| Id::from(***run)).collect::<Vec<Id>>(),
        rows.iter().map(|(_, known, _)| int(known.version)).collect::<Vec<i64>>(),
        rows.iter().map(|(_, _, head)| head.status.as_str()).collect::<Vec<&str>>(),
        rows.iter().map(|(_, _, head)| head.ended_at_ms.map(int)).collect::<Vec<Option<i64>>>(),
        rows.iter().map(|(_, _, head)| head.due_at_ms.map(int)).collect::<Vec<Option<i64>>>(),
        rows.iter().map(|(_, _, head)| head.asks).collect::<Vec<bool>>(),
        rows.iter().map(|(_, known, _)| known.owner.map(Id::from)).collect::<Vec<Option<Id>>>(),
    );
}
