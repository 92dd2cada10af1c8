//! `[tune]`: which settings `pausebed tune` searches, over which traffic, and what it weighs.

use crate::keyfile::document::{Data, Datum, Table};
use crate::keyfile::fields::{Fields, Texts};
use crate::keyfile::problem::{Complaint, did_you_mean};
use crate::keyfile::settle::settle;
use crate::pair::pair;
use crate::refuse_duplicates;
use crate::traffic::{self, Context};
use proto::congestion::SchemeConfig;
use proto::congestion::schemes::find;
use proto::params::{Key, KeyTable, Kind, Params};
use proto::units::Instant;

/// What is searched, and what counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Tune {
    /// The parameters of the scheme that are searched.
    pub search: Vec<Searched>,
    /// The traffic that settings must cope with; the file's own if it names none.
    pub cases: Vec<Case>,
    /// When throughput is taken; worked out from the traffic if left out.
    pub window: Option<(Instant, Instant)>,
    /// So many seeds, from `run.seed` on.
    pub seeds: u64,
    /// At most so many runs.
    pub runs: u64,
    /// How far cold traffic may be from its ideal rate.
    pub goal: f64,
    /// What a candidate's flaws cost.
    pub weights: Weights,
}

/// A parameter and the values it may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// In the scheme's own words.
    pub name: String,
    /// What it may be.
    pub values: Values,
}

/// The values a parameter may take.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers, both ends included.
    Whole(i64, i64),
    /// Numbers, both ends included.
    Real(f64, f64),
    /// These, in an order that means something.
    Listed(Vec<toml::Value>),
}

/// Traffic that settings must cope with.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name in results.
    pub name: String,
    /// The traffic items of the case.
    pub traffic: traffic::Plan,
}

proto::params! {
    /// What a candidate's flaws cost.
    #[derive(Copy)]
    pub struct Weights {
        /// Cold traffic above or below its ideal rate.
        effectiveness: f64 = WEIGHT, Default("1.0");
        /// A hot port below 0.96 of its line.
        utilisation: f64 = WEIGHT, Default("1.0");
        /// One less Jain's index of the hot flows.
        fairness: f64 = WEIGHT, Default("1.0");
        /// Standard deviation of cold traffic from bin to bin.
        stability: f64 = WEIGHT, Default("1.0");
    }
}

const WEIGHT: Kind = Kind::Real(0.0, 1e6);

static WEIGHTS: KeyTable =
    KeyTable::new("what a candidate's flaws cost, each a share of one", Weights::KEYS);

static ANYTHING: KeyTable =
    KeyTable { about: "names of the scenario's own", keys: &[], variants: &[], open: true };

static CASE: KeyTable = KeyTable::new(
    "the file's traffic with changes",
    &[
        Key::required("name", Kind::Text, "Its name in results."),
        Key::new("without", Kind::List(&Kind::Text), "[]", "Traffic items left out."),
        Key::new(
            "traffic",
            Kind::Table(&ANYTHING),
            "{}",
            "By traffic item, the keys that are different: hot = { load = 0.07 }.",
        ),
    ],
);

/// The keys of `[tune]`.
pub static KEYS: KeyTable = KeyTable::new(
    "what pausebed tune searches",
    &[
        Key::required(
            "search",
            Kind::Table(&ANYTHING),
            "By parameter of the scheme, a range \"1..60\" or a list of values.",
        ),
        Key::optional(
            "window",
            Kind::List(&Kind::Time),
            "From when to when; the last 3/8 of the first overload if left out.",
        ),
        Key::new("seeds", Kind::Whole(1, 100), "2", "So many, from run.seed on."),
        Key::new("runs", Kind::Whole(1, 1_000_000), "400", "At most so many runs."),
        Key::new(
            "goal",
            Kind::Real(0.0, 1.0),
            "0.03",
            "How far cold traffic may be from its ideal rate, as a share of that.",
        ),
        Key::new("weights", Kind::Table(&WEIGHTS), "{}", "What a candidate's flaws cost."),
        Key::optional(
            "case",
            Kind::Tables(&CASE),
            "Traffic that settings must cope with; the file's own if none is named.",
        ),
    ],
);

/// Reads `[tune]`, if there is one.
pub fn read(root: &Fields<'_>, context: Context<'_>, scheme: &SchemeConfig) -> Option<Tune> {
    let fields = root.table("tune")?;
    let example = "[\"7000 mtu\", \"10000 mtu\"]";
    let window = fields.get::<Vec<Instant>>("window");
    let tune = Tune {
        search: search(&fields, scheme),
        cases: cases(root, &fields, context),
        window: pair(&fields, "window", example, window.as_deref(), context.end),
        seeds: fields.get("seeds")?,
        runs: fields.get("runs")?,
        goal: fields.get("goal")?,
        weights: fields.table("weights")?.params()?,
    };
    let least = tune.least_runs();
    if tune.runs < least {
        let message = format!("{} runs do not judge a single candidate", tune.runs);
        let hint = format!("at least {least}: two candidates in each case with each seed");
        fields.error("runs", message, hint);
    }
    Some(tune)
}

impl Tune {
    /// Runs that judge two candidates.
    pub fn least_runs(&self) -> u64 {
        2 * self.seeds * self.cases.len().max(1) as u64
    }
}

fn search(fields: &Fields<'_>, scheme: &SchemeConfig) -> Vec<Searched> {
    let Some(search) = fields.table("search") else { return Vec::new() };
    if search.table.entries.is_empty() {
        fields.error("search", "nothing is searched", "search = { ccti_increase = \"1..60\" }");
    }
    let searched = search.table.entries.iter().filter_map(|entry| {
        let values = search.accept(&entry.key, values(&entry.value.data))?;
        ask_scheme(&search, scheme, &entry.key, &values);
        Some(Searched { name: entry.key.clone(), values })
    });
    searched.collect()
}

fn values(data: &Data) -> Result<Values, Complaint> {
    let complaint = |message: String| {
        Complaint::new(message, "a range with both its ends, \"1..60\", or a list of values")
    };
    match data {
        Data::List(list) if list.len() > 1 => {
            Ok(Values::Listed(list.iter().map(|item| item.data.to_toml()).collect()))
        }
        Data::List(_) => Err(complaint("there is nothing to choose from".to_owned())),
        Data::Text(text) => {
            let fault = || complaint(format!("{text:?} is not a range"));
            let (low, high) = text.split_once("..").ok_or_else(fault)?;
            let (low, high) = (low.trim(), high.trim());
            let values = match (low.parse::<i64>(), high.parse::<i64>()) {
                (Ok(low), Ok(high)) => (low < high).then_some(Values::Whole(low, high)),
                _ => {
                    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
                    let (low, high) = number(low).zip(number(high)).ok_or_else(fault)?;
                    (low < high).then_some(Values::Real(low, high))
                }
            };
            values.ok_or_else(|| complaint("its first end is not below its last".to_owned()))
        }
        other => Err(complaint(format!("{} where a range belongs", other.type_name()))),
    }
}

/// The scheme must have the parameter and accept each end of a range, each value of a list.
fn ask_scheme(search: &Fields<'_>, scheme: &SchemeConfig, name: &str, values: &Values) {
    let Some(row) = find(&scheme.kind) else { return };
    let tried = match values {
        Values::Whole(low, high) => [*low, *high].map(toml::Value::Integer).to_vec(),
        Values::Real(low, high) => [*low, *high].map(toml::Value::Float).to_vec(),
        Values::Listed(list) => list.clone(),
    };
    for value in tried {
        let message = format!("{} refuses {name} = {value}", scheme.kind);
        let params = toml::Table::from_iter([(name.to_owned(), value)]);
        for error in row.configure(&params).err().unwrap_or_default() {
            search.error(name, &*message, error.complaint.hint);
        }
    }
}

fn cases(root: &Fields<'_>, fields: &Fields<'_>, context: Context<'_>) -> Vec<Case> {
    let list = fields.tables("case");
    refuse_duplicates(&list, "cases");
    let case = |case: &Fields<'_>| {
        let changed = changed(root, case);
        let traffic = traffic::read(&Fields { table: &changed, ..root.clone() }, context);
        Some(Case { name: case.text("name")?.to_owned(), traffic })
    };
    list.iter().filter_map(case).collect()
}

/// The file's traffic as a case changes it. What it writes keeps its own place, for messages.
fn changed(root: &Fields<'_>, case: &Fields<'_>) -> Table {
    let items = root.table.get("traffic").and_then(Datum::list);
    let mut items = items.unwrap_or_default().to_vec();
    let name_of = |item: &Datum| {
        let name = item.table().and_then(|table| table.text("name"));
        name.unwrap_or_default().to_owned()
    };
    let names: Vec<String> = items.iter().map(name_of).collect();
    let unknown = |name: &str| {
        let message = format!("no traffic item is called {name:?}");
        Complaint::new(message, did_you_mean(name, names.iter().map(String::as_str)))
    };
    let without = case.get::<Texts>("without").unwrap_or_default();
    case.gather("without", &without, |name| {
        let before = items.len();
        items.retain(|item| name_of(item) != name);
        if items.len() == before { Err(unknown(name)) } else { Ok(vec![()]) }
    });
    let changes = case.table("traffic").map_or(&[][..], |traffic| &traffic.table.entries[..]);
    for change in changes {
        let path = format!("{}.traffic.{}", case.path, change.key);
        let mut problems = root.problems.borrow_mut();
        match (items.iter_mut().find(|item| name_of(item) == change.key), &change.value.data) {
            (None, _) => problems.report(&change.place, path, unknown(&change.key)),
            (Some(item), Data::Table(keys)) => {
                merge(item, keys);
                let place = item.place.clone();
                if let Data::Table(table) = &mut item.data {
                    settle(table, &traffic::KEYS, &place, &path, &root.scale, &mut problems);
                }
            }
            (Some(_), other) => {
                let message = format!("{} where a table belongs", other.type_name());
                let complaint = Complaint::new(message, "for example hot = { load = 0.07 }");
                problems.report(&change.value.place, path, complaint);
            }
        }
    }
    let mut changed = Table::default();
    changed.set("traffic", Datum::new(root.place.clone(), Data::List(items)));
    changed
}

fn merge(item: &mut Datum, keys: &Table) {
    let Data::Table(table) = &mut item.data else { return };
    for entry in &keys.entries {
        // Both set the amount of traffic: the new one replaces the other.
        let other = match entry.key.as_str() {
            "load" => "rate",
            "rate" => "load",
            _ => "",
        };
        table.entries.retain(|old| old.key != other && old.key != entry.key);
        table.entries.push(entry.clone());
    }
}

#[cfg(test)]
mod tests;
