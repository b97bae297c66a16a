//! Random commands with the same transcript on every store.
//!
//! A command is made from 64 bits. It uses few runs, nodes, keys and counters, so that
//! scripts reach every refusal. Versions and epochs are usually correct and sometimes
//! not.

mod ledger;

use super::inspect::{common, everything};
use super::{Bench, first, guard, hashed, message, node, plain, run, wait};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::Clock as _;
use sluice_core::port::inspect::Stored;
use sluice_core::port::store::{
    Append, Appended, Blob, Claim, Create, Filter, Guard, Head, Key, MailboxMessage, Mailboxes,
    NodeId, Ownership, ReadMessage, Received, Taken,
};
use sluice_core::status::RunStatus;
use std::collections::BTreeMap;

const RUNS: u64 = 4;
const NODES: u64 = 3;

/// Runs the commands and writes down every result, then everything stored.
pub fn transcript(bench: &Bench, commands: &[u64]) -> Vec<String> {
    let mut player = Player { bench, owned: BTreeMap::new(), versions: BTreeMap::new() };
    let mut lines: Vec<String> = commands.iter().map(|bits| player.play(Dice(*bits))).collect();
    lines.extend(stored(bench));
    lines
}

/// Random bits, mixed after each choice.
struct Dice(u64);

impl Dice {
    /// A number below `n`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn run(&mut self) -> RunId {
        run(1 + u128::from(self.roll(RUNS)))
    }

    fn node(&mut self) -> NodeId {
        node(1 + u128::from(self.roll(NODES)))
    }

    /// True once in `n` times.
    fn once_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

/// What a caller of the store would know.
struct Player<'a> {
    bench: &'a Bench,
    owned: BTreeMap<RunId, (NodeId, u64)>,
    versions: BTreeMap<RunId, u64>,
}

impl Player<'_> {
    fn play(&mut self, mut dice: Dice) -> String {
        let bench = self.bench;
        match dice.roll(16) {
            0..=6 => self.append(&mut dice),
            7 => format!("{:?}", bench.post(message(dice.run(), &format!("p{}", dice.roll(3))))),
            8 => {
                let (node, due_by_ms) = (dice.node(), bench.clock.now_ms() + dice.roll(100));
                let limit = place(dice.roll(3));
                let claims = bench.claim(node, due_by_ms, limit);
                claims.iter().for_each(|claim| self.own(node, claim));
                format!("{claims:?}")
            }
            9 => {
                let (run, node) = (dice.run(), dice.node());
                let taken = bench.take(run, node);
                if let Taken::Done(claim) = &taken {
                    self.own(node, claim);
                }
                format!("{taken:?}")
            }
            10 => format!("renew {:?}", bench.renew(dice.node(), dice.roll(80))),
            11 => format!("leave {:?}", bench.leave(dice.node())),
            12 => ledger::change(bench, &mut dice),
            13 => ledger::seal(bench, &mut dice),
            14 => ledger::beside(bench, &mut dice),
            _ => {
                bench.clock.set(bench.clock.now_ms() + dice.roll(60));
                format!("now {}", bench.clock.now_ms())
            }
        }
    }

    fn own(&mut self, node: NodeId, claim: &Claim) {
        self.owned.insert(claim.run, (node, claim.epoch));
    }

    fn append(&mut self, dice: &mut Dice) -> String {
        let run = dice.run();
        let create = dice.once_in(if self.versions.contains_key(&run) { 12 } else { 2 });
        let (node, epoch) = self.owned.get(&run).copied().unwrap_or((node(1), 1));
        let version = self.versions.get(&run).copied().unwrap_or(0);
        let base = if create { created(first(run), dice) } else { plain(run, version) };
        let append = Append {
            node: if dice.once_in(12) { dice.node() } else { node },
            epoch: if create { 1 } else { epoch + u64::from(dice.once_in(12)) },
            after: if dice.once_in(12) { dice.roll(5) } else { base.after },
            count: 1 + u32::try_from(dice.roll(3)).expect("it is small"),
            head: dice.once_in(3).then(|| head(self.bench.clock.now_ms(), dice)),
            snapshot: dice.once_in(6).then(|| vec![7, 7]),
            read: self.read(run, dice),
            messages: if dice.once_in(4) { vec![message(dice.run(), "o")] } else { Vec::new() },
            guards: guards(dice),
            beside: if dice.once_in(4) { b"beside".to_vec() } else { Vec::new() },
            blobs: if dice.once_in(6) { vec![blob()] } else { Vec::new() },
            entries: ledger::entries(dice),
            ..base
        };
        let append = if dice.once_in(4) { append } else { hashed(append) };
        let appended = self.bench.append(append.clone());
        if matches!(appended, Appended::Done { .. }) {
            self.versions.insert(run, append.after + u64::from(append.count));
            self.owned.insert(run, (append.node, append.epoch));
        }
        format!("{run} after {}: {appended:?}", append.after)
    }

    fn read(&self, run: RunId, dice: &mut Dice) -> Vec<ReadMessage> {
        let of = if dice.once_in(8) { Mailboxes::Owner(node(1)) } else { Mailboxes::Run(run) };
        let messages = self.bench.messages(of);
        let wanted = place(dice.roll(3));
        messages.iter().take(wanted).map(Received::as_read).collect()
    }
}

fn created(append: Append, dice: &mut Dice) -> Append {
    let key = dice.once_in(2).then(|| Key {
        key: format!("k{}", dice.roll(2)),
        former: dice.once_in(2).then(|| format!("k{}", dice.roll(2))),
        fingerprint: Hash::of(&[u8::from(dice.once_in(2))]),
        expires_at_ms: 1050,
    });
    let create = append.create.clone().map(|create| Create { key, ..create });
    Append { create, ..append }
}

fn head(now_ms: u64, dice: &mut Dice) -> Head {
    let statuses = [RunStatus::Running, RunStatus::Paused, RunStatus::Completed];
    Head {
        status: statuses[place(dice.roll(3))],
        ended_at_ms: dice.once_in(3).then_some(now_ms),
        due_at_ms: dice.once_in(2).then(|| now_ms + dice.roll(50)),
        asks: false,
        ownership: if dice.once_in(2) { Ownership::Release } else { Ownership::Keep },
    }
}

fn guards(dice: &mut Dice) -> Vec<Guard> {
    let mut guards = Vec::new();
    for _ in 0..dice.roll(3) {
        let delta = i64::try_from(dice.roll(4)).expect("it is small") - 1;
        let max = dice.once_in(2).then_some(4);
        let window_ms = dice.once_in(2).then(|| [7, 60, 300][place(dice.roll(3))]);
        guards.push(Guard { counter: format!("c{}", dice.roll(2)).into(), delta, max, window_ms });
    }
    if dice.once_in(3) {
        guards.push(guard("registry", 0, Some(i64::try_from(dice.roll(6)).expect("it is small"))));
    }
    guards
}

fn blob() -> Blob {
    Blob { hash: Hash::of(b"blob"), body: b"blob".to_vec() }
}

fn place(rolled: u64) -> usize {
    usize::try_from(rolled).expect("it is small")
}

/// Journals, messages, heads, blobs and the ledger.
fn stored(bench: &Bench) -> Vec<String> {
    let mut lines = Vec::new();
    for number in 1..=u128::from(RUNS) {
        lines.push(format!("{:?}", bench.load(run(number))));
        lines.push(format!("{:?}", wait(bench.store.frames(run(number), 0, usize::MAX))));
        lines.push(unread(bench, Mailboxes::Run(run(number))));
    }
    for number in 1..=u128::from(NODES) {
        lines.push(unread(bench, Mailboxes::Owner(node(number))));
    }
    lines.push(format!("{:?}", bench.list(Filter::default())));
    lines.push(format!("{:?}", wait(bench.store.blob(blob().hash))));
    lines.extend(ledger::stored(bench));
    lines.extend(inspected(bench));
    lines
}

/// The report of an inspection, without numbers that a store may choose, and without
/// idempotency keys, which it may delete.
fn inspected(bench: &Bench) -> Vec<String> {
    let mut rows = common(everything(&*bench.store));
    rows.retain(|row| !matches!(row, Stored::Key { .. }));
    for row in &mut rows {
        match row {
            Stored::Message { id: number, .. } | Stored::RememberedOutput { place: number, .. } => {
                *number = 0;
            }
            _ => {}
        }
    }
    rows.iter().map(|row| format!("{row:?}")).collect()
}

/// Messages without their ids, which a store may choose.
fn unread(bench: &Bench, of: Mailboxes) -> String {
    let messages: Vec<MailboxMessage> =
        bench.messages(of).into_iter().map(|one| one.message).collect();
    format!("{messages:?}")
}
