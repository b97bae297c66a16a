//! Pictures, sound and other files in answers: handed on as parts while an answer is
//! written, and with the answer as its `media`.
//!
//! A file is named by its address. One that came in base64 has a `data:` address, as far
//! as it is small enough to be kept.

use crate::limits::{ARTEFACT_BYTES_MAX, MEDIA_PART_BYTES_MAX, URL_BYTES_MAX};
use serde_json::{Value, json};
use sluice_core::port::adapter::{Artefact, Content, Emission};

/// A file of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// What it is.
    pub mime: String,
    /// Where it is, or what it is in base64.
    pub content: FileContent,
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// It is this, in base64.
    Base64(String),
    /// It is at an address.
    Url(String),
}

impl File {
    /// How many bytes it has; 0 if it is at an address.
    fn bytes(&self) -> usize {
        match &self.content {
            FileContent::Base64(data) => decoded_len(data),
            FileContent::Url(_) => 0,
        }
    }

    /// Its address; none if it is too large to be kept.
    fn url(&self) -> Option<String> {
        match &self.content {
            FileContent::Base64(_) if self.bytes() > ARTEFACT_BYTES_MAX => None,
            FileContent::Base64(data) => Some(format!("data:{};base64,{data}", self.mime)),
            FileContent::Url(url) if url.len() > URL_BYTES_MAX => None,
            FileContent::Url(url) => Some(url.clone()),
        }
    }

    /// What is handed on of it while the answer is written; none if it is too large for
    /// that, and comes with the answer alone.
    pub fn emission(&self) -> Option<Emission> {
        if self.bytes() > MEDIA_PART_BYTES_MAX {
            return None;
        }
        Some(Emission::Media { url: self.url()?, mime: self.mime.clone() })
    }

    /// As it is kept with the step: its content, or that it was too large.
    pub fn artefact(&self) -> Value {
        let fits = self.url().is_some();
        let content = match &self.content {
            FileContent::Base64(data) => Content::Base64(data),
            FileContent::Url(url) => Content::Url(url),
        };
        let bytes = u64::try_from(self.bytes()).unwrap_or(u64::MAX);
        Artefact { mime: &self.mime, bytes, content: fits.then_some(content) }.value()
    }

    fn media(&self) -> Option<Value> {
        Some(json!({"url": self.url()?, "mime": self.mime}))
    }
}

/// How many bytes base64 stands for.
pub(crate) fn decoded_len(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

/// The `media` of an answer with these files: one is an object, several are a list.
pub fn envelope<'f>(files: impl IntoIterator<Item = &'f File>) -> Option<Value> {
    let mut all: Vec<Value> = files.into_iter().filter_map(File::media).collect();
    match all.len() {
        0 => None,
        1 => all.pop(),
        _ => Some(Value::Array(all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(data: String) -> File {
        File { mime: "image/png".to_owned(), content: FileContent::Base64(data) }
    }

    #[test]
    fn a_file_is_handed_on_as_far_as_it_fits() {
        let small = inline("aGk=".to_owned());
        let url = "data:image/png;base64,aGk=".to_owned();
        let mime = "image/png".to_owned();
        assert_eq!(small.emission(), Some(Emission::Media { url: url.clone(), mime }));
        assert_eq!(envelope([&small]), Some(json!({"url": url, "mime": "image/png"})));
        let far = "https://example.com/a.png".to_owned();
        let far = File { mime: "image/*".to_owned(), content: FileContent::Url(far) };
        let both = envelope([&small, &far]).expect("there are two");
        assert_eq!(both[1], json!({"url": "https://example.com/a.png", "mime": "image/*"}));
        // Too large for a part of a stream, not for the answer.
        let large = inline("A".repeat(MEDIA_PART_BYTES_MAX / 3 * 4 + 8));
        assert_eq!(large.emission(), None);
        assert!(envelope([&large]).is_some());
        let huge = inline("A".repeat(4 * 1024 * 1024));
        assert_eq!((huge.emission(), envelope([&huge])), (None, None));
        let dropped = json!({"mime": "image/png", "bytes": 3_145_728, "dropped": true});
        assert_eq!(huge.artefact(), dropped);
    }
}
