//! `pausebed doctor`: checks whether this host can make live runs, and what would improve them.
//!
//! A check tries what it checks, where possible: a datagram is sent, a thread sleeps and wakes. No frame leaves
//! loopback.

use crate::exit::{Exit, Outcome};
use crate::terminal::table::table;
use serde::Serialize;

mod interfaces;
mod programs;
mod scheduling;
mod sockets;
mod storage;

/// Options of `doctor`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Good,
    /// Live runs work, but could be better.
    Optional,
    /// Live runs do not work.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    /// Its name.
    what: &'static str,
    /// The finding; may have several lines.
    found: String,
    /// The result.
    state: State,
    /// A hint, unless the result is good.
    next: Option<String>,
}

impl Check {
    fn good(what: &'static str, found: impl Into<String>) -> Check {
        Check { what, found: found.into(), state: State::Good, next: None }
    }

    fn optional(what: &'static str, found: impl Into<String>, next: impl Into<String>) -> Check {
        Check { what, found: found.into(), state: State::Optional, next: Some(next.into()) }
    }

    fn bad(what: &'static str, found: impl Into<String>, next: impl Into<String>) -> Check {
        Check { what, found: found.into(), state: State::Bad, next: Some(next.into()) }
    }
}

/// Every check, in the order of the table.
const CHECKS: &[fn() -> Check] = &[
    scheduling::kernel,
    scheduling::cores,
    scheduling::priority,
    scheduling::wake_ups,
    sockets::buffers,
    sockets::udp,
    sockets::unix,
    interfaces::interfaces,
    programs::build,
    programs::tshark,
    storage::calibration,
    storage::temporary_folder,
    storage::current_folder,
];

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let checks: Vec<Check> = CHECKS.iter().map(|check| check()).collect();
    let able = checks.iter().all(|check| check.state != State::Bad);
    if options.json {
        println!("{:#}", serde_json::json!({ "ok": able, "checks": checks }));
    } else {
        println!("{}", text(&checks));
    }
    Ok(if able { Exit::Good } else { Exit::Host })
}

/// The table, then hints, then the verdict.
fn text(checks: &[Check]) -> String {
    let rows = checks.iter().flat_map(|check| {
        let sign = match check.state {
            State::Good => "✓ good",
            State::Optional => "◐ optional",
            State::Bad => "✕ bad",
        };
        let lines = check.found.lines().enumerate();
        lines.map(move |(n, line)| if n == 0 { [sign, check.what, line] } else { ["", "", line] })
    });
    let mut lines = vec![table(&["", "check", "found"], [], rows), String::new()];
    let hints = checks.iter().filter_map(|check| Some((check.what, check.next.as_ref()?)));
    lines.extend(hints.map(|(what, next)| format!("{what}: {next}")));
    let bad: Vec<&str> =
        checks.iter().filter(|check| check.state == State::Bad).map(|check| check.what).collect();
    lines.push(match bad.as_slice() {
        [] => "live runs are possible on this host".to_owned(),
        bad => format!("live runs are not possible: {}", bad.join(", ")),
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_is_not_good_has_a_hint() {
        let checks: Vec<Check> = CHECKS.iter().map(|check| check()).collect();
        for check in &checks {
            assert_eq!(check.next.is_none(), check.state == State::Good, "{check:?}");
            assert!(!check.found.is_empty(), "{check:?}");
        }
        let udp =
            checks.iter().find(|check| check.what == "UDP on loopback").expect("it is checked");
        assert_eq!(udp.state, State::Good, "tests send traffic to loopback too: {udp:?}");
    }

    #[test]
    fn one_bad_check_makes_live_runs_impossible_and_optional_ones_do_not() {
        let optional = Check::optional("a", "less", "do this");
        let able = text(&[Check::good("b", "fine"), optional.clone()]);
        assert!(
            able.contains("a: do this") && able.ends_with("live runs are possible on this host")
        );
        let unable = text(&[optional, Check::bad("c", "none", "do that")]);
        assert!(unable.ends_with("live runs are not possible: c"), "{unable}");
    }
}
