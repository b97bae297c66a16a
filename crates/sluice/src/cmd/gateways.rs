//! `sluice gateways`.

mod check;

use super::rows::{change, patch, run as rows};
use crate::Exit;
use crate::cli::Reader;
use crate::cli::registry::{Gateways, Which};
use crate::cli::rows::One;
use crate::desk;
use crate::local::{self, Local};
use crate::out::{Layout, Out};
use serde_json::json;
use sluice_core::port::Entropy as _;
use sluice_core::port::store::Hash;
use sluice_core::visible;
use sluice_engine::world::SystemEntropy;
use sluice_govern::registry::{Kind, Row};
use sluice_server::refused::Done;
use sluice_server::service::registry;
use sluice_server::service::registry::{Asked, Author, Mode, Outcome};

/// The only name of a switch.
const ALL: &str = "all";

/// Whether something is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Paused,
    Open,
}

pub(super) async fn run(command: &Gateways, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Gateways::Rows(command) => rows(Kind::Gateway, command, out).await,
        Gateways::Pause(args) => turn(args, State::Paused, out).await,
        Gateways::Resume(args) => turn(args, State::Open, out).await,
        Gateways::Token(args) => token(args, out).await,
        Gateways::Check(args) => check::run(args, out).await,
    }
}

async fn turn(args: &Which, state: State, out: &mut Out) -> anyhow::Result<Exit> {
    let paused = state == State::Paused;
    let Some(name) = &args.name else {
        let wish = |_: &[Row]| -> Done<Asked> {
            let body = json!({"held": paused});
            let switch = Row { kind: Kind::Switch, name: ALL.to_owned(), body };
            Ok(Asked { put: vec![switch], remove: Vec::new() })
        };
        return change(&args.by, &wish, out).await;
    };
    let wish = patch(Kind::Gateway, name, |body| {
        body.insert("paused".to_owned(), paused.into());
        Ok(())
    });
    change(&args.by, &wish, out).await
}

/// Makes a token, keeps its hash and shows it this once.
async fn token(args: &One, out: &mut Out) -> anyhow::Result<Exit> {
    let name = args.row.name.as_str();
    if let Some(client) = desk::server_for(&args.by.data)? {
        desk::by_token(&args.by.name)?;
        desk::without_glass(&args.by.glass)?;
        let made = client.post(&["gateways", name, "token"], &json!({})).await?.data;
        return show(name, made["token"].as_str().unwrap_or_default(), args, out);
    }
    let secret: String = (0..4).map(|_| format!("{:016x}", SystemEntropy.bits())).collect();
    let token = format!("gwt_{secret}");
    let hash = Hash::of(token.as_bytes()).to_string();
    let wish = patch(Kind::Gateway, name, |body| {
        body.insert("token_sha256".to_owned(), hash.clone().into());
        Ok(())
    });
    let local = Local::look(&args.by.data).await?;
    let who = local::who(&args.by.name);
    let author = Author { name: &who, break_glass: args.by.glass.reason.as_deref() };
    let changed = registry::change(&local, author, Mode::Write, &wish).await;
    local.close().await;
    let reader = args.by.json.reader();
    let changed = changed?;
    if matches!(changed, Outcome::Refused(_)) {
        return crate::registry::tell(&changed, reader, out);
    }
    show(name, &token, args, out)
}

fn show(name: &str, token: &str, args: &One, out: &mut Out) -> anyhow::Result<Exit> {
    match args.by.json.reader() {
        Reader::Program => out.json(Layout::Line, &json!({"gateway": name, "token": token}))?,
        Reader::Person => {
            out.print(&format!("{}\n", visible::brief(token)))?;
            out.note("this is shown once; only its SHA-256 is kept")?;
        }
    }
    Ok(Exit::Done)
}
