//! The result of a replay as text.

use super::table::table;
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
            "  capture  dropped {} frames: the figures in the table are too small",
            account.capture_dropped
        );
    }
    if let Some(capture) = &account.capture {
        let _ = writeln!(out, "  capture  {}", capture.display());
    }
    out
}

fn rows(account: &Account) -> String {
    let mut rows = vec![(account.fed, "fed".to_owned(), account.at.as_str())];
    for (reason, count) in &account.skipped {
        rows.push((*count, format!("not fed: {reason}"), ""));
    }
    for (port, count) in &account.left_by {
        rows.push((*count, "left by".to_owned(), port));
    }
    for (reason, count) in &account.ended {
        rows.push((*count, format!("ended in the device: {reason}"), &account.at));
    }
    rows.push((account.inside, "still inside".to_owned(), ""));
    for (node, count) in &account.delivered {
        rows.push((*count, "delivered".to_owned(), node));
    }
    for (port, reasons) in &account.ended_beyond {
        for (reason, count) in reasons {
            rows.push((*count, format!("ended farther on: {reason}"), port));
        }
    }
    let rows = rows.into_iter().filter(|(count, ..)| *count > 0);
    let rows = rows.map(|(count, what, place)| [count.to_string(), what, place.to_owned()]);
    table(&["  frames", "what became of them", "where"], [0], rows)
}
