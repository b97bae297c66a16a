//! Writes the rows that belong to runs and frames: snapshots, blobs, messages,
//! provenance edges, remembered outputs, entries.

use super::{DecidedBatch, Pipeline, backwards};
use crate::authentic::bytes;
use crate::postgres::column::{Id, Text, int, sql_limit};
use crate::postgres::entry::{INSERT_ENTRIES, MOVE_CHAINS};
use crate::postgres::remembered_output::PRUNE;
use crate::postgres::session::step;
use sluice_core::limits::REMEMBERED_OUTPUTS_MAX;
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::store::{Blob, NodeId};
use std::collections::{BTreeMap, BTreeSet};

const SNAPSHOTS: &str = "INSERT INTO snapshot (run, version, body, mac)
    SELECT run, version, body, mac FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bytea[])
        AS new (run, version, body, mac)
    ON CONFLICT (run) DO UPDATE SET version = excluded.version, body = excluded.body,
        mac = excluded.mac";
const BLOBS: &str = "INSERT INTO blob (hash, body)
    SELECT hash, body FROM unnest($1::bytea[], $2::bytea[]) AS new (hash, body)
    ON CONFLICT DO NOTHING";
const READ_MESSAGES: &str = "UPDATE letter SET body = NULL, mac = done.mac
    FROM unnest($1::uuid[], $2::bigint[], $3::bytea[]) AS done (run, id, mac)
    WHERE letter.run = done.run AND letter.id = done.id AND letter.body IS NOT NULL";
const PUT_EDGES: &str = "INSERT INTO taking (source, taker, count)
    SELECT source, taker, count FROM unnest($1::uuid[], $2::uuid[], $3::bigint[])
        AS new (source, taker, count)
    ON CONFLICT (source, taker) DO UPDATE SET count = excluded.count";
const DELETE_EDGES: &str = "DELETE FROM taking USING unnest($1::uuid[], $2::uuid[])
        AS old (source, taker)
    WHERE taking.source = old.source AND taking.taker = old.taker";
const REMEMBER_OUTPUTS: &str = "INSERT INTO memo (agent, place, run, at, body, mac)
    SELECT new.agent, position.memos - new.back, new.run, new.at, new.body, new.mac
    FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bytea[], $6::bytea[])
        AS new (agent, back, run, at, body, mac), position WHERE position.one = 1";
const INSERT_MESSAGES: &str = "INSERT INTO letter (run, key, id, body, mac)
    SELECT new.run, new.key, position.letters - new.back, new.body, new.mac
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[])
        AS new (run, key, back, body, mac), position WHERE position.one = 1
    ON CONFLICT DO NOTHING RETURNING run, key";

impl<'a> DecidedBatch<'a> {
    /// Writes the rows of a run that have no position in an order over all runs.
    pub(super) fn run_rows(&self, pipeline: &mut Pipeline<'a>) {
        self.snapshots(pipeline);
        self.read_messages(pipeline);
        self.provenance_edges(pipeline);
        // Sorted by hash, so that two nodes that store the same blobs lock them in one
        // order.
        let blobs = self.done.iter().flat_map(|append| &append.blobs);
        let blobs: BTreeMap<_, &'a Blob> = blobs.map(|blob| (blob.hash, blob)).collect();
        if !blobs.is_empty() {
            step!(
                pipeline,
                BLOBS,
                blobs.keys().map(|hash| hash.0.to_vec()).collect::<Vec<Vec<u8>>>(),
                blobs.values().map(|blob| &blob.body[..]).collect::<Vec<&[u8]>>(),
            );
        }
    }

    fn read_messages(&self, pipeline: &mut Pipeline<'a>) {
        let (mut runs, mut ids, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for (append, macs) in self.done.iter().zip(&self.macs) {
            for (at, message) in append.read.iter().enumerate() {
                runs.push(Id::from(append.run));
                ids.push(int(message.id));
                read.push(macs.read_message(at));
            }
        }
        if !runs.is_empty() {
            step!(pipeline, READ_MESSAGES, runs, ids, read);
        }
    }

    /// Keeps the last snapshot of each run.
    fn snapshots(&self, pipeline: &mut Pipeline<'a>) {
        let mut newest: BTreeMap<Id, (i64, &'a [u8], &'a [u8])> = BTreeMap::new();
        for (append, macs) in self.done.iter().zip(&self.macs) {
            if let Some(state) = &append.snapshot {
                let version = append.after + u64::from(append.count);
                newest.insert(Id::from(append.run), (int(version), state, macs.snapshot()));
            }
        }
        if !newest.is_empty() {
            step!(
                pipeline,
                SNAPSHOTS,
                newest.keys().copied().collect::<Vec<Id>>(),
                newest.values().map(|(version, ..)| *version).collect::<Vec<i64>>(),
                newest.values().map(|(_, state, _)| *state).collect::<Vec<&[u8]>>(),
                newest.values().map(|(.., mac)| *mac).collect::<Vec<&[u8]>>(),
            );
        }
    }

    fn provenance_edges(&self, pipeline: &mut Pipeline<'a>) {
        let mut newest: BTreeMap<(Id, Id), i64> = BTreeMap::new();
        for append in &self.done {
            for edge in &append.provenance_edges {
                let pair = (Id::from(edge.from), Id::from(append.run));
                newest.insert(pair, int(edge.values));
            }
        }
        let (none, some): (Vec<_>, Vec<_>) = newest.into_iter().partition(|(_, count)| *count == 0);
        if !none.is_empty() {
            let (sources, consumers): (Vec<Id>, Vec<Id>) =
                none.iter().map(|(pair, _)| *pair).unzip();
            step!(pipeline, DELETE_EDGES, sources, consumers);
        }
        if !some.is_empty() {
            let (sources, consumers): (Vec<Id>, Vec<Id>) =
                some.iter().map(|(pair, _)| *pair).unzip();
            let counts: Vec<i64> = some.iter().map(|(_, count)| *count).collect();
            step!(pipeline, PUT_EDGES, sources, consumers, counts);
        }
    }

    /// Inserts the entries at their positions.
    pub(super) fn entries(&self, pipeline: &mut Pipeline<'a>) {
        if self.entries.is_empty() {
            return;
        }
        let entries = &self.entries;
        step!(
            pipeline,
            INSERT_ENTRIES,
            entries.iter().map(|link| Id::from(link.writer)).collect::<Vec<Id>>(),
            entries.iter().map(|link| int(link.seq)).collect::<Vec<i64>>(),
            backwards(entries.len()),
            entries.iter().map(|link| link.hash.0.to_vec()).collect::<Vec<Vec<u8>>>(),
            entries.iter().map(|link| link.text.clone()).collect::<Vec<String>>(),
            entries.iter().map(|link| bytes(link.mac.as_ref()).to_vec()).collect::<Vec<Vec<u8>>>(),
        );
    }

    /// Updates the ends of the entry chains.
    pub(super) fn move_chains(&self, pipeline: &mut Pipeline<'a>) {
        let entries = &self.entries;
        if entries.is_empty() {
            return;
        }
        let writers: BTreeSet<NodeId> = entries.iter().map(|link| link.writer).collect();
        let tips = writers.into_iter().filter_map(|writer| {
            let (seq, hash) = self.locked.chains.get(&writer)?;
            Some((Id::from(writer), int(*seq), hash.0.to_vec()))
        });
        let tips: Vec<(Id, i64, Vec<u8>)> = tips.collect();
        step!(
            pipeline,
            MOVE_CHAINS,
            tips.iter().map(|(writer, ..)| *writer).collect::<Vec<Id>>(),
            tips.iter().map(|(_, seq, _)| *seq).collect::<Vec<i64>>(),
            tips.into_iter().map(|(_, _, hash)| hash).collect::<Vec<Vec<u8>>>(),
        );
    }

    /// Inserts remembered outputs and deletes each agent's oldest ones beyond the
    /// limit.
    pub(super) fn remembered_outputs(&self, pipeline: &mut Pipeline<'a>) {
        let appends = self.done.iter().zip(&self.macs);
        let remembered_outputs = appends.flat_map(|(append, macs)| {
            append
                .remembered_outputs
                .iter()
                .enumerate()
                .map(|(at, remembered_output)| (remembered_output, macs.output(at)))
        });
        let (remembered_outputs, macs): (Vec<&'a RememberedOutput>, Vec<&'a [u8]>) =
            remembered_outputs.unzip();
        if remembered_outputs.is_empty() {
            return;
        }
        step!(
            pipeline,
            REMEMBER_OUTPUTS,
            remembered_outputs
                .iter()
                .map(|remembered_output| Text(&remembered_output.agent))
                .collect::<Vec<Text<'a>>>(),
            backwards(remembered_outputs.len()),
            remembered_outputs
                .iter()
                .map(|remembered_output| Id::from(remembered_output.run))
                .collect::<Vec<Id>>(),
            remembered_outputs
                .iter()
                .map(|remembered_output| int(remembered_output.at_ms))
                .collect::<Vec<i64>>(),
            remembered_outputs
                .iter()
                .map(|remembered_output| &remembered_output.body[..])
                .collect::<Vec<&[u8]>>(),
            macs,
        );
        let agents: BTreeSet<&'a str> = remembered_outputs
            .iter()
            .map(|remembered_output| &remembered_output.agent[..])
            .collect();
        let agents: Vec<Text<'a>> = agents.into_iter().map(Text).collect();
        step!(pipeline, PRUNE, agents, sql_limit(REMEMBERED_OUTPUTS_MAX));
    }

    /// Inserts messages. The result lists those with new keys, which were stored.
    pub(super) fn messages(&self, pipeline: &mut Pipeline<'a>) -> Option<usize> {
        let messages = &self.messages;
        (!messages.is_empty()).then(|| {
            step!(
                pipeline,
                INSERT_MESSAGES,
                messages.iter().map(|sent| Id::from(sent.message.run)).collect::<Vec<Id>>(),
                messages.iter().map(|sent| Text(&sent.message.key)).collect::<Vec<Text<'a>>>(),
                backwards(messages.len()),
                messages.iter().map(|sent| &sent.message.body[..]).collect::<Vec<&[u8]>>(),
                messages.iter().map(|sent| sent.mac).collect::<Vec<&[u8]>>(),
            )
        })
    }
}
