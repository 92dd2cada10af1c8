//! `pausebed`, but for one of its daemons: `PAUSEBED_MUTANT` names the program that takes its place, `…/nicd` or `…/switchd`.

#![expect(clippy::disallowed_methods, reason = "this program becomes another one")]

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let mutant = std::env::var_os("PAUSEBED_MUTANT").map(PathBuf::from);
    if let Some(mutant) = mutant
        && words.get(1).map(OsString::as_os_str) == mutant.file_name()
    {
        let error = Command::new(&mutant).args(&words[2..]).exec();
        eprintln!("{}: {error}", mutant.display());
        return ExitCode::FAILURE;
    }
    cli::command::main(words)
}
