//! SIGINT and SIGTERM: the first one shuts a command down gracefully, the second one ends the
//! process.
//!
//! A separate thread waits for signals, so that a command that is stuck, for example in an
//! append on a full disk, ends too.
//!
//! INVARIANT: the process ends within `GRACE_MS` of its second signal.

use crate::Exit;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::mpsc;

/// How long a command has after the second signal to kill the processes it started.
const GRACE_MS: u64 = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    /// The exit code of a process that the signal ended.
    pub(crate) fn exit(self) -> Exit {
        match self {
            Signal::Interrupt => Exit::Interrupted,
            Signal::Terminate => Exit::Terminated,
        }
    }
}

/// The signals of this process, in order.
#[derive(Debug)]
pub(crate) struct StopSignals {
    signals: mpsc::UnboundedReceiver<Signal>,
    received: u32,
}

impl StopSignals {
    /// Catches signals from now on.
    pub(crate) fn listen() -> io::Result<StopSignals> {
        let (sender, signals) = mpsc::unbounded_channel();
        let (ready, registered) = std::sync::mpsc::channel();
        let listen = move || match register() {
            Ok((runtime, caught)) => {
                // The command that holds the receiver has not ended.
                let _ = ready.send(Ok(()));
                let last = runtime.block_on(caught.until_second(&sender));
                std::thread::sleep(Duration::from_millis(GRACE_MS));
                std::process::exit(last.exit() as i32);
            }
            Err(error) => drop(ready.send(Err(error))),
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        registered.recv().map_err(io::Error::other)??;
        Ok(StopSignals { signals, received: 0 })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        match self.signals.recv().await {
            Some(signal) => {
                self.received += 1;
                signal
            }
            // The thread has seen two signals and is about to end the process.
            None => std::future::pending().await,
        }
    }

    /// Whether the command must end at once.
    pub(crate) fn is_final(&self) -> bool {
        self.received > 1
    }

    /// Waits for a graceful shutdown, at most until the second signal.
    pub(crate) async fn ending<T>(&mut self, end: impl Future<Output = T>) -> Result<T, Signal> {
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                signal = self.next() => {
                    if self.is_final() {
                        return Err(signal);
                    }
                }
                ended = &mut end => return Ok(ended),
            }
        }
    }
}

struct Caught {
    interrupts: unix::Signal,
    terminations: unix::Signal,
}

/// Catches the signals on a runtime of its own.
fn register() -> io::Result<(tokio::runtime::Runtime, Caught)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let caught = {
        let _within = runtime.enter();
        let interrupts = signal(SignalKind::interrupt())?;
        Caught { interrupts, terminations: signal(SignalKind::terminate())? }
    };
    Ok((runtime, caught))
}

impl Caught {
    /// Forwards signals until the second one.
    async fn until_second(mut self, sender: &mpsc::UnboundedSender<Signal>) -> Signal {
        let mut received = 0;
        loop {
            let signal = tokio::select! {
                _ = self.interrupts.recv() => Signal::Interrupt,
                _ = self.terminations.recv() => Signal::Terminate,
            };
            // A command that has ended has dropped the receiver.
            let _ = sender.send(signal);
            received += 1;
            if received > 1 {
                return signal;
            }
        }
    }
}
