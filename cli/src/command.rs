//! The command line: one file for each command. Data goes to standard output, messages go to standard error.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use emulation::wiring::NodeKind;
use launch::{descriptors, output};
use nicd::nic::Nic;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::LazyLock;
use switchd::switch::Switch;

mod calibrate;
mod check;
mod compare;
mod completions;
mod compose;
mod decode;
mod demo;
mod doctor;
mod encode;
mod export;
mod extcap;
mod files;
mod graph;
mod init;
mod lab;
mod man;
pub mod replay;
mod report;
mod run;
mod scenarios;
mod schemes;
mod serve;
mod sweep;
mod tune;
mod validate;
mod verify;
mod vm;
mod wireshark;

pub use crate::exit::{Exit, Failure};

use crate::exit::{EXIT_CODES, Outcome};

/// A laboratory for lossless networks made of real packets.
#[derive(Debug, Parser)]
#[command(name = "pausebed", version = version(), about, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    extcap: extcap::Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The hot spot of the paper, live over UDP: without and with congestion control.
    #[command(after_long_help = EXIT_CODES)]
    Demo(demo::Options),
    /// Run scenario files.
    #[command(after_long_help = EXIT_CODES)]
    Run(run::Options),
    /// Run a scenario and show it in browsers while it lasts.
    #[command(after_long_help = EXIT_CODES)]
    Serve(serve::Options),
    /// Run every scenario file of a folder.
    #[command(after_long_help = EXIT_CODES)]
    Suite(run::Suite),
    /// Run a scenario over values of its keys, and make a table and a figure.
    #[command(after_long_help = EXIT_CODES)]
    Sweep(sweep::Options),
    /// Search parameters of a scheme that restore cold traffic, and are fair and stable.
    Tune(tune::Options),
    /// Write a scenario file with comments, to begin with.
    Init(init::Options),
    /// List, print and copy the scenario files of this program.
    Scenarios(scenarios::Options),
    /// Check scenario files without starting anything.
    Validate(validate::Options),
    /// Print schemes, memory models and routing policies with their parameters.
    Schemes(schemes::Options),
    /// Run conformance cases: on octets, on the virtual clock, live.
    #[command(after_long_help = EXIT_CODES)]
    Check(check::Options),
    /// Compare finished runs: a table and a figure.
    #[command(after_long_help = EXIT_CODES)]
    Compare(compare::Options),
    /// Make the report of a finished run, or of two side by side.
    Report(report::Options),
    /// Export a finished run as a trace for Perfetto, or a dashboard of labs for Grafana.
    Export(export::Options),
    /// Measure the capacity of this host for live runs, and store it.
    Calibrate(calibrate::Options),
    /// Check whether this host can make live runs, and what would improve them.
    Doctor(doctor::Options),
    /// Print a scenario as a Compose file, or as a stack file for Docker Swarm.
    Compose(compose::Options),
    /// Draw the fabric of a scenario file.
    Graph(graph::Options),
    /// Inject recorded frames into a fabric, and show where they go.
    #[command(after_long_help = EXIT_CODES)]
    Replay(replay::Options),
    /// Check a capture: CRCs, lengths, order, credits.
    Verify(verify::Options),
    /// Decode frames of captures or in hex.
    Decode(decode::Options),
    /// Encode frames from the output of decode.
    Encode(encode::Options),
    /// Install the dissector of this project's frames and CRCs in Wireshark.
    Wireshark(wireshark::Options),
    /// Start a lab that runs until down.
    Up(lab::up::Options),
    /// List labs and their state.
    Status(lab::status::Options),
    /// Show the counters of the devices of a lab.
    Show(lab::show::Options),
    /// Reset the counters of a lab to zero.
    Clear(lab::change::Clear),
    /// Change a lab while it runs.
    Set(lab::change::Set),
    /// Inject faults into a lab while it runs.
    Fault(lab::change::FaultOptions),
    /// Start or stop the traffic of a lab.
    Traffic(lab::change::Traffic),
    /// Capture frames of a lab while it runs.
    Capture(lab::capture::Options),
    /// Show the log of a lab, or the console of a host.
    Logs(lab::logs::Options),
    /// Print the environment of programs that manage a lab from beside a node.
    LabEnv(lab::env::Options),
    /// Run a command on a host of a lab, or beside a node of a managed lab.
    Exec(lab::exec::Options),
    /// Open the console of a virtual machine of a lab.
    Console(lab::console::Options),
    /// End a lab, and remove its files.
    Down(lab::down::Options),
    /// Make the image of virtual machines.
    Vm(vm::Options),
    /// Print the completions of a shell.
    Completions(completions::Options),
    /// Write the manual pages.
    Man(man::Options),
    /// Run the supervisor of a lab, for up.
    #[command(hide = true)]
    Keep(lab::up::Keep),
    /// Run as a switch daemon.
    #[command(disable_help_flag = true)]
    Switchd(Part),
    /// Run as a NIC daemon.
    #[command(disable_help_flag = true)]
    Nicd(Part),
}

#[derive(Debug, clap::Args)]
struct Part {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The version and the commit of this program.
fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{} ({})", env!("CARGO_PKG_VERSION"), launch::COMMIT));
    &VERSION
}

/// Runs the command in `arguments`, and prints why it has no result.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    completions::answer(Arguments::command);
    let words = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let line = words.join(" ");
    output::adapt();
    descriptors::raise_limit();
    // For bad usage and for help clap ends the process, with 2 and 0.
    let Arguments { command, extcap } = Arguments::parse_from(arguments);
    let outcome = match &command {
        None => extcap::run(&extcap).unwrap_or_else(|| {
            let kind = ErrorKind::MissingSubcommand;
            Arguments::command().error(kind, "a command is needed: pausebed --help").exit()
        }),
        Some(Command::Switchd(part)) => {
            return daemon::main(NodeKind::Switch, part.arguments.iter().cloned(), Switch::new);
        }
        Some(Command::Nicd(part)) => {
            return daemon::main(NodeKind::Nic, part.arguments.iter().cloned(), Nic::new);
        }
        Some(Command::Exec(options)) => return lab::exec::run(options),
        Some(command) => run(command, &line),
    };
    let exit = outcome.unwrap_or_else(|failure| {
        let command = words.get(1).map_or("", String::as_str);
        let failure = failure.explained(&format!("pausebed {command}"));
        alert!("{}", failure.message);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

/// Runs a command whose exit code is one of this program.
fn run(command: &Command, line: &str) -> Outcome {
    match command {
        Command::Demo(options) => demo::run(options, line),
        Command::Run(options) => run::run(options, line),
        Command::Serve(options) => serve::run(options, line),
        Command::Suite(options) => run::suite(options, line),
        Command::Sweep(options) => sweep::run(options, line),
        Command::Tune(options) => tune::run(options, line),
        Command::Init(options) => init::run(options),
        Command::Scenarios(options) => scenarios::run(options),
        Command::Validate(options) => Ok(validate::run(options)),
        Command::Schemes(options) => Ok(schemes::run(options)),
        Command::Check(options) => check::run(options),
        Command::Compare(options) => compare::run(options),
        Command::Report(options) => report::run(options),
        Command::Export(options) => export::run(options),
        Command::Calibrate(options) => calibrate::run(options, line),
        Command::Doctor(options) => doctor::run(options),
        Command::Compose(options) => compose::run(options),
        Command::Graph(options) => graph::run(options),
        Command::Replay(options) => replay::run(options, line),
        Command::Verify(options) => verify::run(options),
        Command::Decode(options) => decode::run(options),
        Command::Encode(options) => encode::run(options),
        Command::Wireshark(options) => wireshark::run(options),
        Command::Up(options) => lab::up::run(options),
        Command::Status(options) => lab::status::run(options),
        Command::Show(options) => lab::show::run(options),
        Command::Clear(options) => lab::change::clear(options),
        Command::Set(options) => lab::change::set(options),
        Command::Fault(options) => lab::change::fault(options),
        Command::Traffic(options) => lab::change::traffic(options),
        Command::Capture(options) => lab::capture::run(options),
        Command::Logs(options) => lab::logs::run(options),
        Command::LabEnv(options) => lab::env::run(options),
        Command::Console(options) => lab::console::run(options),
        Command::Down(options) => lab::down::run(options),
        Command::Vm(options) => vm::run(options),
        Command::Completions(options) => completions::run(options),
        Command::Man(options) => man::run(options, Arguments::command()),
        Command::Keep(options) => lab::up::keep(options),
        Command::Switchd(_) | Command::Nicd(_) | Command::Exec(_) => {
            unreachable!("main has run it: its exit code is that of another program")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    /// Every command that the table of pages names is one.
    #[test]
    fn pages_are_of_commands() {
        let arguments = Arguments::command();
        let names = scenario::pages::PAGES.iter().filter_map(|row| row.0.strip_prefix("pausebed "));
        for name in names {
            assert!(arguments.find_subcommand(name).is_some(), "{name}");
        }
    }

    /// Builds without debug assertions do not notice two arguments of the same name.
    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
