//! A report as tables on the terminal.

use super::Report;
use super::rules::FAMILIES;
use comfy_table::{CellAlignment, Table, presets};
use proto::events::Direction;
use std::fmt::Write;

/// The whole text.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    if !report.findings.is_empty() {
        let _ = writeln!(out, "{}", findings(report));
    }
    let shown = report.findings.len() as u64;
    let all: u64 = report.counts.values().sum();
    for (rule, count) in &report.counts {
        let title = FAMILIES.iter().flat_map(|row| row.rules).find(|row| row.id == *rule);
        let (title, source) = title.map_or(("", ""), |row| (row.title, row.source));
        let _ = writeln!(out, "  ✕ {count} × {rule}: {title} ({source})");
    }
    if shown < all {
        let _ = writeln!(out, "  {} more findings are counted and not listed", all - shown);
    }
    let _ = writeln!(out, "  checked      {}", list(report.tally.checked.iter()));
    if !report.tally.noted.is_empty() {
        let _ = writeln!(out, "  noted        {}", list(report.tally.noted.iter()));
    }
    if !report.tally.not_checked.is_empty() {
        let _ = writeln!(out, "  not checked  {}", list(report.tally.not_checked.iter()));
    }
    let verdict = match report.verdict {
        "pass" => "✓ nothing is wrong with what was checked".to_owned(),
        "fail" => format!("✕ {all} findings"),
        _ => format!("✕ {all} findings, and the file cannot be read on"),
    };
    let _ = writeln!(out, "{}: {} frames: {verdict}", report.file, report.frames);
    if let Some(error) = &report.error {
        let _ = writeln!(out, "  {error}");
    }
    out
}

fn list<'a>(counts: impl Iterator<Item = (impl AsRef<str> + 'a, &'a u64)>) -> String {
    let items: Vec<String> =
        counts.map(|(what, count)| format!("{count} {}", what.as_ref())).collect();
    if items.is_empty() { "nothing".to_owned() } else { items.join(", ") }
}

fn findings(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["  frame", "interface", "", "rule", "found", "expected"]);
    for finding in &report.findings {
        let direction = match finding.direction {
            Some(Direction::Tx) => "tx",
            Some(Direction::Rx) => "rx",
            None => "",
        };
        let frame = finding.frame.to_string();
        let words = [&frame, &finding.interface, direction, finding.rule];
        table.add_row(words.into_iter().chain([&*finding.found, &*finding.expected]));
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
