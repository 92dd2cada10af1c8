//! `pausebed up FILE`: starts a lab that runs until `pausebed down`.

use super::Place;
use crate::command::files::load_one;
use crate::exit::{Exit, Failure, Outcome};
use crate::options::Overrides;
use launch::calibration::Calibration;
use launch::estimate;
use launch::lab::folder::TOKEN;
use launch::lab::{LabRecord, lifecycle, supervisor};
use launch::with_sources;
use scenario::files::Loaded;
use scenario::render::render;
use scenario::run::Backend;
use std::path::{Path, PathBuf};

/// The substrates of labs.
const BACKENDS: [&str; 2] = ["udp", "netns"];

/// Options of `up`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// The scenario file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The lab's name, instead of the file's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The substrate (default: that of the file if it is one of these, else udp)
    #[arg(long, value_parser = BACKENDS)]
    backend: Option<String>,
    /// Let daemons be administered by TCP at 127.0.0.1 too, with the token of the lab
    #[arg(long)]
    tcp: bool,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    place: Place,
}

/// Options of `keep`, which only `up` calls.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Keep {
    folder: PathBuf,
}

/// Runs the command.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let mut sets = options.overrides.keys(options.backend.as_deref());
    let mut loaded = load_one(&options.file, &sets)?;
    if !matches!(loaded.scenario.run.backend, Backend::Udp | Backend::Netns) {
        sets.push("run.backend=\"udp\"".to_owned());
        loaded = load_one(&options.file, &sets)?;
    }
    let Loaded { stem, scenario, .. } = loaded;
    let lab = render(&scenario);
    let dilation = estimate::live(&scenario, &lab, &Calibration::load()).dilation;
    let labs = options.place.labs()?;
    let name = options.name.clone().unwrap_or(stem);
    let record = LabRecord {
        tcp: options.tcp,
        ..LabRecord::starting(name, &scenario, &lab, sets, dilation)?
    };
    if let Some(left) = labs.all().get(&record.lab).filter(|left| left.is_abandoned()) {
        // If it cannot be removed, creating the folder fails with the reason.
        let _ = lifecycle::end(&labs, left);
    }
    let folder = labs.create(&record, &scenario.text)?;
    lifecycle::start(&folder, |line| eprintln!("  {line}")).inspect_err(|_| {
        // The next `up` or `down` removes what stays.
        let _ = LabRecord::read(&folder).map(|left| lifecycle::end(&labs, &left));
    })?;
    let LabRecord { lab: name, backend, .. } = &record;
    let (nics, switches) = (lab.nics.len(), lab.switches.len());
    let hosts = match lab.fabric.hosts.len() {
        0 => String::new(),
        hosts => format!("{hosts} hosts, "),
    };
    say!(
        "lab {name} is up on {backend}: {hosts}{nics} NICs, {switches} switches, {dilation}× slowed"
    );
    eprintln!("  pausebed status | show links | show queues --watch | down {name}");
    let remarks = launch::attached::remarks(&lab.fabric.wiring);
    for remark in remarks.into_iter().chain(labs.remark().map(str::to_owned)) {
        eprintln!("  {remark}");
    }
    print_addresses(&folder);
    Ok(Exit::Good)
}

/// Prints the TCP addresses of the administration, if there are any.
fn print_addresses(folder: &Path) {
    let addresses = LabRecord::read(folder).into_iter().flat_map(|record| record.daemons);
    let addresses: Vec<String> =
        addresses.filter_map(|daemon| Some(format!("http://{}", daemon.address?))).collect();
    if !addresses.is_empty() {
        let token = folder.join(TOKEN);
        eprintln!("  API: {}; the token is in {}", addresses.join(", "), token.display());
    }
}

/// Runs the supervisor of a lab.
pub(in super::super) fn keep(options: &Keep) -> Outcome {
    supervisor::run(&options.folder)
        .map_err(|error| Failure::new(Exit::Died, with_sources(&error)))?;
    Ok(Exit::Good)
}
