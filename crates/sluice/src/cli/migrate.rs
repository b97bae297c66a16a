//! The arguments of `migrate`.

use super::Json;
use crate::config::value::{self, Secret};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Move this data directory, written as `sqlite:DIR`
    #[arg(long, value_name = "sqlite:DIR", value_parser = sqlite)]
    pub(crate) from: PathBuf,
    /// Move into this PostgreSQL database, which holds no tables of Sluice: a URL, or a reference to one, `env:NAME` or `file:PATH`
    #[arg(long, value_name = "URL", value_parser = secret)]
    pub(crate) to: Secret,
    #[command(flatten)]
    pub(crate) json: Json,
}

fn sqlite(text: &str) -> Result<PathBuf, String> {
    match text.strip_prefix("sqlite:") {
        Some(dir) if !dir.is_empty() => Ok(PathBuf::from(dir)),
        _ => Err("expected `sqlite:DIR`".to_owned()),
    }
}

fn secret(text: &str) -> Result<Secret, String> {
    Ok(value::secret(text, Path::new("")))
}
