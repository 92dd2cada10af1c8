//! The result of a replay as text.

use super::table::table;
use launch::replay::Account;
use results::verdict::Verdict;
use std::collections::BTreeMap;

/// The whole text.
pub fn text(account: &Account) -> String {
    let file = account.file.file_name().unwrap_or(account.file.as_os_str()).to_string_lossy();
    let on = match account.dilation {
        None => "virtual clock".to_owned(),
        Some(dilation) => format!("{}, {dilation}× slowed", account.backend),
    };
    let mut lines = vec![format!("{file} into {} of {} ({on})", account.at, account.scenario)];
    lines.push(rows(account));
    let balance = &account.conservation;
    lines.push(format!(
        "  frames   {} in = {} delivered + {} under way + {} ended{}",
        balance.injected,
        balance.delivered,
        balance.buffered,
        balance.dropped.values().sum::<u64>(),
        if account.accounted { "" } else { "   ✕ FRAMES UNACCOUNTED FOR" },
    ));
    lines.extend(account.reasons.iter().map(|reason| format!("  ◐ {reason}")));
    let again = account
        .suggested_dilation
        .filter(|_| account.verdict == Verdict::Inconclusive)
        .map(|by| format!("  again with --set run.dilate={by}, which should hold on this host"));
    lines.extend(again);
    let dropped = Some(account.capture_dropped).filter(|count| *count > 0);
    let text = |n| format!("  capture  dropped {n} frames: the figures in the table are too small");
    lines.extend(dropped.map(text));
    lines.extend(account.capture.iter().map(|file| format!("  capture  {}", file.display())));
    lines.join("\n") + "\n"
}

fn rows(account: &Account) -> String {
    type Row<'a> = (u64, String, &'a str);
    fn each<'a>(counts: &'a BTreeMap<String, u64>, what: &str, at: &'a str) -> Vec<Row<'a>> {
        counts.iter().map(|(reason, count)| (*count, format!("{what}: {reason}"), at)).collect()
    }
    fn places<'a>(counts: &'a BTreeMap<String, u64>, what: &str) -> Vec<Row<'a>> {
        counts.iter().map(|(place, count)| (*count, what.to_owned(), place.as_str())).collect()
    }
    let beyond = account.ended_beyond.iter();
    let beyond = beyond.flat_map(|(port, counts)| each(counts, "ended farther on", port));
    let rows = [
        vec![(account.fed, "fed".to_owned(), account.at.as_str())],
        each(&account.skipped, "not fed", ""),
        places(&account.left_by, "left by"),
        each(&account.ended, "ended in the device", &account.at),
        vec![(account.inside, "still inside".to_owned(), "")],
        places(&account.delivered, "delivered"),
        beyond.collect(),
    ];
    let rows = rows.into_iter().flatten().filter(|(count, ..)| *count > 0);
    let rows = rows.map(|(count, what, place)| [count.to_string(), what, place.to_owned()]);
    table(&["  frames", "what became of them", "where"], [0], rows)
}
