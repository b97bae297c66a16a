//! The arguments of `cost`.

use super::registry::{choice, duration};
use super::run::CommandTarget;
use clap::Args;
use sluice_core::cost::{Bucket, By};

#[derive(Debug, Args)]
pub(crate) struct Cost {
    /// Group by `agent`, `workflow` or `model`; repeatable
    #[arg(long, value_name = "WHAT", value_parser = choice::<By>, value_delimiter = ',')]
    pub(crate) by: Vec<By>,
    /// Sum per `hour`, `day`, `week` or `month`, in UTC
    #[arg(long, value_name = "SPAN", value_parser = choice::<Bucket>, default_value = "day")]
    pub(crate) bucket: Bucket,
    /// Include this much time before now: `7d`, `12h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "7d")]
    pub(crate) since: u64,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}
