//! Faults, and how often each occurs under one seed.

use crate::random::SeededRandom;
use std::collections::BTreeMap;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    SlowWrite,
    SlowAnswer,
    SlowRead,
    Unavailable,
    UnknownUnwritten,
    UnknownWritten,
    UnknownWrittenLate,
    CrashBeforeAppend,
    CrashAfterAppend,
    CrashAtStop,
    Shutdown,
    LeaseLost,
    ClockForward,
    ClockBackward,
    NoticeLost,
    CallbackLost,
    CallbackTwice,
    CallbackLate,
    CommandTwice,
    StartTwice,
    LetterUnreadable,
}

impl Fault {
    pub(crate) const ALL: [Fault; 21] = [
        Fault::SlowWrite,
        Fault::SlowAnswer,
        Fault::SlowRead,
        Fault::Unavailable,
        Fault::UnknownUnwritten,
        Fault::UnknownWritten,
        Fault::UnknownWrittenLate,
        Fault::CrashBeforeAppend,
        Fault::CrashAfterAppend,
        Fault::CrashAtStop,
        Fault::Shutdown,
        Fault::LeaseLost,
        Fault::ClockForward,
        Fault::ClockBackward,
        Fault::NoticeLost,
        Fault::CallbackLost,
        Fault::CallbackTwice,
        Fault::CallbackLate,
        Fault::CommandTwice,
        Fault::StartTwice,
        Fault::LetterUnreadable,
    ];

    /// Occurrences per thousand calls in a seed that has this fault often.
    fn often(self) -> u64 {
        match self {
            Fault::SlowWrite | Fault::SlowAnswer => 150,
            Fault::SlowRead => 100,
            Fault::Unavailable => 60,
            Fault::UnknownUnwritten | Fault::UnknownWritten | Fault::UnknownWrittenLate => 40,
            Fault::CrashBeforeAppend | Fault::CrashAfterAppend => 25,
            Fault::CrashAtStop => 300,
            Fault::LeaseLost => 200,
            Fault::ClockForward | Fault::ClockBackward | Fault::Shutdown => 300,
            Fault::NoticeLost => 300,
            Fault::CallbackLost => 100,
            Fault::CallbackTwice | Fault::CallbackLate => 200,
            Fault::CommandTwice | Fault::StartTwice => 300,
            Fault::LetterUnreadable => 200,
        }
    }
}

/// Occurrences of each fault per thousand calls.
#[derive(Debug)]
pub(crate) struct Rates(BTreeMap<Fault, u64>);

impl Rates {
    /// Each seed has some faults often, some rarely and some never, so that no fault always
    /// hides another.
    pub(crate) fn of(chance: &mut SeededRandom) -> Rates {
        let rate = |fault: Fault| {
            let rate = match chance.below(4) {
                0 => 0,
                1 => fault.often() / 4,
                _ => fault.often(),
            };
            (fault, rate)
        };
        Rates(Fault::ALL.into_iter().map(rate).collect())
    }

    pub(crate) fn get(&self, fault: Fault) -> u64 {
        self.0[&fault]
    }
}
