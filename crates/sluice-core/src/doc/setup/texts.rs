//! Texts of rows with rules of their own: URLs, events, secrets and paths.

use crate::code::Code;
use crate::contract::url::is_url;
use crate::diagnostic::Problem;
use crate::doc::read::{DocumentReader, PathPart};
use crate::event_names::NAMES;
use crate::limits::WEBHOOK_EVENTS_MAX;
use crate::node::Node;
use crate::path::Path;
use crate::secret::SecretRef;
use crate::suggest::suggest;
use crate::visible::shorten;
use sluice_govern::registry::Webhook;

/// The syntax of a reference to a secret.
pub(super) const REFERENCE: &str =
    r"^(secret:[A-Za-z0-9_-]{1,64}|env:[A-Za-z_][A-Za-z0-9_]*|file:.*\S.*)$";

/// The names that an outbound webhook can list.
pub(super) fn event_names() -> Vec<&'static str> {
    std::iter::once(Webhook::ALL).chain(NAMES).collect()
}

pub(super) fn gateway_url<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<()> {
    let text = cx.text(node)?;
    if is_url(text) {
        return Some(());
    }
    let message = format!("`{}` is not a valid URL", shorten(text));
    let problem = Problem::new(Code::BadValue, node.span, message);
    cx.add(problem.with_hint("write it like `https://gateway.example:8443`"));
    None
}

pub(super) fn webhook_url<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<()> {
    let text = cx.text(node)?;
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    // The text before an `@` may be a password, so it is not repeated.
    let (message, hint) = if authority.contains('@') {
        (
            "the URL contains a user or password".to_owned(),
            "leave it out; requests are signed with `secret`",
        )
    } else if is_url(text) {
        return Some(());
    } else {
        (
            format!("`{}` is not a valid URL", shorten(text)),
            "write it like `https://example.com/hook`",
        )
    };
    cx.add(Problem::new(Code::BadValue, node.span, message).with_hint(hint));
    None
}

/// The events of an outbound webhook.
pub(super) fn events<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<()> {
    let items = cx.list(node)?;
    for (index, item) in items.iter().enumerate() {
        cx.within(PathPart::Index(index), |cx| event_name(item, cx));
    }
    if !(1..=WEBHOOK_EVENTS_MAX).contains(&items.len()) {
        let message = format!("1 to {WEBHOOK_EVENTS_MAX} events are named, or `*`");
        cx.add(Problem::new(Code::BadValue, node.span, message));
    }
    Some(())
}

fn event_name<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) {
    let Some(text) = cx.text(node) else { return };
    if text == Webhook::ALL || NAMES.contains(&text) {
        return;
    }
    let message = format!("there is no event `{}`", shorten(text));
    let hint = match suggest(text, NAMES.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "docs/guide/webhooks.md lists them; `*` stands for all".to_owned(),
    };
    cx.add(Problem::new(Code::BadValue, node.span, message).with_hint(hint));
}

/// A reference to a secret. An invalid text is not repeated, because it may be the secret
/// itself.
pub(super) fn secret<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<()> {
    if let Err(bad) = cx.text(node)?.parse::<SecretRef>() {
        let problem = Problem::new(Code::BadValue, node.span, bad.to_string());
        let hint = "the operator declares it under `[secrets.NAME]` in sluice.toml";
        cx.add(problem.with_hint(hint));
        return None;
    }
    Some(())
}

/// The path of a value in a request body.
pub(super) fn body_path<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<()> {
    let text = cx.text(node)?;
    if text == "$" {
        return Some(());
    }
    if let Err(fault) = Path::parse(text) {
        let problem = Problem::new(Code::BadReference, node.span, fault.message);
        cx.add(problem.with_hint("write it like `order.items[0].id`, or `$` for the whole body"));
        return None;
    }
    Some(())
}
