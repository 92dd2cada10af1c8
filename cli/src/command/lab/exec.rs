//! `pausebed exec HOST -- COMMAND…`: runs a command on a host of a running lab, or beside a node of a managed one.

use super::{Choice, running_host};
use crate::completion;
use crate::exit::Failure;
use host::HostError;
use host::exec::ExecRequest;
use launch::hosts::exec_on;
use launch::lab::beside::{self, Output};
use std::io;
use std::process::ExitCode;

/// What `exec` itself ends with if it cannot run the command, as env(1) and timeout(1) do.
const CANNOT: u8 = 125;
/// As a shell reports a program that SIGPIPE has ended.
const PIPE_CLOSED: u8 = 141;

/// Options of `exec`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Exit code: that of COMMAND; 125 if it cannot be run, 141 if a reader closed the output."
)]
pub(in super::super) struct Options {
    /// The host, or the node of a managed lab beside which the command runs
    #[arg(value_name = "HOST", add = completion::hosts())]
    host: String,
    /// The program and its arguments; no shell reads them
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Set a variable of its environment, as in NAME=VALUE; can be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    choice: Choice,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the command. Its three streams are those of this program, and so is its exit code.
pub(in super::super) fn run(options: &Options) -> ExitCode {
    let code = try_run(options).unwrap_or_else(|failure| {
        eprintln!("{}", failure.message);
        CANNOT
    });
    ExitCode::from(code)
}

fn try_run(options: &Options) -> Result<u8, Failure> {
    let record = options.choice.running()?;
    if record.host(&options.host).is_none() && record.is_managed() {
        let folder = options.choice.place.labs()?.folder(&record.lab);
        return Ok(beside::run(
            &folder,
            &record,
            &options.host,
            &options.command,
            &options.env,
            Output::Shown,
        )?);
    }
    let (folder, host) = running_host(&options.choice, &options.host)?;
    let request = ExecRequest {
        argv: options.command.clone(),
        environment: options.env.iter().cloned().collect(),
    };
    let (mut stdout, mut stderr) = (io::stdout(), io::stderr());
    let (exec, stdin) = (exec_on(host.kind), Box::new(io::stdin()));
    match exec(&folder, &host.name, &request, stdin, &mut stdout, &mut stderr, None) {
        // Exit codes have eight bits.
        Ok(code) => Ok(code as u8),
        Err(HostError::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
            Ok(PIPE_CLOSED)
        }
        Err(error) => Err(Failure::host(error)),
    }
}
