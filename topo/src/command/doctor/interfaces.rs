//! The network interfaces that a scenario can attach.

use super::Check;
use launch::interfaces::all;

pub fn interfaces() -> Check {
    const WHAT: &str = "interfaces";
    let lines: Vec<String> = all().iter().map(ToString::to_string).collect();
    match lines.is_empty() {
        false => Check::good(WHAT, lines.join("\n")),
        true => Check::optional(WHAT, "none found", "[lab] attach needs one: look at `ip link`"),
    }
}
