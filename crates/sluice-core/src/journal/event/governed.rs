//! What governance says of a dispatch.

pub use crate::port::decision_record::Record;

use crate::money::Money;
use sluice_govern::decision::Constraints;
use sluice_govern::registry::Price;
use std::sync::Arc;

/// What a dispatch has taken, and what it must keep to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// The agent whose slot it holds.
    pub slot: Option<String>,
    /// What is reserved for it, in each account.
    pub reserved: Money,
    /// The accounts.
    pub accounts: Vec<Account>,
    /// What whoever does it must keep to.
    pub constraints: Constraints,
    /// The model, where the agent's row names it.
    pub model: Option<String>,
    /// Longest answer, where the money bounds it.
    pub max_output_tokens: Option<u64>,
    /// What the model cost when the money was reserved.
    pub price: Option<Price>,
}

/// An account that money was reserved in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: Arc<str>,
    /// The cap on it when the money was reserved.
    pub cap: Money,
}
