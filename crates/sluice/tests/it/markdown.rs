//! The fenced blocks of a page.

/// One block.
pub(crate) struct Block {
    /// The words after the fence.
    pub(crate) info: Vec<String>,
    pub(crate) text: String,
}

pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let info = info.split_whitespace().map(str::to_owned).collect();
        blocks.push(Block { info, text: text.join("\n") + "\n" });
    }
    blocks
}
