//! The conversation and files of a dispatch that are stored with the step.
//!
//! INVARIANT: the stored size is bounded. A truncated text says so, with its original length.

use crate::limits::{ARTEFACTS_MAX, CONVERSATION_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::media::File;
use serde_json::Value;
use sluice_core::port::adapter::Message;

/// Size that a message is assumed to need in addition to its text.
const FRAME_BYTES: usize = 64;

#[derive(Debug)]
pub(super) struct Capture {
    /// Messages, oldest first.
    pub(super) conversation: Vec<Value>,
    /// Files, as they are stored with the step.
    pub(super) artefacts: Vec<Value>,
    /// The same files for the answer's `media`.
    pub(super) media: Vec<File>,
    left: usize,
}

impl Capture {
    pub(super) fn new() -> Capture {
        Capture {
            conversation: Vec::new(),
            artefacts: Vec::new(),
            media: Vec::new(),
            left: CONVERSATION_BYTES_MAX,
        }
    }

    /// Stores a message, truncated to the remaining size.
    pub(super) fn add_message(&mut self, role: &str, text: &str, tool: Option<(&str, &str)>) {
        let names = tool.map_or(0, |(tool, call)| tool.len() + call.len());
        let Some(room) = self.left.checked_sub(FRAME_BYTES + names) else { return };
        let text = truncate(text, room.min(MESSAGE_BYTES_MAX));
        self.left = room.saturating_sub(text.len());
        self.conversation.push(Message { role, text: &text, tool }.value());
    }

    /// Stores files, up to the limit.
    pub(super) fn add_files(&mut self, files: &[File]) {
        let room = ARTEFACTS_MAX - self.artefacts.len();
        let files = &files[..files.len().min(room)];
        self.artefacts.extend(files.iter().map(File::artefact));
        self.media.extend_from_slice(files);
    }
}

/// Truncates a text, with a mark.
pub(super) fn truncate(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mark = format!("… [cut: {} bytes in all]", text.len());
    let end = text.floor_char_boundary(bytes_max.saturating_sub(mark.len()));
    format!("{}{mark}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::FileContent;
    use serde_json::json;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        assert_eq!(truncate("short", 5), "short");
        let long = "ß".repeat(1_000);
        let kept = truncate(&long, 101);
        assert!(kept.len() <= 101 && kept.ends_with("ß… [cut: 2000 bytes in all]"), "{kept}");
    }

    #[test]
    fn a_conversation_has_a_total_limit() {
        let mut capture = Capture::new();
        let long = "x".repeat(MESSAGE_BYTES_MAX * 2);
        for _ in 0..100 {
            capture.add_message("user", &long, Some(("files.read", "call_1")));
        }
        let kept: usize = capture.conversation.iter().map(|one| one.to_string().len()).sum();
        assert!(kept > CONVERSATION_BYTES_MAX / 2, "{kept}");
        assert!(kept < CONVERSATION_BYTES_MAX + 1024, "{kept}");
    }

    #[test]
    fn a_large_file_is_dropped_and_its_size_kept() {
        let mut capture = Capture::new();
        let file = |content| File { mime: "image/png".to_owned(), content };
        let inline = |base64: String| file(FileContent::Base64(base64));
        let url = "https://example.com/a.png".to_owned();
        capture.add_files(&[
            inline("aGk=".to_owned()),
            inline("A".repeat(4 * 1024 * 1024)),
            file(FileContent::Url(url.clone())),
        ]);
        assert_eq!(
            capture.artefacts,
            [
                json!({"mime": "image/png", "bytes": 2, "data": "aGk="}),
                json!({"mime": "image/png", "bytes": 3_145_728, "dropped": true}),
                json!({"mime": "image/png", "bytes": 0, "url": url}),
            ]
        );
        capture.add_files(&vec![inline("aGk=".to_owned()); 100]);
        assert_eq!(capture.artefacts.len(), ARTEFACTS_MAX);
    }
}
