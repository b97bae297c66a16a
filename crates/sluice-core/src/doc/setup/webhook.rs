//! The format of outbound and inbound webhooks in a setup.

use crate::code::Code;
use crate::contract::url::is_url;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::read::{DocumentReader, Read, document};
use crate::doc::schema::Defs;
use crate::event_names::NAMES;
use crate::limits::WEBHOOK_EVENTS_MAX;
use crate::node::Node;
use crate::path::Path;
use crate::secret::SecretRef;
use crate::suggest::suggest;
use crate::visible::shorten;
use serde_json::{Value, json};
use sluice_govern::registry::Webhook;

document! {
    /// An outbound webhook: a URL that events are sent to.
    pub(crate) struct WebhookDoc {
        /// The URL that events are sent to, `https` or `http`.
        required "url" url: Target,
        /// The events to send: names, or `*` for all but `node.stream.delta`.
        required "events" events: Events,
        /// Sends events of these workflows only; by default of all.
        optional "workflows" workflows: Vec<String>,
        /// The signing secret: `secret:NAME`; `env:NAME` or `file:PATH` in the
        /// operator's own rows.
        required "secret" secret: Reference,
        /// Whether events are sent; unchanged if not set.
        optional "enabled" enabled: bool,
    }
}

document! {
    /// An inbound webhook that starts runs of one workflow.
    pub(crate) struct HookDoc {
        /// A workflow of the registry: its name, or `name@version`.
        required "workflow" workflow: String,
        /// The secret that requests are signed with: `secret:NAME`; `env:NAME` or
        /// `file:PATH` in the operator's own rows.
        required "secret" secret: Reference,
        /// The arguments of the run: by name, the path of a value in the request body
        /// (`order.items[0]`), or `$` for the whole body.
        optional "args" args: Table<BodyPath>,
        /// Whether requests are accepted; unchanged if not set.
        optional "enabled" enabled: bool,
    }
}

/// The URL of an outbound webhook.
#[derive(Debug, Clone)]
pub(crate) struct Target;

impl Read for Target {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Target> {
        let text = cx.text(node)?;
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        if is_url(text) && !authority.contains('@') {
            return Some(Target);
        }
        // The text before an `@` may be a password, so it is not repeated.
        let (message, hint) = if authority.contains('@') {
            (
                "the URL contains a user or password".to_owned(),
                "leave it out; requests are signed with `secret`",
            )
        } else {
            (
                format!("`{}` is not a valid URL", shorten(text)),
                "write it like `https://example.com/hook`",
            )
        };
        cx.add(Problem::new(Code::BadValue, node.span, message).with_hint(hint));
        None
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "string", "format": "uri" })
    }
}

/// The events of an outbound webhook.
#[derive(Debug, Clone)]
pub(crate) struct Events;

impl Read for Events {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Events> {
        let names = Vec::<EventName>::read(node, cx)?;
        if node.item(0).is_none() || names.len() > WEBHOOK_EVENTS_MAX {
            let message = format!("1 to {WEBHOOK_EVENTS_MAX} events are named, or `*`");
            cx.add(Problem::new(Code::BadValue, node.span, message));
        }
        Some(Events)
    }

    fn schema(defs: &mut Defs) -> Value {
        Vec::<EventName>::schema(defs)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct EventName;

impl Read for EventName {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<EventName> {
        let text = cx.text(node)?;
        if text == Webhook::ALL || NAMES.contains(&text) {
            return Some(EventName);
        }
        let message = format!("there is no event `{}`", shorten(text));
        let hint = match suggest(text, NAMES.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "docs/guide/webhooks.md lists them; `*` stands for all".to_owned(),
        };
        cx.add(Problem::new(Code::BadValue, node.span, message).with_hint(hint));
        None
    }

    fn schema(_: &mut Defs) -> Value {
        let names: Vec<&str> = std::iter::once(Webhook::ALL).chain(NAMES).collect();
        json!({ "enum": names })
    }
}

/// A reference to a secret. An invalid text is not repeated, because it may be the secret
/// itself.
#[derive(Debug, Clone)]
pub(crate) struct Reference;

impl Read for Reference {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Reference> {
        if let Err(bad) = cx.text(node)?.parse::<SecretRef>() {
            let problem = Problem::new(Code::BadValue, node.span, bad.to_string());
            let hint = "the operator declares it under `[secrets.NAME]` in sluice.toml";
            cx.add(problem.with_hint(hint));
            return None;
        }
        Some(Reference)
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "string", "pattern": REFERENCE })
    }
}

/// The syntax of a reference to a secret.
const REFERENCE: &str = r"^(secret:[A-Za-z0-9_-]{1,64}|env:[A-Za-z_][A-Za-z0-9_]*|file:.*\S.*)$";

/// The path of a value in a request body.
#[derive(Debug, Clone)]
pub(crate) struct BodyPath;

impl Read for BodyPath {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<BodyPath> {
        let text = cx.text(node)?;
        if text == "$" {
            return Some(BodyPath);
        }
        if let Err(fault) = Path::parse(text) {
            let problem = Problem::new(Code::BadReference, node.span, fault.message);
            cx.add(
                problem.with_hint("write it like `order.items[0].id`, or `$` for the whole body"),
            );
            return None;
        }
        Some(BodyPath)
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "string" })
    }
}
