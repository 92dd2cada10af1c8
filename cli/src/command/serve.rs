//! `pausebed serve`: shows a run or a lab in browsers while it lasts.

use super::files::load_one;
use super::lab::Place;
use crate::exit::{Exit, Failure, Outcome};
use crate::options::Overrides;
use daemon::token::Token;
use emulation::clock::monotonic_ns;
use emulation::timer;
use launch::calibration::Calibration;
use launch::estimate;
use launch::experiment::{Conditions, Experiment};
use launch::{BACKENDS, interrupt, substrate};
use report::data::Graph;
use results::run_directory::topology;
use results::verdict::Verdict;
use results::wording::word;
use scenario::render::render;
use scenario::run::Pace;
use serde_json::json;
use serve::page::{self, PageSubject};
use serve::{Access, Content, LiveState, Server};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

mod lab;

/// The interval at which the end of a wait is polled.
const POLL_NS: u64 = 100_000_000;

/// Options of `serve`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// A scenario file, or the name of a lab that is up.
    #[arg(value_name = "FILE|LAB")]
    file: PathBuf,
    /// The address to listen at. Clients of other hosts need the token that is printed.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8086")]
    listen: SocketAddr,
    /// Updates of a page in a second.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10))]
    rate: u32,
    /// Run on this substrate instead of the file's.
    #[arg(long, value_parser = BACKENDS.iter().map(|row| row.name).collect::<Vec<_>>())]
    backend: Option<String>,
    #[command(flatten)]
    overrides: Overrides,
    /// The shortest duration of a run on the virtual clock, in seconds of wall time.
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

/// Runs the command.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    if !options.file.exists()
        && let Some(name) = options.file.to_str()
    {
        return lab::run(options, name);
    }
    let keys = options.overrides.keys(options.backend.as_deref());
    let mut scenario = load_one(&options.file, &keys)?.scenario;
    scenario.watched = true;
    let lab = render(&scenario);
    let substrate = substrate(scenario.run.backend);
    let is_exact = substrate.is_live && scenario.run.pace == Pace::Exact;
    let (dilation, elastic) = match substrate.is_live && !is_exact {
        true => {
            let estimate = estimate::run(&scenario, &lab, &Calibration::load());
            (estimate.dilation, estimate.elastic)
        }
        false => (0, false),
    };
    let state = Arc::new(LiveState::new(&scenario, &lab, dilation > 0));
    let back_end = match dilation {
        0 if is_exact => format!("{}, exact pace", substrate.name),
        0 => "virtual clock".to_owned(),
        dilation => {
            let least = if elastic { " or more" } else { "" };
            format!("{}, dilated {dilation}×{least}", substrate.name)
        }
    };
    let subject = PageSubject { scenario: &scenario, lab: &lab, back_end, record: None };
    let _server = open(options, &subject, &state)?;
    interrupt::install_handlers();
    let folder = options.out.as_deref();
    let conditions = Conditions { dilation, elastic, folder, ..Conditions::new(substrate, line) };
    let began = monotonic_ns();
    let (stop, over_ns) =
        (lab.plan.stop.as_ps().max(1), options.over.saturating_mul(1_000_000_000));
    let pace = |at_ps: u64| {
        let due = began + (u128::from(over_ns) * u128::from(at_ps) / u128::from(stop)) as u64;
        while !substrate.is_live && monotonic_ns() < due && !interrupt::requested() {
            timer::wait(None, due.min(monotonic_ns() + POLL_NS));
        }
    };
    let result = Experiment::of(&scenario, lab, conditions, &mut |progress| {
        state.update(progress);
        pace(progress.at.as_ps());
    });
    let experiment = result.map_err(|error| Failure::from(error).of(&scenario.name))?;
    let exit = conclude(options, &experiment, &state);
    wait_for_end(options);
    Ok(exit)
}

/// Waits for Ctrl-C, unless the command ends with the run.
fn wait_for_end(options: &Options) {
    if !options.once {
        eprintln!("the page stays until Ctrl-C");
    }
    while !options.once && !interrupt::requested() {
        interrupt::pause(POLL_NS);
    }
}

/// Starts the server and prints the address of the page.
fn open(
    options: &Options,
    subject: &PageSubject<'_>,
    state: &Arc<LiveState>,
) -> Result<Server, Failure> {
    let PageSubject { scenario, lab, back_end, record } = subject;
    let topology = serde_json::to_value(topology::describe(&lab.fabric)).map_err(Failure::host)?;
    let graph: Graph = serde_json::from_value(topology.clone()).map_err(Failure::host)?;
    // The page distinguishes two runs at one address by this number.
    let number = monotonic_ns() ^ u64::from(std::process::id());
    let run = json!({
        "run": format!("{number:016x}"),
        "scenario": scenario.name,
        "seed": scenario.run.seed,
        "backend": back_end,
        "tau_ps": lab.fabric.tau.as_ps(),
        "stop_ps": record.is_none().then_some(lab.plan.stop.as_ps()),
        "outputs": state.outputs.all.iter().map(|output| &output.name).collect::<Vec<_>>(),
    });
    let page = page::html(subject, &graph, state);
    let content = Content { page, run, topology, lab: record.cloned() };
    let is_open = options.listen.ip().is_loopback();
    // A run has no actions, so its page needs the token only for clients of other hosts.
    let token = (!is_open || record.is_some()).then(Token::make).transpose();
    let token = token.map_err(|error| Failure::host(format!("no token: {error}")))?;
    let access =
        Access { listen: options.listen, token: token.clone(), is_open, rate: options.rate };
    let server = Server::start(Arc::clone(state), access, content)
        .map_err(|error| Failure::host(format!("cannot listen on {}: {error}", options.listen)))?;
    if is_open {
        eprintln!("http://{}/", server.address);
    }
    if let Some(token) = token {
        let what = if record.is_some() { "  (to change the lab, too)" } else { "" };
        eprintln!("http://{}/?token={}{what}", server.address, token.text());
    }
    Ok(server)
}

/// Writes the report, if files are wanted, and shows the end of the run on the page.
fn conclude(options: &Options, experiment: &Experiment, state: &LiveState) -> Exit {
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
        _ => {
            let lost = result.lossless_drops.as_ref().map(|drops| format!(" {drops}."));
            let of = result.expectations.len();
            format!("{met} of {of} expectations met.{}", lost.unwrap_or_default())
        }
    };
    state.end(word(result.verdict), &sentence, report.as_deref());
    eprintln!("{}  {sentence}", word(result.verdict));
    result.into()
}
