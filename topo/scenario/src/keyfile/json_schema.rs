//! The declared keys as a JSON Schema, for editors.

use crate::keyfile::document::parse_value;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need};
use crate::keyfile::problem::Place;
use serde_json::{Map, Value, json};

/// The schema of a file whose root table is `keys`.
pub fn schema(title: &str, keys: &KeyTable) -> Value {
    let mut schema = table(keys);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema
}

fn table(keys: &KeyTable) -> Value {
    let every = keys.every_key();
    let properties: Map<String, Value> =
        every.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = keys
        .keys
        .iter()
        .filter(|key| matches!(key.need, Need::Required))
        .map(|key| key.name)
        .collect();
    json!({
        "type": "object",
        "description": keys.about,
        "properties": properties,
        "required": required,
        "additionalProperties": keys.open,
    })
}

fn property(key: &Key) -> Value {
    let mut schema = kind(&key.kind);
    schema["description"] = json!(key.about);
    if let Need::Default(text) = key.need {
        let default = parse_value(text, &Place::Override(String::new())).data.to_toml();
        if let Ok(default) = serde_json::to_value(default) {
            schema["default"] = default;
        }
    }
    schema
}

fn kind(kind_of: &Kind) -> Value {
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
        Kind::List(of) => json!({ "type": "array", "items": kind(of) }),
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(kind).collect::<Vec<_>>() }),
        Kind::Table(keys) => table(keys),
        Kind::Tables(keys) => json!({ "type": "array", "items": table(keys) }),
    }
}

fn quantity(units: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^[0-9_]+(\\.[0-9_]+)? ?({units})$") })
}
