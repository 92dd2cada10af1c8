//! `pausebed completions SHELL`: what a shell reads so that it completes arguments, and the answers to its requests.
//!
//! The script calls this program with each request, because names of labs, ports and keys are known only then.

use crate::exit::{Exit, Failure, Outcome};
use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::env::{EnvCompleter, Fish, Zsh};

/// The environment variable that makes a call a request of a shell.
const VARIABLE: &str = "PAUSEBED_COMPLETE";

/// The script for bash. It differs from clap's own: bash divides words at `:` and `=`, which ports and keys contain.
const BASH: &str = include_str!("../../assets/pausebed.bash");

/// Options of `completions`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    print!("{}", script(options.shell).map_err(Failure::host)?);
    Ok(Exit::Good)
}

fn script(shell: Shell) -> std::io::Result<String> {
    let shell: &dyn EnvCompleter = match shell {
        Shell::Bash => return Ok(BASH.replace("VARIABLE", VARIABLE)),
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "pausebed", "pausebed", "pausebed", &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Answers the request of a shell, and ends the process; returns if the call is none.
pub(super) fn answer(command: fn() -> Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}
