//! The programs that runs start, and those that help to look at what came out.

use super::Check;
use crate::launch::programs::{Found, daemon, tool};
use emulation::cable::shim;
use emulation::wiring::NodeKind;

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

pub fn switch_daemon() -> Check {
    check("switchd", NodeKind::Switch)
}

pub fn nic_daemon() -> Check {
    check("nicd", NodeKind::Nic)
}

fn check(name: &'static str, kind: NodeKind) -> Check {
    let own = format!("shim {}", shim::VERSION);
    match daemon(kind) {
        Ok(Found { version, played: true, .. }) => {
            Check::good(name, format!("{version}, played by pausebed itself"))
        }
        Ok(Found { version, path, .. }) if version.contains(&own) => {
            Check::good(name, format!("{version}, {}", path.display()))
        }
        Ok(Found { version, path, .. }) => Check::bad(
            name,
            format!("{version}, {}", path.display()),
            format!(
                "it is of another build than pausebed ({own}): build all of them, or remove it"
            ),
        ),
        Err(error) => Check::bad(
            name,
            error.to_string(),
            "the program beside pausebed does not run: build it again, or remove it",
        ),
    }
}

pub fn tshark() -> Check {
    const WHAT: &str = "tshark";
    match tool("tshark") {
        Ok(found) => Check::good(WHAT, found.version),
        Err(error) => Check::optional(
            WHAT,
            format!("not found ({error})"),
            "only for looking at captures, and for some tests: apt-get install tshark",
        ),
    }
}
