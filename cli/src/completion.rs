//! What a shell may put in place of an argument: labs and their ports, cases, keys, scenarios.

use crate::library;
use clap::builder::StyledStr;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use launch::lab::{LabRecord, LabStore};
use proto::congestion::schemes;
use proto::params::{KeyTable, Kind};
use scenario::keyfile::settle::join;
use std::collections::BTreeSet;
use std::ffi::OsStr;

/// Names of labs.
pub fn labs() -> ArgValueCandidates {
    of_labs(|lab| vec![lab.lab.clone()])
}

/// Ports of labs, as in `leaf1:4`.
pub fn ports() -> ArgValueCandidates {
    of_labs(ports_of)
}

/// Ports and nodes of labs.
pub fn ports_and_nodes() -> ArgValueCandidates {
    of_labs(|lab| [nodes_of(lab), ports_of(lab)].concat())
}

/// Switches and NICs of labs.
pub fn nodes() -> ArgValueCandidates {
    of_labs(nodes_of)
}

/// Hosts of labs.
pub fn hosts() -> ArgValueCandidates {
    of_labs(|lab| lab.hosts.iter().map(|host| host.name.clone()).collect())
}

/// Labs and their hosts.
pub fn labs_and_hosts() -> ArgValueCandidates {
    of_labs(|lab| {
        let hosts = lab.hosts.iter().map(|host| host.name.clone());
        std::iter::once(lab.lab.clone()).chain(hosts).collect()
    })
}

/// Groups and cases, of this program's devices and of devices under test.
pub fn cases() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let own = conformance::cases::GROUPS.iter().flat_map(|group| {
            let cases = group.cases.iter().map(|case| (&case.id, &case.title));
            std::iter::once((&group.name, &group.subject)).chain(cases)
        });
        let of_devices = dut::register::GROUPS.iter().flat_map(|group| {
            let cases = group.cases.iter().map(|case| (&case.id, &case.title));
            std::iter::once((&group.name, &group.subject)).chain(cases)
        });
        own.chain(of_devices).map(|(name, about)| candidate(name, about)).collect()
    })
}

/// Congestion control schemes.
pub fn schemes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        schemes::all().iter().map(|scheme| candidate(scheme.name, scheme.about)).collect()
    })
}

/// Scenario files in the program.
pub fn scenarios() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let row = |(name, text): &(&str, &str)| candidate(name, &library::purpose(text));
        library::SCENARIOS.iter().map(row).collect()
    })
}

/// `KEY=VALUE` of a scenario: keys, and after the equals sign the words of a key.
pub fn keys() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let typed = typed.to_string_lossy();
        let mut found = Vec::new();
        match typed.split_once('=') {
            None => walk(&scenario::KEYS, "", &mut |path, kind, about| {
                if path.starts_with(&*typed) && !matches!(kind, Kind::Tables(_)) {
                    found.push(candidate(&format!("{path}="), about));
                }
            }),
            Some((key, value)) => walk(&scenario::KEYS, "", &mut |path, kind, _| {
                let Kind::Word(words) = kind else { return };
                if path == key {
                    let fits = words().into_iter().filter(|word| word.starts_with(value));
                    found.extend(fits.map(|word| candidate(&format!("{key}={word}"), "")));
                }
            }),
        }
        found
    })
}

/// Calls `visit` with the path, kind and meaning of each key that is not a table. Lists of tables are not entered: their
/// elements have the names that a file gives them.
fn walk(table: &KeyTable, path: &str, visit: &mut dyn FnMut(&str, &Kind, &str)) {
    for key in table.every_key() {
        let path = join(path, key.name);
        match &key.kind {
            Kind::Table(inner) => walk(inner, &path, visit),
            kind => visit(&path, kind, key.about),
        }
    }
}

/// What `names` returns for each lab, each name once.
fn of_labs(names: fn(&LabRecord) -> Vec<String>) -> ArgValueCandidates {
    ArgValueCandidates::new(move || {
        let labs = LabStore::open(None).map(|labs| labs.all()).unwrap_or_default();
        let all: BTreeSet<String> = labs.values().flat_map(names).collect();
        all.into_iter().map(CompletionCandidate::new).collect()
    })
}

fn ports_of(lab: &LabRecord) -> Vec<String> {
    let cabled = lab.links.iter().flat_map(|link| [&link.a, &link.b]);
    cabled.chain(lab.attached.iter().map(|attached| &attached.port)).cloned().collect()
}

fn nodes_of(lab: &LabRecord) -> Vec<String> {
    let ports = ports_of(lab);
    let nodes: BTreeSet<_> = ports.iter().filter_map(|port| port.split(':').next()).collect();
    nodes.into_iter().map(str::to_owned).collect()
}

fn candidate(name: &str, about: &str) -> CompletionCandidate {
    let about = about.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let help = (!about.is_empty()).then(|| StyledStr::from(about.to_owned()));
    CompletionCandidate::new(name).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(typed: &str) -> Vec<String> {
        let found = keys().complete(OsStr::new(typed));
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn keys_of_schemes_and_words_of_keys_are_found() {
        assert!(completed("scheme.ccti_i").contains(&"scheme.ccti_increase=".to_owned()));
        assert_eq!(completed("run.see"), ["run.seed="]);
        assert!(completed("scheme.kind=").contains(&"scheme.kind=dcqcn".to_owned()));
        assert_eq!(completed("run.backend=ud"), ["run.backend=udp"]);
        assert!(completed("traffic").is_empty(), "its elements have names of the file");
    }

    #[test]
    fn cases_schemes_and_scenarios_are_offered_by_name() {
        let names = |of: ArgValueCandidates| -> Vec<String> {
            of.candidates()
                .iter()
                .map(|one| one.get_value().to_string_lossy().into_owned())
                .collect()
        };
        let cases = names(cases());
        assert!(
            ["IBFC", "IBRX-01", "QUE-08"].iter().all(|case| cases.iter().any(|name| name == case))
        );
        assert!(names(schemes()).contains(&"rr-cc".to_owned()));
        assert!(names(scenarios()).contains(&"pfister/case4-none".to_owned()));
    }
}
