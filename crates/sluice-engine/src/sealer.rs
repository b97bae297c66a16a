//! Seals what was written, at most a second after it.
//!
//! Any process with the key may seal; the store takes the next number once, so
//! that of two who seal at the same time one is told to look again. Nothing
//! waits for a seal, and none is made when there is nothing new.

use crate::engine::Inner;
use sluice_core::evidence::key::Signer;
use sluice_core::evidence::seal;
use sluice_core::port::ledger::Sealed;
use sluice_core::port::store::StoreError;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long what was written may wait, with some of the second to spare for sealing.
const SEAL_MS: u64 = 500;
/// Every so many waits the store is looked at, whoever wrote to it.
const WAITS_MAX: u32 = 20;
/// About how many heads one seal covers at most.
const HEADS_MAX: usize = 65_536;
/// How many seals are made in one go: what is left then waits for the next.
const SEALS_MAX: usize = 64;

/// Somebody who is shown every seal made here: its line.
pub type Witness = Arc<dyn Fn(&str) + Send + Sync>;

/// What seals are made with.
#[derive(Clone)]
pub struct Sealer {
    /// Signs them.
    pub signer: Signer,
    /// Is shown them, to keep them elsewhere.
    pub witness: Option<Witness>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("signer", &self.signer).finish_non_exhaustive()
    }
}

impl Inner {
    /// Seals until the engine stops.
    pub(crate) async fn keep_sealing(self: Arc<Self>) {
        let mut waits = WAITS_MAX;
        while !self.stop.is_cancelled() {
            waits += 1;
            if self.grown.swap(false, Ordering::Relaxed) || waits > WAITS_MAX {
                waits = 0;
                if let Err(error) = self.seal().await {
                    tracing::warn!(%error, "nothing can be sealed now");
                    self.grown.store(true, Ordering::Relaxed);
                }
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(Duration::from_millis(SEAL_MS)) => {}
            }
        }
    }

    /// Seals everything there is, as far as the bound allows.
    pub(crate) async fn seal(&self) -> Result<(), StoreError> {
        let Some(sealer) = &self.sealer else { return Ok(()) };
        for _ in 0..SEALS_MAX {
            let unsealed = self.store.unsealed(HEADS_MAX).await?;
            let Some(sealing) = seal::next(&unsealed, self.clock.now_ms(), &sealer.signer) else {
                return Ok(());
            };
            let text = sealing.text.clone();
            // Another process may have sealed first: then there is less to seal.
            if self.store.seal(sealing).await? == Sealed::Done
                && let Some(witness) = &sealer.witness
            {
                witness(&text);
            }
        }
        self.grown.store(true, Ordering::Relaxed);
        Ok(())
    }
}
