//! This program, and programs that show captures.

use super::Check;
use launch::programs::tool;

pub fn build() -> Check {
    const WHAT: &str = "build";
    if cfg!(debug_assertions) {
        Check::optional(
            WHAT,
            "for debugging",
            "live runs want an optimised one: cargo build --release",
        )
    } else {
        Check::good(WHAT, "optimised")
    }
}

pub fn tshark() -> Check {
    const WHAT: &str = "tshark";
    match tool("tshark") {
        Ok(found) => Check::good(WHAT, found.version),
        Err(error) => Check::optional(
            WHAT,
            format!("not found ({error})"),
            "needed only to look at captures, and for some tests: apt-get install tshark",
        ),
    }
}
