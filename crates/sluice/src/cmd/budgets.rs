//! `sluice budgets`.

use super::rows;
use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::registry::Budgets;
use crate::cli::rows::{ChangeRow, RowCommand, RowsList};
use crate::out::{Layout, Out};
use crate::registry::print;
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::money::Money;
use sluice_govern::registry::Kind;
use sluice_server::service::registry::Mode;

/// Most budgets that are listed.
const ROWS_MAX: usize = 10_000;

pub(super) async fn run(command: &Budgets, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Budgets::RowCommand(RowCommand::List(args)) => list(args, out).await,
        Budgets::RowCommand(command) => rows::run(Kind::Budget, command, out).await,
        Budgets::Reopen(args) => reopen(args, out).await,
    }
}

async fn list(args: &RowsList, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let found = client.list(&["budgets"], ROWS_MAX).await?;
    client.close().await;
    match args.target.output() {
        OutputFormat::Json => {
            out.json(Layout::Line, &json!({"data": found, "meta": {"next_cursor": null}}))?;
        }
        OutputFormat::Text if found.is_empty() => out.note("no budgets")?,
        OutputFormat::Text => out.print(&table(&found))?,
    }
    Ok(Exit::Done)
}

fn table(budgets: &[Value]) -> String {
    let headings = ["NAME", "COUNTS", "PERIOD", "CAP", "SPENT", "RESERVED", "LEFT", ""];
    let mut table = Table::new(&headings);
    for one in budgets {
        let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let counts = match one["of"].as_str() {
            Some(of) => format!("{} {of}", word("scope")),
            None => word("scope"),
        };
        let cap = one["amount_cents"].as_number().and_then(|cap| Money::from_cents(cap).ok());
        // `enabled` is only stored where it is false.
        let note = match (one["enabled"] != false, one["closed"] == true) {
            (false, _) => "off",
            (true, true) => "closed",
            (true, false) => "",
        };
        table.row([
            word("id"),
            counts,
            word("period"),
            format!("${}", cap.unwrap_or(Money::ZERO)),
            format!("${}", word("spent")),
            format!("${}", word("reserved")),
            format!("${}", word("left")),
            note.to_owned(),
        ]);
    }
    table.draw()
}

/// Accepts the overrun of a budget, which then blocks no more.
async fn reopen(args: &ChangeRow, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::write(&args.by.data, &args.by).await?;
    let path = ["budgets", args.row.name.as_str(), "reopen"];
    let changed = client.post(&path, &json!({})).await?.read()?;
    client.close().await;
    print(&changed, Mode::Write, args.by.json.output(), out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use sluice_govern::registry::Row;
    use sluice_server::service::rows::Figures;

    fn shown(name: &str, body: Value, [held, spent, over]: [u64; 3]) -> Value {
        let cents = |cents: u64| Money::from_micro_cents(cents * 1_000_000);
        let budget = serde_json::from_value(body.clone()).unwrap();
        let (held, spent, over) = (cents(held), cents(spent), cents(over));
        let row = Row { kind: Kind::Budget, name: name.to_owned(), body };
        Figures { name: name.to_owned(), budget, held, spent, over }.object(&row)
    }

    #[test]
    fn a_budget_shows_what_is_left_and_whether_it_is_closed() {
        let all = json!({"scope": "global", "period": "daily", "amount_cents": 100});
        let mut off = all.clone();
        off["enabled"] = false.into();
        let mut accepted = all.clone();
        accepted["accepted_overrun_cents"] = 20.into();
        let table = table(&[
            shown("fresh", all.clone(), [0, 0, 0]),
            shown("busy", all.clone(), [70, 40, 0]),
            shown("burst", all, [120, 120, 20]),
            shown("reopened", accepted, [120, 120, 20]),
            shown("asleep", off, [120, 120, 20]),
        ]);
        expect![[r#"
            NAME      COUNTS  PERIOD  CAP    SPENT  RESERVED  LEFT
            fresh     global  daily   $1.00  $0.00  $0.00     $1.00
            busy      global  daily   $1.00  $0.40  $0.30     $0.30
            burst     global  daily   $1.00  $1.20  $0.00     $0.00  closed
            reopened  global  daily   $1.00  $1.20  $0.00     $0.00
            asleep    global  daily   $1.00  $1.20  $0.00     $0.00  off
        "#]]
        .assert_eq(&table);
    }
}
