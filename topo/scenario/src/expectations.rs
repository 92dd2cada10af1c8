//! `[[expect]]`: bounds on measures, and the order of those that are names.

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems, did_you_mean};
use crate::measure::Expectation;
use crate::measures;
use crate::names;
use crate::topology::Topology;
use proto::params::{Key, KeyTable, Kind};

const ANY_NUMBER: Kind = Kind::Real(f64::NEG_INFINITY, f64::INFINITY);

/// The keys of `[[expect]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "a bound on a measure",
    &[
        Key::required("measure", Kind::Text, "the name of a [[measure]]"),
        Key::optional("min", ANY_NUMBER, "at least this"),
        Key::optional("max", ANY_NUMBER, "at most this"),
        Key::optional(
            "theory",
            ANY_NUMBER,
            "what theory says; reports show it, no verdict depends on it",
        ),
        Key::optional(
            "order",
            Kind::List(&Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)])),
            "for an order: its nodes, those of one pattern or inner list in any order",
        ),
        Key::new("why", Kind::Text, "", "the reason, with its source"),
    ],
);

/// Reads every `[[expect]]`.
pub fn read(
    root: &Fields<'_>,
    topology: Option<&Topology>,
    problems: &mut Problems,
) -> Vec<Expectation> {
    let measures = root.tables("measure");
    let names = measures.iter().filter_map(|measure| measure.text("name"));
    let mut expectations = Vec::new();
    for fields in root.tables("expect") {
        let Some(measure) = fields.text("measure") else { continue };
        if !names.clone().any(|name| name == measure) {
            let message = format!("no [[measure]] is called {measure:?}");
            let hint = did_you_mean(measure, names.clone());
            fields.report(problems, "measure", Complaint::new(message, hint));
        }
        let (min, max) = (fields.real("min"), fields.real("max"));
        let of = measures.iter().find(|other| other.text("name") == Some(measure));
        let is_order = of.is_some_and(|of| measures::is_order(of));
        check_kind(&fields, is_order, problems);
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let message = format!("min {min} is above max {max}: nothing can meet it");
            fields.report(problems, "min", Complaint::new(message, "exchange them"));
        }
        expectations.push(Expectation {
            measure: measure.to_owned(),
            min,
            max,
            theory: fields.real("theory"),
            order: topology.and_then(|topology| order(&fields, topology, problems)),
            why: fields.text("why").unwrap_or_default().to_owned(),
            line: fields.place.line(),
        });
    }
    expectations
}

/// An order is expected of an order, bounds of a number; and something is.
fn check_kind(fields: &Fields<'_>, is_order: bool, problems: &mut Problems) {
    let given = |keys: &[&'static str]| keys.iter().copied().find(|key| fields.has(key));
    let (bound, order) = (given(&["min", "max"]), given(&["order"]));
    let fault = match (is_order, bound, order) {
        (true, Some(key), _) => Some((key, "an order has no bounds", "order = [\"s1\", …]")),
        (true, None, None) => Some(("measure", "nothing is expected", "order = [\"s1\", …]")),
        (false, _, Some(key)) => Some((key, "a number has no order", "min = …, max = …, or both")),
        (false, None, None) => {
            Some(("measure", "nothing is expected", "min = …, max = …, or both"))
        }
        _ => None,
    };
    if let Some((key, message, hint)) = fault {
        fields.report(problems, key, Complaint::new(message, hint));
    }
}

/// The groups of `order`, their patterns as the nodes they name.
fn order(
    fields: &Fields<'_>,
    topology: &Topology,
    problems: &mut Problems,
) -> Option<Vec<Vec<String>>> {
    let groups = fields.text_groups("order")?;
    let mut order = Vec::new();
    for group in groups {
        let mut names = Vec::new();
        for (text, place) in group {
            match names::nodes(topology, text) {
                Ok(found) => {
                    names.extend(found.iter().map(|node| topology.nodes[*node].name.clone()));
                }
                Err(complaint) => {
                    problems.report(place, format!("{}.order", fields.path), complaint);
                }
            }
        }
        order.push(names);
    }
    Some(order)
}
