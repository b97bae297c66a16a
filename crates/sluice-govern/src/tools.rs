//! Tool lists.

/// Whether a list names a tool, either by its name or, with `server.*`, all tools of
/// its server.
pub fn names<S: AsRef<str>>(list: &[S], tool: &str) -> bool {
    list.iter().map(AsRef::as_ref).any(|one| match one.strip_suffix(".*") {
        Some(server) => tool.strip_prefix(server).is_some_and(|rest| rest.starts_with('.')),
        None => one == tool,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_a_tool_or_all_of_a_server() {
        assert!(names(&["files.read"], "files.read"));
        assert!(names(&["web.*", "files.*"], "files.read"));
        for other in ["files.*x", "file.*", "files", "files.", "*", "files.rea", "Files.read"] {
            assert!(!names(&[other], "files.read"), "{other}");
        }
        assert!(!names::<&str>(&[], "files.read"));
    }
}
