//! One experiment as a file: fabric, scheme, traffic, measures, and what is expected of them.
//!
//! [`Scenario::parse`] takes the text and the overrides and answers with a scenario in which
//! everything is resolved (names are node indexes, times are picoseconds), or with every fault of
//! the file at once. Each part is read by a file of its own, which also declares its keys.

use crate::frames::TECHNOLOGIES;
use crate::keyfile::document::{self, Data, Datum, Table};
use crate::keyfile::fields::Fields;
use crate::keyfile::json_schema;
use crate::keyfile::overrides;
use crate::keyfile::problem::{Complaint, Place, Problem, Problems};
use crate::keyfile::settle::settle;
use crate::measure::{Expectation, Measure};
use crate::routes::colored;
use emulation::wiring::Impairment;
use proto::congestion::SchemeConfig;
use proto::params::quantity::{self, Scale};
use proto::params::{Key, KeyTable, Kind};
use proto::technology::Technology;
use proto::units::Bytes;

pub mod attached;
mod devices;
pub mod expectations;
pub mod fabric;
pub mod faults;
pub mod figures;
pub mod files;
pub mod frames;
pub mod inventory;
pub mod keyfile;
pub mod lab;
pub mod measure;
pub mod measures;
pub mod names;
pub mod outages;
mod pair;
pub mod parameters;
pub mod phases;
pub mod reachability;
pub mod render;
pub mod repeat;
pub mod routes;
pub mod run;
pub mod say;
pub mod scheme;
pub mod settings;
pub mod shapes;
pub mod topology;
pub mod trace;
pub mod traffic;
pub mod tune;

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in results.
    pub name: String,
    /// Where its numbers come from.
    pub source: String,
    /// The sentence a report opens with.
    pub say: Option<say::Say>,
    /// The name of the scenario that a report lays beside this one, where both are run.
    pub baseline: Option<String>,
    /// How it is run.
    pub run: run::Run,
    /// What it runs on.
    pub fabric: fabric::FabricSettings,
    /// Congestion control.
    pub scheme: SchemeConfig,
    /// Who sends what.
    pub traffic: traffic::Plan,
    /// Faults injected on purpose.
    pub impairments: Vec<Impairment>,
    /// Links that are down for a while, ascending.
    pub outages: Vec<outages::CableOutage>,
    /// Named parts of the run.
    pub phases: Vec<phases::Phase>,
    /// What figures of the report are to be compared with.
    pub figures: Vec<figures::Likeness>,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// What is expected.
    pub expectations: Vec<Expectation>,
    /// What `pausebed tune` searches.
    pub tune: Option<tune::Tune>,
    /// Its keys with their values and where those come from.
    pub settings: Vec<settings::Setting>,
    /// The file, without overrides.
    pub text: String,
    /// The overrides, as after `--set`.
    pub sets: Vec<String>,
    /// What looks wrong but may be meant.
    pub warnings: Vec<Problem>,
}

/// The keys of a scenario file.
pub static KEYS: KeyTable = KeyTable::new(
    "a pausebed scenario",
    &[
        Key::required("schema", Kind::Whole(1, 1), "version of this format"),
        Key::required("name", Kind::Text, "name in results"),
        Key::new("source", Kind::Text, "", "where the numbers come from"),
        Key::optional(
            "say",
            Kind::Text,
            "the sentence a report opens with; {measure} and {measure:%} stand for values",
        ),
        Key::optional(
            "baseline",
            Kind::Text,
            "the scenario that a report lays beside this one, where both are run",
        ),
        Key::required("run", Kind::Table(&run::KEYS), "how it is run"),
        Key::required("fabric", Kind::Table(&fabric::KEYS), "what it runs on"),
        Key::optional("lab", Kind::Table(&lab::KEYS), "what of this host the fabric is cabled to"),
        Key::new("scheme", Kind::Table(&scheme::KEYS), "{ kind = \"none\" }", "congestion control"),
        Key::optional("traffic", Kind::Tables(&traffic::KEYS), "who sends what"),
        Key::optional(
            "trace",
            Kind::Tables(&traffic::replayed::KEYS),
            "messages that wait for each other",
        ),
        Key::optional("impairment", Kind::Tables(&faults::KEYS), "faults injected on purpose"),
        Key::optional("outage", Kind::Tables(&outages::KEYS), "links that are down for a while"),
        Key::optional("phase", Kind::Tables(&phases::KEYS), "named parts of the run"),
        Key::optional(
            "figure",
            Kind::Tables(&figures::KEYS),
            "what figures of the report are to be compared with",
        ),
        Key::optional("measure", Kind::Tables(&measures::KEYS), "what is measured"),
        Key::optional("expect", Kind::Tables(&expectations::KEYS), "what is expected"),
        Key::optional("tune", Kind::Table(&tune::KEYS), "what pausebed tune searches"),
    ],
);

/// The JSON Schema of a scenario file.
pub fn schema() -> serde_json::Value {
    json_schema::schema("pausebed scenario", &KEYS)
}

impl Scenario {
    /// Reads a scenario file, with `sets` ("key=value") applied to it first.
    ///
    /// # Errors
    /// Every fault of the file and of the overrides, in the order of the file.
    pub fn parse(text: &str, sets: &[String]) -> Result<Scenario, Problems> {
        let written = document::parse(text)?;
        let mut table = written.clone();
        let mut problems = Problems::default();
        for set in sets {
            overrides::apply(&mut table, set, &mut problems);
        }
        let top = Place::File { line: 1, column: 1 };
        let scale = scale_of(&table);
        settle(&mut table, &KEYS, &top, "", &scale, &mut problems);
        let scenario = Scenario::read(&Fields::root(&table, &top, scale), &mut problems);
        if let (Some(scenario), true) = (&scenario, problems.is_empty())
            && let Some(fabric) = Fields::root(&table, &top, scale).table("fabric")
        {
            devices::check(scenario, &fabric, &mut problems);
        }
        match scenario {
            Some(mut scenario) if problems.is_empty() => {
                let in_force = scheme::in_force(&scenario.scheme, &scenario.fabric);
                scenario.settings = settings::list(text, &written, &table, in_force);
                scenario.warnings = problems.take_warnings();
                text.clone_into(&mut scenario.text);
                scenario.sets = sets.to_vec();
                Ok(scenario)
            }
            _ => Err(problems.in_order()),
        }
    }

    /// Reads every part, so that each can report its faults, before any of them may be missing.
    fn read(root: &Fields<'_>, problems: &mut Problems) -> Option<Scenario> {
        let mut fabric = root.table("fabric").and_then(|fields| fabric::read(&fields, problems));
        lab::read(root, fabric.as_mut(), problems);
        let topology = fabric.as_ref().map(|fabric| &fabric.topology);
        let run = root.table("run").and_then(|fields| run::read(&fields, topology, problems));
        let end = run.as_ref().map(run::Run::end);
        let seed = run.as_ref().map_or(0, |run| run.seed);
        let technology = fabric.as_ref().map(|fabric| fabric.technology);
        let scheme = root.table("scheme");
        let scheme = scheme.and_then(|fields| scheme::read(&fields, technology, problems));
        let traffic = traffic::read(root, fabric.as_ref(), (seed, end), problems);
        if let Some(fabric) = fabric.as_mut().filter(|fabric| fabric.routing.0.assigned)
            && problems.is_empty()
        {
            let demands = traffic.demands(&fabric.topology);
            fabric.pairs = colored::assign(&fabric.topology, &fabric.forwarding, &demands);
        }
        let topology = fabric.as_ref().map(|fabric| &fabric.topology);
        let impairments = faults::read(root, topology, problems);
        let outages = outages::read(root, fabric.as_ref(), problems);
        let phases = phases::read(root, end, problems);
        let figures = figures::read(root, problems);
        let measures = measures::read(root, topology, &traffic, end, problems);
        let expectations = expectations::read(root, topology, problems);
        let tune = tune::read(root, fabric.as_ref(), end, scheme.as_ref(), problems);
        Some(Scenario {
            name: root.text("name")?.to_owned(),
            source: root.text("source")?.to_owned(),
            say: say::read(root, problems),
            baseline: root.text("baseline").map(str::to_owned),
            run: run?,
            fabric: fabric?,
            scheme: scheme?,
            traffic,
            impairments,
            outages,
            phases,
            figures,
            measures,
            expectations,
            tune,
            settings: Vec::new(),
            text: String::new(),
            sets: Vec::new(),
            warnings: Vec::new(),
        })
    }
}

/// What `mtu` means in this file: read before anything else, since every check needs it. A wrong
/// MTU or rate is reported later, by the key's own check.
fn scale_of(root: &Table) -> Scale {
    let inner = |table: &Table, key| match table.get(key) {
        Some(Datum { data: Data::Table(inner), .. }) => inner.clone(),
        _ => Table::default(),
    };
    let fabric = inner(root, "fabric");
    let mtu = fabric.text("mtu").and_then(|text| quantity::octets(text).ok());
    let link = inner(&fabric, "link");
    let rate = link.text("rate").and_then(|text| quantity::rate(text).ok());
    let mtu = mtu.filter(|mtu| mtu.get() <= fabric::MTU_MAX);
    let frame = fabric.text("frame").and_then(|text| quantity::octets(text).ok());
    let frame = frame.filter(|frame| frame.get() <= fabric::MTU_MAX + frames::TEST);
    let word = fabric.text("technology");
    let technology = TECHNOLOGIES.iter().find(|(name, _)| Some(*name) == word);
    let technology = technology.map_or(Technology::Infiniband, |(_, technology)| *technology);
    let mtu = mtu.unwrap_or(Bytes::new(fabric::DEFAULT_MTU));
    fabric::scale(
        technology,
        frame.unwrap_or_else(|| frames::full_frame(technology, mtu)),
        rate.unwrap_or(fabric::default_rate(technology)),
    )
}

/// Reports the second and further element of `list` that bears a name already taken.
fn refuse_duplicates(list: &[Fields<'_>], what: &str, problems: &mut Problems) {
    for (index, fields) in list.iter().enumerate() {
        let Some(name) = fields.text("name") else { continue };
        if let Some(first) = list[..index].iter().find(|other| other.text("name") == Some(name)) {
            let message = format!("{name:?} is the name of two {what}");
            let hint = format!("the other is in line {}", first.place.line());
            fields.report(problems, "name", Complaint::new(message, hint));
        }
    }
}

#[cfg(test)]
mod tests;
