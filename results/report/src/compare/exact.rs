//! Whether two run directories are the same, as a run with exact pace and its twin on the virtual clock must be.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files that may differ: lateness, which only the wall clock has, and the page drawn from all other files.
pub const FILES_THAT_MAY_DIFFER: [&str; 2] = ["fidelity.csv", "report.html"];

/// Members of `run.json` that may differ: where and how the run was made.
pub const MEMBERS_THAT_MAY_DIFFER: [&str; 8] = [
    "/host",
    "/backend",
    "/pace",
    "/dilation",
    "/cables",
    "/refused",
    "/repeated",
    "/files/fidelity.csv",
];

/// Settings of `[run]` that may differ, since they are about the same.
pub const SETTINGS_THAT_MAY_DIFFER: [&str; 8] = [
    "run.backend",
    "run.pace",
    "run.dilate",
    "run.placement",
    "run.cables",
    "run.carrier",
    "run.realtime",
    "run.awake",
];

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {file}: {source}")]
pub struct Unreadable {
    file: PathBuf,
    source: io::Error,
}

/// The first difference between two run directories, in one sentence; `None` if there is none beyond what may differ.
///
/// # Errors
/// If a file of them cannot be read, or one has no `run.json`.
pub fn first_difference(a: &Path, b: &Path) -> Result<Option<String>, Unreadable> {
    let names = [a, b].map(names);
    let [in_a, in_b] = names;
    let (in_a, in_b) = (in_a?, in_b?);
    if let Some(name) = in_a.symmetric_difference(&in_b).next() {
        let only = if in_a.contains(name) { a } else { b };
        return Ok(Some(format!("{name} is in {} only", only.display())));
    }
    // The result first: it says more than the tables behind it.
    let others = in_a.iter().map(String::as_str).filter(|name| *name != RESULT);
    for name in std::iter::once(RESULT).chain(others) {
        let [left, right] = [a, b].map(|folder| read(&folder.join(name)));
        let (left, right) = (left?, right?);
        let found = match name {
            RESULT => results_differ(&left, &right),
            _ => octets_differ(&left, &right),
        };
        if let Some(found) = found {
            return Ok(Some(format!("{name}, {found}")));
        }
    }
    Ok(None)
}

const RESULT: &str = "run.json";

/// The files of a run directory that must be the same.
fn names(folder: &Path) -> Result<BTreeSet<String>, Unreadable> {
    let unreadable = |source| Unreadable { file: folder.to_owned(), source };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && !FILES_THAT_MAY_DIFFER.contains(&name.as_str()) {
            names.insert(name);
        }
    }
    Ok(names)
}

fn read(file: &Path) -> Result<Vec<u8>, Unreadable> {
    fs::read(file).map_err(|source| Unreadable { file: file.to_owned(), source })
}

/// The first difference between two texts, by line, or between two binary files.
fn octets_differ(left: &[u8], right: &[u8]) -> Option<String> {
    if left == right {
        return None;
    }
    let at = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let (Ok(left_text), Ok(right_text)) = (str::from_utf8(left), str::from_utf8(right)) else {
        return Some(format!("octet {at} of {} and {}", left.len(), right.len()));
    };
    let number = left[..at].iter().filter(|octet| **octet == b'\n').count();
    let line = |text: &str| text.lines().nth(number).unwrap_or("(the end)").to_owned();
    Some(format!("line {}: {} ≠ {}", number + 1, line(left_text), line(right_text)))
}

fn results_differ(left: &[u8], right: &[u8]) -> Option<String> {
    let [left, right] = [left, right].map(serde_json::from_slice::<Value>);
    let (Ok(mut left), Ok(mut right)) = (left, right) else {
        return Some("it is not JSON".to_owned());
    };
    [&mut left, &mut right].into_iter().for_each(strip);
    values_differ("", &left, &right)
}

/// Removes what may differ.
fn strip(result: &mut Value) {
    for pointer in MEMBERS_THAT_MAY_DIFFER {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        if let Some(parent) = result.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(name);
        }
    }
    if let Some(parameters) = result.pointer_mut("/parameters").and_then(Value::as_array_mut) {
        parameters.retain(|parameter| {
            let name = parameter["name"].as_str().unwrap_or_default();
            !SETTINGS_THAT_MAY_DIFFER.contains(&name)
        });
    }
}

/// The first member that differs, and both values.
fn values_differ(at: &str, left: &Value, right: &Value) -> Option<String> {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            names.into_iter().find_map(|name| {
                let [a, b] = [a, b].map(|object| object.get(name).unwrap_or(&Value::Null));
                values_differ(&format!("{at}/{name}"), a, b)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.into_iter().find_map(|(n, (a, b))| values_differ(&format!("{at}/{n}"), a, b))
        }
        _ => (left != right).then(|| format!("{at}: {left} ≠ {right}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"backend":"udp","host":{"kernel":"6"},"measures":{"hot":0.5},
        "parameters":[{"name":"run.backend","value":"udp"},{"name":"run.seed","value":"1"}],
        "files":{"ports.csv":{"rows":2},"fidelity.csv":{"rows":9}}}"#;

    fn folder(run: &str, ports: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("run.json"), run).expect("a file");
        fs::write(folder.path().join("ports.csv"), ports).expect("a file");
        folder
    }

    fn found(a: &tempfile::TempDir, b: &tempfile::TempDir) -> Option<String> {
        first_difference(a.path(), b.path()).expect("both can be read")
    }

    #[test]
    fn what_may_differ_does_not_count_and_everything_else_is_named() {
        let a = folder(RUN, "t,port\n1,h0:1\n2,h1:1\n");
        let other =
            RUN.replace("\"udp\"", "\"virtual\"").replace("\"6\"", "\"7\"").replace(":9", ":0");
        let b = folder(&other, "t,port\n1,h0:1\n2,h1:1\n");
        fs::write(b.path().join("report.html"), "drawn").expect("a file");
        assert_eq!(found(&a, &b), None);
        let seed = folder(&other.replace("\"1\"", "\"2\""), "t,port\n1,h0:1\n2,h1:1\n");
        let text = found(&a, &seed).expect("another seed");
        assert_eq!(text, "run.json, /parameters/0/value: \"1\" ≠ \"2\"");
        let row = folder(RUN, "t,port\n1,h0:1\n3,h1:1\n");
        assert_eq!(found(&a, &row).as_deref(), Some("ports.csv, line 3: 2,h1:1 ≠ 3,h1:1"));
        let short = folder(RUN, "t,port\n1,h0:1\n");
        assert_eq!(found(&a, &short).as_deref(), Some("ports.csv, line 3: 2,h1:1 ≠ (the end)"));
        fs::write(b.path().join("capture.pcapng"), [0xff]).expect("a file");
        assert!(found(&a, &b).expect("a file more").starts_with("capture.pcapng is in "));
        fs::write(a.path().join("capture.pcapng"), [0xff, 0xfe]).expect("a file");
        assert_eq!(found(&a, &b).as_deref(), Some("capture.pcapng, octet 1 of 2 and 1"));
    }
}
