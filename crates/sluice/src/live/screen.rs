//! The view of a run that is redrawn in place.

use crate::amount;
use crate::picture::{Picture, StepPicture};
use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};
use sluice_core::status::StepStatus;
use sluice_core::visible;
use std::fmt::Write as _;
use std::io::Write as _;
use terminal_size::{Height, Width};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Longest id without truncation.
const ID_COLUMNS_MAX: usize = 40;
/// Lines that are not steps: title, bar, summary, and room for the prompt.
const LINES_BESIDE: usize = 5;
const BAR_COLUMNS: usize = 24;
const SPINNER: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];
const SPIN_MS: u64 = 100;

pub(super) struct Screen {
    /// Lines drawn, which the next drawing replaces.
    drawn: usize,
    colours: bool,
}

/// A line, and the styles of its parts.
#[derive(Debug, PartialEq)]
struct ScreenLine {
    mark: char,
    style: Style,
    text: String,
    text_style: Style,
}

impl Screen {
    pub(super) fn new() -> Screen {
        let choice = AutoStream::choice(&std::io::stderr());
        Screen { drawn: 0, colours: choice != ColorChoice::Never }
    }

    /// Redraws the run.
    pub(super) fn draw(&mut self, run: &Picture, now_ms: u64) {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let (columns, lines) = size.map_or((80, 24), |(Width(columns), Height(lines))| {
            (usize::from(columns), usize::from(lines))
        });
        let rows = rows(run, now_ms, lines.saturating_sub(LINES_BESIDE).max(1));
        let mut text = self.back();
        for row in &rows {
            self.write(&mut text, row, columns);
        }
        text.push_str("\x1b[J");
        self.drawn = rows.len();
        put(&text);
    }

    /// Clears the view, so that other text can be written.
    pub(super) fn clear(&mut self) {
        let mut text = self.back();
        text.push_str("\x1b[J");
        self.drawn = 0;
        put(&text);
    }

    /// Keeps the view, and continues below it.
    pub(super) fn keep(&mut self) {
        self.drawn = 0;
    }

    /// Moves the cursor to the first line of the last drawing.
    fn back(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\r", self.drawn) }
    }

    fn write(&self, text: &mut String, row: &ScreenLine, columns: usize) {
        // A line that fills the last column would wrap on some terminals.
        let clipped = clip(&row.text, columns.saturating_sub(3));
        let (style, words) = (row.style, row.text_style);
        // Writing to a string cannot fail.
        let _ = if self.colours {
            writeln!(text, "{style}{}{style:#} {words}{clipped}{words:#}\x1b[K", row.mark)
        } else {
            writeln!(text, "{} {clipped}\x1b[K", row.mark)
        };
    }
}

/// A closed terminal does not stop the run.
fn put(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

/// All lines of a run.
fn rows(shown: &Picture, now_ms: u64, lines: usize) -> Vec<ScreenLine> {
    let title = format!("{}  {}", visible::brief(&shown.workflow), shown.run_id);
    let bold = Style::new().bold();
    let mut rows = vec![ScreenLine { mark: '≡', style: bold, text: title, text_style: bold }];
    let wide = shown.node_results.iter().map(|node| node.node_id.width()).max().unwrap_or(0);
    let wide = wide.min(ID_COLUMNS_MAX);
    let chosen = choose(&shown.node_results, lines);
    rows.extend(chosen.iter().map(|node| step(node, wide, now_ms)));
    let hidden = shown.node_results.len() - chosen.len();
    if hidden > 0 {
        let text = format!(
            "… {hidden} more; in all {} to come, {} done, {} failed or cancelled",
            shown.pending_count + shown.waiting_count,
            shown.executed_count,
            shown.failed_count
        );
        let dim = Style::new().dimmed();
        rows.push(ScreenLine { mark: ' ', style: dim, text, text_style: dim });
    }
    rows.push(bar(shown, now_ms));
    rows
}

/// The steps that fit, in order; by priority: running, failed, last completed, next.
fn choose(nodes: &[StepPicture], lines: usize) -> Vec<&StepPicture> {
    if nodes.len() <= lines {
        return nodes.iter().collect();
    }
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|at| {
        let node = &nodes[*at];
        let ended = node.completed_at.unwrap_or(0);
        (urgency(node), std::cmp::Reverse(ended), *at)
    });
    order.truncate(lines);
    order.sort_unstable();
    order.into_iter().map(|at| &nodes[at]).collect()
}

fn urgency(node: &StepPicture) -> u8 {
    match node.status {
        StepStatus::Queued if node.is_at_gate() => 0,
        StepStatus::Running
        | StepStatus::Streaming
        | StepStatus::Retrying
        | StepStatus::AwaitingApproval => 0,
        StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked => 1,
        StepStatus::Queued => 2,
        StepStatus::Completed => 3,
        StepStatus::Pending | StepStatus::AwaitingDependency => 4,
        StepStatus::Skipped | StepStatus::Cancelled => 5,
    }
}

fn step(node: &StepPicture, wide: usize, now_ms: u64) -> ScreenLine {
    let (mark, style, word) = status_style(node, now_ms);
    let id = clip(&visible::line(&node.node_id), wide);
    let pad = wide.saturating_sub(id.width());
    let running_ms = || Some(now_ms.saturating_sub(node.started_at?));
    let ended = node.completed_at.is_some();
    let time = node.duration_ms.or_else(|| running_ms().filter(|_| !ended)).map(amount::time);
    let time = time.unwrap_or_default();
    let mut about = amount::spent(node.attempts.into(), node.tokens(), node.cost);
    about.extend(remark(node));
    let text = format!("{id}{:pad$}  {word:14}  {time:>9}  {}", "", about.join("  "));
    let quiet = matches!(
        node.status,
        StepStatus::Pending | StepStatus::AwaitingDependency | StepStatus::Skipped
    );
    let text_style = if quiet { Style::new().dimmed() } else { Style::new() };
    ScreenLine { mark, style, text: text.trim_end().to_owned(), text_style }
}

/// A remark about the status of a step.
fn remark(node: &StepPicture) -> Option<String> {
    let text = match node.status {
        StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked => {
            node.error_message.as_ref()?
        }
        StepStatus::Retrying => node.error_message.as_ref()?,
        StepStatus::Skipped => node.skip_reason.as_ref()?,
        StepStatus::Queued => node.unblock_hint.as_ref()?,
        StepStatus::Running if node.is_at_gate() => node.unblock_hint.as_ref()?,
        _ => return None,
    };
    Some(visible::brief(text).into_owned())
}

fn status_style(node: &StepPicture, now_ms: u64) -> (char, Style, &'static str) {
    let spin = usize::try_from(now_ms / SPIN_MS).unwrap_or(0) % SPINNER.len();
    let colour = |colour: AnsiColor| colour.on_default();
    let dim = Style::new().dimmed();
    match node.status {
        StepStatus::Pending => ('·', dim, "pending"),
        StepStatus::AwaitingDependency => ('·', dim, "waiting"),
        StepStatus::Queued | StepStatus::Running if node.is_at_gate() => {
            ('!', colour(AnsiColor::Yellow), "waiting")
        }
        StepStatus::Queued => ('·', Style::new(), "queued"),
        StepStatus::AwaitingApproval => ('?', colour(AnsiColor::Yellow).bold(), "needs approval"),
        StepStatus::Running => (SPINNER[spin], colour(AnsiColor::Cyan), "running"),
        StepStatus::Streaming => (SPINNER[spin], colour(AnsiColor::Cyan), "streaming"),
        StepStatus::Retrying => ('↻', colour(AnsiColor::Yellow), "retrying"),
        StepStatus::Completed => ('✓', colour(AnsiColor::Green), "completed"),
        StepStatus::Failed => ('✗', colour(AnsiColor::Red).bold(), "failed"),
        StepStatus::Skipped => ('-', dim, "skipped"),
        StepStatus::Cancelled => ('×', colour(AnsiColor::Yellow), "cancelled"),
        StepStatus::TimedOut => ('✗', colour(AnsiColor::Red).bold(), "timed out"),
        StepStatus::Blocked => ('✗', colour(AnsiColor::Red).bold(), "blocked"),
    }
}

/// The progress of the run, by steps.
fn bar(shown: &Picture, now_ms: u64) -> ScreenLine {
    let all = shown.node_results.len().max(1);
    let done = shown.executed_count + shown.failed_count;
    let filled = BAR_COLUMNS * done / all;
    let bar: String = (0..BAR_COLUMNS).map(|at| if at < filled { '█' } else { '░' }).collect();
    let ms = shown.duration_ms.unwrap_or_else(|| now_ms.saturating_sub(shown.started_at));
    let mut parts = vec![format!("{done}/{all}"), amount::time(ms)];
    parts.extend(amount::spent(0, shown.tokens(), shown.cost));
    let status = shown.status.as_str().replace('_', " ");
    let text = format!("{bar} {}  {status}", parts.join("  "));
    ScreenLine { mark: ' ', style: Style::new(), text, text_style: Style::new() }
}

/// Truncates a text to a number of columns.
fn clip(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut clipped = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        clipped.push(c);
    }
    clipped.push('…');
    clipped
}
