//! `pausebed up FILE`: a lab that stays until `pausebed down`.

use super::{Place, not_launched};
use crate::command::Exit;
use crate::command::overrides::Overrides;
use launch::calibration::Calibration;
use launch::estimate;
use launch::lab::folder::{CreateError, TOKEN};
use launch::lab::{Record, Stage, keeper, start};
use launch::owner::Owner;
use launch::substrate;
use scenario::files::{Loaded, load};
use scenario::render::render;
use scenario::run::Backend;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// On what a lab can stay up.
const BACKENDS: [&str; 2] = ["udp", "netns"];

/// Options of `up`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The scenario file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The lab's name, instead of the file's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What carries frames; that of the file if it is one of these, else udp
    #[arg(long, value_parser = BACKENDS)]
    backend: Option<String>,
    /// Let daemons be administered by TCP at 127.0.0.1 too, by who has the lab's token
    #[arg(long)]
    tcp: bool,
    #[command(flatten)]
    instead: Overrides,
    #[command(flatten)]
    place: Place,
}

/// Options of `keep`, which only `up` calls.
#[derive(Clone, Debug, clap::Args)]
pub struct Keep {
    folder: PathBuf,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let mut sets = options.instead.keys(options.backend.as_deref());
    let loaded = load(&options.file, &sets).and_then(|loaded| {
        let is_possible = matches!(loaded.scenario.run.backend, Backend::Udp | Backend::Netns);
        if is_possible {
            return Ok(loaded);
        }
        sets.push("run.backend=\"udp\"".to_owned());
        load(&options.file, &sets)
    });
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(faults) => {
            eprintln!("{}", faults.trim_end());
            return Exit::Usage;
        }
    };
    match bring_up(options, loaded, sets) {
        Ok(()) => Exit::Good,
        Err(exit) => exit,
    }
}

fn bring_up(options: &Options, loaded: Loaded, sets: Vec<String>) -> Result<(), Exit> {
    let Loaded { stem, scenario, .. } = loaded;
    let lab = render(&scenario);
    let dilation = estimate::live(&scenario, &lab, &Calibration::load()).dilation;
    let labs = options.place.labs()?;
    let owner = Owner::this().map_err(|error| {
        eprintln!("this host does not show processes: {error}");
        Exit::Host
    })?;
    let record = Record {
        lab: options.name.clone().unwrap_or(stem),
        owner,
        starter: owner,
        stage: Stage::Starting,
        sets,
        backend: substrate(scenario.run.backend).name.to_owned(),
        tcp: options.tcp,
        dilation,
        technology: lab.fabric.technology,
        daemons: Vec::new(),
        addresses: BTreeMap::new(),
        links: Vec::new(),
    };
    if let Some(left) = labs.all().get(&record.lab).filter(|left| left.is_abandoned()) {
        // What cannot be removed is in the way, and the next line says so.
        let _ = start::end(&labs, &record.lab, left);
    }
    let folder = labs.create(&record, &scenario.text).map_err(|error| {
        eprintln!("{error}");
        if matches!(error, CreateError::System(..)) { Exit::Host } else { Exit::Usage }
    })?;
    if let Err(error) = start::start(&folder) {
        let name = &record.lab;
        // What stays is removed by the next `up` or `down`.
        let _ = Record::read(&folder).map(|record| start::end(&labs, name, &record));
        return Err(not_launched(&error));
    }
    let Record { lab: name, backend, .. } = &record;
    let (nics, switches) = (lab.nics.len(), lab.switches.len());
    println!("lab {name} is up on {backend}: {nics} NICs, {switches} switches, {dilation}× slowed");
    eprintln!("  pausebed status | show links | show queues --watch | down {name}");
    say_addresses(&folder);
    Ok(())
}

/// Says where daemons may be administered by TCP, if they may.
fn say_addresses(folder: &Path) {
    let addresses = Record::read(folder).into_iter().flat_map(|record| record.daemons);
    let addresses: Vec<String> =
        addresses.filter_map(|daemon| Some(format!("http://{}", daemon.address?))).collect();
    if !addresses.is_empty() {
        let token = folder.join(TOKEN);
        eprintln!("  API: {}; the token is in {}", addresses.join(", "), token.display());
    }
}

/// Plays the keeper of a lab.
pub fn keep(options: &Keep) -> Exit {
    match keeper::run(&options.folder) {
        Ok(()) => Exit::Good,
        Err(reason) => {
            eprintln!("{reason}");
            Exit::Died
        }
    }
}
