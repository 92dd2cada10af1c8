//! This program, and programs that show captures.

use super::Check;
use launch::programs::tool;

pub fn build() -> Check {
    match cfg!(debug_assertions) {
        true => Check::optional(
            "for debugging",
            "live runs want an optimised one: cargo build --release",
        ),
        false => Check::good("optimised"),
    }
}

pub fn tshark() -> Check {
    let next = "needed only to look at captures, and for some tests: apt-get install tshark";
    let missing = |error: std::io::Error| Check::optional(format!("not found ({error})"), next);
    tool("tshark").map_or_else(missing, |found| Check::good(found.version))
}
