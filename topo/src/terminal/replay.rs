//! The account of a replay as a table on the terminal.

use comfy_table::{CellAlignment, Table, presets};
use launch::replay::Account;
use results::verdict::Verdict;
use std::fmt::Write;

/// The whole text.
pub fn text(account: &Account) -> String {
    let file = account.file.file_name().unwrap_or(account.file.as_os_str()).to_string_lossy();
    let on = match account.dilation {
        None => "virtual clock".to_owned(),
        Some(dilation) => format!("{}, {dilation}× slowed", account.backend),
    };
    let mut out = format!("{file} into {} of {} ({on})\n", account.at, account.scenario);
    let _ = writeln!(out, "{}", rows(account));
    let balance = &account.conservation;
    let _ = writeln!(
        out,
        "  frames   {} in = {} delivered + {} under way + {} ended{}",
        balance.injected,
        balance.delivered,
        balance.buffered,
        balance.dropped.values().sum::<u64>(),
        if account.accounted { "" } else { "   ✕ FRAMES UNACCOUNTED FOR" },
    );
    for reason in &account.reasons {
        let _ = writeln!(out, "  ◐ {reason}");
    }
    if let Some(dilation) =
        account.suggested_dilation.filter(|_| account.verdict == Verdict::Inconclusive)
    {
        let _ = writeln!(
            out,
            "  again with --set run.dilate={dilation}, which should hold on this host"
        );
    }
    if account.capture_dropped > 0 {
        let _ = writeln!(
            out,
            "  capture  dropped {} frames for want of room: the table counts too few",
            account.capture_dropped
        );
    }
    if let Some(capture) = &account.capture {
        let _ = writeln!(out, "  capture  {}", capture.display());
    }
    out
}

fn rows(account: &Account) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["  frames", "what became of them", "where"]);
    let mut row = |count: u64, what: &str, place: &str| {
        if count > 0 {
            table.add_row([count.to_string(), what.to_owned(), place.to_owned()]);
        }
    };
    row(account.fed, "fed", &account.at);
    for (reason, count) in &account.skipped {
        row(*count, &format!("not fed: {reason}"), "");
    }
    for (port, count) in &account.left_by {
        row(*count, "left by", port);
    }
    for (reason, count) in &account.ended {
        row(*count, &format!("ended in the device: {reason}"), &account.at);
    }
    row(account.inside, "still inside", "");
    for (node, count) in &account.delivered {
        row(*count, "delivered", node);
    }
    for (port, reasons) in &account.ended_beyond {
        for (reason, count) in reasons {
            row(*count, &format!("ended farther on: {reason}"), port);
        }
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
