//! `sluice budgets`.

use super::rows::{self, change, object, patch};
use crate::Exit;
use crate::cli::Reader;
use crate::cli::registry::Budgets;
use crate::cli::rows::{List, One, Rows};
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::money::Money;
use sluice_core::port::ledger::Counter;
use sluice_govern::account;
use sluice_govern::registry::{Envelope, Kind, Row};
use sluice_server::refused::{ROW_UNREADABLE, Refused};
use sluice_server::service::registry;
use sluice_server::service::registry::now_ms;

pub(super) async fn run(command: &Budgets, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Budgets::Rows(Rows::List(args)) => list(args, out).await,
        Budgets::Rows(command) => rows::run(Kind::Envelope, command, out).await,
        Budgets::Reopen(args) => reopen(args, out).await,
    }
}

/// A budget and what was counted in its period.
struct Figures {
    name: String,
    envelope: Envelope,
    held: Money,
    spent: Money,
    over: Money,
}

impl Figures {
    fn reserved(&self) -> Money {
        less(self.held, self.spent)
    }

    fn left(&self) -> Money {
        less(self.envelope.amount_cents, self.held)
    }

    /// Overruns that nobody has accepted close a budget.
    fn is_closed(&self) -> bool {
        self.over > self.envelope.accepted_overrun_cents
    }
}

fn less(from: Money, taken: Money) -> Money {
    Money::from_micro_cents(from.micro_cents().saturating_sub(taken.micro_cents()))
}

/// What was counted in the period of now.
async fn figures(local: &Local, row: &Row) -> anyhow::Result<Figures> {
    let envelope: Envelope = serde_json::from_value(row.body.clone()).map_err(|error| {
        let message = format!("the budget `{}` cannot be read: {error}", row.name);
        Refused::new(ROW_UNREADABLE, message, "set it again")
    })?;
    let account = account::of_envelope(&row.name, envelope.period, now_ms());
    let names = [account::held(&account), account::spent(&account), account::over(&account)];
    let counts = local.store.counts(names.map(Counter::plain).to_vec()).await?;
    let money = |at: usize| {
        let count = counts.get(at).copied().unwrap_or_default();
        Money::from_micro_cents(u64::try_from(count).unwrap_or(0))
    };
    let name = row.name.clone();
    Ok(Figures { name, envelope, held: money(0), spent: money(1), over: money(2) })
}

async fn list(args: &List, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let rows = local.store.registry(None).await?.rows;
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| row.kind == Kind::Envelope) {
        found.push((row, figures(&local, row).await?));
    }
    local.close().await;
    match args.json.reader() {
        Reader::Program => {
            let data: Vec<Value> = found.iter().map(|(row, one)| told(row, one)).collect();
            out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        }
        Reader::Person if found.is_empty() => out.note("no budgets")?,
        Reader::Person => {
            let figures: Vec<Figures> = found.into_iter().map(|(_, figures)| figures).collect();
            out.print(&table(&figures))?;
        }
    }
    Ok(Exit::Done)
}

/// A budget for programs. Amounts are in dollars, as everywhere on a wire.
fn told(row: &Row, figures: &Figures) -> Value {
    let mut told = object(row);
    told["spent"] = figures.spent.to_string().into();
    told["reserved"] = figures.reserved().to_string().into();
    told["left"] = figures.left().to_string().into();
    told["overrun"] = figures.over.to_string().into();
    told["closed"] = figures.is_closed().into();
    told
}

fn table(figures: &[Figures]) -> String {
    let headings = ["NAME", "COUNTS", "PERIOD", "CAP", "SPENT", "RESERVED", "LEFT", ""];
    let mut table = Table::new(&headings);
    for one in figures {
        let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let scope = word(json!(one.envelope.scope));
        let counts = one.envelope.of.as_ref().map_or(scope.clone(), |of| format!("{scope} {of}"));
        let note = match (one.envelope.enabled, one.is_closed()) {
            (false, _) => "off",
            (true, true) => "closed",
            (true, false) => "",
        };
        table.row([
            one.name.clone(),
            counts,
            word(json!(one.envelope.period)),
            format!("${}", one.envelope.amount_cents),
            format!("${}", one.spent),
            format!("${}", one.reserved()),
            format!("${}", one.left()),
            note.to_owned(),
        ]);
    }
    table.draw()
}

/// Accepts the overruns that are booked, so that they close the budget no more.
async fn reopen(args: &One, out: &mut Out) -> anyhow::Result<Exit> {
    let name = args.row.name.as_str();
    let local = Local::look(&args.by.data).await?;
    let there = local.store.registry(None).await?.rows;
    let row = registry::row(&there, Kind::Envelope, name)?;
    let over = figures(&local, row).await?.over;
    local.close().await;
    let wish = patch(Kind::Envelope, name, |body| {
        let mut envelope: Envelope = serde_json::from_value(Value::Object(body.clone()))
            .map_err(|error| Refused::new(ROW_UNREADABLE, error.to_string(), "set it again"))?;
        envelope.accepted_overrun_cents = over;
        if let Value::Object(written) = json!(envelope) {
            *body = written;
        }
        // Nothing accepted is written as nothing, which would be taken for left alone.
        body.entry("accepted_overrun_cents").or_insert(0.into());
        Ok(())
    });
    change(&args.by, &wish, out).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn figures(name: &str, body: Value, [held, spent, over]: [u64; 3]) -> Figures {
        let cents = |cents: u64| Money::from_micro_cents(cents * 1_000_000);
        let envelope = serde_json::from_value(body).unwrap();
        let (held, spent, over) = (cents(held), cents(spent), cents(over));
        Figures { name: name.to_owned(), envelope, held, spent, over }
    }

    #[test]
    fn a_budget_shows_what_is_left_and_whether_it_is_closed() {
        let all = json!({"scope": "global", "period": "daily", "amount_cents": 100});
        let mut off = all.clone();
        off["enabled"] = false.into();
        let mut accepted = all.clone();
        accepted["accepted_overrun_cents"] = 20.into();
        let table = table(&[
            figures("fresh", all.clone(), [0, 0, 0]),
            figures("busy", all.clone(), [70, 40, 0]),
            figures("burst", all, [120, 120, 20]),
            figures("reopened", accepted, [120, 120, 20]),
            figures("asleep", off, [120, 120, 20]),
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
