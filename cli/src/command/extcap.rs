//! The options with which Wireshark calls this program as an extcap: they stand in place of a command.

use crate::exit::{Exit, Failure, Outcome};
use clap::ValueEnum;
use launch::interrupt;
use launch::lab::LabStore;
use launch::with_sources;
use proto::events::Direction;
use proto::units::Bytes;
use serve::wireshark::extcap::filter::Filter;
use serve::wireshark::extcap::session::{self, CaptureRequest, SessionError};
use serve::wireshark::extcap::{Interface, configuration, interfaces, link_types, listing};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of an extcap. Source: Wireshark, doc/extcap.adoc.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(super) struct Options {
    /// List the interfaces
    #[arg(long = "extcap-interfaces", hide = true)]
    interfaces: bool,
    /// The version of Wireshark, which is ignored
    #[arg(id = "extcap-version", long, hide = true)]
    version: Option<String>,
    /// The interface
    #[arg(long = "extcap-interface", hide = true)]
    interface: Option<String>,
    /// Print the link type of the interface
    #[arg(long = "extcap-dlts", hide = true)]
    link_types: bool,
    /// Print the options of the interface
    #[arg(long = "extcap-config", hide = true)]
    configuration: bool,
    /// A capture filter, which is not supported
    #[arg(long = "extcap-capture-filter", hide = true)]
    capture_filter: Option<String>,
    /// Capture into the pipe
    #[arg(id = "extcap-capture", long = "capture", hide = true)]
    capture: bool,
    /// The pipe
    #[arg(long, hide = true)]
    fifo: Option<PathBuf>,
    /// Octets kept of a frame; 0 keeps all
    #[arg(long, default_value_t = 0, hide = true)]
    snaplen: u64,
    /// The direction of the frames
    #[arg(long, value_enum, default_value = "both", hide = true)]
    direction: Way,
    /// The virtual lane or priority of the frames
    #[arg(long, default_value = "all", hide = true)]
    lane: String,
    /// Only frames that control the link or a flow
    #[arg(long = "only-control", hide = true, num_args = 0..=1, default_missing_value = "true", default_value = "false")]
    only_control: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    Both,
    Sent,
    Received,
}

/// Answers a query of Wireshark; none if there is none.
pub(super) fn run(options: &Options) -> Option<Outcome> {
    let is_query = options.interfaces
        || options.link_types
        || options.configuration
        || options.capture
        || options.interface.is_some()
        || options.capture_filter.is_some();
    is_query.then(|| answer(options))
}

fn answer(options: &Options) -> Outcome {
    let labs = LabStore::open(None).map(|labs| labs.all()).unwrap_or_else(|error| {
        eprintln!("no folder for labs: {error}");
        BTreeMap::new()
    });
    let running = labs.into_iter().filter(|(_, record)| record.is_alive()).collect();
    let all = interfaces(&running);
    if options.interfaces {
        print!("{}", listing(&all));
        return Ok(Exit::Good);
    }
    let named = |one: &&Interface| Some(&one.value) == options.interface.as_ref();
    let interface = all.iter().find(named);
    let interface = interface.ok_or_else(|| Failure::usage("no such interface: is its lab up?"))?;
    let record = &running[&interface.lab];
    if options.link_types {
        print!("{}", link_types(record.technology));
    } else if options.configuration {
        print!("{}", configuration(record.technology));
    } else if options.capture {
        let request = CaptureRequest {
            record,
            ports: &interface.ports,
            snaplen: (options.snaplen > 0).then(|| Bytes::new(options.snaplen)),
            filter: options.filter(),
        };
        let fifo = options.fifo.as_ref();
        let fifo = fifo.ok_or_else(|| Failure::usage("--capture needs a pipe: --fifo"))?;
        interrupt::install_handlers();
        session::run(&request, fifo).map_err(|error| match error {
            SessionError::Client(error) => Failure::new(Exit::Died, with_sources(&error)),
            SessionError::Pipe(..) => Failure::host(with_sources(&error)),
        })?;
    } else if options.capture_filter.as_ref().is_some_and(|filter| !filter.is_empty()) {
        println!("capture filters are not supported: choose direction and lane in the options");
    }
    Ok(Exit::Good)
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
