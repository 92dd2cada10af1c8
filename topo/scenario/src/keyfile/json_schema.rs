//! The declared keys as a JSON Schema, for editors.
//!
//! Keys that depend on a word of the same table are properties of the table, so that editors complete
//! them, and one rule per word states which of them it has and what they hold.

use crate::keyfile::document::parse_value;
use crate::keyfile::problem::Place;
use proto::params::{Key, KeyTable, Kind, Need, Variants};
use serde_json::{Map, Value, json};

/// Whether a file must have the required keys, or takes what it lacks from another.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    Whole,
    Variant,
}

/// The schema of a file whose root table is `keys`. Where the keys `base` and `without` make a file the variant of
/// another ([`crate::keyfile::variant`]), it needs no other key.
pub fn schema(title: &str, keys: &KeyTable) -> Value {
    let mut schema = table(keys, Extent::Whole);
    if keys.keys.iter().any(|key| key.name == "without") {
        let whole = schema;
        schema = table(keys, Extent::Variant);
        schema["if"] = json!({ "required": ["base"] });
        schema["else"] = whole;
    }
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema
}

fn table(keys: &KeyTable, extent: Extent) -> Value {
    let every = keys.every_key();
    let is_required = |key: &&Key| extent == Extent::Whole && matches!(key.need, Need::Required);
    let required = keys.keys.iter().filter(is_required);
    let mut schema = json!({
        "type": "object",
        "description": keys.about,
        "properties": properties(&every, extent),
        "required": required.map(|key| key.name).collect::<Vec<_>>(),
        "additionalProperties": keys.open,
    });
    let rules: Vec<Value> = keys.variants.iter().flat_map(|of| rules(keys, of, extent)).collect();
    if !rules.is_empty() {
        schema["allOf"] = json!(rules);
    }
    schema
}

fn properties(keys: &[&'static Key], extent: Extent) -> Map<String, Value> {
    keys.iter().map(|key| (key.name.to_owned(), property(key, keys, extent))).collect()
}

/// One rule for each word of a deciding key of the same table. A word outside the table has none.
fn rules(table: &KeyTable, variants: &Variants, extent: Extent) -> Vec<Value> {
    let Some(by) = table.keys.iter().find(|key| key.name == variants.by) else {
        return Vec::new();
    };
    let rows = (variants.rows)();
    let default = by.need.text(|_| None).map(|text| text.trim_matches('"'));
    let names = |keys: &[&'static Key]| keys.iter().map(|key| key.name).collect::<Vec<_>>();
    let all: Vec<&str> = rows.iter().flat_map(|(_, keys)| names(keys)).collect();
    let rule = |(word, keys): &(&str, Vec<&'static Key>)| {
        let needs_word: &[&str] = if default == Some(*word) { &[] } else { &[by.name] };
        let own = names(keys);
        let others: Vec<Value> = all
            .iter()
            .filter(|name| !own.contains(name))
            .map(|name| json!({ "required": [name] }))
            .collect();
        let mut then = json!({ "properties": properties(keys, extent) });
        if !others.is_empty() {
            then["not"] = json!({ "anyOf": others });
        }
        let condition =
            json!({ "properties": { by.name: { "const": word } }, "required": needs_word });
        json!({ "if": condition, "then": then })
    };
    rows.iter().map(rule).collect()
}

fn property(key: &Key, keys: &[&'static Key], extent: Extent) -> Value {
    let mut schema = kind(&key.kind, extent);
    let mut about = key.about.to_owned();
    if let Need::Else(words) = key.need {
        about = format!("{about} Default: {words}.");
    }
    if let Need::By(..) = key.need {
        let groups = keys.iter().map(|key| std::slice::from_ref(*key)).collect::<Vec<_>>();
        about = format!("{about} Default: {}.", key.default_in_words(&groups));
    }
    if let Some(when) = key.when {
        about = format!("{about} Needs {when}.");
    }
    if !key.source.is_empty() {
        about = format!("{about} Source: {}.", key.source);
    }
    schema["description"] = json!(about);
    if let Need::Default(text) = key.need {
        let default = parse_value(text, &Place::Default).data.to_toml();
        if let Ok(default) = serde_json::to_value(default) {
            schema["default"] = default;
        }
    }
    schema
}

fn kind(kind_of: &Kind, extent: Extent) -> Value {
    match kind_of {
        Kind::Text => json!({ "type": "string" }),
        Kind::Word(words) => json!({ "type": "string", "enum": words() }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Whole(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Real(above, _) if above.is_infinite() => json!({ "type": "number" }),
        Kind::Real(above, max) => {
            json!({ "type": "number", "exclusiveMinimum": above, "maximum": max })
        }
        Kind::Time | Kind::Span => quantity("s|ms|us|ns|ps|mtu|tau"),
        Kind::Rate => quantity("[TGMk]?bps"),
        Kind::Size => quantity("[GMK]?B|[MK]iB|mtu"),
        Kind::Octets => quantity("[GMK]?B|[MK]iB"),
        Kind::List(of) => json!({ "type": "array", "items": kind(of, extent) }),
        Kind::UpTo(most, of) => {
            json!({ "type": "array", "items": kind(of, extent), "minItems": 1, "maxItems": most })
        }
        Kind::Gain => json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
            { "type": "string", "pattern": "^ *[0-9]+ */ *[0-9]+ *$" },
        ] }),
        Kind::Either(kinds) => {
            json!({ "anyOf": kinds.iter().map(|of| kind(of, extent)).collect::<Vec<_>>() })
        }
        Kind::Table(keys) => table(keys, extent),
        Kind::Tables(keys) => json!({ "type": "array", "items": table(keys, extent) }),
    }
}

fn quantity(units: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^[0-9_]+(\\.[0-9_]+)? ?({units})$") })
}
