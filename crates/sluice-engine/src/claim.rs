//! Claiming runs and loading them into memory.
//!
//! INVARIANT: every run that the store assigned to this node is loaded, being
//! loaded, or queued for another attempt. Answers get lost, loads fail, and a run
//! may be assigned again while its earlier task is still ending: any code that
//! finds a run assigned but not loaded calls `retry_load`.

use crate::engine::{Inner, TakeError};
use crate::error::LoadError;
use crate::load::Folded;
use crate::loaded_run::{LoadContext, MAILBOX_MAX, fold};
use crate::mailbox::{Mail, RunHandle};
use crate::turn::TurnInput;
use sluice_core::id::RunId;
use sluice_core::port::store::{Claim, StoreError, Taken};
use sluice_core::run::command::{Command, Dispatching};
use sluice_core::run::state::Run;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Delay before another attempt to load a run, or to write for it.
pub(crate) const RETRY_DELAY_MS: u64 = 500;

/// The handle of a loaded run, and the end of its mailbox that the run reads.
pub(crate) type Mailbox = (RunHandle, mpsc::Receiver<Mail>);

/// Why a run that could not be loaded should be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LoadDemand {
    /// No reason.
    None,
    /// Mail asked for it: the run may be assigned to this node.
    Requested,
    /// The store assigned it to this node in the meantime.
    Assigned,
}

impl Inner {
    /// Loads a run that may be assigned to this node, after a delay.
    pub(crate) fn retry_load(self: &Arc<Self>, run: RunId) {
        let engine = Arc::clone(self);
        self.spawn(async move {
            tokio::time::sleep(Duration::from_millis(RETRY_DELAY_MS)).await;
            // The mail waits in the mailbox of the load: if that fails, `abort_load`
            // finds it there and retries.
            engine.send_mail(run, Mail::Messages).await;
        });
    }

    /// Claims and loads a run unless another node owns it, and sends mail to it.
    pub(crate) async fn ensure_loaded(
        self: &Arc<Self>,
        run: RunId,
        dispatching: Dispatching,
        mut mail: Option<Mail>,
    ) -> Result<(), TakeError> {
        loop {
            if let Some((handle, mailbox)) = self.reserve_mailbox(run)? {
                if let Some(mail) = mail {
                    handle.mailbox.try_send(mail).expect("a new mailbox has room");
                }
                let engine = Arc::clone(self);
                let loading = self.run_to_end(Box::pin(async move {
                    let loaded = engine.claim_and_load(run, dispatching, handle, mailbox).await;
                    loaded.map_err(|(error, mailbox)| {
                        engine.abort_load(run, mailbox, &error);
                        error
                    })
                }));
                return loading.await.unwrap_or(Err(TakeError::Stopping));
            }
            let Some(unsent) = mail else { return Ok(()) };
            mail = match self.mailbox(run) {
                Some(sender) => match sender.send(unsent).await {
                    Ok(()) => return Ok(()),
                    Err(mpsc::error::SendError(back)) => Some(back),
                },
                None => Some(unsent),
            };
            // The run is just leaving memory.
            tokio::task::yield_now().await;
        }
    }

    /// Registers a mailbox for a run; `None` if the run already has one.
    pub(crate) fn reserve_mailbox(&self, run: RunId) -> Result<Option<Mailbox>, TakeError> {
        if self.stop.is_cancelled() {
            return Err(TakeError::Stopping);
        }
        let mut loaded = self.loaded_runs();
        if loaded.contains_key(&run) {
            return Ok(None);
        }
        let (sender, mailbox) = mpsc::channel(MAILBOX_MAX);
        let handle = RunHandle::new(sender);
        loaded.insert(run, handle.clone());
        Ok(Some((handle, mailbox)))
    }

    /// Unregisters an unused mailbox. Dropping its mail closes the reply channels of
    /// waiting callers.
    pub(crate) fn release_mailbox(
        &self,
        run: RunId,
        mut mailbox: mpsc::Receiver<Mail>,
    ) -> LoadDemand {
        self.loaded_runs().remove(&run);
        let mut demand = LoadDemand::None;
        while let Ok(mail) = mailbox.try_recv() {
            demand = demand.max(match mail {
                Mail::Claimed(_) => LoadDemand::Assigned,
                Mail::Messages => LoadDemand::Requested,
                _ => LoadDemand::None,
            });
        }
        demand
    }

    /// Unregisters the mailbox of a failed load, and retries if the run may be assigned
    /// to this node.
    fn abort_load(self: &Arc<Self>, run: RunId, mailbox: mpsc::Receiver<Mail>, error: &TakeError) {
        let demand = self.release_mailbox(run, mailbox);
        tracing::trace!(%run, node = %self.node, %error, ?demand, "run not loaded");
        let retry = match error {
            TakeError::Store(StoreError::Unknown(_)) | TakeError::Load(LoadError::Store(_)) => true,
            TakeError::Store(_) => demand != LoadDemand::None,
            TakeError::Held(_) => demand == LoadDemand::Assigned,
            TakeError::Load(_) | TakeError::Stopping => false,
        };
        if retry {
            self.retry_load(run);
        }
    }

    async fn claim_and_load(
        self: &Arc<Self>,
        run: RunId,
        dispatching: Dispatching,
        handle: RunHandle,
        mailbox: mpsc::Receiver<Mail>,
    ) -> Result<(), (TakeError, mpsc::Receiver<Mail>)> {
        let claimed = async {
            let permit = Arc::clone(&self.room).acquire_owned().await;
            let permit = permit.map_err(|_| TakeError::Stopping)?;
            let epoch = match self.store.take(run, self.node).await? {
                Taken::Done(claim) => claim.epoch,
                Taken::Already(epoch) => epoch,
                Taken::Held(owner) => return Err(TakeError::Held(owner)),
                Taken::NoRun => return Err(LoadError::NoRun(run).into()),
            };
            Ok((epoch, permit, self.load_or_quarantine(run).await?))
        };
        match claimed.await {
            Ok((epoch, permit, folded)) => {
                let first = self.recovery_inputs(&folded.run, dispatching).await;
                let context = LoadContext { epoch, handle, mailbox, permit, dispatching };
                self.spawn_run(folded, context, first);
                Ok(())
            }
            Err(error) => Err((error, mailbox)),
        }
    }

    /// Loads a run that was claimed, with a permit for it.
    pub(crate) async fn load_claimed(self: &Arc<Self>, claim: Claim, permit: OwnedSemaphorePermit) {
        let run = claim.run;
        let Ok(reserved) = self.reserve_mailbox(run) else { return };
        let Some((handle, mailbox)) = reserved else {
            // The run was lost and claimed again before its task ended. The permit is
            // dropped first: a reload takes a permit of its own, perhaps the last one.
            drop(permit);
            let _ = self
                .ensure_loaded(run, Dispatching::Allowed, Some(Mail::Claimed(claim.epoch)))
                .await;
            return;
        };
        match self.load_or_quarantine(run).await {
            Ok(folded) => {
                let dispatching = Dispatching::Allowed;
                let first = self.recovery_inputs(&folded.run, dispatching).await;
                let context =
                    LoadContext { epoch: claim.epoch, handle, mailbox, permit, dispatching };
                self.spawn_run(folded, context, first);
            }
            Err(error) => {
                tracing::warn!(%run, %error, "a claimed run cannot be loaded");
                self.abort_load(run, mailbox, &error.into());
            }
        }
    }

    async fn load_or_quarantine(&self, run: RunId) -> Result<Folded, LoadError> {
        let folded = fold(self, run).await;
        if let Err(LoadError::Poison { reason, .. }) = &folded {
            self.quarantine(run, reason);
        }
        let folded = folded?;
        self.trust.prepare(&*self.store, &folded.run, self.clock.now_ms()).await?;
        Ok(folded)
    }

    /// Stops processes that an earlier owner left running; returns the first inputs.
    async fn recovery_inputs(&self, run: &Run, dispatching: Dispatching) -> Vec<TurnInput> {
        if dispatching == Dispatching::Deferred || !run.has_edge_work() {
            return Vec::new();
        }
        self.stop_survivors(run).await;
        vec![TurnInput::new(Command::TakeOver)]
    }

    pub(crate) async fn stop_survivors(&self, run: &Run) {
        for (agent, process) in run.processes() {
            if let Some(adapter) = self.agents.get(agent) {
                adapter.stop_survivor(process).await;
            }
        }
    }
}
