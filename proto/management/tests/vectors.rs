//! The tables against datagrams of unmodified opensm and infiniband-diags: each is taken apart into named values,
//! these are compared with what other tools read, and the same octets come back from the values alone.
//!
//! The file is `../shared/captures/mads.json`, or below `PAUSEBED_CAPTURES`. Without it the tests are skipped.

use management::Datagram;
use management::attribute::{Field, administration, subnet};
use management::datagram::{self, header};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn vectors() -> Option<Vec<Value>> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let folder = std::env::var_os("PAUSEBED_CAPTURES").map_or(beside, PathBuf::from);
    let file = folder.join("mads.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        skip::because!("no vectors at {}; set PAUSEBED_CAPTURES", file.display());
        return None;
    };
    let whole: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    Some(whole["vectors"].as_array().expect("a list of vectors").clone())
}

fn octets(vector: &Value) -> Datagram {
    let hex = vector["hex"].as_str().expect("hexadecimal digits");
    let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    let octets: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect();
    Datagram::of(&octets).expect("a datagram of 256 octets")
}

/// Class, attribute and path: all fields that the tables give to a datagram, with the octets they count from.
fn tables(mad: &Datagram) -> Vec<(&'static [Field], usize)> {
    let start = datagram::data_range(mad.class(), mad.attribute()).start;
    let mut tables = vec![(header(mad.class()), 0)];
    if let Some(attribute) = mad.table() {
        tables.push((attribute.fields, start));
    }
    if mad.is_directed() {
        tables.push((&[datagram::INITIAL_PATH, datagram::RETURN_PATH], 0));
    }
    if mad.class() == datagram::ADMINISTRATION {
        tables.push((administration::HEADER, 0));
    }
    tables
}

/// The number that JSON gives: a number, `"0x…"`, or hexadecimal digits alone.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
        }
        _ => None,
    }
}

#[test]
fn every_vector_comes_back_from_its_named_values() {
    let Some(vectors) = vectors() else { return };
    assert_eq!(vectors.len(), 188);
    for vector in &vectors {
        let (name, mad) = (&vector["name"], octets(vector));
        let (mut back, mut covered) = ([0; Datagram::LEN], [0; Datagram::LEN]);
        for (fields, start) in tables(&mad) {
            for field in fields {
                for index in 0..field.count {
                    let value = field.at(index, &mad.0[start..]);
                    field.set_at(index, &mut back[start..], value);
                    field.set_at(index, &mut covered[start..], field.max());
                }
            }
        }
        // Bits of no field are reserved, or records of subnet administration: programs leave residue there.
        for (place, mask) in covered.iter().enumerate() {
            assert_eq!(back[place], mad.0[place] & mask, "{name}: octet {place}");
        }
        let common = [0, 1, 2, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 21, 22, 23];
        assert!(common.iter().all(|place| covered[*place] == 0xff), "{name}");
    }
}

#[test]
fn the_headers_read_as_other_tools_read_them() {
    let Some(vectors) = vectors() else { return };
    let mut compared = BTreeMap::<&str, usize>::new();
    for vector in &vectors {
        let (name, decoded, mad) = (&vector["name"], &vector["decoded"], octets(vector));
        let attribute = decoded["attribute"].as_str().expect("an attribute");
        let (id, title) = attribute.split_once(' ').expect("number and name");
        assert_eq!(u64::from_str_radix(&id[2..], 16), Ok(mad.attribute().into()), "{name}");
        if let Some(table) = mad.table() {
            assert_eq!(table.name, title, "{name}");
        }
        for (fields, _) in tables(&mad).into_iter().filter(|(_, start)| *start == 0) {
            for field in fields.iter().filter(|field| field.count == 1 && field.name != "attribute")
            {
                let Some(expected) = number(&decoded[field.name]) else { continue };
                assert_eq!(mad.get(field), expected, "{name}: {}", field.name);
                *compared.entry(field.name).or_default() += 1;
            }
        }
        let hops = mad.get(&datagram::HOP_COUNT) as usize;
        for (path, key) in
            [(datagram::INITIAL_PATH, "initial_path"), (datagram::RETURN_PATH, "return_path")]
        {
            let Some(expected) = decoded[key].as_array().filter(|_| mad.is_directed()) else {
                continue;
            };
            for (index, port) in expected.iter().enumerate().take(hops + 1) {
                assert_eq!(Some(path.at(index, &mad.0)), port.as_u64(), "{name}: {key} {index}");
            }
        }
    }
    for (field, least) in [("tid", 188), ("method", 188), ("m_key", 60), ("hop_count", 40)] {
        let count = compared.get(field).copied().unwrap_or(0);
        assert!(count >= least, "{field} was compared {count} times");
    }
}

#[test]
fn the_attributes_read_as_other_tools_read_them() {
    let Some(vectors) = vectors() else { return };
    let mut compared = BTreeMap::<&str, usize>::new();
    for vector in &vectors {
        let (name, mad) = (&vector["name"], octets(vector));
        let Some(expected) = vector["decoded"]["fields"].as_object() else { continue };
        let table = mad.table().unwrap_or_else(|| panic!("{name}: no table"));
        for (key, value) in expected {
            if compare(name, key, value, &mad) {
                *compared.entry(table.name).or_default() += 1;
            }
        }
    }
    for (attribute, least) in [
        ("NodeInfo", 80),
        ("SwitchInfo", 50),
        ("PortInfo", 600),
        ("SMInfo", 40),
        ("Notice", 28),
        ("NodeDescription", 4),
        ("SwitchCongestionSetting", 40),
        ("CACongestionSetting", 18),
        ("CongestionControlTable", 15),
        ("CongestionKeyInfo", 16),
        ("PortCounters", 4),
    ] {
        let count = compared.get(attribute).copied().unwrap_or(0);
        assert!(count >= least, "{attribute}: {count} values were compared");
    }
}

/// Compares one value with the tables; false if this datagram has no field of that kind.
fn compare(name: &Value, key: &str, value: &Value, mad: &Datagram) -> bool {
    let table = mad.table().expect("a table");
    let field = |wanted: &str| {
        let known = table.fields.iter().find(|field| field.name == wanted);
        *known.unwrap_or_else(|| panic!("{name}: no field {wanted}"))
    };
    let read = |field: &Field, index| field.at(index, mad.data());
    match key {
        "text" => {
            let text: Vec<u8> = (0..64).map(|index| read(&field("text"), index) as u8).collect();
            let text = String::from_utf8_lossy(&text);
            assert_eq!(Some(text.trim_end_matches('\0')), value.as_str(), "{name}");
        }
        // Three fields in a row, and the LID in the details of a trap.
        "link_width" => {
            for (index, part) in ["enabled", "supported", "active"].into_iter().enumerate() {
                let width = read(&field(&format!("link_width_{part}")), 0);
                assert_eq!(Some(width), value[index].as_u64(), "{name}: {part}");
            }
        }
        "data_lid" => {
            let lid = read(&subnet::notice::DETAILS, 0) << 8 | read(&subnet::notice::DETAILS, 1);
            assert_eq!(Some(lid), value.as_u64(), "{name}");
        }
        "octet16" => assert_eq!(Some(u64::from(mad.data()[16])), number(value), "{name}"),
        "victim_mask" | "credit_mask" => {
            let words = (0..4).map(|index| format!("{:016x}", read(&field(key), index)));
            assert_eq!(Some(words.collect::<String>().as_str()), value.as_str(), "{name}");
        }
        "first_entries" => {
            for (index, entry) in value.as_array().expect("entries").iter().enumerate() {
                let (shift, multiplier) = (field("shift"), field("multiplier"));
                let text = format!("{}:{}", read(&shift, index), read(&multiplier, index));
                assert_eq!(entry.as_str(), Some(text.as_str()), "{name}: entry {index}");
            }
        }
        _ if value.is_object() => {
            let level: usize = key.trim_start_matches("sl").parse().expect("a service level");
            for (part, expected) in value.as_object().expect("an object") {
                assert_eq!(
                    Some(read(&field(part), level)),
                    number(expected),
                    "{name}: {key} {part}"
                );
            }
        }
        _ => assert_eq!(Some(read(&field(key), 0)), number(value), "{name}: {key}"),
    }
    true
}
