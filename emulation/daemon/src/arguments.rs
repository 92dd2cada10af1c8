//! The command line of `switchd` and `nicd`.

use crate::join::TOKEN_VARIABLE;
use clap::{CommandFactory, FromArgMatches, Parser};
use emulation::cable::shim;

/// Hosts devices for a launcher.
///
/// `pausebed` starts this program with a configuration and exchanges messages with it through standard input and output. Started by
/// another program, the daemon joins the launcher at HOST:PORT.
#[derive(Debug, PartialEq, Eq, Parser)]
pub struct Arguments {
    /// Configuration of this daemon, written by the launcher
    #[arg(long, value_name = "FILE", required_unless_present = "join", conflicts_with = "join")]
    pub config: Option<String>,
    /// Join the launcher at this address
    #[arg(long, value_name = "HOST:PORT", requires = "process")]
    pub join: Option<String>,
    /// Number of this process in the lab
    #[arg(long, value_name = "NUMBER", requires = "join")]
    pub process: Option<usize>,
    /// Answer administration requests at this port, for clients that call this host NAME and have the token
    #[arg(long, value_name = "NAME:PORT", requires = "join", value_parser = name_and_port)]
    pub admin: Option<(String, u16)>,
}

impl Arguments {
    /// Parses `arguments`, without the program's name, for the daemon `name`.
    ///
    /// # Errors
    /// If they make no sense, and for `--help` and `--version`; [`clap::Error::print`] shows the text for each.
    pub fn parse(
        name: &'static str,
        arguments: impl Iterator<Item = String>,
    ) -> Result<Arguments, clap::Error> {
        // Parsed once a process; clap keeps it as a static string.
        let version = format!("{} (shim {})", env!("CARGO_PKG_VERSION"), shim::VERSION);
        let token = format!("A daemon that joins takes its token from {TOKEN_VARIABLE}.");
        let command = Arguments::command().name(name).version(&*version.leak()).after_help(token);
        let words = std::iter::once(name.to_owned()).chain(arguments);
        Arguments::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

fn name_and_port(text: &str) -> Result<(String, u16), String> {
    let parts = text.rsplit_once(':').filter(|(name, _)| !name.is_empty());
    let parsed = parts.and_then(|(name, port)| Some((name.to_owned(), port.parse().ok()?)));
    parsed.ok_or_else(|| format!("{text:?} is not NAME:PORT"))
}
