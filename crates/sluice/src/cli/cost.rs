//! The words of `cost`.

use super::Json;
use super::registry::{choice, duration};
use super::run::Data;
use clap::Args;
use sluice_core::cost::{Bucket, By};

#[derive(Debug, Args)]
pub(crate) struct Cost {
    /// Tell rows apart by `agent`, `workflow` or `model`; may be given more than once
    #[arg(long, value_name = "WHAT", value_parser = choice::<By>, value_delimiter = ',')]
    pub(crate) by: Vec<By>,
    /// How much time a row is about: `hour`, `day`, `week` or `month`, in UTC
    #[arg(long, value_name = "SPAN", value_parser = choice::<Bucket>, default_value = "day")]
    pub(crate) bucket: Bucket,
    /// From when on, back from now: `7d`, `12h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "7d")]
    pub(crate) since: u64,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}
