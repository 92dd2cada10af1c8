//! `pausebed doctor`: checks whether this host can make live runs, what would improve them, and which backends can run.
//!
//! A check tries what it checks, where possible: a datagram is sent, a thread sleeps and wakes. No frame leaves
//! loopback.

use crate::exit::{Exit, Outcome};
use crate::terminal::table::table;
use serde::Serialize;
use std::io;

mod interfaces;
mod possible;
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
    /// Its name, from [`CHECKS`].
    what: &'static str,
    /// The finding; may have several lines.
    found: String,
    /// The result.
    state: State,
    /// A hint, unless the result is good.
    next: Option<String>,
}

impl Check {
    fn new(state: State, found: impl Into<String>, next: Option<&str>) -> Check {
        Check { what: "", found: found.into(), state, next: next.map(str::to_owned) }
    }

    fn good(found: impl Into<String>) -> Check {
        Check::new(State::Good, found, None)
    }

    fn optional(found: impl Into<String>, next: &str) -> Check {
        Check::new(State::Optional, found, Some(next))
    }

    fn bad(found: impl Into<String>, next: &str) -> Check {
        Check::new(State::Bad, found, Some(next))
    }

    /// Good if `is_enough`, otherwise optional.
    fn wanted(is_enough: bool, found: impl Into<String>, next: &str) -> Check {
        if is_enough { Check::good(found) } else { Check::optional(found, next) }
    }

    /// Good if `tried` succeeded, with what it found; otherwise the error decides with `failed`.
    fn tried(tried: io::Result<String>, failed: fn(String, &str) -> Check, next: &str) -> Check {
        tried.map_or_else(|error| failed(error.to_string(), next), Check::good)
    }
}

/// All results, in the order of the table.
fn checks() -> Vec<Check> {
    CHECKS.iter().map(|(what, check)| Check { what, ..check() }).collect()
}

/// Performs one check.
type Examine = fn() -> Check;

/// Every check: its name, and the function that makes it.
const CHECKS: &[(&str, Examine)] = &[
    ("kernel", scheduling::kernel),
    ("cores", scheduling::cores),
    ("real-time priority", scheduling::priority),
    ("wake-ups", scheduling::wake_ups),
    ("socket buffers", sockets::buffers),
    ("UDP on loopback", sockets::udp),
    ("Unix datagrams", sockets::unix),
    ("interfaces", interfaces::interfaces),
    ("build", programs::build),
    ("tshark", programs::tshark),
    ("calibration", storage::calibration),
    ("temporary folder", storage::temporary_folder),
    ("current folder", storage::current_folder),
];

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let checks = checks();
    let able = checks.iter().all(|check| check.state != State::Bad);
    let possible = possible::possible(&checks);
    if options.json {
        let document = serde_json::json!({ "ok": able, "checks": checks, "possible": possible });
        println!("{document:#}");
    } else {
        say!("{}\n", text(&checks));
        say!("{}", possible::text(&possible));
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
        let checks = checks();
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
        let optional = Check { what: "a", ..Check::optional("less", "do this") };
        let able = text(&[Check { what: "b", ..Check::good("fine") }, optional.clone()]);
        assert!(
            able.contains("a: do this") && able.ends_with("live runs are possible on this host")
        );
        let unable = text(&[optional, Check { what: "c", ..Check::bad("none", "do that") }]);
        assert!(unable.ends_with("live runs are not possible: c"), "{unable}");
    }
}
