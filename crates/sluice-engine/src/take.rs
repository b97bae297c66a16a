//! How runs come into memory, and what becomes of those that do not.
//!
//! INVARIANT: a run that the store has given to this process is in memory here,
//! on its way there, or insisted on. Answers get lost, loads fail, a run may be
//! given to us again while its earlier stay is still ending: whoever finds that
//! a run may be ours and is not here sees to it that it is tried again.

use crate::engine::{Inner, TakeError};
use crate::error::LoadError;
use crate::load::Folded;
use crate::mail::Mail;
use crate::resident::{MAILBOX_MAX, Seat, fold};
use crate::turn::Input;
use sluice_core::port::store::{Claim, StoreError, Taken};
use sluice_core::run::command::{Command, Dispatching};
use sluice_core::run::id::RunId;
use sluice_core::run::state::Run;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// How long to wait before a run that is ours is tried again.
pub(crate) const AGAIN_MS: u64 = 500;

/// Both ends of a run's mailbox.
pub(crate) type Mailbox = (mpsc::Sender<Mail>, mpsc::Receiver<Mail>);

/// Whether a run is wanted here that found no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wanted {
    /// By nobody.
    No,
    /// By somebody who believes that it may be ours.
    Here,
    /// By the store: it was given to us meanwhile.
    Ours,
}

impl Inner {
    /// Takes up a run that may be ours already, however often that takes.
    pub(crate) fn insist(self: &Arc<Self>, run: RunId) {
        let engine = Arc::clone(self);
        self.spawn(async move {
            tokio::time::sleep(Duration::from_millis(AGAIN_MS)).await;
            // The mail goes with the place it waits in: whoever fails to take the
            // run up finds it there and insists again.
            engine.mail(run, Mail::Letters).await;
        });
    }

    /// Brings a run into memory, if no other process owns it, and mail to it.
    pub(crate) async fn reach(
        self: &Arc<Self>,
        run: RunId,
        dispatching: Dispatching,
        mut mail: Option<Mail>,
    ) -> Result<(), TakeError> {
        loop {
            if let Some((sender, mailbox)) = self.reserve(run)? {
                if let Some(mail) = mail {
                    sender.try_send(mail).expect("a new mailbox has room");
                }
                let engine = Arc::clone(self);
                let taken = self.finish(async move {
                    let taken = engine.take(run, dispatching, sender, mailbox).await;
                    taken.map_err(|(error, mailbox)| {
                        engine.vacate(run, mailbox, &error);
                        error
                    })
                });
                return taken.await.unwrap_or(Err(TakeError::Stopping));
            }
            let Some(unsent) = mail else { return Ok(()) };
            let sender = self.residents().get(&run).cloned();
            mail = match sender {
                Some(sender) => match sender.send(unsent).await {
                    Ok(()) => return Ok(()),
                    Err(mpsc::error::SendError(back)) => Some(back),
                },
                None => Some(unsent),
            };
            // It is just leaving memory.
            tokio::task::yield_now().await;
        }
    }

    /// A place in memory for a run; none if it has one.
    pub(crate) fn reserve(&self, run: RunId) -> Result<Option<Mailbox>, TakeError> {
        if self.stop.is_cancelled() {
            return Err(TakeError::Stopping);
        }
        let mut residents = self.residents();
        if residents.contains_key(&run) {
            return Ok(None);
        }
        let (sender, mailbox) = mpsc::channel(MAILBOX_MAX);
        residents.insert(run, sender.clone());
        Ok(Some((sender, mailbox)))
    }

    /// Gives a place in memory back that was not used. Whoever waits for an
    /// answer from there is told by its being dropped.
    pub(crate) fn unreserve(&self, run: RunId, mut mailbox: mpsc::Receiver<Mail>) -> Wanted {
        self.residents().remove(&run);
        let mut wanted = Wanted::No;
        while let Ok(mail) = mailbox.try_recv() {
            wanted = wanted.max(match mail {
                Mail::Claimed(_) => Wanted::Ours,
                Mail::Letters => Wanted::Here,
                _ => Wanted::No,
            });
        }
        wanted
    }

    /// Gives a place in memory back because the run could not be taken up.
    fn vacate(self: &Arc<Self>, run: RunId, mailbox: mpsc::Receiver<Mail>, error: &TakeError) {
        let wanted = self.unreserve(run, mailbox);
        tracing::trace!(%run, node = %self.node, %error, ?wanted, "is not taken up");
        let insist = match error {
            TakeError::Store(StoreError::Unknown(_)) | TakeError::Load(LoadError::Store(_)) => true,
            TakeError::Store(_) => wanted != Wanted::No,
            TakeError::Held(_) => wanted == Wanted::Ours,
            TakeError::Load(_) | TakeError::Stopping => false,
        };
        if insist {
            self.insist(run);
        }
    }

    async fn take(
        self: &Arc<Self>,
        run: RunId,
        dispatching: Dispatching,
        sender: mpsc::Sender<Mail>,
        mailbox: mpsc::Receiver<Mail>,
    ) -> Result<(), (TakeError, mpsc::Receiver<Mail>)> {
        let taken = async {
            let permit = Arc::clone(&self.room).acquire_owned().await;
            let permit = permit.map_err(|_| TakeError::Stopping)?;
            let epoch = match self.store.take(run, self.node).await? {
                Taken::Done(claim) => claim.epoch,
                Taken::Already(epoch) => epoch,
                Taken::Held(owner) => return Err(TakeError::Held(owner)),
                Taken::NoRun => return Err(LoadError::NoRun(run).into()),
            };
            Ok((epoch, permit, self.fold_or_quarantine(run).await?))
        };
        match taken.await {
            Ok((epoch, permit, folded)) => {
                let first = self.look_after(&folded.run, dispatching).await;
                let seat = Seat { epoch, sender, mailbox, permit, dispatching };
                self.seat(folded, seat, first);
                Ok(())
            }
            Err(error) => Err((error, mailbox)),
        }
    }

    /// Takes up a run that was claimed, with a place for it.
    pub(crate) async fn take_claimed(self: &Arc<Self>, claim: Claim, permit: OwnedSemaphorePermit) {
        let run = claim.run;
        let Ok(reserved) = self.reserve(run) else { return };
        let Some((sender, mailbox)) = reserved else {
            // It was lost, came back, and is still here as it was. If it leaves
            // just now it takes a place of its own, which might be this one.
            drop(permit);
            let _ = self.reach(run, Dispatching::Allowed, Some(Mail::Claimed(claim.epoch))).await;
            return;
        };
        match self.fold_or_quarantine(run).await {
            Ok(folded) => {
                let dispatching = Dispatching::Allowed;
                let first = self.look_after(&folded.run, dispatching).await;
                let seat = Seat { epoch: claim.epoch, sender, mailbox, permit, dispatching };
                self.seat(folded, seat, first);
            }
            Err(error) => {
                tracing::warn!(%run, %error, "a claimed run cannot be loaded");
                self.vacate(run, mailbox, &error.into());
            }
        }
    }

    async fn fold_or_quarantine(&self, run: RunId) -> Result<Folded, LoadError> {
        let folded = fold(self, run).await;
        if let Err(LoadError::Poison { reason, .. }) = &folded {
            self.quarantine(run, reason);
        }
        let folded = folded?;
        self.trust.prepare(&*self.store, &folded.run, self.clock.now_ms()).await?;
        Ok(folded)
    }

    /// Stops whatever an earlier owner left running, and says what follows.
    async fn look_after(&self, run: &Run, dispatching: Dispatching) -> Vec<Input> {
        if dispatching == Dispatching::Deferred || !run.has_edge_work() {
            return Vec::new();
        }
        self.stop_survivors(run).await;
        vec![Input::new(Command::TakeOver)]
    }

    pub(crate) async fn stop_survivors(&self, run: &Run) {
        for (agent, process) in run.processes() {
            if let Some(adapter) = self.agents.get(agent) {
                adapter.stop_survivor(process).await;
            }
        }
    }
}
