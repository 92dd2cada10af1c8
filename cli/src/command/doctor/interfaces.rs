//! The network interfaces that a scenario can attach.

use super::Check;
use launch::interfaces::describe;

pub fn interfaces() -> Check {
    let lines = describe();
    let found = if lines.is_empty() { "none found".to_owned() } else { lines.join("\n") };
    Check::wanted(!lines.is_empty(), found, "[lab] attach needs one: look at `ip link`")
}
