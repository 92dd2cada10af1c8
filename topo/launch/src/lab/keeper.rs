//! The keeper of a lab: the process that holds its daemons and namespaces, and goes on when `up` has ended.

use super::folder::{DaemonRecord, LinkRecord, RUN, Record, SCENARIO, Stage, TOKEN};
use crate::daemons::Cabling;
use crate::daemons::kept::{Administered, Kept, keep};
use crate::owner::{Owner, private};
use crate::{Job, LaunchError, interrupt, netns, refuse_attached};
use daemon::token::Token;
use proto::units::Instant;
use scenario::Scenario;
use scenario::render::{Lab, render};
use scenario::run::Backend;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// What the keeper tells whoever started it, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// The lab runs.
    Up,
    /// It does not, and why.
    Failed(String),
}

/// Keeps the lab in `folder` until told to end.
///
/// # Errors
/// In words, which the journal has too.
pub fn run(folder: &Path) -> Result<(), String> {
    // The terminal that `up` was called from may go away. Who leads a group already is no matter.
    let _ = nix::unistd::setsid();
    interrupt::watch();
    let mut record = Record::read(folder).map_err(|error| format!("no journal: {error}"))?;
    let owner = Owner::this().map_err(|error| error.to_string())?;
    record.owner = owner;
    let kept = record
        .write(folder)
        .map_err(|error| LaunchError::Host(format!("cannot write the journal: {error}")))
        .and_then(|()| stand(folder, &mut record));
    let reason = match &kept {
        Ok(()) => "told to".to_owned(),
        Err(error) => error.to_string(),
    };
    record.stage = Stage::Ended(reason.clone());
    // A folder that is gone was somebody's wish.
    let _ = record.write(folder);
    kept.map_err(|_| {
        // Who has heard that the lab is up listens no more.
        let _ = tell(&Told::Failed(reason.clone()));
        reason
    })
}

/// Says so on standard output.
fn tell(told: &Told) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(told)?;
    line.push(b'\n');
    let mut out = std::io::stdout();
    out.write_all(&line)?;
    out.flush()
}

/// From the folder to a lab that runs, and to its end.
fn stand(folder: &Path, record: &mut Record) -> Result<(), LaunchError> {
    let text = std::fs::read_to_string(folder.join(SCENARIO))
        .map_err(|error| LaunchError::Host(format!("{SCENARIO}: {error}")))?;
    let mut scenario = Scenario::parse(&text, &record.sets)
        .map_err(|faults| LaunchError::Config(faults.in_file(SCENARIO)))?;
    let lab = without_end(&mut scenario);
    record.addresses = addresses(&lab);
    record.links = links(&lab);
    let name = record.lab.clone();
    let scratch = folder.join(RUN);
    private(&scratch).map_err(|error| LaunchError::Host(error.to_string()))?;
    let token = record.tcp.then(|| make_token(folder)).transpose();
    let token = token.map_err(|error| LaunchError::Host(format!("{TOKEN}: {error}")))?;
    let administered = Administered { token };
    let job = Job {
        lab: &lab,
        name: &name,
        seed: scenario.run.seed,
        dilation: record.dilation,
        threads: 1,
        placement: scenario.run.placement,
        cables: scenario.run.cables,
        carrier: scenario.run.carrier,
        realtime: scenario.run.realtime,
        // A lab may stand for days: its host's cores shall sleep when nothing moves.
        awake: false,
        capture: None,
        injections: Vec::new(),
        scratch: &scratch,
    };
    let begun = |daemons: Vec<Kept>| {
        record.daemons = daemons.into_iter().map(|daemon| daemon_record(&lab, daemon)).collect();
        record.stage = Stage::Up;
        let written = record.write(folder).and_then(|()| tell(&Told::Up));
        // Nobody listens: whoever wanted the lab was killed, and does not want it any more.
        written
            .map_err(|error| LaunchError::Host(format!("cannot say that the lab is up: {error}")))
    };
    if scenario.run.backend == Backend::Netns {
        let (_standing, cabling) = netns::Standing::make(&job)?;
        return keep(&job, cabling, administered, begun);
    }
    refuse_attached(&job)?;
    keep(&job, Cabling::on_loopback(&job), administered, begun)
}

/// A new token, which is in the lab's folder too.
fn make_token(folder: &Path) -> std::io::Result<Token> {
    let token = Token::make()?;
    token.write(&folder.join(TOKEN))?;
    Ok(token)
}

/// A scenario as a lab that goes on: traffic that lasts to the end has none, and nothing is measured, as
/// there is no last instant to measure at. Bins are those of the scenario's own length, to begin with.
fn without_end(scenario: &mut Scenario) -> Lab {
    let end = scenario.run.end();
    for item in scenario.traffic.items.iter_mut().filter(|item| item.stop >= end) {
        item.stop = Instant::NEVER;
    }
    let mut lab = render(scenario);
    lab.plan.stop = Instant::NEVER;
    lab.plan.edges.clear();
    lab.plan.measured.clear();
    lab.plan.named.clear();
    lab.plan.all_events = false;
    lab
}

fn addresses(lab: &Lab) -> std::collections::BTreeMap<u64, String> {
    let nodes = lab.fabric.wiring.nodes.iter().zip(&lab.fabric.addresses);
    let adapters = nodes.take(lab.nics.len());
    adapters.map(|(node, address)| (*address, node.name.clone())).collect()
}

fn links(lab: &Lab) -> Vec<LinkRecord> {
    let wiring = &lab.fabric.wiring;
    let links = wiring.links.iter().zip(&lab.fabric.rates).map(|(link, rate)| LinkRecord {
        a: wiring.end_name(link.a),
        b: wiring.end_name(link.b),
        rate: *rate,
    });
    links.collect()
}

fn daemon_record(lab: &Lab, daemon: Kept) -> DaemonRecord {
    let name = |node: &usize| lab.fabric.wiring.nodes[*node].name.clone();
    DaemonRecord {
        pid: daemon.pid,
        kind: daemon.kind,
        nodes: daemon.nodes.iter().map(name).collect(),
        socket: daemon.socket,
        address: daemon.address,
    }
}
