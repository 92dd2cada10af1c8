//! One experiment as a file: fabric, scheme, traffic, measures, and what is expected of them.
//!
//! [`Scenario::parse`] takes the text and the overrides and answers with a scenario in which
//! everything is resolved (names are node indexes, times are picoseconds), or with every fault of
//! the file at once. Each part is read by a file of its own, which also declares its keys.
//!
//! ```
//! let faults = scenario::Scenario::parse("schema = 1\nname = 5", &[]).unwrap_err().to_string();
//! assert!(faults.contains("1:1: run: \"run\" is missing"), "{faults}");
//! ```

use crate::keyfile::document::{self, Table};
use crate::keyfile::fields::Fields;
use crate::keyfile::json_schema;
use crate::keyfile::overrides;
use crate::keyfile::problem::{Problem, Problems};
use crate::measure::{Expectation, Measure};
use crate::routes::colored;
use crate::run::Run;
use crate::traffic::Context;
use emulation::wiring::{End, Impairment};
use nicd::config::ServeConfig;
use proto::congestion::SchemeConfig;
use proto::params::quantity::{self, Scale};
use proto::params::{Key, KeyTable, Kind};
use proto::technology::Technology;
use proto::units::{Bytes, Instant};
use std::collections::BTreeSet;

pub mod attached;
mod devices;
pub mod expectations;
pub mod fabric;
pub mod faults;
pub mod figures;
pub mod files;
pub mod foreign;
pub mod frames;
pub mod host;
pub mod hosts;
pub mod inventory;
pub mod keyfile;
pub mod lab;
pub mod measure;
pub mod measures;
pub mod names;
pub mod outages;
pub mod pages;
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
pub mod serve;
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
    pub run: Run,
    /// The ports to capture, each once, in order.
    pub capture: Vec<End>,
    /// Whether bins are read while the run lasts; no key of the file.
    pub watched: bool,
    /// What it runs on.
    pub fabric: fabric::FabricSettings,
    /// Congestion control.
    pub scheme: SchemeConfig,
    /// Traffic.
    pub traffic: traffic::Plan,
    /// What NICs serve to attached hosts, with the node of the NIC.
    pub serving: Vec<(usize, ServeConfig)>,
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
        Key::required("schema", Kind::Whole(1, 1), "Version of this format."),
        Key::optional(
            "base",
            Kind::Text,
            "The scenario file that this one varies, seen from its folder: what this file does not state is taken from there.",
        ),
        Key::optional(
            "without",
            Kind::List(&Kind::Text),
            "What is not taken from the base, as --set names it: \"measure.drops\".",
        ),
        Key::required("name", Kind::Text, "Name in results."),
        Key::new("source", Kind::Text, "", "Where the numbers come from."),
        Key::optional(
            "say",
            Kind::Text,
            "The sentence a report opens with; {measure} and {measure:%} stand for values.",
        ),
        Key::optional(
            "baseline",
            Kind::Text,
            "The scenario that a report lays beside this one, where both are run.",
        ),
        Key::required("run", Kind::Table(&run::KEYS), "How it is run."),
        Key::required("fabric", Kind::Table(&fabric::KEYS), "What it runs on."),
        Key::optional("lab", Kind::Table(&lab::KEYS), "What of this host the fabric is cabled to."),
        Key::optional(
            "foreign",
            Kind::Tables(&foreign::KEYS),
            "Hosts at attached ports that traffic can be sent to.",
        ),
        Key::optional(
            "serve",
            Kind::Tables(&serve::KEYS),
            "Programs that NICs imitate for hosts at attached ports.",
        ),
        Key::optional("host", Kind::Tables(&hosts::KEYS), "Hosts at ports of switches."),
        Key::new(
            "scheme",
            Kind::Table(&scheme::KEYS),
            "{ kind = \"none\" }",
            "Congestion control.",
        ),
        Key::optional("traffic", Kind::Tables(&traffic::KEYS), "Traffic items."),
        Key::optional(
            "trace",
            Kind::Tables(&traffic::replayed::KEYS),
            "Messages that wait for each other.",
        ),
        Key::optional("impairment", Kind::Tables(&faults::KEYS), "Faults injected on purpose."),
        Key::optional("outage", Kind::Tables(&outages::KEYS), "Links that are down for a while."),
        Key::optional("phase", Kind::Tables(&phases::KEYS), "Named parts of the run."),
        Key::optional(
            "figure",
            Kind::Tables(&figures::KEYS),
            "What figures of the report are to be compared with.",
        ),
        Key::optional("measure", Kind::Tables(&measures::KEYS), "What is measured."),
        Key::optional("expect", Kind::Tables(&expectations::KEYS), "What is expected."),
        Key::optional("tune", Kind::Table(&tune::KEYS), "What pausebed tune searches."),
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
    /// The faults of the file and of the overrides, in the order of the file. Sections that depend on the
    /// fabric are read once the fabric can be built.
    pub fn parse(text: &str, sets: &[String]) -> Result<Scenario, Problems> {
        let written = document::parse(text)?;
        let mut table = written.clone();
        let mut problems = Problems::default();
        for set in sets {
            overrides::apply(&mut table, set, &mut problems);
        }
        let scale = scale_of(&table);
        let (mut scenario, warnings) =
            keyfile::read(&mut table, &KEYS, scale, problems, Scenario::read)?;
        let in_force = scheme::in_force(&scenario.scheme, &scenario.fabric);
        scenario.settings = settings::list(text, &written, &table, in_force);
        scenario.warnings = warnings;
        text.clone_into(&mut scenario.text);
        scenario.sets = sets.to_vec();
        Ok(scenario)
    }

    /// Reads every part, so that each can report its faults, before any of them may be missing.
    fn read(root: &Fields<'_>) -> Option<Scenario> {
        for key in ["base", "without"] {
            if root.is_written(key) {
                let hint = "`pausebed scenarios show FILE` prints a text that needs no other file";
                root.error(key, "a text without a file has no base", hint);
            }
        }
        let run = root.table("run").and_then(|fields| run::read(&fields));
        let end = run.as_ref().map_or(Instant::NEVER, Run::end);
        let mut fabric = fabric::read(&root.table("fabric")?)?;
        lab::read(root, &mut fabric);
        fabric::group::check(root, &fabric);
        hosts::read(root, run.as_ref(), &mut fabric);
        foreign::read(root, &mut fabric);
        let scheme = scheme::read(&root.table("scheme")?, fabric.technology)?;
        let seed = run.as_ref().map_or(0, |run| run.seed);
        let traffic = traffic::read(root, Context { fabric: &fabric, seed, end });
        if fabric.routing.0.assigned && root.problems.borrow().is_empty() {
            let demands = traffic.demands(&fabric.topology);
            fabric.pairs = colored::assign(&fabric.topology, &fabric.forwarding, &demands);
        }
        let topology = &fabric.topology;
        let capture = run.as_ref().zip(root.table("run")).and_then(|(run, fields)| {
            fields.gather("capture", &run.capture, |text| names::senders(topology, text))
        });
        let capture = BTreeSet::from_iter(capture.unwrap_or_default());
        let serving = serve::read(root, &fabric);
        let impairments = faults::read(root, topology);
        let outages = outages::read(root, &fabric);
        let phases = phases::read(root, end);
        let figures = figures::read(root);
        let measures = measures::read(root, &fabric, &traffic, end);
        let expectations = expectations::read(root, topology);
        let tune = tune::read(root, Context { fabric: &fabric, seed, end }, &scheme);
        let scenario = Scenario {
            name: root.text("name")?.to_owned(),
            source: root.text("source")?.to_owned(),
            say: say::read(root),
            baseline: root.text("baseline").map(str::to_owned),
            run: run?,
            capture: capture.into_iter().collect(),
            watched: false,
            fabric,
            scheme,
            traffic,
            serving,
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
        };
        if root.problems.borrow().is_empty() {
            devices::check(&scenario, &root.table("fabric")?);
        }
        Some(scenario)
    }
}

/// What `mtu` means in this file: read before anything else, since every check needs it. A wrong
/// MTU or rate is reported later, by the key's own check.
fn scale_of(root: &Table) -> Scale {
    let none = Table::default();
    let fabric = root.table("fabric").unwrap_or(&none);
    let octets = |key, most: u64| {
        let size = fabric.text(key).and_then(|text| quantity::octets(text).ok());
        size.filter(|size| size.get() <= most)
    };
    let rate = fabric.table("link").and_then(|link| quantity::rate(link.text("rate")?).ok());
    let mtu = octets("mtu", fabric::MTU_MAX).unwrap_or(Bytes::new(fabric::DEFAULT_MTU));
    let technology = fabric.text("technology").and_then(frames::technology);
    let technology = technology.unwrap_or(Technology::Infiniband);
    fabric::scale(
        technology,
        octets("frame", fabric::MTU_MAX + frames::TEST)
            .unwrap_or_else(|| frames::full_frame(technology, mtu)),
        rate.unwrap_or(fabric::default_rate(technology)),
    )
}

/// Reports the second and further element of `list` that bears a name already taken.
fn refuse_duplicates(list: &[Fields<'_>], what: &str) {
    for (index, fields) in list.iter().enumerate() {
        let Some(name) = fields.text("name") else { continue };
        if let Some(first) = list[..index].iter().find(|other| other.text("name") == Some(name)) {
            let hint = format!("the other is in line {}", first.place.line());
            fields.error("name", format!("{name:?} is the name of two {what}"), hint);
        }
    }
}

#[cfg(test)]
mod tests;
