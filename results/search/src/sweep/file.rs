//! The sweep file: a base scenario, axes with their values, measures and expectations. A
//! scenario file is a sweep without axes, to which the command line adds them.

use super::Sweep;
use super::grid::{Axis, Step};
use super::judgement::{Expected, Rule};
use proto::params::quantity::Scale;
use proto::params::{Key, KeyTable, Kind};
use scenario::keyfile::document::{Data, Entry};
use scenario::keyfile::fields::{Fields, Texts, meaning};
use scenario::keyfile::json_schema;
use scenario::keyfile::problem::{Problems, did_you_mean};
use scenario::keyfile::{self, document};
use std::path::Path;

const ANY_NUMBER: Kind = Kind::Real(f64::NEG_INFINITY, f64::INFINITY);

static KEYS_OF_BASE: KeyTable = KeyTable {
    about: "keys of the base scenario, as --set names them, quoted: \"scheme.w\" = 2",
    keys: &[],
    variants: &[],
    open: true,
};

static AXIS: KeyTable = KeyTable::new(
    "what is varied",
    &[
        Key::required("name", Kind::Text, "its name in results"),
        Key::optional(
            "labels",
            Kind::List(&Kind::Text),
            "a name for each value; the values of the first key if left out",
        ),
        Key::required(
            "set",
            Kind::Table(&KEYS_OF_BASE),
            "by key of the base scenario its values; several keys change together",
        ),
    ],
);

/// The expected orders of a measure.
const ORDERS: [(&str, Rule); 2] = [("rising", Rule::Rising), ("falling", Rule::Falling)];

static EXPECT: KeyTable = KeyTable::new(
    "an order of values, or bounds",
    &[
        Key::required("measure", Kind::Text, "a measure's name"),
        Key::new(
            "at",
            Kind::List(&Kind::Text),
            "[]",
            "at these labels, in this order; at all if left out",
        ),
        Key::optional(
            "order",
            Kind::Word(|| ORDERS.iter().map(|(word, _)| *word).collect()),
            "each value is above, or below, the one before it",
        ),
        Key::optional("min", ANY_NUMBER, "at least this"),
        Key::optional("max", ANY_NUMBER, "at most this"),
    ],
);

/// The keys of a sweep file.
pub static KEYS: KeyTable = KeyTable::new(
    "a pausebed sweep",
    &[
        Key::required("schema", Kind::Whole(1, 1), "version of this format"),
        Key::required("name", Kind::Text, "name in results"),
        Key::new("source", Kind::Text, "", "where the values come from"),
        Key::required("base", Kind::Text, "the scenario file, seen from this one's folder"),
        Key::new("set", Kind::Table(&KEYS_OF_BASE), "{}", "overrides at every point"),
        Key::new(
            "measures",
            Kind::List(&Kind::Text),
            "[]",
            "which measures of the base are shown; all numbers if left out",
        ),
        Key::new("seeds", Kind::Whole(1, 100), "1", "so many, from the base's run.seed on"),
        Key::required("axis", Kind::Tables(&AXIS), "what varies"),
        Key::optional("expect", Kind::Tables(&EXPECT), "what is expected; with one axis only"),
    ],
);

/// The JSON Schema of a sweep file.
pub fn schema() -> serde_json::Value {
    json_schema::schema("pausebed sweep", &KEYS)
}

/// The sweep of the file `path` with this text.
///
/// # Errors
/// All faults of a sweep file. Those of a scenario are reported when it is run.
pub fn parse(text: &str, path: &Path) -> Result<Sweep, Problems> {
    let mut table = document::parse(text)?;
    // A scenario, which may be the variant of another: its axes come from the command line.
    if table.get("axis").is_none() {
        let text = |key| table.text(key).unwrap_or_default().to_owned();
        return Ok(Sweep {
            name: text("name"),
            source: text("source"),
            base: path.to_owned(),
            seeds: 1,
            ..Sweep::default()
        });
    }
    let problems = Problems::default();
    let (sweep, _) =
        keyfile::read(&mut table, &KEYS, Scale::ABSOLUTE, problems, |root| read(root, path))?;
    Ok(sweep)
}

fn read(root: &Fields<'_>, path: &Path) -> Option<Sweep> {
    let axes: Vec<Axis> = root.tables("axis").iter().filter_map(|fields| axis(fields)).collect();
    let expectations =
        root.tables("expect").iter().filter_map(|fields| expected(fields, &axes)).collect();
    let folder = path.parent().unwrap_or(Path::new(""));
    let overrides = root.table("set").map_or(&[][..], |set| &set.table.entries);
    let sets = overrides.iter().map(|entry| set(&entry.key, &entry.value.data)).collect();
    Some(Sweep {
        name: root.text("name")?.to_owned(),
        source: root.text("source")?.to_owned(),
        base: folder.join(root.text("base")?),
        sets,
        axes,
        measures: texts(root, "measures"),
        seeds: root.get("seeds")?,
        expectations,
    })
}

fn texts(fields: &Fields<'_>, key: &str) -> Vec<String> {
    fields.get::<Texts>(key).unwrap_or_default().0
}

/// In the format of `--set`.
fn set(key: &str, value: &Data) -> String {
    format!("{key}={}", value.to_toml())
}

fn axis(fields: &Fields<'_>) -> Option<Axis> {
    let name = fields.text("name")?;
    let keys = fields.table("set")?;
    let mut columns: Vec<(&Entry, Vec<&Data>)> = Vec::new();
    for entry in &keys.table.entries {
        match &entry.value.data {
            Data::List(list) if list.len() > 1 => {
                columns.push((entry, list.iter().map(|datum| &datum.data).collect()));
            }
            _ => {
                let hint = "one value for each point: \"scheme.w\" = [1, 2, 4]";
                keys.error(&entry.key, "no list of values", hint);
            }
        }
    }
    let Some((first, others)) = columns.split_first() else {
        if keys.table.entries.is_empty() {
            let hint = "set = { \"scheme.w\" = [1, 2, 4] }";
            fields.error("set", "nothing varies", hint);
        }
        return None;
    };
    let count = first.1.len();
    for (entry, values) in others {
        if values.len() != count {
            let message = format!("{} values beside {count} of {}", values.len(), first.0.key);
            let hint = "keys of one axis change together";
            keys.error(&entry.key, message, hint);
            return None;
        }
    }
    let mut labels = texts(fields, "labels");
    if labels.is_empty() {
        let label = |value: &&Data| value.to_toml().to_string().trim_matches('"').to_owned();
        labels = first.1.iter().map(label).collect();
    }
    if labels.len() != count {
        let message = format!("{} labels for {count} values", labels.len());
        fields.error("labels", message, "one for each value");
        return None;
    }
    let step = |(index, label): (usize, String)| Step {
        label,
        sets: columns.iter().map(|(entry, values)| set(&entry.key, values[index])).collect(),
    };
    Some(Axis { name: name.to_owned(), steps: labels.into_iter().enumerate().map(step).collect() })
}

fn expected(fields: &Fields<'_>, axes: &[Axis]) -> Option<Expected> {
    let at = texts(fields, "at");
    match axes {
        [axis] => {
            let labels = || axis.steps.iter().map(|step| step.label.as_str());
            if let Some(stranger) = at.iter().find(|label| !labels().any(|known| known == *label)) {
                let hint = did_you_mean(stranger, labels());
                let message = format!("{} has no value {stranger:?}", axis.name);
                fields.error("at", message, hint);
            }
        }
        // Their faults have been reported.
        [] => {}
        _ => {
            let message = "an order along several axes is none";
            fields.error("measure", message, "a sweep for each axis");
        }
    }
    let order = fields.text("order").and_then(|word| meaning(&ORDERS, word));
    let rule = match (order, fields.get("min"), fields.get("max")) {
        (Some(order), None, None) => order,
        (None, None, None) | (Some(_), ..) => {
            let hint = "order = \"rising\", or min = 0.7";
            let message = "either an order or bounds";
            fields.error("measure", message, hint);
            return None;
        }
        (None, min, max) => Rule::Within {
            min: min.unwrap_or(f64::NEG_INFINITY),
            max: max.unwrap_or(f64::INFINITY),
        },
    };
    Some(Expected { measure: fields.text("measure")?.to_owned(), at, rule })
}
