//! `sluice schedules`.

mod tick;

use super::rows::{all, change, patch, remove, set};
use crate::Exit;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::rows::{ChangeRow, RowsList, RowsShow};
use crate::cli::schedules::{Schedules, Slots};
use crate::out::{Layout, Out};
use crate::registry::load;
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::journal::envelope::timestamp;
use sluice_core::schedule::Timing;
use sluice_core::visible;
use sluice_govern::registry::{Kind, Row, Schedule};
use sluice_server::service::registry;
use sluice_server::service::registry::now_ms;
use sluice_server::service::rows::object;

/// Slots that `show` prints.
const SHOWN: usize = 20;

pub(super) async fn run(command: &Schedules, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Schedules::List(args) => list(args, out).await,
        Schedules::Show(args) => show(args, out).await,
        Schedules::Set(args) => set(Kind::Schedule, args, out).await,
        Schedules::Remove(args) => remove(Kind::Schedule, args, out).await,
        Schedules::Enable(args) => switch(args, Value::Bool(true), out).await,
        Schedules::Disable(args) => switch(args, Value::Bool(false), out).await,
        Schedules::Slots(args) => slots(args, out).await,
        Schedules::Tick(args) => tick::run(args, out).await,
    }
}

async fn switch(args: &ChangeRow, enabled: Value, out: &mut Out) -> anyhow::Result<Exit> {
    let edit = patch(Kind::Schedule, &args.row.name, |body| {
        body.insert("enabled".to_owned(), enabled.clone());
        Ok(())
    });
    change(&args.by, &edit, out).await
}

/// Parses a schedule and its timing.
fn read(row: &Row) -> anyhow::Result<(Schedule, Timing)> {
    let schedule: Schedule = serde_json::from_value(row.body.clone())?;
    let timing = Timing::of(&schedule).map_err(anyhow::Error::msg)?;
    Ok((schedule, timing))
}

fn timing_text(schedule: &Schedule) -> String {
    match (&schedule.cron, &schedule.every) {
        (Some(cron), _) => format!("{cron} ({})", schedule.time_zone),
        (None, Some(Value::String(every))) => format!("every {every}"),
        (None, Some(every)) => format!("every {every}s"),
        (None, None) => String::new(),
    }
}

/// A slot, in the time zone of the schedule.
fn slot_time(slot_ms: u64, schedule: &Schedule) -> String {
    match schedule.cron {
        Some(_) => amount::moment_at(slot_ms, &schedule.time_zone),
        None => amount::moment(slot_ms),
    }
}

async fn list(args: &RowsList, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.target.data).await?;
    let rows: Vec<&Row> = rows.iter().filter(|row| row.kind == Kind::Schedule).collect();
    let mut data = Vec::new();
    let mut table = Table::new(&["NAME", "WORKFLOW", "WHEN", "OVERLAP", "NEXT", ""]);
    for row in &rows {
        let (schedule, timing) = read(row)?;
        let next_ms = timing.next(now_ms()).filter(|_| schedule.enabled);
        let mut fields = object(row);
        fields["next_at"] = next_ms.map(timestamp).into();
        let overlap = fields["overlap"].as_str().unwrap_or_default().to_owned();
        data.push(fields);
        table.row([
            row.name.clone(),
            schedule.workflow.clone(),
            timing_text(&schedule),
            overlap,
            next_ms.map(|ms| slot_time(ms, &schedule)).unwrap_or_default(),
            if schedule.enabled { String::new() } else { "disabled".to_owned() },
        ]);
    }
    match args.target.output() {
        OutputFormat::Json => {
            out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        }
        OutputFormat::Text if rows.is_empty() => out.note("no schedules")?,
        OutputFormat::Text => out.print(&table.draw())?,
    }
    Ok(Exit::Done)
}

async fn show(args: &RowsShow, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let rows = load(&client).await?.rows;
    let row = registry::row(&rows, Kind::Schedule, &args.row.name)?;
    let query = [("limit", SHOWN.to_string())];
    let path = ["schedules", &row.name, "slots"];
    let mut slots: Vec<Value> = client.get(&path, &query).await?.read()?;
    client.close().await;
    for slot in slots.iter_mut().filter_map(Value::as_object_mut) {
        let at = slot.shift_remove("at").unwrap_or_default();
        slot.insert("noted_at".to_owned(), at);
    }
    let (schedule, timing) = read(row)?;
    let next_ms = timing.next(now_ms()).filter(|_| schedule.enabled);
    if args.target.output() == OutputFormat::Json {
        let mut fields = object(row);
        fields["next_at"] = next_ms.map(timestamp).into();
        fields["slots"] = slots.into();
        out.json(Layout::Line, &fields)?;
        return Ok(Exit::Done);
    }
    super::rows::print(row, OutputFormat::Text, out)?;
    let next = next_ms.map_or_else(|| "disabled".to_owned(), |ms| slot_time(ms, &schedule));
    out.print(&format!("  next  {next}\n"))?;
    if slots.is_empty() {
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["SLOT", "FATE", "WHY", "RUN"]);
    for slot in &slots {
        let many = match slot["count"].as_u64().unwrap_or(1) {
            1 => String::new(),
            0 => " and those before".to_owned(),
            count => format!(" and {} before", count - 1),
        };
        let word = |name: &str| slot[name].as_str().unwrap_or_default().to_owned();
        let slot =
            amount::ms(&word("slot_at")).map(|ms| slot_time(ms, &schedule)).unwrap_or_default();
        table.row([slot, format!("{}{many}", word("fate")), word("why"), word("run_id")]);
    }
    out.print(&format!("\n{}", table.draw()))?;
    Ok(Exit::Done)
}

async fn slots(args: &Slots, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.target.data).await?;
    let row = registry::row(&rows, Kind::Schedule, &args.row.name)?;
    let (schedule, timing) = read(row)?;
    let mut at_ms = now_ms();
    let next = std::iter::from_fn(|| {
        at_ms = timing.next(at_ms)?;
        Some((at_ms, timing.is_off(at_ms)))
    });
    let next: Vec<(u64, bool)> = next.take(args.next.into()).collect();
    if args.target.output() == OutputFormat::Json {
        let slot = |(at_ms, off): &(u64, bool)| json!({"slot_at": timestamp(*at_ms), "skipped": off.then_some("date")});
        let data: Vec<Value> = next.iter().map(slot).collect();
        out.json(Layout::Line, &json!({"data": data, "meta": {"enabled": schedule.enabled}}))?;
        return Ok(Exit::Done);
    }
    if !schedule.enabled {
        out.note(&format!("{} is disabled", visible::brief(&row.name)))?;
    }
    for (at_ms, off) in next {
        let why = if off { "  skipped: date" } else { "" };
        out.print(&format!("{}{why}\n", slot_time(at_ms, &schedule)))?;
    }
    Ok(Exit::Done)
}
