//! `pausebed serve`: a scenario that is run, or a lab that is up, in browsers while it lasts.

use super::Exit;
use super::lab::Place;
use super::overrides::Overrides;
use crate::campaign::exit_of_error;
use daemon::token::Token;
use emulation::clock::monotonic_ns;
use emulation::timer;
use launch::calibration::Calibration;
use launch::estimate;
use launch::experiment::{Conditions, Experiment};
use launch::lab::Record;
use launch::{BACKENDS, interrupt, substrate};
use report::{self, data::Graph};
use results::run_directory::topology;
use results::verdict::Verdict;
use results::wording::word;
use scenario::Scenario;
use scenario::files::load;
use scenario::render::{Lab, render};
use serde_json::json;
use serve::{Access, Board, Content, Server, page};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

mod standing;

/// How often the end of waiting is looked for.
const LOOK_EVERY_NS: u64 = 100_000_000;

/// Options of `serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A scenario file, or the name of a lab that is up.
    #[arg(value_name = "FILE|LAB")]
    file: PathBuf,
    /// Where to listen. Any address but this host's own asks for the token that is printed.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8086")]
    listen: SocketAddr,
    /// How often a page is told, times a second.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10))]
    rate: u32,
    /// Run on this substrate instead of the file's.
    #[arg(long, value_parser = BACKENDS.iter().map(|row| row.name).collect::<Vec<_>>())]
    backend: Option<String>,
    #[command(flatten)]
    instead: Overrides,
    /// Make a run on the virtual clock last at least so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    over: u64,
    /// Write the run directory here, with its report.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// End with the run instead of showing its end until Ctrl-C.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    place: Place,
}

/// What is served, and on what it runs.
struct Subject<'a> {
    scenario: &'a Scenario,
    lab: &'a Lab,
    back_end: String,
    /// The lab's journal, if it is one that is up.
    record: Option<&'a Record>,
}

/// Runs the command.
pub fn run(options: &Options, line: &str) -> Exit {
    if !options.file.exists()
        && let Some(exit) = standing::run(options)
    {
        return exit;
    }
    let mut scenario = match load(&options.file, &options.instead.keys(options.backend.as_deref()))
    {
        Ok(loaded) => loaded.scenario,
        Err(faults) => {
            eprintln!("{}", faults.trim_end());
            return Exit::Usage;
        }
    };
    scenario.run.watched = true;
    let lab = render(&scenario);
    let substrate = substrate(scenario.run.backend);
    let dilation = match substrate.is_live {
        true => estimate::live(&scenario, &lab, &Calibration::load()).dilation,
        false => 0,
    };
    let board = Arc::new(Board::new(&scenario, &lab, substrate.is_live));
    let back_end = match dilation {
        0 => "virtual clock".to_owned(),
        dilation => format!("{}, dilated {dilation}×", substrate.name),
    };
    let subject = Subject { scenario: &scenario, lab: &lab, back_end, record: None };
    let server = match open(options, subject, &board) {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    interrupt::watch();
    let conditions = Conditions {
        substrate,
        dilation,
        threads: 1,
        folder: options.out.as_deref(),
        command: line.to_owned(),
        injections: Vec::new(),
    };
    let began = monotonic_ns();
    let (stop, over_ns) =
        (lab.plan.stop.as_ps().max(1), options.over.saturating_mul(1_000_000_000));
    let pace = |at_ps: u64| {
        let due = began + (u128::from(over_ns) * u128::from(at_ps) / u128::from(stop)) as u64;
        while !substrate.is_live && monotonic_ns() < due && !interrupt::requested() {
            timer::wait(None, due.min(monotonic_ns() + LOOK_EVERY_NS));
        }
    };
    let result = Experiment::run(&scenario, conditions, &mut |progress| {
        board.enter(progress);
        pace(progress.at.as_ps());
    });
    let exit = match result {
        Ok(experiment) => conclude(options, &experiment, &board),
        Err(error) => {
            eprintln!("{}: {error}", scenario.name);
            return exit_of_error(&error);
        }
    };
    stay(options);
    drop(server);
    exit
}

/// Until Ctrl-C, unless nobody wants to see the end.
fn stay(options: &Options) {
    if !options.once {
        eprintln!("the page stays until Ctrl-C");
    }
    while !options.once && !interrupt::requested() {
        timer::wait(None, monotonic_ns() + LOOK_EVERY_NS);
    }
}

/// Opens the server and says where the page is.
fn open(options: &Options, subject: Subject<'_>, board: &Arc<Board>) -> Result<Server, Exit> {
    try_open(options, subject, board).map_err(|reason| {
        eprintln!("{reason}");
        Exit::Host
    })
}

fn try_open(options: &Options, subject: Subject<'_>, board: &Arc<Board>) -> Result<Server, String> {
    let Subject { scenario, lab, back_end, record } = subject;
    let topology =
        serde_json::to_value(topology::describe(&lab.fabric)).map_err(|e| e.to_string())?;
    let read = serde_json::from_value(topology.clone()).map_err(|e| e.to_string())?;
    let graph = Graph::of(read)?;
    // Two runs at one address are told apart by when they began.
    let number = monotonic_ns() ^ u64::from(std::process::id());
    let run = json!({
        "run": format!("{number:016x}"),
        "scenario": scenario.name,
        "seed": scenario.run.seed,
        "backend": back_end,
        "tau_ps": lab.fabric.tau.as_ps(),
        "stop_ps": record.is_none().then_some(lab.plan.stop.as_ps()),
        "outputs": board.outputs().all.iter().map(|output| &output.name).collect::<Vec<_>>(),
    });
    let content = Content {
        page: page::html(
            &page::Shown { scenario, lab, graph: &graph, back_end: &back_end, record },
            board,
        ),
        run,
        topology,
        lab: record.cloned(),
    };
    let is_open = options.listen.ip().is_loopback();
    // Nothing can be done to a run, so there the token is for those who look from elsewhere.
    let token = (!is_open || record.is_some()).then(Token::make).transpose();
    let token = token.map_err(|error| format!("no token: {error}"))?;
    let access =
        Access { listen: options.listen, token: token.clone(), is_open, rate: options.rate };
    let server = Server::start(Arc::clone(board), access, content)
        .map_err(|error| format!("cannot listen on {}: {error}", options.listen))?;
    if is_open {
        eprintln!("http://{}/", server.address);
    }
    if let Some(token) = token {
        let what = if record.is_some() { "  (to change the lab, too)" } else { "" };
        eprintln!("http://{}/?token={}{what}", server.address, token.text());
    }
    Ok(server)
}

/// Writes the report, if files are wanted, and tells the page how the run ended.
fn conclude(options: &Options, experiment: &Experiment, board: &Board) -> Exit {
    let result = &experiment.result;
    let report = options.out.as_deref().and_then(|folder| match report::write(folder, None) {
        Ok(file) => Some(file.display().to_string()),
        Err(error) => {
            eprintln!("no report: {error}");
            None
        }
    });
    let met = result.expectations.iter().filter(|judged| judged.verdict == Verdict::Pass).count();
    let sentence = match &result.say {
        Some(said) if result.verdict == Verdict::Pass => said.sentence.clone(),
        _ => format!("{met} of {} expectations met.", result.expectations.len()),
    };
    board.end(word(result.verdict), &sentence, report.as_deref());
    eprintln!("{}  {sentence}", word(result.verdict));
    match result.verdict {
        Verdict::Pass => Exit::Good,
        Verdict::Fail => Exit::Failed,
        Verdict::Inconclusive => Exit::Inconclusive,
    }
}
