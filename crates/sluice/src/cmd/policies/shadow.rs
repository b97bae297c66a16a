//! `sluice policies shadow`.

use crate::Exit;
use crate::cli::registry::Shadow;
use crate::cmd::rows::change;
use crate::out::Out;
use serde_json::json;
use sluice_core::rows;
use sluice_govern::registry::{Kind, PolicyFile, PolicySet, Row};
use sluice_server::refused::ServiceResult;
use sluice_server::service::registry::RowChange;
use std::slice;

pub(super) async fn run(args: &Shadow, out: &mut Out) -> anyhow::Result<Exit> {
    let off = args.set == "off";
    let files = if off { Vec::new() } else { crate::policies::read(slice::from_ref(&args.set))? };
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let put: Vec<Row> = files.iter().map(|(name, text)| shadowed(name, text)).collect();
        let old = stored.iter().filter(|row| is_shadow(row));
        let gone = old.filter(|row| rows::find(&put, row.kind, &row.name).is_none());
        let remove = gone.map(|row| (row.kind, row.name.clone())).collect();
        Ok(RowChange { put, remove })
    };
    change(&args.by, &edit, out).await
}

fn shadowed(name: &str, text: &str) -> Row {
    let body = json!({"text": text, "set": PolicySet::Shadow});
    Row { kind: Kind::Policy, name: PolicySet::Shadow.row(name), body }
}

fn is_shadow(row: &Row) -> bool {
    let file = serde_json::from_value::<PolicyFile>(row.body.clone());
    row.kind == Kind::Policy && file.is_ok_and(|file| file.set == PolicySet::Shadow)
}
