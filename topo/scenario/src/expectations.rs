//! `[[expect]]`: bounds on measures, and the order of those that are names.

use crate::keyfile::fields::{Fields, Texts};
use crate::keyfile::problem::did_you_mean;
use crate::measure::Expectation;
use crate::measures;
use crate::names;
use crate::topology::Topology;
use proto::params::{KeyTable, Kind, Params};

const ANY_NUMBER: Kind = Kind::Real(f64::NEG_INFINITY, f64::INFINITY);

/// The keys of `[[expect]]`.
pub static KEYS: KeyTable = KeyTable::new("a bound on a measure", Bound::KEYS);

proto::params! {
    /// One `[[expect]]` as written.
    pub struct Bound {
        /// The name of a [[measure]].
        measure: String = Text, Required;
        /// At least this.
        min: Option<f64> = ANY_NUMBER, Optional;
        /// At most this.
        max: Option<f64> = ANY_NUMBER, Optional;
        /// The value that theory predicts; reports show it, no verdict depends on it.
        theory: Option<f64> = ANY_NUMBER, Optional;
        /// For an order: its nodes, those of one pattern or inner list in any order.
        order: Option<Vec<Texts>> = List(&Either(&[Text, List(&Text)])), Optional;
        /// The reason, with its source.
        why: String = Text, Default("");
    }
}

/// Reads every `[[expect]]`.
pub fn read(root: &Fields<'_>, topology: &Topology) -> Vec<Expectation> {
    let all = root.each::<Bound>("expect").into_iter();
    all.map(|(fields, bound)| one(root, &fields, bound, topology)).collect()
}

fn one(root: &Fields<'_>, fields: &Fields<'_>, bound: Bound, topology: &Topology) -> Expectation {
    let Bound { measure, min, max, theory, order, why } = bound;
    let measures = root.tables("measure");
    let mut names = measures.iter().filter_map(|measure| measure.text("name"));
    let of = measures.iter().find(|other| other.text("name") == Some(&measure));
    if of.is_none() {
        let message = format!("no [[measure]] is called {measure:?}");
        fields.error("measure", message, did_you_mean(&measure, names.by_ref()));
    }
    let given = if min.is_some() { "min" } else { "max" };
    let (has_bound, in_order) = ("min = …, max = …, or both", "order = [\"s1\", …]");
    match (of.is_some_and(measures::is_order), min.or(max), &order) {
        (true, Some(_), _) => fields.error(given, "an order has no bounds", in_order),
        (true, None, None) => fields.error("measure", "nothing is expected", in_order),
        (false, _, Some(_)) => fields.error("order", "a number has no order", has_bound),
        (false, None, None) => fields.error("measure", "nothing is expected", has_bound),
        _ => {}
    }
    if let Some((min, max)) = min.zip(max).filter(|(min, max)| min > max) {
        let message = format!("min {min} is above max {max}: nothing can meet it");
        fields.error("min", message, "exchange them");
    }
    let order = order.map(|groups| {
        let nodes = |group: &Texts| {
            let found = fields.gather("order", group, |text| names::nodes(topology, text));
            let nodes = found.unwrap_or_default().into_iter();
            nodes.map(|node| topology.nodes[node].name.clone()).collect()
        };
        groups.iter().map(nodes).collect()
    });
    Expectation { measure, min, max, theory, order, why, line: fields.place.line() }
}
