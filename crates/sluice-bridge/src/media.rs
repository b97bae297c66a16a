//! Images, audio and other files in answers: streamed as parts while an answer is written, and
//! listed in the answer's `media`.
//!
//! A file is referred to by URL. A file in base64 gets a `data:` URL if it is small enough.

use crate::limits::{ARTEFACT_BYTES_MAX, MEDIA_PART_BYTES_MAX, URL_BYTES_MAX};
use serde_json::{Value, json};
use sluice_core::port::adapter::{Artefact, Content, Emission};

/// A file of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// MIME type.
    pub mime: String,
    /// Data or URL.
    pub content: FileContent,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// Inline data in base64.
    Base64(String),
    /// URL of the file.
    Url(String),
}

impl File {
    /// Size in bytes; 0 for a URL.
    fn bytes(&self) -> usize {
        match &self.content {
            FileContent::Base64(data) => decoded_len(data),
            FileContent::Url(_) => 0,
        }
    }

    /// URL of the file; `None` if it is too large to be stored.
    fn url(&self) -> Option<String> {
        match &self.content {
            FileContent::Base64(_) if self.bytes() > ARTEFACT_BYTES_MAX => None,
            FileContent::Base64(data) => Some(format!("data:{};base64,{data}", self.mime)),
            FileContent::Url(url) if url.len() > URL_BYTES_MAX => None,
            FileContent::Url(url) => Some(url.clone()),
        }
    }

    /// The part that is streamed; `None` if the file is too large for that and comes only
    /// with the answer.
    pub fn emission(&self) -> Option<Emission> {
        if self.bytes() > MEDIA_PART_BYTES_MAX {
            return None;
        }
        Some(Emission::Media { url: self.url()?, mime: self.mime.clone() })
    }

    /// Artefact of the step: the content, or a note that it was too large.
    pub(crate) fn artefact(&self) -> Value {
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

/// Number of bytes that base64 text decodes to.
pub(crate) fn decoded_len(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

/// The `media` of an answer: an object for one file, a list for several.
pub(crate) fn media_value<'f>(files: impl IntoIterator<Item = &'f File>) -> Option<Value> {
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
    fn a_file_is_passed_on_if_it_fits() {
        let small = inline("aGk=".to_owned());
        let url = "data:image/png;base64,aGk=".to_owned();
        let mime = "image/png".to_owned();
        assert_eq!(small.emission(), Some(Emission::Media { url: url.clone(), mime }));
        assert_eq!(media_value([&small]), Some(json!({"url": url, "mime": "image/png"})));
        let far = "https://example.com/a.png".to_owned();
        let far = File { mime: "image/*".to_owned(), content: FileContent::Url(far) };
        let both = media_value([&small, &far]).expect("there are two");
        assert_eq!(both[1], json!({"url": "https://example.com/a.png", "mime": "image/*"}));
        // Too large for a part of a stream, but not for the answer.
        let large = inline("A".repeat(MEDIA_PART_BYTES_MAX / 3 * 4 + 8));
        assert_eq!(large.emission(), None);
        assert!(media_value([&large]).is_some());
        let huge = inline("A".repeat(4 * 1024 * 1024));
        assert_eq!((huge.emission(), media_value([&huge])), (None, None));
        let dropped = json!({"mime": "image/png", "bytes": 3_145_728, "dropped": true});
        assert_eq!(huge.artefact(), dropped);
    }
}
