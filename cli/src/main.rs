//! The program `pausebed`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::command::main(std::env::args_os().collect())
}
