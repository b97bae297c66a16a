//! `sluice audit verify`: verifies a store, a server or packets, and writes nothing. A store is
//! read without an engine, which a damaged store would keep from opening.

use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::audit::Verify;
use crate::client::Client;
use crate::key;
use crate::local;
use crate::out::{Layout, Out};
use anyhow::Context as _;
use serde_json::{Value, json};
use sluice_core::evidence::key::PublicKey;
use sluice_core::evidence::packet::Packet;
use sluice_core::evidence::seal::Seal;
use sluice_core::evidence::verify::Verifier;
use sluice_core::visible;
use sluice_server::refused::{Refused, SEAL_UNREADABLE};
use sluice_server::service::audit::verify;
use sluice_server::service::find;
use std::path::Path;

pub(super) async fn run(args: &Verify, out: &mut Out) -> anyhow::Result<Exit> {
    let kept = read_seals(args)?;
    let mut keys = args.key.clone();
    if keys.is_empty() {
        keys.extend(kept.iter().map(|seal| seal.key));
    }
    if !args.packet.is_empty() {
        return packets(args, &keys, out);
    }
    if let Some(client) = backend::server()? {
        return verify_at_server(&client, args, &kept, out).await;
    }
    local::existing(&args.target.data)?;
    let dir = local::directory(&args.target.data);
    if keys.is_empty() {
        keys.extend(key::public(&dir));
    }
    let store = local::store(&args.target.data)?;
    let mut verifier = Verifier::new(keys);
    let only = match &args.run {
        Some(text) => Some(find::run_in(&*store, text).await?.run),
        None => None,
    };
    if let Some(run) = only {
        verifier = verifier.only(run);
    }
    kept.into_iter().for_each(|seal| verifier.kept(seal));
    let report = verify::read(&*store, verifier).await?;
    print(&verify::object(&report), args.target.output(), out)
}

/// A server uses the keys of its own directory, unless `--key` or `--seal` names others.
async fn verify_at_server(
    client: &Client,
    args: &Verify,
    kept: &[Seal],
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let seals: Vec<String> = kept.iter().map(Seal::text).collect();
    let keys: Vec<String> = args.key.iter().map(ToString::to_string).collect();
    let body = json!({"run": args.run, "seals": seals, "keys": keys});
    let report = client.post(&["audit", "verify"], &body).await?.data;
    print(&report, args.target.output(), out)
}

/// Reads the files of `--seal`.
fn read_seals(args: &Verify) -> anyhow::Result<Vec<Seal>> {
    let mut seals = Vec::new();
    for path in &args.seal {
        let unreadable = |why: String| {
            let message = format!("`{}` does not hold seals: {why}", path.display());
            let remedy = "name a file that `sluice audit seal --out FILE` or `--seal-file` wrote";
            Refused::new(SEAL_UNREADABLE, message, remedy)
        };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        // A torn line is the seal of a process that ended while it wrote it. The store has the
        // seal, and the next one in the file proves it: seals are chained.
        let mut whole =
            text.lines().enumerate().filter(|(_, line)| !Seal::is_torn(line)).peekable();
        if !text.is_empty() && whole.peek().is_none() {
            return Err(unreadable("no line is a whole seal".to_owned()).into());
        }
        for (number, line) in whole {
            let seal = Seal::parse(line);
            let seal =
                seal.ok_or_else(|| unreadable(format!("line {} is not a seal", number + 1)))?;
            seals.push(seal);
        }
    }
    Ok(seals)
}

fn packets(args: &Verify, keys: &[PublicKey], out: &mut Out) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for path in &args.packet {
        let (good, line) = packet(path, keys)?;
        if !good {
            exit = Exit::Failed;
        }
        match args.target.output() {
            OutputFormat::Json => {
                let file = path.display().to_string();
                out.json(Layout::Line, &json!({"packet": file, "ok": good, "detail": line}))?;
            }
            OutputFormat::Text => {
                out.print(&format!("{}: {}\n", path.display(), visible::brief(&line)))?;
            }
        }
    }
    Ok(exit)
}

/// Whether a packet is valid, and why.
fn packet(path: &Path, keys: &[PublicKey]) -> anyhow::Result<(bool, String)> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let packet = match String::from_utf8(text) {
        Ok(text) => Packet::parse(&text),
        Err(_) => return Ok((false, "not a packet: the file is not UTF-8 text".to_owned())),
    };
    let packet = match packet {
        Ok(packet) => packet,
        Err(error) => return Ok((false, error.to_string())),
    };
    Ok(match packet.verify(keys) {
        Err(error) => (false, error.to_string()),
        Ok(lacking) => {
            let (run, events) = (packet.run, packet.events.len());
            let seal = packet.seal.number;
            let key = packet.seal.key;
            let mut line =
                format!("{run}, {events} events, under seal {seal} by {key}: nothing is wrong");
            if !lacking.is_empty() {
                line.push_str(&format!("; it lacks {} policy sets", lacking.len()));
            }
            (true, line)
        }
    })
}

fn print(report: &Value, output: OutputFormat, out: &mut Out) -> anyhow::Result<Exit> {
    match output {
        OutputFormat::Json => out.json(Layout::Line, report)?,
        OutputFormat::Text => out.print(&text(report))?,
    }
    Ok(if report["ok"] == true { Exit::Done } else { Exit::Failed })
}

/// The position of a finding.
fn place(place: &Value) -> String {
    let word = |name: &str| place[name].as_str().unwrap_or_default();
    match (&place["seal"], &place["seq"], &place["event_id"]) {
        _ if place["table"].is_string() => format!("row {} of {}", word("key"), word("table")),
        (Value::Number(seal), ..) => format!("seal {seal}"),
        (_, Value::Number(seq), _) => format!("entry {seq} of {}", word("writer")),
        (.., event) => format!("event {event} of {}", word("run_id")),
    }
}

fn text(report: &Value) -> String {
    let number = |name: &str| report[name].as_u64().unwrap_or(0);
    let mut text = String::new();
    for finding in report["findings"].as_array().into_iter().flatten() {
        let word = |name: &str| finding[name].as_str().unwrap_or_default();
        let place = place(&finding["place"]);
        let line = format!("{place} is {}: {}", word("trouble"), word("detail"));
        text.push_str(&format!("{}\n", visible::brief(&line)));
    }
    if number("more") > 0 {
        text.push_str(&format!("and {} more\n", number("more")));
    }
    let [seals, entries, runs, events] = ["seals", "entries", "runs", "events"].map(number);
    text.push_str(&format!(
        "looked at {seals} seals, {entries} entries, {runs} runs with {events} events"
    ));
    let but = [
        ("erased", "erased as the audit says"),
        ("elided", "elided as the audit says"),
        ("unhashed", "older than hashes"),
    ];
    for (name, how) in but {
        let count = number(name);
        if count > 0 {
            text.push_str(&format!(", {count} of them {how}"));
        }
    }
    if report["ok"] == true {
        text.push_str(": nothing is wrong\n");
        return text;
    }
    text.push_str(&format!("; {} of the runs are whole\n", number("runs_whole")));
    if report["counters_compared"] == false {
        text.push_str(
            "counters were not compared: a run that cannot be read may be part of them\n",
        );
    }
    text
}
