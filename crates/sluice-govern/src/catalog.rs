//! What the operator declared about the tools of the organisation.

/// What the fields of a tool's answers are. A name stands for the field at any depth and for
/// everything below it; `*` is the whole answer and `@keys` are the keys of its maps. All other
/// fields are a stranger's text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerFields {
    /// Fields with values that a stranger cannot write.
    pub records: Vec<String>,
    /// Fields with private texts.
    pub private: Vec<String>,
    /// Text fields that hold one record in each line.
    pub lists: Vec<String>,
}
