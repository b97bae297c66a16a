//! Draws tables with aligned columns.

use sluice_core::visible;
use unicode_width::UnicodeWidthStr as _;

/// Rows under a heading. Control characters in cells are made visible.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    indent: &'static str,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Table {
        Table { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()], indent: "" }
    }

    /// A table without a heading, indented.
    pub(crate) fn plain() -> Table {
        Table { rows: Vec::new(), indent: "  " }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| visible::brief(&cell).into_owned()).collect());
    }

    pub(crate) fn draw(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = self.indent.to_owned();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
