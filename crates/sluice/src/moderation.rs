//! The moderator of this process: a word list, or an HTTP service.

use crate::config::{self, setting::Name};
use crate::input;
use sluice_bridge::moderate::http::HttpModerator;
use sluice_bridge::moderate::word_list::WordList;
use sluice_core::port::moderator::Moderator;
use sluice_core::visible;
use sluice_server::refused::{BAD_MODERATION, Refused};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// The moderator that an option or a setting names; none if neither does.
pub(crate) fn moderator(option: Option<&OsString>) -> Result<Option<Arc<dyn Moderator>>, Refused> {
    let named = option.cloned();
    let named = named.or_else(|| config::get().text(Name::Moderation).map(OsString::from));
    named.map(|named| open(&named)).transpose()
}

fn open(named: &OsStr) -> Result<Arc<dyn Moderator>, Refused> {
    let address = named.to_str().filter(|word| HttpModerator::is_address(word));
    if let Some(address) = address {
        let remedy = "name an address such as `https://example.com/moderate`";
        let moderator = HttpModerator::new(address);
        let moderator = moderator.map_err(|error| refused(&error.to_string(), remedy))?;
        return Ok(Arc::new(with_token(moderator, address)?));
    }
    let remedy = "name a word list, one phrase a line, or an address";
    let input = input::read(named).map_err(|file| {
        let name = visible::brief(&file.name);
        refused(&format!("the word list `{name}` cannot be read: {}", file.cause), remedy)
    })?;
    let list = WordList::parse(&input.bytes);
    let list = list.map_err(|error| refused(&format!("`{}`: {error}", input.name), remedy))?;
    Ok(Arc::new(list))
}

/// Adds the configured token, if there is one.
fn with_token(moderator: HttpModerator, address: &str) -> Result<HttpModerator, Refused> {
    let Some(key) = config::get().moderation_token()? else { return Ok(moderator) };
    let token = key.read_for(address).map_err(|why| {
        let remedy = "set SLUICE_MODERATION_TOKEN to `secret:NAME`, `env:NAME` or `file:PATH`";
        Refused::new(config::CONFIG_INVALID, format!("`moderation_token`: {why}"), remedy)
    })?;
    let remedy = "a token is one word";
    moderator.with_token(&token).map_err(|why| refused(&why.to_string(), remedy))
}

fn refused(message: &str, remedy: &str) -> Refused {
    Refused::new(BAD_MODERATION, message.to_owned(), remedy)
}
