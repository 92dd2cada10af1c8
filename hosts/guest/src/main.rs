//! `guestd`: the first process of a virtual machine, and its parts `serve`, `verbs` and `console`.
//!
//! The first process mounts, loads modules, and then only starts its parts and reaps, so that no part can lose the
//! exit status of its children to it. `serve` sets the identity and runs commands; `verbs` is the
//! agent for verbs; `console` is a shell on the serial line.

#![expect(clippy::disallowed_methods, reason = "this program starts all others of its machine")]

mod boot;
mod console;
mod control;
mod exec;
mod identity;
mod port;
mod verbs_port;

use std::process::ExitCode;

fn main() -> ExitCode {
    let failed = |part: &str, error: std::io::Error| {
        eprintln!("guestd: {part}: {error}");
        ExitCode::FAILURE
    };
    match std::env::args().nth(1).as_deref() {
        None if std::process::id() == 1 => boot::init(),
        Some("serve") => {
            control::serve().map_or_else(|e| failed("serve", e), |()| ExitCode::SUCCESS)
        }
        Some("verbs") => failed("verbs", verbs_port::serve()),
        Some("console") => failed("console", console::shell()),
        _ => {
            eprintln!("guestd is the first process of a virtual machine");
            ExitCode::from(2)
        }
    }
}
