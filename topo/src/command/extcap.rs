//! The words by which Wireshark calls this program: `--extcap-interfaces` and what follows from it.

use super::Exit;
use clap::{Parser, ValueEnum};
use launch::interrupt;
use launch::lab::Labs;
use proto::events::Direction;
use proto::units::Bytes;
use serve::wireshark::extcap::filter::Filter;
use serve::wireshark::extcap::session::{self, SessionError, Wish};
use serve::wireshark::extcap::{Interface, configuration, interfaces, link_types, listing};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// What Wireshark says.
#[derive(Debug, Parser)]
#[command(name = "pausebed", disable_help_flag = true)]
struct Options {
    /// Which interfaces are there?
    #[arg(long = "extcap-interfaces")]
    interfaces: bool,
    /// Which Wireshark asks; all are answered alike
    #[arg(long = "extcap-version")]
    version: Option<String>,
    /// About this one
    #[arg(long = "extcap-interface")]
    interface: Option<String>,
    /// What does it carry?
    #[arg(long = "extcap-dlts")]
    link_types: bool,
    /// What can be chosen?
    #[arg(long = "extcap-config")]
    configuration: bool,
    /// Is this filter one? There are none
    #[arg(long = "extcap-capture-filter")]
    filter: Option<String>,
    /// Capture into the pipe
    #[arg(long)]
    capture: bool,
    /// The pipe
    #[arg(long)]
    fifo: Option<PathBuf>,
    #[arg(long, default_value_t = 0)]
    snaplen: u64,
    #[arg(long, value_enum, default_value = "both")]
    direction: Way,
    #[arg(long, default_value = "all")]
    lane: String,
    #[arg(long = "only-control", num_args = 0..=1, default_missing_value = "true", default_value = "false")]
    only_control: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    Both,
    Sent,
    Received,
}

/// Whether these are words of Wireshark's: they begin with no command.
pub fn is_meant(arguments: &[OsString]) -> bool {
    let first = arguments.get(1).map(|word| word.to_string_lossy());
    first.is_some_and(|word| word.starts_with("--extcap-") || word == "--capture")
}

/// Answers.
pub fn run(arguments: Vec<OsString>) -> Exit {
    let options = Options::parse_from(arguments);
    let labs = match Labs::at(None) {
        Ok(labs) => labs.all(),
        Err(error) => {
            eprintln!("no place for labs: {error}");
            BTreeMap::new()
        }
    };
    let running = labs.into_iter().filter(|(_, record)| record.is_alive()).collect();
    let all = interfaces(&running);
    if options.interfaces {
        print!("{}", listing(&all));
        return Exit::Good;
    }
    let named = |one: &&Interface| Some(&one.value) == options.interface.as_ref();
    let Some(interface) = all.iter().find(named) else {
        eprintln!("no such interface: is its lab up?");
        return Exit::Usage;
    };
    let record = &running[&interface.lab];
    if options.link_types {
        print!("{}", link_types(record.technology));
    } else if options.configuration {
        print!("{}", configuration(record.technology));
    } else if options.capture {
        return capture(
            &options,
            Wish {
                record,
                ports: &interface.ports,
                snaplen: (options.snaplen > 0).then(|| Bytes::new(options.snaplen)),
                filter: options.filter(),
            },
        );
    } else if options.filter.as_ref().is_some_and(|filter| !filter.is_empty()) {
        println!("there are no capture filters here: choose direction and lane in the options");
    }
    Exit::Good
}

impl Options {
    fn filter(&self) -> Filter {
        Filter {
            direction: match self.direction {
                Way::Both => None,
                Way::Sent => Some(Direction::Tx),
                Way::Received => Some(Direction::Rx),
            },
            lane: self.lane.parse().ok(),
            only_control: self.only_control,
        }
    }
}

fn capture(options: &Options, wish: Wish<'_>) -> Exit {
    let Some(fifo) = &options.fifo else {
        eprintln!("--capture goes into a pipe: --fifo");
        return Exit::Usage;
    };
    interrupt::watch();
    match session::run(&wish, fifo) {
        Ok(()) => Exit::Good,
        Err(error) => {
            eprintln!("{error}");
            match error {
                SessionError::Client(_) => Exit::Died,
                SessionError::Pipe(..) => Exit::Host,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wiresharks_words_are_told_from_commands() {
        let is_meant =
            |line: &str| is_meant(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in ["p --extcap-interfaces", "p --capture --extcap-interface x --fifo f"] {
            assert!(is_meant(line), "{line}");
        }
        for line in ["p", "p wireshark install --extcap-dir x", "p capture leaf1:4"] {
            assert!(!is_meant(line), "{line}");
        }
    }
}
