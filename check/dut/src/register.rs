//! The register of cases for devices under test, read from `cases.toml`, and their scripts.

use super::file::DutKind;
use super::nic::{self, Nic};
use super::switch::{self, Switch};
use super::verdict::Check;
use std::sync::LazyLock;

/// The cases of one subject, for one kind of device.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What its ids begin with.
    pub name: String,
    /// What it is about.
    pub subject: String,
    /// The devices that are asked.
    pub kind: DutKind,
    /// Its cases, by number.
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Group and number, as in `L2-01`.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// Document and clause.
    pub clause: String,
    /// What the clause demands.
    pub expected: String,
    /// What a device must claim to be asked; without it, it is NOT-IMPLEMENTED.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Whether its script compares times of the device with the clause.
    #[serde(default)]
    pub timed: bool,
}

/// What a case does.
#[derive(Clone, Copy)]
pub enum Script {
    /// To a switch.
    Switch(fn(&mut Switch<'_>) -> Check),
    /// To a NIC.
    Nic(fn(&mut Nic<'_>) -> Check),
}

/// The file of the register.
#[derive(serde::Deserialize)]
struct Register {
    groups: Vec<Group>,
}

/// Every group.
pub static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    let read = toml::from_str::<Register>(include_str!("../cases.toml"));
    read.expect("cases.toml is a register").groups
});

/// The script of a case; none if it has not been written.
pub fn script(id: &str) -> Option<Script> {
    let of_switch = switch::SCRIPTS.iter().copied().flatten().find(|(known, _)| *known == id);
    let of_nic = || nic::SCRIPTS.iter().copied().flatten().find(|(known, _)| *known == id);
    match of_switch {
        Some((_, script)) => Some(Script::Switch(*script)),
        None => of_nic().map(|(_, script)| Script::Nic(*script)),
    }
}

/// The cases for devices of `kind` that `names` choose, groups or ids; all without a name.
///
/// # Errors
/// The first name that is not a group and no case for this kind.
pub fn choose(kind: DutKind, names: &[String]) -> Result<Vec<&'static Case>, String> {
    let groups = || GROUPS.iter().filter(|group| group.kind == kind);
    let is = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
    let known = |wanted: &&String| {
        let has = |case: &Case| is(&case.id, wanted);
        groups().any(|group| is(&group.name, wanted) || group.cases.iter().any(has))
    };
    if let Some(unknown) = names.iter().find(|wanted| !known(wanted)) {
        return Err(unknown.clone());
    }
    let wants = |name: &str| names.is_empty() || names.iter().any(|wanted| is(name, wanted));
    let chosen = groups().flat_map(|group| {
        let whole = wants(&group.name);
        group.cases.iter().filter(move |case| whole || wants(&case.id))
    });
    Ok(chosen.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[derive(serde::Deserialize)]
    struct Faults {
        fault: Vec<HandWritten>,
    }

    #[derive(serde::Deserialize)]
    struct HandWritten {
        name: String,
        clause: String,
        fault: String,
        case: String,
    }

    #[test]
    fn every_case_has_a_clause_an_expectation_and_a_script_and_every_script_a_case() {
        let cases: Vec<&Case> = GROUPS.iter().flat_map(|group| &group.cases).collect();
        let ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids.len(), cases.len(), "an id is used twice");
        for case in &cases {
            assert!(script(&case.id).is_some(), "{} has no script", case.id);
            assert!(!case.clause.is_empty() && !case.expected.is_empty(), "{}", case.id);
        }
        let of_switch = switch::SCRIPTS.iter().copied().flatten().map(|(id, _)| *id);
        let of_nic = nic::SCRIPTS.iter().copied().flatten().map(|(id, _)| *id);
        for id in of_switch.chain(of_nic) {
            assert!(ids.contains(id), "{id} is in no register");
        }
    }

    #[test]
    fn every_fault_written_by_hand_names_a_case_that_there_is() {
        let faults: Faults = toml::from_str(include_str!("../faults.toml")).expect("a list");
        assert!(faults.fault.len() >= 30);
        for HandWritten { name, clause, fault, case } in faults.fault {
            assert!(script(&case).is_some(), "{name}: no case is called {case}");
            assert!(!clause.is_empty() && !fault.is_empty(), "{name}");
        }
    }

    #[test]
    fn groups_and_cases_are_chosen_by_name_and_unknown_names_refused() {
        let names =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let one = choose(DutKind::Switch, &names(&["l2-04"])).expect("it is known");
        assert_eq!(one.len(), 1);
        assert!(choose(DutKind::Switch, &names(&["L2", "FC"])).expect("known").len() > 15);
        assert_eq!(choose(DutKind::Nic, &names(&["L2"])).unwrap_err(), "L2");
    }
}
