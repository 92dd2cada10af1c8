//! The program `pausebed` with one more scheme: `docs/book/scheme.md` explains it.

use std::process::ExitCode;

mod scheme;

fn main() -> ExitCode {
    proto::congestion::schemes::add(&[&scheme::SCHEME]);
    cli::command::main(std::env::args_os().collect())
}
