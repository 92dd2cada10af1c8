//! The command line: one file a command, one table of exit codes.
//!
//! Data goes to standard output, talk to standard error.

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

pub mod calibrate;
pub mod check;
pub mod compare;
pub mod compose;
pub mod decode;
pub mod demo;
pub mod doctor;
pub mod encode;
pub mod export;
pub mod extcap;
pub mod files;
pub mod graph;
pub mod lab;
pub mod overrides;
pub mod replay;
pub mod report;
pub mod run;
pub mod serve;
pub mod suite;
pub mod sweep;
pub mod tune;
pub mod validate;
pub mod verify;
pub mod wireshark;

/// How a command ended (design.md 5). Of several runs the highest of 5, 4, 1, 0 counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Good.
    Good = 0,
    /// An expectation or a case failed.
    Failed = 1,
    /// Bad usage or a bad file.
    Usage = 2,
    /// The host lacks something.
    Host = 3,
    /// The host did not keep up.
    Inconclusive = 4,
    /// A daemon died.
    Died = 5,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
}

/// A laboratory for lossless networks made of real packets.
#[derive(Debug, Parser)]
#[command(name = "pausebed", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The hot spot of the paper, live over UDP: without and with congestion control.
    Demo(demo::Options),
    /// Run scenario files.
    Run(run::Options),
    /// Run a scenario and show it in browsers while it lasts.
    Serve(serve::Options),
    /// Run every scenario file of a folder.
    Suite(suite::Options),
    /// Run a scenario over values of its keys: a table and a figure.
    Sweep(sweep::Options),
    /// Search a scheme's parameters for settings that restore cold traffic, are fair and are stable.
    Tune(tune::Options),
    /// Check scenario files without starting anything.
    Validate(validate::Options),
    /// Run conformance cases: on octets, on the virtual clock, live.
    Check(check::Options),
    /// Lay finished runs side by side: a table, and a figure.
    Compare(compare::Options),
    /// Make the page of a finished run, or of two side by side.
    Report(report::Options),
    /// Write for other programs: a finished run as a trace for Perfetto, a board of labs for Grafana.
    Export(export::Options),
    /// Measure what this host sustains in live runs, and remember it.
    Calibrate(calibrate::Options),
    /// Check whether this host can make live runs, and what would make them better.
    Doctor(doctor::Options),
    /// Print a scenario as a Compose file, or as a stack file for Docker Swarm.
    Compose(compose::Options),
    /// Draw the fabric of a scenario file.
    Graph(graph::Options),
    /// Feed recorded frames into a fabric and see what comes out.
    Replay(replay::Options),
    /// Check a capture: CRCs, lengths, order, credits.
    Verify(verify::Options),
    /// Take frames apart: captures, or hex.
    Decode(decode::Options),
    /// Put frames together from what decode writes.
    Encode(encode::Options),
    /// Teach Wireshark the project's frames, and to check CRCs.
    Wireshark(wireshark::Options),
    /// Start a lab that stays up.
    Up(lab::up::Options),
    /// Show which labs are up.
    Status(lab::status::Options),
    /// Show what the devices of a lab count.
    Show(lab::show::Options),
    /// Let the counters of a lab begin at zero.
    Clear(lab::change::Clear),
    /// Change a lab while it runs.
    Set(lab::change::Set),
    /// Do something to frames of a lab while it runs.
    Fault(lab::change::FaultOptions),
    /// Start or stop the traffic of a lab.
    Traffic(lab::change::Traffic),
    /// Capture frames of a lab while it runs.
    Capture(lab::capture::Options),
    /// Show what a lab's processes have said.
    Logs(lab::logs::Options),
    /// End a lab, and remove all it consisted of.
    Down(lab::down::Options),
    /// Keep a lab, for up.
    #[command(hide = true)]
    Keep(lab::up::Keep),
    /// Play the part of the switch daemon.
    #[command(disable_help_flag = true)]
    Switchd(Part),
    /// Play the part of the NIC daemon.
    #[command(disable_help_flag = true)]
    Nicd(Part),
}

#[derive(Debug, clap::Args)]
struct Part {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the command that `arguments` asks for.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    use daemon;
    use emulation::wiring::NodeKind;
    let words = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let line = words.collect::<Vec<_>>().join(" ");
    if extcap::is_meant(&arguments) {
        return ExitCode::from(extcap::run(arguments) as u8);
    }
    // clap prints and ends by itself: 2 for bad usage, 0 for help.
    let parsed = Arguments::parse_from(arguments);
    let exit = match parsed.command {
        Command::Demo(options) => demo::run(&options, &line),
        Command::Run(options) => run::run(&options, &line),
        Command::Serve(options) => serve::run(&options, &line),
        Command::Suite(options) => suite::run(&options, &line),
        Command::Sweep(options) => sweep::run(&options, &line),
        Command::Tune(options) => tune::run(&options, &line),
        Command::Validate(options) => validate::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Export(options) => export::run(&options),
        Command::Calibrate(options) => calibrate::run(&options, &line),
        Command::Doctor(options) => doctor::run(&options),
        Command::Compose(options) => compose::run(&options),
        Command::Graph(options) => graph::run(&options),
        Command::Replay(options) => replay::run(&options, &line),
        Command::Verify(options) => verify::run(&options),
        Command::Decode(options) => decode::run(&options),
        Command::Encode(options) => encode::run(&options),
        Command::Wireshark(options) => wireshark::run(&options),
        Command::Up(options) => lab::up::run(&options),
        Command::Status(options) => lab::status::run(&options),
        Command::Show(options) => lab::show::run(&options),
        Command::Clear(options) => lab::change::clear(&options),
        Command::Set(options) => lab::change::set(&options),
        Command::Fault(options) => lab::change::fault(&options),
        Command::Traffic(options) => lab::change::traffic(&options),
        Command::Capture(options) => lab::capture::run(&options),
        Command::Logs(options) => lab::logs::run(&options),
        Command::Down(options) => lab::down::run(&options),
        Command::Keep(options) => lab::up::keep(&options),
        Command::Switchd(part) => {
            return daemon::main(NodeKind::Switch, part.arguments.into_iter(), switchd::make);
        }
        Command::Nicd(part) => {
            return daemon::main(NodeKind::Nic, part.arguments.into_iter(), nicd::make);
        }
    };
    ExitCode::from(exit as u8)
}
