//! The routes that OpenSM computes for a scenario: a managed lab that lives until all its ports are active.

use super::beside::{self, Output};
use super::folder::{LabRecord, LabStore};
use super::lifecycle;
use crate::calibration::Calibration;
use crate::error::OrHost;
use crate::{LaunchError, estimate, scratch};
use emulation::clock::Stopwatch;
use scenario::Scenario;
use scenario::render::{Lab, render};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The name of the lab in its own folder.
const NAME: &str = "managed";
/// Errors, messages and the tables of routes in files.
const LOG_FLAGS: &str = "0x43";
/// The file with the forwarding tables.
const TABLES: &str = "opensm-lfts.dump";
/// What OpenSM logs when all ports are active.
const UP: &str = "SUBNET UP";

/// What OpenSM has made of a fabric.
#[derive(Clone, Debug)]
pub struct ManagedRoutes {
    /// Overrides that give the scenario these routes, and no manager.
    pub sets: Vec<String>,
    /// Entries of forwarding tables to NICs.
    pub entries: usize,
    /// Wall time of the sweep, in seconds.
    pub seconds: f64,
}

/// Brings the fabric of `scenario` up under OpenSM, and ends it. `sets` are its overrides.
///
/// # Errors
/// If the lab does not start, OpenSM is not installed or does not bring the fabric up, or a table is not complete.
pub fn of_opensm(scenario: &Scenario, sets: &[String]) -> Result<ManagedRoutes, LaunchError> {
    if !scenario.fabric.groups.is_empty() {
        let reason = "multicast groups live as long as their subnet manager: pausebed up";
        return Err(LaunchError::config(reason));
    }
    let place = scratch::make().or_host("no folder for the managed fabric")?;
    let labs = LabStore::open(Some(&place.path().join("labs"))).or_host("no folder for labs")?;
    let lab = render(scenario);
    let dilation = estimate::live(scenario, &lab, &Calibration::load()).dilation;
    let sets = [sets, &["run.backend=\"udp\"".to_owned(), "run.pace=\"wall\"".to_owned()]].concat();
    let record =
        LabRecord { is_tied: true, ..LabRecord::starting(NAME, scenario, &lab, sets, dilation)? };
    let folder = labs.create(&record, &scenario.text)?;
    let managed = lifecycle::start(&folder, |_| {}).and_then(|()| {
        let record = LabRecord::read(&folder).or_host("cannot read the journal")?;
        sweep(&folder, &record, &lab, place.path())
    });
    let record = LabRecord::read(&folder).or_host("cannot read the journal")?;
    lifecycle::end(&labs, &record).or_host("the managed fabric does not end")?;
    managed
}

/// Runs OpenSM once beside the first NIC, and reads its tables.
fn sweep(
    folder: &Path,
    record: &LabRecord,
    lab: &Lab,
    files: &Path,
) -> Result<ManagedRoutes, LaunchError> {
    let stopwatch = Stopwatch::start();
    let log = files.join("opensm.log");
    let words = ["opensm", "-o", "-D", LOG_FLAGS, "-f"].map(str::to_owned);
    let words = [&words[..], &[log.display().to_string()]].concat();
    let variables = [("OSM_TMP_DIR".to_owned(), files.display().to_string())];
    let node = lab.fabric.wiring.nodes.first().map_or("", |node| &node.name);
    let code = beside::run(folder, record, node, &words, &variables, Output::Hidden)?;
    let seconds = stopwatch.seconds();
    let said = fs::read_to_string(&log).unwrap_or_default();
    if code != 0 || !said.contains(UP) {
        let errors: Vec<&str> = said.lines().filter(|line| line.contains("ERR")).take(3).collect();
        let errors = errors.join("\n");
        let what = format!("OpenSM does not bring the fabric up (exit code {code})\n{errors}");
        return Err(LaunchError::died(what));
    }
    let text = fs::read_to_string(files.join(TABLES)).or_host("OpenSM has written no tables")?;
    let tables = tables(&text);
    let mut routes = Vec::new();
    for (switch, node) in lab.switches.iter().zip(&lab.fabric.wiring.nodes[lab.nics.len()..]) {
        let guid = switch.management.map_or(0, |management| management.guid);
        for nic in &lab.nics {
            let port = tables.get(&(guid, nic.lid.get())).ok_or_else(|| {
                LaunchError::died(format!("OpenSM gives {} no route to {}", node.name, nic.name))
            })?;
            let (at, lid) = (&node.name, nic.lid);
            routes.push(format!("{{ at = {at:?}, lid = {lid}, port = {port} }}"));
        }
    }
    let entries = routes.len();
    let sets =
        vec!["lab.managed=false".to_owned(), format!("fabric.route=[{}]", routes.join(", "))];
    Ok(ManagedRoutes { sets, entries, seconds })
}

/// The outputs in a dump of tables, by GUID of the switch and LID.
fn tables(text: &str) -> BTreeMap<(u64, u16), u8> {
    let mut outputs = BTreeMap::new();
    let mut switch = None;
    for line in text.lines() {
        let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let mut words = line.split_whitespace();
        if line.starts_with("Unicast lids") {
            switch = words.skip_while(|word| *word != "guid").nth(1).and_then(hex);
        } else if let (Some(switch), Some(lid)) = (switch, words.next().and_then(hex))
            && let Some(port) = words.next().and_then(|port| port.parse().ok())
        {
            outputs.insert((switch, lid as u16), port);
        }
    }
    outputs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_of_tables_is_read_and_other_lines_are_not() {
        let text = "Unicast lids [0-6] of switch Lid 5 guid 0x0250420000000500 ('s0'):\n\
                    0x0001 001 # Channel Adapter portguid 0x0250420000000101: 'h0'\n\
                    0x0006 003 # Switch portguid 0x0250420000000600: 's1'\n2 lids dumped\n\
                    Unicast lids [0-6] of switch Lid 6 guid 0x0250420000000600 ('s1'):\n0x0001 004 # x\n";
        let expected = [((0x0250_4200_0000_0500, 1), 1), ((0x0250_4200_0000_0500, 6), 3)];
        let expected = expected.into_iter().chain([((0x0250_4200_0000_0600, 1), 4)]);
        assert_eq!(tables(text), expected.collect());
        assert_eq!(tables("0x0001 001\nUnicast lids of nothing\n0x0001 001\n"), BTreeMap::new());
    }
}
