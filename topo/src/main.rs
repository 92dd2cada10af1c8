//! The program `pausebed`.

use std::process::ExitCode;

fn main() -> ExitCode {
    topo::command::main(std::env::args_os().collect())
}
