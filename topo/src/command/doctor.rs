//! `pausebed doctor`: whether this host can make live runs, and what would make them better.
//!
//! Every check tries the thing itself where it can: a datagram is sent, a thread sleeps and wakes. Nothing leaves loopback.

use super::Exit;
use comfy_table::{Table, presets};
use serde::Serialize;

mod programs;
mod scheduling;
mod sockets;
mod storage;

/// Options of `doctor`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Good,
    /// Live runs work without it, but would be better with it.
    Optional,
    /// Live runs do not work like this.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    /// What.
    what: &'static str,
    /// As it was found.
    found: String,
    /// What that means.
    state: State,
    /// What to do, if anything.
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
    programs::build,
    programs::tshark,
    storage::calibration,
    storage::temporary_folder,
    storage::current_folder,
];

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let checks: Vec<Check> = CHECKS.iter().map(|check| check()).collect();
    let able = checks.iter().all(|check| check.state != State::Bad);
    if options.json {
        let document = serde_json::json!({ "ok": able, "checks": checks });
        println!("{document:#}");
    } else {
        println!("{}", text(&checks));
    }
    if able { Exit::Good } else { Exit::Host }
}

/// The table, then what to do, then the verdict.
fn text(checks: &[Check]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "check", "found"]);
    for check in checks {
        let sign = match check.state {
            State::Good => "✓ good",
            State::Optional => "◐ optional",
            State::Bad => "✕ bad",
        };
        table.add_row([sign, check.what, &check.found]);
    }
    let mut lines: Vec<String> =
        table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    lines.push(String::new());
    for check in checks {
        lines.extend(check.next.iter().map(|next| format!("{}: {next}", check.what)));
    }
    let bad: Vec<&str> =
        checks.iter().filter(|check| check.state == State::Bad).map(|check| check.what).collect();
    lines.push(if bad.is_empty() {
        "live runs are possible on this host".to_owned()
    } else {
        format!("live runs are not possible: {}", bad.join(", "))
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_good_says_what_to_do_next() {
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
    fn one_bad_check_is_enough_to_say_no_and_optional_ones_are_not() {
        let optional = Check::optional("a", "less", "do this");
        let able = text(&[Check::good("b", "fine"), optional.clone()]);
        assert!(
            able.contains("a: do this") && able.ends_with("live runs are possible on this host")
        );
        let unable = text(&[optional, Check::bad("c", "none", "do that")]);
        assert!(unable.ends_with("live runs are not possible: c"), "{unable}");
    }
}
